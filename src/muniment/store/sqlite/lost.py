"""
A database file that is gone or empty where there was a registry.

SQLite creates a file that does not exist, and takes an empty one for a new database. So a small file beside it notes
that there is a registry.
"""

import contextlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muniment.durable_files import replacing
from muniment.kernel.ids import now
from muniment.kernel.wire import timestamp

log = logging.getLogger(__name__)


class LostDatabase(Exception):  # noqa: N818 - its message is for the operator
    """The database file is gone or empty, although there was a registry."""


def note_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-registry")


def note(file: Path) -> None:
    """Note that *file* holds a registry; a disk that refuses it does not matter now."""
    place = note_of(file)
    if place.exists():
        return
    try:
        with replacing(place) as out:
            out.write(timestamp(now()).encode())
    except OSError as error:
        log.warning("cannot note that there is a registry: %s", error)


def require_present(file: Path) -> None:
    """Raise LostDatabase if *file* is gone or empty, although there was a registry."""
    try:
        if file.stat().st_size:
            return
        state = "empty"
    except FileNotFoundError:
        state = "gone"
    place = note_of(file)
    if place.exists():
        raise LostDatabase(
            f"The database file {file} is {state}, although it has held a registry since"
            f" {place.read_text(errors='replace')[:40]}. Put the file back, or restore a backup with muniment restore."
            f" To begin a new registry instead, delete {place}."
        )


@contextmanager
def restoring(file: Path) -> Iterator[None]:
    """Let a restore create *file* in the context."""
    place = note_of(file)
    former = place.read_bytes() if place.exists() else None
    place.unlink(missing_ok=True)
    try:
        yield
    except BaseException:
        if former is not None:
            with contextlib.suppress(OSError):
                place.write_bytes(former)
        raise
    note(file)
