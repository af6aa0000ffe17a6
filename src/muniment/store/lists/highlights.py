"""Highlights of a registry: listings that raise, votes that end soon, the latest changes, the largest treasuries."""

import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from muniment.store.items import ITEM, item_at
from muniment.store.published import ChangeRow, change_rows
from muniment.store.reader import PublishedFile

VOTES_END: Final = "votes.end"
"""Under this name, companies have the days on which their open votes end, like the values of a filter."""
PLACED: Final = "placed"
"""Under this name, a company with an address has whether a country is known of one, like the value of a filter."""
CHANGES_READ: Final = 300
"""Number of the latest changes that are read; a registry that was just imported has thousands that are no updates."""


class Vote(NamedTuple):
    """A company with open votes that end on a day, ``YYYY-MM-DD``."""

    ends: str
    item: bytes


class Updated(NamedTuple):
    """A company with its latest change."""

    change: ChangeRow
    item: bytes


class Placed(NamedTuple):
    """How many companies have an address with a known country, and how many have addresses without any."""

    known: int
    unknown: int


class Highlights(NamedTuple):
    """
    Each part has at most as many items as asked for.

    Args:
        raising: the newest listings that raise.
        voting: the companies whose votes end soonest.
        updated: the companies that changed last.
        largest: the companies with the largest treasuries.
        frameworks: the frameworks in order of first publication.
        treasuries: how many companies have a treasury, which together are the total.
    """

    raising: list[bytes]
    voting: list[Vote]
    updated: list[Updated]
    largest: list[bytes]
    frameworks: list[bytes]
    treasuries: int


_OF_VALUE: Final = (
    "FROM published_value AS v CROSS JOIN published_facet AS f ON f.value_id = v.id"
    " JOIN published_item_company AS i ON i.position = f.position WHERE v.kind = 'company'"
)


def highlights(source: PublishedFile, today: str, limit: int) -> Highlights:
    """
    Return what is worth a look, at most *limit* of each; only counting treasuries grows with the registry.

    Args:
        today: ``YYYY-MM-DD``; votes that ended before are over.
    """
    with source.snapshot() as (connection, _):
        return _highlights(connection, today, limit)


def placed(source: PublishedFile) -> Placed:
    """Return how many of the companies with an address a map can place."""
    with source.snapshot() as (connection, _):
        rows = connection.execute(
            "SELECT value, n FROM published_value WHERE kind = 'company' AND name = ?", (PLACED,)
        ).fetchall()
    counts = dict(rows)
    return Placed(counts.get("true", 0), counts.get("false", 0))


def _highlights(connection: sqlite3.Connection, today: str, limit: int) -> Highlights:
    raising = connection.execute(
        f"SELECT i.position, {ITEM} {_OF_VALUE} AND v.name = 'raising' AND v.value = 'true'"
        " ORDER BY f.position DESC LIMIT ?",
        (limit,),
    )
    voting = connection.execute(
        f"SELECT v.value, i.position, {ITEM} {_OF_VALUE} AND v.name = '{VOTES_END}' AND v.value >= ?"
        " ORDER BY v.value, f.position DESC LIMIT ?",
        (today, limit),
    )
    largest = connection.execute(
        f"SELECT i.position, {ITEM} FROM (SELECT position, treasury_minor FROM published_document"
        " WHERE kind = 'company' AND treasury_minor > 0 ORDER BY treasury_minor DESC, position DESC LIMIT ?) AS d"
        " JOIN published_item_company AS i ON i.position = d.position ORDER BY d.treasury_minor DESC, d.position DESC",
        (limit,),
    )
    frameworks = connection.execute(
        f"SELECT position, {ITEM} FROM published_item_framework ORDER BY position LIMIT ?", (limit,)
    )
    # An index of those with a treasury alone: 0.3 ms for 12,000 of them.
    (treasuries,) = connection.execute(
        "SELECT count(*) FROM published_document WHERE kind = 'company' AND treasury_minor > 0"
    ).fetchone()
    return Highlights(
        _whole(connection, "company", raising),
        [Vote(ends, item_at(connection, "company", position, item)) for ends, position, item in voting.fetchall()],
        _updated(connection, limit),
        _whole(connection, "company", largest),
        _whole(connection, "framework", frameworks),
        treasuries,
    )


def _whole(connection: sqlite3.Connection, kind: str, found: sqlite3.Cursor) -> list[bytes]:
    """Return the items of rows of positions and items."""
    return [item_at(connection, kind, position, item) for position, item in found.fetchall()]


def _updated(connection: sqlite3.Connection, limit: int) -> list[Updated]:
    (last,) = connection.execute("SELECT max(sequence) FROM published_change").fetchone()
    latest: dict[str, ChangeRow] = {}
    for row in change_rows(connection, "WHERE sequence > ? ORDER BY sequence DESC", (last or 0) - CHANGES_READ):
        if row.kind == "company":
            latest.setdefault(row.key, row)
    rows = [row for row in latest.values() if row.change == "updated"][:limit]
    items = _items(connection, [row.key for row in rows])
    return [Updated(row, items[row.key]) for row in rows if row.key in items]


def _items(connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, bytes]:
    marks = ", ".join("?" * len(keys))
    statement = (
        f"SELECT d.key, i.position, {ITEM} FROM published_document AS d"
        " JOIN published_item_company AS i ON i.position = d.position"
        f" WHERE d.kind = 'company' AND d.key IN ({marks})"
    )
    rows = connection.execute(statement, keys).fetchall()
    return {key: item_at(connection, "company", position, item) for key, position, item in rows}
