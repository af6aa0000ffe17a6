"""People with positions in several organizations."""

import sqlite3
from collections.abc import Iterable
from typing import Final

import msgspec

from muniment.store.reader import PublishedFile

_CONNECTED: Final = (
    # By key: SQLite would walk all people with several positions, whose index is in the order asked for.
    "SELECT d.key FROM published_document AS d INDEXED BY published_document_key"
    " WHERE d.kind = 'person' AND d.key IN (SELECT value FROM json_each(?))"
    " AND d.company_count > 1 ORDER BY d.company_count DESC, d.sort_name, d.key"
)


def connected(source: PublishedFile, people: Iterable[str]) -> list[str]:
    """Return those of *people*, slugs, with positions in several organizations, in most of them first."""
    with source.snapshot() as (connection, _):
        return _connected(connection, list(people))


def _connected(connection: sqlite3.Connection, people: list[str]) -> list[str]:
    return [key for (key,) in connection.execute(_CONNECTED, (msgspec.json.encode(people).decode(),))]
