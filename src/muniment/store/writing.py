"""
Write documents, list items, facets and search texts, with what is counted of them.

Documents are written in groups, because a statement of its own costs more than a row: totals, facet values, and items
in blocks of positions are counted meanwhile and written once.
"""

import sqlite3
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from muniment.kernel.http.representations import digest
from muniment.store.published_document import PublishedDocument, PublishedEntry
from muniment.store.search import text_index
from muniment.store.search.text_index import Columns, Replacements
from muniment.store.search.values import singular
from muniment.store.search.vocabulary import Words
from muniment.store.search_text import fold
from muniment.store.sqlite.bulk_writes import insert_rows

AT_ONCE: Final = 500
"""Documents that are written together."""

_COLUMNS: Final = (
    *("position", "sort_name", "updated_at", "raising", "treasury_minor", "team_size", "company_count", "provenance"),
    *("facets", "texts_digest", "etag", "body", "modified_at"),
)
_UPDATE: Final = f"UPDATE published_document SET {', '.join(f'{each} = ?' for each in _COLUMNS)} WHERE id = ?"
_INSERT: Final = (
    f"INSERT INTO published_document ({', '.join(_COLUMNS)}, kind, key) VALUES ({', '.join('?' * len(_COLUMNS))}, ?, ?)"
)

_WITH_CHECKSUM: Final = b"\x01"
"""Differs in several bits from the first byte of JSON, which begins items of former versions: they have no checksum."""
BLOCK_SPLIT: Final = 2_000
"""A block with more items is split in two."""
END: Final = 1 << 63
"""Past all positions."""
_VALUE: Final = "SELECT id FROM published_value WHERE kind = ? AND name = ? AND value = ?"
_NEW_VALUE: Final = "INSERT INTO published_value (kind, name, value, n, folded) VALUES (?, ?, ?, 0, ?)"

_Named = TypeVar("_Named", PublishedDocument, PublishedEntry)
_decode_facets: Final = msgspec.json.Decoder(list[int]).decode


class _Stored(NamedTuple):
    """The former values of a document that are needed to replace or remove it."""

    id: int
    position: int
    raising: int
    treasury_minor: int
    facets: list[int]
    texts_digest: str


def columns_of(document: PublishedDocument) -> Columns:
    """Return everything by which a document can be searched."""
    return text_index.columns(document.name, document.key, document.texts, document.search)


def provenance_member(document: PublishedDocument) -> str:
    """Return a document's key and mark as a member of a JSON object; empty without a mark."""
    return msgspec.json.encode({document.key: document.provenance})[1:-1].decode() if document.provenance else ""


def with_checksum(item: bytes) -> bytes:
    """Return an item of lists as it is stored: a mark that no JSON begins with, the item, and the CRC-32 of both."""
    marked = _WITH_CHECKSUM + item
    return marked + crc32(marked).to_bytes(4, "little")


def grouped(given: Iterable[_Named]) -> Iterator[list[_Named]]:
    """Yield documents, or their changes, in groups in which none occurs twice."""
    group: list[_Named] = []
    seen: set[tuple[str, str]] = set()
    for each in given:
        if (each.kind, each.key) in seen:
            yield group
            group, seen = [], set()
        group.append(each)
        seen.add((each.kind, each.key))
        if len(group) == AT_ONCE:
            yield group
            group, seen = [], set()
    if group:
        yield group


class DocumentWriter:
    """
    The documents of the published file while they are written, group by group.

    Totals, facets, blocks and search texts are complete after :meth:`finish`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._totals, self._values, self._blocks = Totals(), Values(connection), Blocks(connection)
        self._words = Words(connection)
        self._texts = Replacements(connection, self._words)

    def write(self, changes: Collection[tuple[str, str, PublishedDocument | None]]) -> None:
        """
        Write the documents of a group, or remove those that are None.

        Args:
            changes: kind, key and document, each document once.
        """
        stored = self._stored(changes)
        rows = _Rows()
        for kind, key, document in changes:
            old = stored.get((kind, key))
            if old is not None:
                self._totals.add(kind, -1, -old.raising, -old.treasury_minor)
            if document is not None:
                self._totals.add(kind, 1, int(document.raising), document.treasury_minor or 0)
                self._put(rows, document, old)
            elif old is not None:
                self._remove(rows, kind, old)
        rows.write(self._connection)

    def finish(self, sequence: int) -> None:
        """Write what was counted and indexed; facet values are marked as changed with *sequence*."""
        self._totals.write(self._connection)
        self._blocks.write()
        self._values.write(sequence)
        self._texts.write()
        self._words.write()

    def _stored(self, changes: Iterable[tuple[str, str, object]]) -> dict[tuple[str, str], _Stored]:
        keys: dict[str, list[str]] = {}
        for kind, key, _ in changes:
            keys.setdefault(kind, []).append(key)
        statement = (
            "SELECT key, id, position, raising, coalesce(treasury_minor, 0), facets, texts_digest"
            " FROM published_document WHERE kind = ? AND key IN (SELECT value FROM json_each(?))"
        )
        stored: dict[tuple[str, str], _Stored] = {}
        for kind, chosen in keys.items():
            rows = self._connection.execute(statement, (kind, msgspec.json.encode(chosen).decode()))
            for key, number, position, raising, treasury_minor, facets, texts_digest in rows:
                facet_ids = _decode_facets(facets)
                stored[kind, key] = _Stored(number, position, raising, treasury_minor, facet_ids, texts_digest)
        return stored

    def _put(self, rows: "_Rows", document: PublishedDocument, old: _Stored | None) -> None:
        kind, position = document.kind, document.position
        moved = old is None or old.position != position
        if moved:
            if old is not None:
                self._leave(rows, kind, old.position)
            self._blocks.enter(kind, position)
        provenance = provenance_member(document)
        rows.items.setdefault(kind, []).append((position, provenance, with_checksum(document.item)))
        facets = self._values.ids_of(kind, document.facets)
        self._put_facets(facets, position, old, moved=moved)
        columns = columns_of(document)
        texts_digest = columns.digest
        if moved or old is None or old.texts_digest != texts_digest:
            self._texts.add(kind, None if old is None else old.position, position, columns)
        values_of_row = (
            position,
            fold(document.name),
            document.updated_at,
            int(document.raising),
            document.treasury_minor,
            document.team_size,
            document.company_count,
            provenance,
            msgspec.json.encode(facets),
            texts_digest,
            digest(document.body),
            document.body,
            document.modified_at,
        )
        if old is None:
            rows.new.append((*values_of_row, kind, document.key))
        else:
            rows.changed.append((*values_of_row, old.id))

    def _put_facets(self, facets: list[int], position: int, old: _Stored | None, *, moved: bool) -> None:
        if old is None:
            self._values.enter(facets, position)
            return
        # Facets are stored by position, so a document that moved keeps none of its rows.
        kept = frozenset[int]() if moved else frozenset(old.facets) & frozenset(facets)
        self._values.leave([value for value in old.facets if value not in kept], old.position)
        self._values.enter([value for value in facets if value not in kept], position)

    def _remove(self, rows: "_Rows", kind: str, old: _Stored) -> None:
        rows.removed.append((old.id,))
        self._leave(rows, kind, old.position)
        self._values.leave(old.facets, old.position)
        self._texts.add(kind, old.position)

    def _leave(self, rows: "_Rows", kind: str, position: int) -> None:
        rows.left.setdefault(kind, []).append((position,))
        self._blocks.leave(kind, position)


class _Rows:
    """The rows of a group."""

    def __init__(self) -> None:
        self.left: dict[str, list[tuple[int]]] = {}
        """Positions whose items are removed, by kind."""
        self.items: dict[str, list[tuple[int, str, bytes]]] = {}
        self.removed: list[tuple[int]] = []
        self.changed: list[tuple[object, ...]] = []
        self.new: list[tuple[object, ...]] = []

    def write(self, connection: sqlite3.Connection) -> None:
        for kind, positions in self.left.items():
            connection.executemany(f"DELETE FROM published_item_{kind} WHERE position = ?", positions)
        for kind, items in self.items.items():
            connection.executemany(
                f"INSERT OR REPLACE INTO published_item_{kind} (position, provenance, item) VALUES (?, ?, ?)",
                sorted(items),
            )
        connection.executemany("DELETE FROM published_document WHERE id = ?", self.removed)
        # An update leaves the indexes of columns that have not changed as they are.
        connection.executemany(_UPDATE, self.changed)
        connection.executemany(_INSERT, self.new)


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
        insert_rows(self._connection, "published_facet", sorted(self._entered, key=itemgetter(0)))
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
