"""Counts of the published documents: totals, facet values, and items in blocks of positions."""

import sqlite3
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Final

from muniment.store.search.values import singular
from muniment.store.writing import rows

BLOCK_SPLIT: Final = 2_000
"""A block with more items is split in two."""
END: Final = 1 << 63
"""Past all positions."""
_VALUE: Final = "SELECT id FROM published_value WHERE kind = ? AND name = ? AND value = ?"
_NEW_VALUE: Final = "INSERT INTO published_value (kind, name, value, n, folded) VALUES (?, ?, ?, 0, ?)"


class Totals:
    """Changes to each kind's totals, accumulated and written once."""

    def __init__(self) -> None:
        self._added: dict[str, list[int]] = {}

    def add(self, kind: str, n: int, raising: int, treasury_minor: int) -> None:
        added = self._added.setdefault(kind, [0, 0, 0])
        added[0] += n
        added[1] += raising
        added[2] += treasury_minor

    def write(self, connection: sqlite3.Connection) -> None:
        for kind, (n, raising, treasury_minor) in self._added.items():
            # The sum of a million treasuries may exceed 64 bits, so it is added here and stored as text.
            stored = "SELECT treasury_minor FROM published_total WHERE kind = ?"
            (before,) = connection.execute(stored, (kind,)).fetchone()
            connection.execute(
                "UPDATE published_total SET n = n + ?, raising = raising + ?, treasury_minor = ? WHERE kind = ?",
                (n, raising, str(int(before) + treasury_minor), kind),
            )


class _ValueIds(dict[tuple[str, str, str], int]):
    """The id of each facet value, by kind, name and value; one that is new is added to the table."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection

    def __missing__(self, value: tuple[str, str, str]) -> int:
        found = self._connection.execute(_VALUE, value).fetchone()
        if found is None:
            added = self._connection.execute(_NEW_VALUE, (*value, singular(value[2])))
            found = (added.lastrowid,)
        self[value] = number = int(found[0])
        return number


class Values:
    """Facet values: each is looked up once, and their counts are written once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ids = _ValueIds(connection)
        self._added: Counter[int] = Counter()
        self._entered: list[tuple[int, int]] = []

    def ids_of(self, kind: str, facets: Mapping[str, Iterable[str]]) -> list[int]:
        """Return the ids of the facets of a document, each once."""
        ids = self._ids
        return list(dict.fromkeys([ids[kind, name, value] for name, given in facets.items() for value in given]))

    def enter(self, values: list[int], position: int) -> None:
        self._entered += [(value, position) for value in values]
        self._added.update(values)

    def leave(self, values: list[int], position: int) -> None:
        if not values:
            return
        self._write_entered()  # of which these may be some
        left = [(value, position) for value in values]
        self._connection.executemany("DELETE FROM published_facet WHERE value_id = ? AND position = ?", left)
        self._added.subtract(values)

    def _write_entered(self) -> None:
        rows.insert(self._connection, "published_facet", sorted(self._entered, key=itemgetter(0)))
        self._entered.clear()

    def write(self, sequence: int) -> None:
        """Write the counts of the values whose documents changed with *sequence*; unused values are deleted."""
        self._write_entered()
        self._connection.executemany(
            "UPDATE published_value SET n = n + ?, changed = ? WHERE id = ?",
            [(added, sequence, value) for value, added in self._added.items()],
        )
        self._connection.executemany(
            "DELETE FROM published_value WHERE id = ? AND n <= 0",
            [(value,) for value, added in self._added.items() if added < 0],
        )


class Blocks:
    """
    The number of items in each block of positions: each block is looked up once, and its number is written once.

    Write them after the items, among which a large block is split.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._bounds: dict[str, list[tuple[int, int]]] = {}
        self._counts: dict[tuple[str, int], int] = {}

    def enter(self, kind: str, position: int) -> None:
        self._counts[kind, self._first(kind, position)] += 1

    def leave(self, kind: str, position: int) -> None:
        self._counts[kind, self._first(kind, position)] -= 1

    def _first(self, kind: str, position: int) -> int:
        """Return the first position of the block that has *position*."""
        bounds = self._bounds.setdefault(kind, [])
        place = bisect_right(bounds, (position, END)) - 1
        if place >= 0 and position < bounds[place][1]:
            return bounds[place][0]
        first, n, end = self._connection.execute(
            "SELECT first, n, (SELECT min(first) FROM published_block later WHERE later.kind = block.kind"
            " AND later.first > block.first)"
            " FROM published_block block WHERE kind = ? AND first <= ? ORDER BY first DESC LIMIT 1",
            (kind, position),
        ).fetchone()
        insort(bounds, (first, END if end is None else end))
        self._counts[kind, first] = n
        return int(first)

    def write(self) -> None:
        for (kind, first), n in self._counts.items():
            if n <= 0 and first:
                self._connection.execute("DELETE FROM published_block WHERE kind = ? AND first = ?", (kind, first))
            else:
                self._write(kind, first, n)
        self._bounds.clear()
        self._counts.clear()

    def _write(self, kind: str, first: int, n: int) -> None:
        half = BLOCK_SPLIT // 2
        while n > BLOCK_SPLIT:
            (middle,) = self._connection.execute(
                f"SELECT position FROM published_item_{kind} WHERE position >= ? ORDER BY position LIMIT 1 OFFSET ?",
                (first, half),
            ).fetchone()
            self._set(kind, first, half)
            first, n = middle, n - half
        self._set(kind, first, n)

    def _set(self, kind: str, first: int, n: int) -> None:
        statement = (
            "INSERT INTO published_block VALUES (?, ?, ?) ON CONFLICT (kind, first) DO UPDATE SET n = excluded.n"
        )
        self._connection.execute(statement, (kind, first, n))
