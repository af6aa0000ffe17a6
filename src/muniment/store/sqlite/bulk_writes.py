"""Writing many rows to SQLite: settings of the connection, and statements that insert many rows at once."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final

PAGE_CACHE_KIB: Final = 64 * 1024
"""Published documents are keyed by digests, so that their pages are spread over the whole table."""
CHECKPOINT_PAGES: Final = 8_000
"""Pages of 4 KB in the write-ahead log before they are copied into the file: batches write many of them repeatedly."""
AT_ONCE: Final = 100
"""Rows of one statement: one for each row costs more than a narrow row itself."""
_PRAGMAS: Final = {"cache_size": -PAGE_CACHE_KIB, "wal_autocheckpoint": CHECKPOINT_PAGES}


@contextmanager
def bulk_write_settings(connection: Any) -> Iterator[None]:
    """Enlarge the page cache of a connection and checkpoint it less often; PostgreSQL needs neither."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        former = {name: cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in _PRAGMAS}
        for name, value in _PRAGMAS.items():
            cursor.execute(f"PRAGMA {name} = {value}")
        try:
            yield
        finally:
            for name, value in former.items():
                cursor.execute(f"PRAGMA {name} = {value}")


def insert_rows(connection: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert *rows* into *table*, the name of which may be followed by those of columns."""
    if not rows:
        return
    row = f"({', '.join('?' * len(rows[0]))})"
    whole = len(rows) - len(rows) % AT_ONCE
    for first in range(0, whole, AT_ONCE):
        many = f"INSERT INTO {table} VALUES {', '.join([row] * AT_ONCE)}"
        connection.execute(many, tuple(chain.from_iterable(rows[first : first + AT_ONCE])))
    connection.executemany(f"INSERT INTO {table} VALUES {row}", rows[whole:])
