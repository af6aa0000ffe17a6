"""The change feed as the published file holds it: its entries, and why some cannot be read."""

import sqlite3
from typing import NamedTuple

import msgspec

from muniment.store.chain import links


def encode_fields(fields: tuple[str, ...] | None) -> str | None:
    """Return the stored form of the changed members of an entry; None where they are unknown."""
    return None if fields is None else msgspec.json.encode(fields).decode()


def decode_fields(stored: str | None) -> tuple[str, ...] | None:
    return None if stored is None else msgspec.json.decode(stored, type=tuple[str, ...])


def feed_of(epoch: str) -> str:
    """Return the id of a feed, without the schema and, in a node's copy, the number of its build."""
    return epoch.rpartition(":")[2]


def mark_in(epoch: str) -> str:
    """Return the mark of the declared fields that the documents of an epoch were rendered with; empty for none."""
    return epoch.partition("-")[2]


class ChangeRow(NamedTuple):
    """
    An entry of the change feed.

    Args:
        fields: the changed members of an update, where they are known.
        chain: the chain of the feed up to this entry, in hexadecimal digits, where it is known.
    """

    sequence: int
    kind: str
    key: str
    change: str
    at: str
    fields: tuple[str, ...] | None = None
    chain: str | None = None


def change_rows(connection: sqlite3.Connection, condition: str, *parameters: str | int) -> list[ChangeRow]:
    """Return the entries of the feed that meet a condition, without their chain."""
    columns = "sequence, kind, key, change, at, fields"
    rows = connection.execute(f"SELECT {columns} FROM published_change {condition}", parameters)
    return [ChangeRow._make((*row[:5], decode_fields(row[5]), None)) for row in rows]


def number_before(connection: sqlite3.Connection, at: str) -> int:
    """
    Return the number of the last entry before a time, in the order of which entries are numbered.

    If all entries are later, it is the number before the oldest one.
    """
    low, high = connection.execute("SELECT min(sequence) - 1, max(sequence) FROM published_change").fetchone()
    if high is None:
        return 0
    nearest = "SELECT at FROM published_change WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1"
    while low < high:
        middle = (low + high + 1) // 2
        (found,) = connection.execute(nearest, (middle,)).fetchone()
        low, high = (middle, high) if found < at else (low, middle - 1)
    return int(low)


def chained_rows(connection: sqlite3.Connection, after: int, limit: int) -> list[ChangeRow]:
    """Return at most *limit* entries after number *after*, with their chain."""
    rows = change_rows(connection, "WHERE sequence > ? ORDER BY sequence LIMIT ?", after, limit)
    if not rows:
        return rows
    first = links.oldest(connection)
    chains = {each.sequence: each.chain.hex() for each in links.links(connection, after, rows[-1].sequence)}
    # The first value counts for all entries before it.
    floor = {} if first is None else {row.sequence: first.chain.hex() for row in rows if row.sequence < first.sequence}
    return [row._replace(chain=chains.get(row.sequence, floor.get(row.sequence))) for row in rows]


def chain_after(connection: sqlite3.Connection, number: int) -> str | None:
    """Return the chain after entry *number*, which the feed must still reach; None if it is unknown."""
    found = links.chain_at(connection, number)
    return None if found is None else found.hex()


class Changes(NamedTuple):
    """
    Entries of the change feed, and the sequence number to continue from.

    Args:
        feed_id: the feed that the numbers belong to; new after a restore or a rebuild.
        edition: the feed's highest number.
        version: the version of the file that they were read from.
        chain: the chain after *next_after*, where it is known.
    """

    rows: list[ChangeRow]
    next_after: int
    feed_id: str
    edition: int
    modified_at: str
    version: int
    chain: str | None


class FeedGapError(LookupError):
    """The change feed does not reach back that far; start again from an export."""


class FeedAheadError(LookupError):
    """The change feed has not reached that number: it belongs to another feed. Start again from an export."""


class FeedDivergedError(LookupError):
    """The change feed has another past than the given one: it is another feed. Start again from an export."""
