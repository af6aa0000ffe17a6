"""
The reader of the published file, for the REST API, the public tools and the web pages.

Uses no Django. Thread-safe: each thread has its own read-only connection. Each answer comes from one snapshot of the
file and carries its edition.
"""

import sqlite3
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from muniment.kernel.http.representations import is_stamp
from muniment.kernel.ids import digest
from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.wire import format_money, with_picture_addresses
from muniment.schema.filters import Chosen
from muniment.store.database.erasure import latest
from muniment.store.lists import facets, scores
from muniment.store.lists.facets import Counting, Documents, Facets, Suggestion
from muniment.store.lists.finding import NOTHING
from muniment.store.lists.positions import Positions, index_after, items_at, mark_of
from muniment.store.published import ChangeRow, Changes, chain_after, change_rows
from muniment.store.published_file import PublishedFile
from muniment.store.queries import ListQuery, parse_cursor, selection
from muniment.store.search.closest import Closest, guidance_of, keys_from, nearest_keys, unknown_keys
from muniment.store.snapshot_state import SnapshotState, changes_after

POOL_THREADS: Final = 2
BATCH: Final = 32
"""Documents per look-up statement."""
_EVERYTHING: Final = ListQuery()


class Found(msgspec.Struct, frozen=True, gc=False):
    """
    A finished body.

    Args:
        etag: the opaque part of its ETag.
        modified_at: the stamp of its last change (see `is_stamp`), or another time without one.
        version: the version of the file it was read from.
        provenance: for each item, its key and its mark, as a member of a JSON object.
    """

    body: bytes
    etag: str
    modified_at: str
    version: int
    provenance: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListPage(Page[bytes]):
    """
    A page of finished list items. The page number is the actual one, also with a cursor.

    Args:
        provenance: for each item, its key and its mark, as a member of a JSON object.
        closest: similar documents, if few or none match.
        hint: what to do if nothing is found.
        tiers: for each item, how well it answers the search words; in the order of relevance only.
        is_cut: whether more match than the total says, which no page lists.
        unknown_ids: those of the asked keys that no document has.
    """

    version: int
    modified_at: str
    next_cursor: str | None = None
    provenance: Sequence[str] = ()
    closest: tuple[Closest, ...] = ()
    hint: str = ""
    tiers: bytes = b""
    is_cut: bool = False
    unknown_ids: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, int]:
        return {**Page.to_wire(self), **({"totalIsMinimum": True} if self.is_cut else {})}

    def guidance(self) -> JSONObject:
        """Return the members of an answer that say what was not found, and name similar documents."""
        unknown = {"unknownIds": list(self.unknown_ids)} if self.unknown_ids else {}
        return {**unknown, **guidance_of(self.closest, self.hint)}


class _Bundle(msgspec.Struct, rename="camel"):
    """The paginated part of a company document."""

    cap_table: list[msgspec.Raw] = []


class _Detail(msgspec.Struct):
    data: _Bundle


class Reader(PublishedFile):
    """
    Reads the published file.

    Args:
        base_url: the public URL of the instance, for the addresses of pictures.
        cache_bytes: size limit of cached responses; arrays of positions and of the documents of values may
            each take half as much in addition.
        catch_up: brings a replica to its source's newest edition and returns whether it is known to be there.
        is_copy: whether the file is the copy of a node, which may be replaced.
        since: from when this server composes its answers, as a stamp; empty if it does not matter.
    """

    def __init__(
        self,
        path: Path,
        *,
        currency: str = "USD",
        base_url: str = "",
        cache_bytes: int = 32 << 20,
        catch_up: Callable[[], bool] = lambda: True,
        is_copy: bool = False,
        since: str = "",
    ) -> None:
        super().__init__(path, cache_bytes=cache_bytes, is_copy=is_copy, since=since)
        self._currency = currency
        self._base_url = base_url
        self._catch_up = catch_up
        self._cache_bytes = cache_bytes
        self._erased = (-1, 0)
        self._positions = Positions(cache_bytes // 2)
        self._documents = Documents(cache_bytes // 2)
        self.pool = ThreadPoolExecutor(POOL_THREADS, thread_name_prefix="reader")
        """Runs queries that are too slow for an event loop; see :meth:`is_quick`."""

    def close(self) -> None:
        self.pool.shutdown()
        super().close()

    def _forget(self, edition: int) -> None:
        super()._forget(edition)
        self._erased = (-1, 0)
        self._positions = Positions(self._cache_bytes // 2)
        self._documents = Documents(self._cache_bytes // 2)

    def document(self, kind: str, key: str) -> Found | None:
        """Return a document; *key* may be in another Unicode normalization form than slugs, which are in form C."""
        if not key.isascii():
            key = unicodedata.normalize("NFC", key)
        return self.documents(((kind, key),)).get((kind, key))

    def documents(self, names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Found]:
        """Return those of the documents *names*, pairs of kind and key, that exist."""
        version = self._state.version
        connection = self.connection_for_details()
        found = {}
        for start in range(0, len(names), BATCH):
            some = names[start : start + BATCH]
            for body, named in connection.execute(_BY_NAMES[len(some)], [*chain.from_iterable(some)]):
                values, _, provenance = named.rpartition("\n")
                etag, modified_at, kind, key = values.split(" ", 3)
                found[kind, key] = self._found(body, etag, modified_at, version, provenance)
        return found

    def _found(self, body: bytes, etag: str, modified_at: str, version: int, provenance: str) -> Found:
        shown = with_picture_addresses(body, self._base_url)
        if shown is body and modified_at:
            return Found(body, etag, modified_at, version, (provenance,))
        return Found(shown, digest(shown), self._composed(modified_at), version, (provenance,))

    def _composed(self, modified_at: str) -> str:
        """Return the stamp of what this server makes of a document; any other time if it has none."""
        return max(modified_at, self._since) if is_stamp(modified_at) else self._state.at

    def companies(self, query: ListQuery) -> ListPage:
        """Return a page of companies; raise CursorError if the cursor belongs to another order."""
        return self.page("company", query)

    def people(self, query: ListQuery) -> ListPage:
        """Return a page of people; raise CursorError if the cursor belongs to another order."""
        return self.page("person", query)

    def is_quick(self, query: ListQuery) -> bool:
        """Return whether the query takes microseconds, so that an event loop may run it directly."""
        is_slow = query.q or query.cursor or query.ids or query.filters or query.ranges
        return not is_slow and query.sort in {None, "newest"}

    def frameworks(self, query: ListQuery = _EVERYTHING) -> Found:
        """Return the finished list of frameworks without pages: first published or best match first."""
        with self.snapshot() as (connection, state):
            chosen = selection("framework", query)
            guidance: JSONObject = {}
            if chosen.is_everything:
                everything = "SELECT item, provenance FROM published_item_framework ORDER BY position"
                rows = connection.execute(everything, ()).fetchall()
            else:
                found = self._positions.get(connection, chosen, state.versions["framework"])
                step = 1 if chosen.order == "relevance" else -1
                rows = list(zip(*items_at(connection, "framework", found.positions[::step]), strict=True))
                guidance = guidance_of(found.closest, found.hint)
            rest = b"," + msgspec.json.encode(guidance)[1:] if guidance else b"}"
            body = b'{"data":[%s]%s' % (b",".join([row[0] for row in rows]), rest)
        body = with_picture_addresses(body, self._base_url)
        return Found(body, digest(body), state.modified_at, state.version, tuple(row[1] for row in rows))

    def stats(self) -> Found:
        state = self._state
        companies, raising, treasury_minor = state.totals["company"]
        people, frameworks = state.totals["person"][0], state.totals["framework"][0]
        treasury = format_money(treasury_minor, self._currency)
        data = {"total": companies, "projectsRaising": raising, "totalTreasury": treasury}
        data |= {"founders": people, "frameworks": frameworks}
        body = msgspec.json.encode({"data": data})
        return Found(body, digest(body), state.modified_at, state.version)

    def cap_table(self, slug: str, page: int, page_size: int) -> ListPage | None:
        """Return a page of a company's token holders, or None if there is no such company."""
        found = self.document("company", slug)
        if found is None:
            return None
        holders = msgspec.json.decode(found.body, type=_Detail).data.cap_table
        start = (page - 1) * page_size
        return ListPage(
            [bytes(holder) for holder in holders[start : start + page_size]],
            page,
            page_size,
            len(holders),
            found.version,
            self._composed(found.modified_at),
        )

    def scores(self, framework_id: str, page: int, page_size: int) -> ListPage:
        """Return a page of the published scores of a framework, the best first; none of an unknown one."""
        with self.snapshot() as (connection, state):
            total = scores.count(connection, framework_id)
            ranked = scores.ranked(connection, framework_id, (page - 1) * page_size, page_size)
        items = [with_picture_addresses(each.shown(framework_id), self._base_url) for each in ranked]
        return ListPage(items, page, page_size, total, state.version, state.modified_at)

    def chain_after(self, number: int) -> str | None:
        """Return the chain of the feed after change *number*, where it is known."""
        return chain_after(self._connection(), number)

    def has_past(self, after: int, chain: str | None) -> bool:
        """Return whether the feed has reached number *after* with that chain, if one is given."""
        return after <= self.edition and (chain is None or self.chain_after(after) == chain)

    def changes(self, after: int, limit: int, chain: str | None = None) -> Changes:
        """
        Return at most *limit* changes after number *after*.

        Args:
            chain: what the feed said of that number, to refuse a feed with another past.

        Raises:
            FeedGapError: some of them are no longer available.
            FeedAheadError: no change has that number yet, here or, on a replica, at its source.
            FeedDivergedError: the chain of that number is another one, here or, on a replica, at its source.
        """
        is_level = True
        if not self.has_past(after, chain):
            is_level = self._catch_up()
            self.refresh()
        with self.snapshot() as (connection, state):
            return changes_after(connection, state, after, limit, chain, is_level=is_level)

    def erased(self) -> int:
        """Return the number of the latest change that tells of an erased person; 0 if there is none."""
        if self._erased[0] != self.version:
            version = self.version
            self._erased = version, latest(self._connection())
        return self._erased[1]

    def changes_of(self, kind: str, key: str, limit: int) -> list[ChangeRow]:
        """Return the latest changes of one document that the feed still has."""
        condition = "WHERE kind = ? AND key = ? ORDER BY sequence DESC LIMIT ?"
        return change_rows(self._connection(), condition, kind, key, limit)

    def keys(self, kind: str, prefix: str, limit: int, *, skip: int = 0) -> list[str]:
        """Return at most *limit* keys that start with *prefix*, in order, after the first *skip*."""
        return keys_from(self._connection(), kind, prefix, limit, skip=skip)

    def facets(self, kind: str, query: ListQuery, names: Sequence[str], limit: int = facets.SHOWN) -> Facets:
        """Return how many of what *query* finds have each value of the filters *names*, at most *limit* of each."""
        chosen = selection(kind, query)
        with self.snapshot() as (connection, state):
            total, found = facets.count(
                connection,
                chosen,
                state.versions[kind],
                names,
                limit,
                positions=self._positions,
                documents=self._documents,
            )
            return Facets(state.totals[kind][0] if total is None else total, found, state.version, state.modified_at)

    def suggest(
        self, kind: str, query: ListQuery, text: str, filters: Sequence[Chosen], limit: int
    ) -> list[Suggestion]:
        """Return at most *limit* values that *text* begins, of *filters* that *query* does not have, with counts."""
        with self.snapshot() as (connection, state):
            counting = Counting(
                connection,
                selection(kind, query),
                state.versions[kind],
                positions=self._positions,
                documents=self._documents,
            )
            return counting.suggest(text, filters, limit)

    def values(self, kind: str, name: str, limit: int) -> list[str]:
        rows = self._connection().execute(
            "SELECT value FROM published_value WHERE kind = ? AND name = ? AND n > 0 AND value <> ''"
            " ORDER BY n DESC, value LIMIT ?",
            (kind, name, limit),
        )
        return [row[0] for row in rows]

    def count(self, kind: str) -> int:
        return self._state.totals[kind][0]

    def nearest(self, kind: str, key: str) -> list[str]:
        return nearest_keys(self._connection(), kind, key)

    def page(self, kind: str, query: ListQuery) -> ListPage:
        """Return a page of one *kind*; raise CursorError if the cursor belongs to another order."""
        chosen = selection(kind, query)
        size = query.page_size
        mark = parse_cursor(query.cursor, chosen.order) if query.cursor is not None else None
        with self.snapshot() as (connection, state):
            positions, found = None, NOTHING
            if chosen.is_everything:
                total = state.totals[chosen.kind][0]
            else:
                found = self._positions.get(connection, chosen, state.versions[chosen.kind])
                positions, total = found.positions, len(found.positions)
            if mark is None:
                start = (query.page - 1) * size
            elif positions is None:
                start = self._rank(connection, state, chosen.kind, mark.position)
            else:
                start = index_after(connection, chosen, positions, mark)
            items: list[bytes] = []
            marks: list[str] = []
            last, cursor = 0, None
            if start < total:
                if positions is None:
                    items, marks, last = self._items_from(connection, state, chosen.kind, start, size)
                else:
                    wanted = positions[start : start + size]
                    (items, marks), last = items_at(connection, chosen.kind, wanted), wanted[-1]
            unknown_ids = unknown_keys(connection, kind, query.ids) if query.ids else ()
            end = start + len(items)
            if items and end < total:
                cursor = mark_of(connection, chosen, last, end).to_cursor()
        return ListPage(
            items=[with_picture_addresses(each, self._base_url) for each in items],
            page=query.page if mark is None else start // size + 1,
            page_size=size,
            total=total,
            next_cursor=cursor,
            version=state.version,
            modified_at=state.modified_at,
            provenance=marks,
            closest=found.closest,
            hint=found.hint,
            tiers=found.tiers[start : start + size],
            is_cut=found.is_cut,
            unknown_ids=unknown_ids,
        )

    def _items_from(
        self, connection: sqlite3.Connection, state: SnapshotState, kind: str, start: int, size: int
    ) -> tuple[list[bytes], list[str], int]:
        """Return *size* items from rank *start* downwards: the sums find the block, an index the place in it."""
        sums, blocks = state.sums[kind], state.blocks[kind]
        index = bisect_right(sums, start)
        skip = start - (sums[index - 1] if index else 0)
        below = blocks[index - 1] if index else (1 << 63) - 1
        if skip:
            (first,) = connection.execute(
                "SELECT position FROM published_document INDEXED BY published_document_position"
                " WHERE kind = ? AND position < ? ORDER BY position DESC LIMIT 1 OFFSET ?",
                (kind, below, skip),
            ).fetchone()
            below = first + 1
        statement = f"SELECT item, provenance, position FROM published_item_{kind}"
        statement += " WHERE position < ? ORDER BY position DESC LIMIT ?"
        rows = connection.execute(statement, (below, size)).fetchall()
        return [row[0] for row in rows], [row[1] for row in rows], rows[-1][2]

    def _rank(self, connection: sqlite3.Connection, state: SnapshotState, kind: str, position: int) -> int:
        blocks = state.blocks[kind]
        index = bisect_left(blocks, -position, key=lambda first: -first)
        above = state.sums[kind][index - 1] if index else 0
        below = blocks[index - 1] if index else (1 << 63) - 1
        (within,) = connection.execute(
            "SELECT count(*) FROM published_document WHERE kind = ? AND position >= ? AND position < ?",
            (kind, position, below),
        ).fetchone()
        return int(above + within)


_WANTED: Final = (
    "SELECT body, etag || ' ' || modified_at || ' ' || kind || ' ' || key || char(10) || provenance"
    " FROM published_document"
)
"""Two columns instead of five: each column costs sqlite3 more than concatenating text."""
_BY_NAMES: Final = tuple(
    " UNION ALL ".join([f"{_WANTED} WHERE kind = ? AND key = ?"] * count) for count in range(BATCH + 1)
)
"""By the number of names."""
