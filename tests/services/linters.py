"""Linters for the files of deploy/ and other locked packages, installed next to the environment when first needed."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def folder(group: str = "deploy", *options: str) -> Path:
    """Return the folder with exactly the locked packages of *group*; install them if necessary."""
    return installed(ROOT / "requirements" / f"{group}.lock", f"{group}-tools", *options)


def installed(locked: Path, name: str, *options: str) -> Path:
    """Return the folder *name* with exactly the packages that the file *locked* pins; install them if necessary."""
    kept = ROOT / ".venv" / name
    stamp = kept / ".installed"
    lock = hashlib.sha256(locked.read_bytes()).hexdigest()
    with (ROOT / ".venv" / f".{name}").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != lock:
            shutil.rmtree(kept, ignore_errors=True)
            uv = Path(sys.executable).parent / "uv"
            wanted = [uv, "pip", "install", "--quiet", "--require-hashes", "--target", kept, "-r", locked, *options]
            done = subprocess.run(wanted, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stderr
            stamp.write_text(lock)
    return kept


def lint(tool: str, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run one of the tools and return its result."""
    where = folder()
    return subprocess.run(
        [where / "bin" / tool, *arguments],
        env={**os.environ, "PYTHONPATH": str(where), **more},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
