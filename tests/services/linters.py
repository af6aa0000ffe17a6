"""The tools that judge the files of deploy/, pinned and installed beside the environment when first wanted."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "deploy.lock"
FOLDER = ROOT / ".venv" / "deploy-tools"


def folder() -> Path:
    """Give the folder that holds exactly what the lock names; installs it when it does not."""
    stamp = FOLDER / ".installed"
    lock = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    with (ROOT / ".venv" / ".deploy-tools").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != lock:
            shutil.rmtree(FOLDER, ignore_errors=True)
            uv = Path(sys.executable).parent / "uv"
            wanted = [uv, "pip", "install", "--quiet", "--require-hashes", "--target", FOLDER, "-r", LOCK]
            done = subprocess.run(wanted, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stderr
            stamp.write_text(lock)
    return FOLDER


def lint(tool: str, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run one of the tools to its end and give what it says."""
    where = folder()
    return subprocess.run(
        [where / "bin" / tool, *arguments],
        env={**os.environ, "PYTHONPATH": str(where), **more},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
