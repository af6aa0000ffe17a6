"""
A substitute for a container where none can be started: bubblewrap with a read-only root.

The commands of the build stage of deploy/Containerfile run unchanged; the result is started as the image's
unprivileged user, who can only write to the data folder and /tmp.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
USER = 10001
_KEPT_OUT = {"proc", "dev", "sys", "tmp", "opt", "run", "lost+found"}


def missing() -> str:
    """Return what this machine lacks, or ""."""
    if shutil.which("bwrap") is None or shutil.which("setpriv") is None:
        return "bubblewrap (bwrap) or setpriv is not on this machine"
    if os.geteuid() != 0:
        return "another user can be taken by root alone"
    return ""


def stage(name: str) -> list[str]:
    """Return the shell commands of a stage of the Containerfile, in order."""
    text = re.sub(r"\\\n\s*", "", CONTAINERFILE.read_text())
    stages = re.split(r"(?m)^FROM ", text)[1:]
    (wanted,) = (each for each in stages if each.splitlines()[0].endswith(name))
    return re.findall(r"(?m)^RUN (.*)$", wanted)


def build(folder: Path) -> Path:
    """
    Run the build stage in *folder*.

    Returns:
        The contents of ``/opt`` in the image.
    """
    source, opt, wheel = (folder / name for name in ("source", "opt", "wheel"))
    for made in (source / "requirements", opt, wheel):
        made.mkdir(parents=True)
    for name in ("requirements/build.lock", "requirements/container.lock", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    system: list[str | Path] = []
    for entry in Path("/").iterdir():
        if entry.is_symlink():
            system += ["--symlink", entry.readlink(), entry]
        elif entry.is_dir() and entry.name not in _KEPT_OUT:
            system += ["--ro-bind", entry, entry]
    for command in stage(" AS build"):
        done = subprocess.run(
            ["bwrap", *system, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
            + ["--bind", source, "/source", "--bind", opt, "/opt", "--bind", wheel, "/wheel", "--chdir", "/source"]
            + ["--setenv", "PATH", f"{sys.base_prefix}/bin:/usr/bin:/bin", "/bin/sh", "-euc", command],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return opt


def command(opt: Path, data: Path, *arguments: str, **settings: str) -> list[str | Path]:
    """Return the command line that starts the image's program."""
    os.chown(data, USER, USER)
    environment = {"PATH": "/opt/muniment/bin", "PYTHONDONTWRITEBYTECODE": "1", "MUNIMENT_DATA": "/data"}
    environment |= {f"MUNIMENT_{name.upper()}": value for name, value in settings.items()}
    return [
        *("bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--clearenv"),
        *("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"),
        *("--symlink", "usr/lib64", "/lib64", "--ro-bind", "/etc", "/etc"),
        *("--ro-bind", sys.base_prefix, sys.base_prefix, "--ro-bind", opt, "/opt"),
        *("--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp", "--bind", data, "/data"),
        *("--remount-ro", "/"),
        *(word for name, value in environment.items() for word in ("--setenv", name, value)),
        *("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP", "--chdir", "/"),
        *("/usr/bin/setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"),
        *("--bounding-set=-all", "--inh-caps=-all", "/opt/muniment/bin/muniment", *arguments),
    ]
