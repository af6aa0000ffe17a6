"""
Read a database file on a disk that is full or read-only.

SQLite opens a database with a write-ahead log only if it can write the log's shared memory beside it. After a clean
stop there is neither, and such a disk has no room for them. There is no writer either then, so the file is read as it
is, until the disk can be written again.
"""

import sqlite3
from pathlib import Path
from typing import Any, Final

from muniment.store.database.faults import DAMAGED, disk_fault, fault_of
from muniment.store.database.handles import Connection, note_read_only, open_counted

FROZEN: Final = "mode=ro&immutable=1"


def must_freeze(path: Path, error: sqlite3.Error) -> bool:
    """Return whether the file, which does not open because of *error*, can be read with :data:`FROZEN`."""
    if disk_fault(error) in {"", DAMAGED} or not path.is_file() or path.stat().st_size == 0:
        return False
    log = path.with_name(f"{path.name}-wal")
    return not (log.exists() and log.stat().st_size) and bool(fault_of(path.parent))


def open_for_reading(path: Path, **options: Any) -> Connection:
    """Return a read-only connection."""
    try:
        return _open(path, **options)
    except sqlite3.OperationalError as error:
        if not must_freeze(path, error):
            raise
    connection = open_counted(path, FROZEN, **options)
    note_read_only(path)
    return connection


def _open(path: Path, **options: Any) -> Connection:
    connection = open_counted(path, "mode=ro", **options)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection
