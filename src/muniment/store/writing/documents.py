"""Write documents, list items, facets and search texts, in groups: a statement of its own costs more than a row."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec

from muniment.kernel.ids import digest
from muniment.store.published_document import PublishedDocument, PublishedEntry
from muniment.store.search import text_index
from muniment.store.search.text_index import Columns, Replacements
from muniment.store.search.vocabulary import Words
from muniment.store.search_text import fold
from muniment.store.writing.counts import Blocks, Totals, Values

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
        return {
            (kind, key): _Stored(number, position, raising, treasury_minor, _decode_facets(facets), texts_digest)
            for kind, chosen in keys.items()
            for key, number, position, raising, treasury_minor, facets, texts_digest in self._connection.execute(
                statement, (kind, msgspec.json.encode(chosen).decode())
            )
        }

    def _put(self, rows: "_Rows", document: PublishedDocument, old: _Stored | None) -> None:
        kind, position = document.kind, document.position
        moved = old is None or old.position != position
        if moved:
            if old is not None:
                self._leave(rows, kind, old.position)
            self._blocks.enter(kind, position)
        provenance = provenance_member(document)
        rows.items.setdefault(kind, []).append((position, provenance, document.item))
        values = self._values
        facets = values.ids_of(kind, document.facets)
        if old is None:
            values.enter(facets, position)
        else:
            kept = frozenset[int]() if moved else frozenset(old.facets) & frozenset(facets)
            values.leave([value for value in old.facets if value not in kept], old.position)
            values.enter([value for value in facets if value not in kept], position)
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
