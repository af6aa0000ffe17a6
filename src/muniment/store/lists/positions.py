"""The results of selections, cached, and the position where a page of them begins."""

import contextlib
import sqlite3
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

from cachetools import LRUCache

from muniment.store.cache import size_of
from muniment.store.items import ITEM, item_at
from muniment.store.lists.finding import Matches, find, find_start, sort_key
from muniment.store.queries import Mark, Selection

STARTS: Final = (200, 1_000)
"""Documents at the start of a list that are found without the rest: eight pages of 25, or forty for later ones."""


class Positions:
    """LRU caches of at most *limit_bytes*: what each selection finds, valid until its kind changes."""

    def __init__(self, limit_bytes: int) -> None:
        of_starts = limit_bytes // 8
        self._cache: LRUCache[Selection, tuple[int, Matches, int]] = LRUCache(
            limit_bytes - of_starts, getsizeof=itemgetter(2)
        )
        self._starts: LRUCache[Selection, tuple[int, tuple[Matches, int], int, int]] = LRUCache(
            of_starts, getsizeof=itemgetter(2)
        )
        self._lock = threading.Lock()

    def get_start(
        self,
        connection: sqlite3.Connection,
        chosen: Selection,
        version: int,
        *,
        end: int,
        total: int,
        count: Callable[[], int],
    ) -> tuple[Matches, int]:
        """
        Return what *chosen* selects, in order, at least its first *end* documents, and how many there are in all.

        Args:
            total: the number of all documents of the kind.
            count: counts what *chosen* finds.
        """
        with self._lock:
            cached = self._cache.get(chosen)
            start = self._starts.get(chosen)
        is_whole = cached is not None and cached[0] == version
        if not is_whole and end <= STARTS[-1]:
            if start is not None and start[0] == version and end <= start[3]:
                return start[1]
            most = next(most for most in STARTS if end <= most)
            found = find_start(connection, chosen, most, total, count)
            if found is not None:
                with self._lock, contextlib.suppress(ValueError):  # larger than the whole cache
                    self._starts[chosen] = version, found, most * 8 + size_of(chosen) + 300, most
                return found
        whole = self.get(connection, chosen, version)
        return whole, len(whole.positions)

    def get(self, connection: sqlite3.Connection, chosen: Selection, version: int) -> Matches:
        """
        Return what *chosen* selects, in order. Call it in a read transaction.

        Args:
            version: the last sequence number that changed the kind in that snapshot.
        """
        with self._lock:
            cached = self._cache.get(chosen)
        if cached is not None and cached[0] == version:
            return cached[1]
        found = find(connection, chosen)
        positions = found.positions
        size_bytes = len(positions) * positions.itemsize + size_of(chosen) + 300 + 300 * len(found.closest)
        with self._lock, contextlib.suppress(ValueError):  # larger than the whole cache
            self._cache[chosen] = version, found, size_bytes
        return found


def mark_of(connection: sqlite3.Connection, chosen: Selection, position: int, rank: int) -> Mark:
    """Return the mark of the item at *position*, which has *rank* in the order."""
    if chosen.order == "relevance":
        return Mark(chosen.order, position, rank=rank)
    key = sort_key(connection, chosen.kind, chosen.order, position)
    return Mark(chosen.order, position, "" if key is None else str(key))


def index_after(connection: sqlite3.Connection, chosen: Selection, positions: Sequence[int], mark: Mark) -> int:
    """Return the index in *positions* of the first item after *mark*, even if the marked item is gone."""
    if mark.order == "newest":
        return bisect_right(positions, -mark.position, key=lambda position: -position)
    if mark.order == "relevance":
        if mark.rank <= len(positions) and mark.rank and positions[mark.rank - 1] == mark.position:
            return mark.rank
        try:
            return positions.index(mark.position) + 1
        except ValueError:
            return min(max(mark.rank - 1, 0), len(positions))

    def key_at(position: int) -> tuple[Any, int]:
        return sort_key(connection, chosen.kind, chosen.order, position), position

    if mark.order == "name":
        return bisect_right(positions, (mark.name, mark.position), key=key_at)
    low, high = 0, len(positions)
    wanted = _falling(_value(mark), mark.position)
    while low < high:
        middle = (low + high) // 2
        if _falling(*key_at(positions[middle])) < wanted:
            high = middle
        else:
            low = middle + 1
    return low


def _value(mark: Mark) -> Any:
    if mark.order == "updated":
        return mark.name
    is_number = mark.name.isascii() and mark.name.isdigit()
    return int(mark.name) if is_number else None


def _falling(value: Any, position: int) -> tuple[bool, Any, int]:
    """Return the place of an item in a falling order, in which those without a value come last."""
    return value is not None, 0 if value is None else value, position


def items_at(connection: sqlite3.Connection, kind: str, positions: Sequence[int]) -> tuple[list[bytes], list[str]]:
    """Return the items of a page and their provenance, in the order of *positions*."""
    marks = ",".join("?" * len(positions))
    statement = f"SELECT position, {ITEM}, provenance FROM published_item_{kind} WHERE position IN ({marks})"
    rows = connection.execute(statement, positions).fetchall()
    found = {position: (item_at(connection, kind, position, item), mark) for position, item, mark in rows}
    return [found[position][0] for position in positions], [found[position][1] for position in positions]
