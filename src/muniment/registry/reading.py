"""
Reads that stand in the way of every call, as SQL that both databases take.

To compose a query costs the ORM half a millisecond, many times what the database needs to answer it.
"""

from collections.abc import Collection, Sequence
from typing import Any

from django.db import connection


def rows(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Give the rows of *statement*; parameters stand as ``%s``. Text of JSON columns comes as it is stored."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def marks(values: Collection[Any]) -> str:
    """Give the ``%s, %s, …`` of an IN list."""
    return ", ".join(["%s"] * len(values))
