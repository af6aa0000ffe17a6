"""
Verify the pages of an SQLite file: every table with its indexes, and every full-text index.

SQLite has no checksums of pages, and no check finds a flipped bit inside a value. Three checks together find the most:
``quick_check`` the structure of every page, ``integrity_check`` each index against its table, and FTS5's own check the
words of a search index. Published values are compared with their source in addition, and blobs with their digests.
"""

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from muniment.store.database.handles import open_counted

WHOLE: Final = "the whole file"
_MOST: Final = 20
"""Maximum number of messages that are read from SQLite: a damaged tree has thousands."""
_CONTENT: Final = re.compile(r"content = '(\w+)'")
_FULL_TEXT: Final = "USING fts5"
_SHADOWS: Final = ("data", "idx", "content", "docsize", "config")


def open_to_read(file: Path) -> sqlite3.Connection:
    """Open *file* without the right to change it; raise sqlite3.OperationalError if it does not exist."""
    return open_counted(file, "mode=ro", isolation_level=None, timeout=20)


def parts(file: Path) -> list[str]:
    """
    Return the parts of a file, in the order in which :func:`faults` should verify them.

    Raises:
        sqlite3.DatabaseError: it is no database, or its schema cannot be read.
    """
    with contextlib.closing(open_to_read(file)) as connection:
        return [WHOLE, *(name for name, *_ in _tables(connection))]


def faults(file: Path, part: str) -> list[str]:
    """Return what is wrong with a part of *file*, in SQLite's words; empty if nothing is, or it no longer exists."""
    try:
        with contextlib.closing(open_to_read(file)) as connection:
            if part == WHOLE:
                return _messages(connection, f"PRAGMA quick_check({_MOST})")
            found = {name: statement for name, statement in _tables(connection) if name == part}
            if part not in found:
                return []
            if _FULL_TEXT in found[part]:
                return _faults_of_words(connection, part, found[part])
            return _messages(connection, f"PRAGMA integrity_check({_quoted(part)})")
    except sqlite3.DatabaseError as error:
        return [str(error)]


def rebuild_indexes(connection: sqlite3.Connection, part: str) -> None:
    """Make the indexes of a table again from its rows, or the words of a search index from its texts."""
    row = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (part,)).fetchone()
    if row is None:
        return
    if _FULL_TEXT in row[0]:
        connection.execute(f"INSERT INTO {_quoted(part)} ({_quoted(part)}) VALUES ('rebuild')")
    else:
        connection.execute(f"REINDEX {_quoted(part)}")


def _tables(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql <> '' ORDER BY name")
    return iter(rows.fetchall())


def _messages(connection: sqlite3.Connection, statement: str) -> list[str]:
    found = [str(row[0]) for row in connection.execute(statement).fetchmany(_MOST)]
    if found == ["ok"]:
        return []
    return [line for message in found for line in message.splitlines()[:_MOST]]


def _faults_of_words(connection: sqlite3.Connection, name: str, statement: str) -> list[str]:
    """
    Verify a search index in a temporary copy.

    The check is an INSERT, so that it would take the lock of writers for as long as it lasts. The copy holds the same
    rows, damage included.
    """
    connection.execute("ATTACH '' AS copy")
    try:
        connection.execute("BEGIN")
        connection.execute(statement.replace(name, f"copy.{name}", 1))
        elsewhere = _CONTENT.search(statement)
        if elsewhere:  # the texts are rows of another table
            table = _quoted(elsewhere[1])
            connection.execute(f"CREATE TABLE copy.{table} AS SELECT * FROM main.{table}")
        held = {table for table, _ in _tables(connection)}
        for shadow in held & {f"{name}_{suffix}" for suffix in _SHADOWS}:
            connection.execute(f"DELETE FROM copy.{_quoted(shadow)}")
            connection.execute(f"INSERT INTO copy.{_quoted(shadow)} SELECT * FROM main.{_quoted(shadow)}")
        connection.execute(f"INSERT INTO copy.{_quoted(name)} ({_quoted(name)}) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        return [f"the search index does not match its texts: {error}"]
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return []


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
