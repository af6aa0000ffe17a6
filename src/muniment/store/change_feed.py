"""The change feed as the published file holds it: its entries, and why some cannot be read."""

import sqlite3
from typing import NamedTuple

import msgspec


def encode_fields(fields: tuple[str, ...] | None) -> str | None:
    """Return the stored form of the changed members of an entry; None where they are unknown."""
    return None if fields is None else msgspec.json.encode(fields).decode()


def decode_fields(stored: str | None) -> tuple[str, ...] | None:
    return None if stored is None else msgspec.json.decode(stored, type=tuple[str, ...])


class ChangeRow(NamedTuple):
    """An entry of the change feed; *fields* are the changed members of an update, where they are known."""

    sequence: int
    kind: str
    key: str
    change: str
    at: str
    fields: tuple[str, ...] | None = None


def change_rows(connection: sqlite3.Connection, condition: str, *parameters: str | int) -> list[ChangeRow]:
    """Return the entries of the feed that meet a condition."""
    columns = "sequence, kind, key, change, at"
    try:
        rows = connection.execute(f"SELECT {columns}, fields FROM published_change {condition}", parameters)
    except sqlite3.OperationalError:  # a feed of schema 2 has no such column
        rows = connection.execute(f"SELECT {columns}, NULL FROM published_change {condition}", parameters)
    return [ChangeRow._make(row)._replace(fields=decode_fields(row[5])) for row in rows]


class Changes(NamedTuple):
    """
    Entries of the change feed, and the sequence number to continue from.

    Args:
        feed_id: the feed that the numbers belong to; new after a restore or a rebuild.
        edition: the feed's highest number.
    """

    rows: list[ChangeRow]
    next_after: int
    feed_id: str
    edition: int
    updated_at: str


class FeedGapError(LookupError):
    """The change feed does not reach back that far; start again from an export."""


class FeedAheadError(LookupError):
    """The change feed has not reached that number: it belongs to another feed. Start again from an export."""
