"""
A change becomes published documents, in the same transaction.

The rule, whose proof is that no reader ever misses a change: finish all writes to the source; reserve
sequence numbers, which takes the write lock; only then read and render; write the documents; commit.
"""

import importlib
import importlib.util
from types import ModuleType
from typing import Any

from django.db import connections


def _store(vendor: str) -> ModuleType:
    """Give the module that keeps the published tables: in the SQLite file, or as the feed on PostgreSQL."""
    return importlib.import_module("muniment.store.published" if vendor == "sqlite" else "muniment.store.feed")


def create_tables(using: str = "default") -> None:
    """Make the tables of published documents where they are missing."""
    connection: Any = connections[using]
    if connection.vendor != "sqlite" and importlib.util.find_spec("muniment.store.feed") is None:
        return  # the feed comes with the follower
    connection.ensure_connection()
    _store(connection.vendor).create(connection.connection)
