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
from muniment.store.search.closest import Closest, closest_of, hint_of
from muniment.store.search.ranking import Plan, Tier, plan
from muniment.store.search.text_index import WEIGHTS
from muniment.store.search.values import meant

Sort = Literal["newest", "name", "relevance", "treasury"]
SORTS: Final[tuple[Sort, ...]] = ("newest", "name", "relevance", "treasury")
MAX_TIERS: Final = 100
"""More results are never mixed with those of other kinds."""


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


class Matches(NamedTuple):
    """
    What a selection finds, in order.

    Args:
        closest: what is close, if nothing or little is found.
        hint: what to do if nothing is found.
        tiers: those of the first positions, in the order of relevance.
    """

    positions: "array[int]"
    closest: tuple[Closest, ...] = ()
    hint: str = ""
    tiers: bytes = b""


class Positions:
    """LRU cache of at most *limit_bytes*: what each selection finds, valid until its kind changes."""

    def __init__(self, limit_bytes: int) -> None:
        self._cache: LRUCache[Selection, tuple[int, Matches, int]] = LRUCache(limit_bytes, getsizeof=itemgetter(2))
        self._lock = threading.Lock()

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


def find(connection: sqlite3.Connection, chosen: Selection) -> Matches:
    planned = plan(connection, chosen.kind, chosen.q) if chosen.q else Plan(None)
    positions = _find(connection, chosen, planned)
    tiers = bytes(planned.first.get(position, Tier.TEXT) for position in positions[:MAX_TIERS])
    if len(positions) and not planned.close:
        return Matches(positions, tiers=tiers)
    closest = closest_of(connection, chosen.kind, chosen.q, planned, positions)
    hint = "" if len(positions) else hint_of(connection, chosen.kind, chosen.q, chosen.facets)
    return Matches(positions, closest, hint, tiers)


def _find(connection: sqlite3.Connection, chosen: Selection, planned: Plan) -> "array[int]":
    none: array[int] = array("q")
    if chosen.q and planned.match is None:
        return none
    values: list[tuple[int, list[int]]] = []
    for name, value in chosen.facets:
        rows = meant(connection, chosen.kind, name, value)
        if not rows:
            return none
        values.append((sum(n for n, _ in rows), [number for _, number in rows]))
    values.sort()
    if chosen.ids is not None:
        return _among(connection, chosen, planned, [numbers for _, numbers in values])
    statement, parameters = _statement(chosen, planned.match, [numbers for _, numbers in values])
    found = array("q", (row[0] for row in connection.execute(statement, parameters)))
    if chosen.order != "relevance" or not planned.first:
        return found
    held = set(found)
    first = [position for position in planned.first if position in held]
    held.difference_update(first)
    return array("q", first + [position for position in found if position in held])


def _statement(chosen: Selection, match: str | None, values: list[list[int]]) -> tuple[str, list[object]]:
    """Build the query: it scans the most selective source and probes an index for every other condition."""
    kind = chosen.kind
    parameters: list[object]
    if match is not None:
        source, position = f"published_text_{kind} AS t", "t.rowid"
        conditions, parameters = [f"published_text_{kind} MATCH ?"], [match]
    elif values:
        source, position = "published_facet AS f", "f.position"
        parameters = [*values.pop(0)]
        conditions = ["f.value_id = ?"]
        if len(parameters) > 1:  # forms of one value, of which a document may have several
            own = f"SELECT position FROM published_facet WHERE value_id IN ({_marks(parameters)})"
            source, position, conditions = f"(SELECT DISTINCT position FROM ({own})) AS f", "f.position", ["1"]
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
    for numbers in values:
        among = f"g.value_id IN ({_marks(numbers)}) AND g.position = {position}"
        conditions.append(f"EXISTS (SELECT 1 FROM published_facet AS g WHERE {among})")
        parameters += numbers
    order = {
        "newest": f"{position} DESC",
        "name": "d.sort_name, d.position",
        "treasury": f"d.treasury_minor DESC, {position} DESC",
        "relevance": f"bm25(published_text_{kind}, {WEIGHTS}), {position} DESC",
    }[chosen.order]
    return f"SELECT {position} FROM {source} WHERE {' AND '.join(conditions)} ORDER BY {order}", parameters


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))


def _among(connection: sqlite3.Connection, chosen: Selection, planned: Plan, values: list[list[int]]) -> "array[int]":
    """Select among a few given keys with one look-up each."""
    assert chosen.ids is not None  # noqa: S101 - the only caller has checked
    found: list[tuple[object, int]] = []
    ranks = {position: rank for rank, position in enumerate(planned.first)}
    for key in dict.fromkeys(chosen.ids):
        row = connection.execute(
            "SELECT position, sort_name, updated_at, treasury_minor FROM published_document WHERE kind = ? AND key = ?",
            (chosen.kind, key),
        ).fetchone()
        if row is None or (chosen.updated_since is not None and row[2] < chosen.updated_since):
            continue
        held = "SELECT 1 FROM published_facet WHERE value_id IN ({}) AND position = ?"
        if any(
            connection.execute(held.format(_marks(numbers)), (*numbers, row[0])).fetchone() is None
            for numbers in values
        ):
            continue
        rank: object = {"newest": -row[0], "treasury": (-row[3], -row[0])}.get(chosen.order, row[1])
        if planned.match is not None:
            hit = connection.execute(
                f"SELECT bm25(published_text_{chosen.kind}, {WEIGHTS}) FROM published_text_{chosen.kind}"
                f" WHERE published_text_{chosen.kind} MATCH ? AND rowid = ?",
                (planned.match, row[0]),
            ).fetchone()
            if hit is None:
                continue
            if chosen.order == "relevance":
                rank = (ranks.get(row[0], len(ranks)), hit[0])
        found.append((rank, row[0]))
    return array("q", (position for _, position in sorted(found)))


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
