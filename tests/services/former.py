"""Other versions of the product: earlier ones from the history of this repository, and a later one."""

import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest

from services import linters

ROOT = Path(__file__).parents[2]
LOCK = "requirements/runtime.lock"
Version = tuple[Path, ...]
"""The folders that a version is imported from: its source, then the libraries that it pins, if not those of today."""


def commit_of(path: str, *, before: bool = False) -> str:
    """Return the commit that added *path*, or the one *before*; without such a history, skip the test."""
    form = "%P" if before else "%H"
    found = _git("log", "--diff-filter=A", f"--format={form}", "--", path).decode().split()
    if not found:
        pytest.skip(f"there is no history of {path}")
    return found[-1]


def source(commit: str, folder: Path) -> Version:
    """Extract the source of *commit* into *folder*, install what it pins, and return the folders to import it from."""
    with tarfile.open(fileobj=BytesIO(_git("archive", commit, "src", LOCK))) as archive:
        archive.extractall(folder, filter="data")
    locked = folder / LOCK
    digest = hashlib.sha256(locked.read_bytes()).hexdigest()
    return folder / "src", linters.installed(locked, f"former-{digest[:16]}")


def contracted(folder: Path) -> Version:
    """Copy this version into *folder*, with a form more and a migration that requires it; return it like `source`."""
    found = folder / "src"
    shutil.copytree(ROOT / "src", found, ignore=shutil.ignore_patterns("__pycache__"))
    form = found / "muniment" / "store" / "database" / "form.py"
    form.write_text(form.read_text().replace("FORM: Final = 1\n", "FORM: Final = 2\n"))
    migrations = found / "muniment" / "accounts" / "migrations"
    last = max(file.stem for file in migrations.glob("0*.py"))
    (migrations / "0999_contract.py").write_text(
        "from django.db import migrations\n"
        "from muniment.store.database.form import RequireForm\n"
        "class Migration(migrations.Migration):\n"
        f"    dependencies = [('accounts', '{last}')]\n"
        "    operations = [RequireForm(2, '9.1.0')]\n"
    )
    return (found,)


@contextmanager
def running(*version: Path) -> Iterator[None]:
    """Let commands and servers that are started in this context be of the version in these folders, if any."""
    if not version:
        yield
        return
    former = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, version))
    try:
        yield
    finally:
        del os.environ["PYTHONPATH"]
        if former is not None:
            os.environ["PYTHONPATH"] = former


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False, timeout=60).stdout
