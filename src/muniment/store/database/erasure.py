"""Erasures in the published file: the feed entries that tell of them, and how nothing is left in the file."""

import sqlite3
from collections.abc import Iterable
from typing import Final

from muniment.store.published_document import KINDS
from muniment.store.search.text_index import indexes

ERASED_KEY_PREFIX: Final = "erased:"
"""
Begins the random id under which the change feed keeps an erased person.

An entry under such an id is the signal by which everything else follows an erasure: earlier exports are deleted,
the tables are rewritten, nodes and mirrors redact their copies.
"""
OF_ERASED: Final = "key >= 'erased:' AND key < 'erased;'"
"""The condition of the index of those entries."""
PURGE_INDEX: Final = tuple(f"INSERT INTO {table} ({table}) VALUES ('optimize')" for table in indexes(KINDS))
"""Merge each search index into one segment: deleted terms stay in older segments otherwise."""
MAX_VACUUM_BYTES: Final = 2 << 30
"""Larger files are not rewritten, which would make writers wait too long; their deleted content is overwritten."""


def latest(connection: sqlite3.Connection) -> int:
    """Return the number of the latest entry that tells of an erasure; 0 if there is none."""
    (sequence,) = connection.execute(f"SELECT max(sequence) FROM published_change WHERE {OF_ERASED}").fetchone()
    return sequence or 0


def redact(connection: sqlite3.Connection, entries: Iterable[tuple[int, str]]) -> None:
    """Replace the keys of feed entries by those of the source, and purge the search index."""
    connection.executemany("UPDATE published_change SET key = ?2 WHERE sequence = ?1", entries)
    for statement in PURGE_INDEX:
        connection.execute(statement)


def compact(connection: sqlite3.Connection) -> None:
    """Rewrite the file without its free pages, outside a transaction, and empty the write-ahead log."""
    (size,) = connection.execute(
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    ).fetchone()
    if size <= MAX_VACUUM_BYTES:
        connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
