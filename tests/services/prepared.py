"""Instances that are made once in this process of the suite: a test is given a copy of its own, at once."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Protocol

from services.product import DEMO, Served, run


class Make(Protocol):
    """Fills a data folder by commands with the settings given, which have ended when it returns."""

    def __call__(self, data: Path, /, **settings: str) -> object:
        """Fill *data*, which is not there yet."""


def new_instance(data: Path, **database: str) -> Path:
    """Make *data* an empty instance, as a first start leaves it; gives *data*."""
    return copied(_migrated, data, **database)


def demo_registry(data: Path, **database: str) -> Path:
    """Make *data* an instance with the demo registry; gives *data*."""
    return copied(_with_demo, data, **database)


def copied(make: Make, data: Path, **database: str) -> Path:
    """
    Make *data* a copy of the instance that *make* makes, which is called once; gives *data*.

    Args:
        make: makes the instance.
        data: is not there yet.
        database: ``database_url``, where that is not left to the suite: "" is the file in the folder, and any other
            database is filled rather than copied.
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
    data = Path(tempfile.mkdtemp(dir=_folder())) / "data"
    make(data, **database)
    return data


def _migrated(data: Path, **settings: str) -> None:
    run("migrate", data=data, **settings)


def _with_demo(data: Path, **settings: str) -> None:
    run("import", str(DEMO), data=new_instance(data, **settings), **settings)


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="muniment-prepared-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
