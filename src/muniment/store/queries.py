"""Filters, sort, cursors and search: list queries and the positions that match them."""

import base64
import binascii
import contextlib
import sqlite3
import threading
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Final, Literal, NamedTuple

import msgspec
from cachetools import LRUCache

from muniment.store.cache import size_of
from muniment.store.search_text import fold, match_expression

Sort = Literal["newest", "name", "relevance", "treasury"]
SORTS: Final[tuple[Sort, ...]] = ("newest", "name", "relevance", "treasury")
WEIGHTS: Final = "10.0, 6.0, 3.0, 1.0"
"""Search weights: name; symbol and slug; description and themes; body."""


class PeopleQuery(msgspec.Struct, frozen=True, kw_only=True):
    """
    Parameters of a list of people.

    Args:
        page: counted from 1; ignored with a cursor.
        q: search words; blank matches everything.
        sort: None means relevance with search words, newest without.
        cursor: where an earlier page ended.
        updated_since: in the format of :func:`muniment.kernel.wire.timestamp`.
    """

    page: int = 1
    page_size: int = 25
    q: str = ""
    sort: Sort | None = None
    cursor: str | None = None
    ids: tuple[str, ...] | None = None
    updated_since: str | None = None

    @property
    def order(self) -> Sort:
        if self.q.strip():
            return self.sort or "relevance"
        return "newest" if self.sort is None or self.sort == "relevance" else self.sort

    def facets(self) -> dict[str, str]:
        return {}


class CompanyQuery(PeopleQuery, frozen=True, kw_only=True):
    """Parameters of a list of companies."""

    status: str | None = None
    type: str | None = None
    industry: str | None = None
    theme: str | None = None
    has_token: bool | None = None
    raising: bool | None = None

    def facets(self) -> dict[str, str]:
        flags = {"hasToken": self.has_token, "raising": self.raising}
        values = {"status": self.status, "type": self.type, "industry": self.industry, "theme": self.theme}
        return {name: value for name, value in values.items() if value is not None} | {
            name: "true" if flag else "false" for name, flag in flags.items() if flag is not None
        }


class Selection(NamedTuple):
    """A query without its page: the key of a cached array of positions."""

    kind: str
    order: Sort
    q: str
    facets: tuple[tuple[str, str], ...]
    ids: tuple[str, ...] | None
    updated_since: str | None

    @property
    def is_everything(self) -> bool:
        """Return whether the query has no filters and uses the natural order, which blocks answer."""
        return self.order == "newest" and not (self.q or self.facets or self.updated_since) and self.ids is None


def selection(kind: str, query: PeopleQuery) -> Selection:
    return Selection(
        kind, query.order, query.q.strip(), tuple(sorted(query.facets().items())), query.ids, query.updated_since
    )


class CursorError(ValueError):
    """The text is not a cursor for this order."""


class Mark(NamedTuple):
    """The end of a page: the last item's position, its name when sorted by name, its rank when sorted by relevance."""

    order: Sort
    position: int
    name: str = ""
    rank: int = 0

    def to_cursor(self) -> str:
        fields = msgspec.json.encode([SORTS.index(self.order), self.position, self.name, self.rank])
        return base64.urlsafe_b64encode(fields).decode().rstrip("=")


def parse_cursor(cursor: str, order: Sort) -> Mark:
    """Parse a cursor of an earlier page; raise CursorError if it is invalid or belongs to another order."""
    try:
        raw = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        number, position, name, rank = msgspec.json.decode(raw, type=tuple[int, int, str, int])
    except (binascii.Error, UnicodeError, ValueError, msgspec.MsgspecError):
        message = "is not a cursor of this registry"
        raise CursorError(message) from None
    if number != SORTS.index(order) or not (0 <= position < 1 << 63 and 0 <= rank < 1 << 62):
        message = f"is not a cursor of a list sorted by {order}"
        raise CursorError(message)
    return Mark(order, position, name, rank)


class Positions:
    """LRU cache of at most *limit_bytes*: one array of positions per selection, valid until its kind changes."""

    def __init__(self, limit_bytes: int) -> None:
        self._cache: LRUCache[Selection, tuple[int, array[int], int]] = LRUCache(limit_bytes, getsizeof=itemgetter(2))
        self._lock = threading.Lock()

    def get(self, connection: sqlite3.Connection, chosen: Selection, version: int) -> "array[int]":
        """
        Return the positions that *chosen* selects, in order. Call it in a read transaction.

        Args:
            version: the last sequence number that changed the kind in that snapshot.
        """
        with self._lock:
            cached = self._cache.get(chosen)
        if cached is not None and cached[0] == version:
            return cached[1]
        found = find(connection, chosen)
        size_bytes = len(found) * found.itemsize + size_of(chosen) + 300
        with self._lock, contextlib.suppress(ValueError):  # larger than the whole cache
            self._cache[chosen] = version, found, size_bytes
        return found


def find(connection: sqlite3.Connection, chosen: Selection) -> "array[int]":
    none: array[int] = array("q")
    match = None
    if chosen.q:
        match = match_expression(chosen.q)
        if match is None:
            return none
    values: list[tuple[int, int]] = []
    for name, value in chosen.facets:
        row = connection.execute(
            "SELECT n, id FROM published_value WHERE kind = ? AND name = ? AND value = ?", (chosen.kind, name, value)
        ).fetchone()
        if row is None or not row[0]:
            return none
        values.append(row)
    values.sort()
    if chosen.ids is not None:
        return _among(connection, chosen, match, [number for _, number in values])
    statement, parameters = _statement(chosen, match, [number for _, number in values])
    found = array("q", (row[0] for row in connection.execute(statement, parameters)))
    return _exact_names_first(connection, chosen, found) if chosen.order == "relevance" else found


def _statement(chosen: Selection, match: str | None, values: list[int]) -> tuple[str, list[object]]:
    """Build the query: it scans the most selective source and probes an index for every other condition."""
    kind = chosen.kind
    parameters: list[object]
    if match is not None:
        source, position = f"published_text_{kind} AS t", "t.rowid"
        conditions, parameters = [f"published_text_{kind} MATCH ?"], [match]
    elif values:
        source, position = "published_facet AS f", "f.position"
        conditions, parameters = ["f.value_id = ?"], [values.pop(0)]
    else:
        source, position = "published_document AS d", "d.position"
        conditions, parameters = ["d.kind = ?"], [kind]
    needs_document = chosen.updated_since is not None or chosen.order in {"name", "treasury"}
    if needs_document and "published_document" not in source:
        source += " CROSS JOIN published_document AS d"
        conditions.append(f"d.kind = ? AND d.position = {position}")
        parameters.append(kind)
    if chosen.updated_since is not None:
        conditions.append("d.updated_at >= ?")
        parameters.append(chosen.updated_since)
    for value in values:
        conditions.append(
            f"EXISTS (SELECT 1 FROM published_facet AS g WHERE g.value_id = ? AND g.position = {position})"
        )
        parameters.append(value)
    order = {
        "newest": f"{position} DESC",
        "name": "d.sort_name, d.position",
        "treasury": f"d.treasury_minor DESC, {position} DESC",
        "relevance": f"bm25(published_text_{kind}, {WEIGHTS}), {position} DESC",
    }[chosen.order]
    return f"SELECT {position} FROM {source} WHERE {' AND '.join(conditions)} ORDER BY {order}", parameters


def _among(connection: sqlite3.Connection, chosen: Selection, match: str | None, values: list[int]) -> "array[int]":
    """Select among a few given keys with one look-up each."""
    assert chosen.ids is not None  # noqa: S101 - the only caller has checked
    found: list[tuple[object, int]] = []
    for key in dict.fromkeys(chosen.ids):
        row = connection.execute(
            "SELECT position, sort_name, updated_at, treasury_minor FROM published_document WHERE kind = ? AND key = ?",
            (chosen.kind, key),
        ).fetchone()
        if row is None or (chosen.updated_since is not None and row[2] < chosen.updated_since):
            continue
        held = "SELECT 1 FROM published_facet WHERE value_id = ? AND position = ?"
        if any(connection.execute(held, (value, row[0])).fetchone() is None for value in values):
            continue
        rank: object = {"newest": -row[0], "treasury": (-row[3], -row[0])}.get(chosen.order, row[1])
        if match is not None:
            hit = connection.execute(
                f"SELECT bm25(published_text_{chosen.kind}, {WEIGHTS}) FROM published_text_{chosen.kind}"
                f" WHERE published_text_{chosen.kind} MATCH ? AND rowid = ?",
                (match, row[0]),
            ).fetchone()
            if hit is None:
                continue
            if chosen.order == "relevance":
                rank = hit[0]
        found.append((rank, row[0]))
    return array("q", (position for _, position in sorted(found)))


def _exact_names_first(connection: sqlite3.Connection, chosen: Selection, found: "array[int]") -> "array[int]":
    rows = connection.execute(
        "SELECT position FROM published_document WHERE kind = ? AND sort_name = ?"
        " UNION SELECT position FROM published_document WHERE kind = ? AND key = ? LIMIT 100",
        (chosen.kind, fold(chosen.q), chosen.kind, chosen.q),
    )
    exact = {row[0] for row in rows}
    first = [position for position in found if position in exact]
    return array("q", first + [position for position in found if position not in exact]) if first else found


def index_after(connection: sqlite3.Connection, chosen: Selection, positions: Sequence[int], mark: Mark) -> int:
    """Return the index in *positions* of the first item after *mark*, even if the marked item is gone."""
    if mark.order == "newest":
        return bisect_right(positions, -mark.position, key=lambda position: -position)
    if mark.order in {"relevance", "treasury"}:
        if mark.rank <= len(positions) and mark.rank and positions[mark.rank - 1] == mark.position:
            return mark.rank
        try:
            return positions.index(mark.position) + 1
        except ValueError:
            return min(max(mark.rank - 1, 0), len(positions))

    def name_and_position(position: int) -> tuple[str, int]:
        return name_at(connection, chosen.kind, position), position

    return bisect_right(positions, (mark.name, mark.position), key=name_and_position)


def name_at(connection: sqlite3.Connection, kind: str, position: int) -> str:
    (name,) = connection.execute(
        "SELECT sort_name FROM published_document WHERE kind = ? AND position = ?", (kind, position)
    ).fetchone()
    return str(name)
