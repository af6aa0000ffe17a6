"""Insert many narrow rows: a statement of its own costs more than such a row."""

import sqlite3
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

AT_ONCE: Final = 100
"""Rows of one statement."""


def insert(connection: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert *rows* into *table*, the name of which may be followed by those of columns."""
    if not rows:
        return
    row = f"({', '.join('?' * len(rows[0]))})"
    whole = len(rows) - len(rows) % AT_ONCE
    for first in range(0, whole, AT_ONCE):
        many = f"INSERT INTO {table} VALUES {', '.join([row] * AT_ONCE)}"
        connection.execute(many, tuple(chain.from_iterable(rows[first : first + AT_ONCE])))
    connection.executemany(f"INSERT INTO {table} VALUES {row}", rows[whole:])
