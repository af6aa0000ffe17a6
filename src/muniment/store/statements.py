"""Statements on the published tables and their log, which are in a SQLite file or on PostgreSQL."""

import sqlite3
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

Connection = Any
"""A connection of sqlite3 or of psycopg; both execute statements alike."""
AT_ONCE: Final = 100
"""Rows of one statement: one for each row costs more than a narrow row itself."""


def on_sqlite(connection: Connection) -> bool:
    return isinstance(connection, sqlite3.Connection)


def run(connection: Connection, statement: str, *values: object) -> Any:
    """Execute a statement with the parameters of PostgreSQL."""
    return connection.execute(statement.replace("%s", "?") if on_sqlite(connection) else statement, values)


def insert(connection: Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert *rows* into *table*, the name of which may be followed by those of columns."""
    if not rows:
        return
    if on_sqlite(connection):
        insert_rows(connection, table, rows)
        return
    marks = ", ".join(["%s"] * len(rows[0]))
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def insert_rows(connection: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert *rows* into *table* of a SQLite file as :func:`insert` does, many by one statement."""
    if not rows:
        return
    row = f"({', '.join('?' * len(rows[0]))})"
    whole = len(rows) - len(rows) % AT_ONCE
    for first in range(0, whole, AT_ONCE):
        many = f"INSERT INTO {table} VALUES {', '.join([row] * AT_ONCE)}"
        connection.execute(many, tuple(chain.from_iterable(rows[first : first + AT_ONCE])))
    connection.executemany(f"INSERT INTO {table} VALUES {row}", rows[whole:])
