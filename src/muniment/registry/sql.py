"""Raw SQL that both databases accept, for reads of every call: the ORM takes 0.2 ms to compose a query."""

from collections.abc import Collection, Sequence
from typing import Any

from django.db import connection


def rows(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of *statement*, with ``%s`` for each parameter; JSON columns come as text."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def marks(values: Collection[object]) -> str:
    """Return the ``%s, %s, …`` of an IN list."""
    return ", ".join(["%s"] * len(values))
