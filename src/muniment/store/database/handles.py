"""
The connections of this process to SQLite files, counted so that all of one file can be closed at one moment.

SQLite shares the memory of a write-ahead log among the connections of a process. If the first of them was opened on a
read-only disk, none can write until all have been closed together, also after the disk can be written again. So
connections opened in that state are not kept, except by a reader, which drops its own in :func:`alone`.
"""

import gc
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

WAIT_S: Final = 0.2
"""Seconds that new connections wait for other uses to end, which take milliseconds."""
LOOK_S: Final = 0.002

_gate: Final = threading.RLock()
_open: "Final[weakref.WeakSet[Connection]]" = weakref.WeakSet()
_read_only: Final[set[str]] = set()
"""Files whose connections may be unable to write for as long as one of them is open."""


class Connection(sqlite3.Connection):
    """A connection that is counted from before it reads until it is closed or nothing refers to it."""

    def __init__(self, database: Path | str, *args: Any, **options: Any) -> None:
        self.file = _file_of(database)
        with _gate:
            _look_at(self.file)
            _open.add(self)
            super().__init__(database, *args, **options)

    def close(self) -> None:
        super().close()
        _open.discard(self)


class UnkeptConnection(Connection):
    """A connection that may be unable to write, so that it is closed with the cursors that are left of it."""

    def __init__(self, database: Path | str, *args: Any, **options: Any) -> None:
        super().__init__(database, *args, **options)
        self._cursors: weakref.WeakSet[sqlite3.Cursor] = weakref.WeakSet()

    def cursor(self, *args: Any, **options: Any) -> Any:
        cursor = super().cursor(*args, **options)
        self._cursors.add(cursor)
        return cursor

    def close(self) -> None:
        # An error that is kept somewhere refers to its cursor, and SQLite keeps a closed connection for the statement.
        for cursor in list(self._cursors):
            cursor.close()
        super().close()


def connect(database: Path | str, *args: Any, **options: Any) -> Connection:
    """Return a counted connection of Django's; only those that may be unable to write pay for noting their cursors."""
    file = _file_of(database)
    with _gate:
        _look_at(file)
        kind = UnkeptConnection if file in _read_only else Connection
        return kind(database, *args, **options)


def _look_at(file: str) -> None:
    """Note whether a file that is about to be opened first is on a disk that cannot be written."""
    if not _is_open(file):
        _read_only.discard(file)
        if Path(file).exists() and not os.access(file, os.W_OK):
            _read_only.add(file)


def address(path: Path | str, query: str) -> str:
    return f"file:{quote(str(path))}?{query}"


def open_counted(path: Path, query: str = "mode=rwc", **options: Any) -> Connection:
    return sqlite3.connect(address(path, query), uri=True, factory=Connection, **options)


def is_read_only(path: Path | str) -> bool:
    """Return whether the process has opened the file on a disk that could not be written."""
    return _file_of(path) in _read_only


def can_write(path: Path | str) -> bool:
    """Return whether a new connection could write: closed ones count until their last statement is finalized."""
    with closing(open_counted(Path(path), timeout=0, isolation_level=None)) as own:
        try:
            own.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            return error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY
    return True


def note_read_only(path: Path | str) -> None:
    with _gate:
        _read_only.add(_file_of(path))


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """
    Let no other thread open the file in the context; provide whether nothing of the process has it open.

    The caller has dropped its own connections. One that is in use is closed as soon as its user drops it.
    """
    file = _file_of(path)
    with _gate, _nothing_frozen():
        deadline = time.monotonic() + WAIT_S
        # A connection whose user has dropped it may still be open: it and its statements refer to each other, as do
        # errors and the frames that they passed, and only a collection ends such a ring. Closing those in use from
        # here instead would fail their queries. It happens only after a disk was read-only, in pauses that double.
        gc.collect()
        while (is_open := _is_open(file)) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            gc.collect()
        yield not is_open


@contextmanager
def _nothing_frozen() -> Iterator[None]:
    """Let collections look through what was kept from them when the process was ready."""
    was_frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    try:
        yield
    finally:
        if was_frozen:
            gc.freeze()


def _is_open(file: str) -> bool:
    return any(each.file == file for each in list(_open))


def _file_of(database: Path | str) -> str:
    name = str(database)
    if name.startswith("file:"):
        name = unquote(name.removeprefix("file:").partition("?")[0])
    return os.path.abspath(name)  # noqa: PTH100 - symbolic links stay
