"""Instances that are created once per run of the suite; each test gets its own copy."""

import atexit
import functools
import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any, Protocol

from services.product import DEMO, Served, run
from services.shared import shared


class Make(Protocol):
    """Fills a data folder with commands, all of which have ended when it returns."""

    def __call__(self, data: Path, /, **settings: str) -> object:
        """Fill *data*, which is not there yet."""


def new_instance(data: Path, **database: str) -> Path:
    """Create an empty instance in *data*, as after a first start; return *data*."""
    return copied(_migrated, data, **database)


def demo_registry(data: Path, **database: str) -> Path:
    """Create an instance with the demo registry in *data*; return *data*."""
    return copied(_with_demo, data, **database)


def copied(make: Make, data: Path, **database: str) -> Path:
    """
    Copy the instance that *make* creates to *data*; return *data*. *make* is called once.

    Args:
        make: creates the instance.
        data: must not exist.
        database: ``database_url``, if the suite must not choose it: "" is the file in the folder; any other database is
            filled instead of copied.
    """
    if database.get("database_url"):
        make(data, **database)
        return data
    source = _made(make, **database)
    shutil.copytree(source, data)
    if not database:
        Served.copy(source, data)
    return data


@functools.cache
def _made(make: Make, **database: str) -> Path:
    if Served.cluster is not None:  # the database is in the cluster of this process
        data = Path(tempfile.mkdtemp(dir=_folder())) / "data"
        make(data, **database)
        return data
    settings = {name: value for name, value in database.items() if value}

    def fill(folder: Path) -> None:
        folder.mkdir()
        make(folder / "data", **settings)

    return shared(_name(make, settings), fill) / "data"


def _name(make: Any, settings: dict[str, str]) -> str:
    digest = hashlib.blake2b(repr(sorted(settings.items())).encode(), digest_size=4).hexdigest()
    return f"{make.__module__}.{make.__qualname__}-{digest}"


def _migrated(data: Path, **settings: str) -> None:
    run("migrate", data=data, **settings)


def _with_demo(data: Path, **settings: str) -> None:
    run("import", str(DEMO), data=new_instance(data, **settings), **settings)


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="muniment-prepared-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
