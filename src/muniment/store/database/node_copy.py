"""
The file of a node's copy: replaced by a new one when it is damaged or gone, while processes read the former one.

Processes of a node agree by a lock. A process that has the former file open notices the new one by its identity.
"""

import contextlib
import fcntl
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from muniment.durable_files import sync
from muniment.store import published
from muniment.store.database.faults import is_damage
from muniment.store.database.handles import open_counted

log = logging.getLogger(__name__)
_LOG: Final = ("-wal", "-shm")

Identity = tuple[int, int] | None


def identity(path: Path) -> Identity:
    """Return what tells the file at *path* from another one that takes its place; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_copy(path: Path, *, timeout_s: float = 20) -> sqlite3.Connection:
    """Open the copy for writing; create it, also instead of a damaged one."""
    try:
        return _open(path, timeout_s)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    discard(path)
    return _open(path, timeout_s)


def _open(path: Path, timeout_s: float = 20) -> sqlite3.Connection:
    file = open_counted(path, isolation_level=None, check_same_thread=False, timeout=timeout_s)
    try:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA secure_delete=ON")
        # A copy: the feed still has whatever a crash loses.
        file.execute("PRAGMA synchronous=NORMAL")
        published.prepare_copy(file)
    except BaseException:
        file.close()
        raise
    return file


def discard(path: Path) -> None:
    """Remove a copy that does not open because it is damaged, unless another process has replaced it since."""
    with _lock(path):
        try:
            with contextlib.closing(open_counted(path)) as file:
                file.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
                published.check_readable(file)
        except sqlite3.DatabaseError as error:
            if is_damage(error):
                log.warning("the copy of the published documents is damaged and is built again: %s", error)
                _remove_log(path)
                path.unlink(missing_ok=True)
        except published.SchemaMismatch:
            return


def replace(path: Path, former: Identity, fill: Callable[[sqlite3.Connection], None]) -> bool:
    """
    Put a new copy, filled by *fill*, in the place of the file with the identity *former*; return whether it was needed.

    If another process was faster, its file stays.
    """
    with _lock(path):
        if identity(path) not in {None, former}:
            return False
        draft = path.with_name(f".{path.name}.new")
        for suffix in ("", *_LOG):
            draft.with_name(f"{draft.name}{suffix}").unlink(missing_ok=True)
        with contextlib.closing(_open(draft)) as file:
            fill(file)
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sync(draft)
        _remove_log(path)
        draft.replace(path)
        sync(path.parent)
    return True


def remove(path: Path, former: Identity) -> None:
    """Remove the file with the identity *former*, so that the processes of the node make a new one."""
    with _lock(path):
        if identity(path) == former:
            _remove_log(path)
            path.unlink(missing_ok=True)


def _remove_log(path: Path) -> None:
    for suffix in _LOG:
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    descriptor = os.open(path.with_name(f"{path.name}-replacing"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
