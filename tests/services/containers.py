"""
Containers by Podman, in a storage of their own that is removed afterwards.

No registry of images is asked unless BASE_IMAGE names an image, as in ``BASE_IMAGE=python:3.11-slim-bookworm make
prove``: otherwise debootstrap makes the base from Debian's packages.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from services.installed import program

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BASE = "localhost/base:proof"
IMAGE = "localhost/muniment:0.1.0"
"""The name that the files of deploy/ use."""
AUTHORITIES = Path("/usr/local/share/ca-certificates")
"""A proxy that inspects TLS has its certificate here; the base trusts what this machine trusts."""

# No container gets more open files than this process has: raising them needs CAP_SYS_RESOURCE, which a virtual machine
# may lack. runc, unlike crun, runs on each version of cgroups and on both at once.
_ENGINE = """\
[containers]
default_ulimits = []
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{folder}/state"
[network]
network_config_dir = "{folder}/networks"
"""
_STORAGE = """\
[storage]
driver = "{driver}"
graphroot = "{folder}/storage"
runroot = "{folder}/run"
"""


class Podman:
    """An engine whose images, containers, volumes and networks are all below *folder*."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._program = program("podman")
        program("runc")
        for name in ("storage", "run", "state", "networks"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "engine.conf").write_text(_ENGINE.format(folder=folder))
        self.environment = {
            **os.environ,
            "CONTAINERS_CONF": str(folder / "engine.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "BUILDAH_FORMAT": "docker",
        }
        self.driver = "overlay"
        self._use(self.driver)
        if self.run("info", check=False).returncode:
            self.driver = "vfs"  # copies each layer: slower, and works on every file system
            self._use(self.driver)
            self("info")

    def _use(self, driver: str) -> None:
        (self._folder / "storage.conf").write_text(_STORAGE.format(folder=self._folder, driver=driver))

    def run(
        self, *arguments: str | Path, check: bool = True, within_s: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of Podman."""
        return self.other(self._program, *arguments, check=check, within_s=within_s)

    def __call__(self, *arguments: str | Path, within_s: float = 300) -> str:
        """Run a command of Podman and return what it prints."""
        return self.run(*arguments, within_s=within_s).stdout.strip()

    def other(
        self, *command: str | Path, check: bool = True, within_s: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run a program that uses this engine."""
        done = subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=within_s,
        )
        if check:
            words = " ".join(map(str, command))
            assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def remove_containers(self) -> None:
        """Remove every container and pod, with its volumes and networks."""
        self("pod", "rm", "--all", "--force")
        self("container", "rm", "--all", "--force", "--time=0")
        for what in ("volume", "network"):
            self(what, "prune", "--force")

    def close(self) -> None:
        """Remove everything that the engine stored."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.remove_containers()
            self.run("rmi", "--all", "--force", check=False)
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted((each for each in mounts if each.startswith(f"{self._folder}/")), reverse=True):
            subprocess.run(["umount", "--lazy", mount], check=False, timeout=30)
        shutil.rmtree(self._folder)

    def make_base(self) -> None:
        """Make the base of the images: Debian 12 with Python 3.11, or the image that BASE_IMAGE names."""
        if named := os.environ.get("BASE_IMAGE"):
            self("pull", named, within_s=900)
            self("tag", named, BASE)
            return
        system = self._folder / "system"
        options = ["--variant=minbase", "--include=ca-certificates,python3,python3-venv", "bookworm"]
        self.other(program("debootstrap"), *options, system, within_s=1200)
        for certificate in AUTHORITIES.glob("*.crt"):
            shutil.copy(certificate, system / AUTHORITIES.relative_to("/"))
        self.other(program("chroot"), system, "update-ca-certificates")
        archive = self._folder / "system.tar"
        self.other("tar", "--create", f"--directory={system}", f"--file={archive}", ".")
        self("import", archive, BASE)
        archive.unlink()
        shutil.rmtree(system)

    def build(self, name: str, containerfile: Path, context: Path = ROOT, *options: str) -> None:
        """Build an image as the first lines of its Containerfile say."""
        self("build", "--file", containerfile, "--tag", name, *options, context, within_s=1700)


@contextlib.contextmanager
def podman(folder: Path) -> Iterator[Podman]:
    """Yield an engine with the base, and remove everything afterwards."""
    engine = Podman(folder)
    try:
        engine.make_base()
        yield engine
    finally:
        engine.close()
