"""Compare published documents with the published file: their rows, its index tables, and the feed on PostgreSQL."""

import sqlite3
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from muniment.kernel.http.representations import digest
from muniment.store import value_bits
from muniment.store.items import ITEM
from muniment.store.published import SCHEMA_VERSION, columns_of, provenance_member, with_checksum
from muniment.store.published_document import KINDS, PublishedDocument
from muniment.store.search.text_index import Columns
from muniment.store.search_text import fold

if TYPE_CHECKING:
    import psycopg

_COLUMNS: Final = (
    *("position", "sort_name", "updated_at", "raising", "treasury_minor", "team_size", "company_count", "provenance"),
    *("texts_digest", "etag", "body", "facets"),
)

_PLACE: Final = "SELECT position FROM published_document WHERE kind = '{kind}'"
_feed_decoder = msgspec.msgpack.Decoder(PublishedDocument)
_FEED_FIELDS: Final = [name for name in PublishedDocument.__struct_fields__ if name not in {"schema", "modified_at"}]
"""Fields that rendering produces; the stamp is of the last change."""


class RowFaults(NamedTuple):
    """
    The differences of the file's row from a document.

    Args:
        names: the parts that differ: ``body``, ``item``, ``filters``, …; ``missing`` if there is no row.
        is_intact: the stored body is the one that was published, by its own digest.
        is_structural: parts differ that other rows depend on, so that a single row cannot be replaced.
        is_outdated: an earlier version rendered the document, during a rolling upgrade.
    """

    names: tuple[str, ...]
    is_intact: bool = False
    is_structural: bool = False
    is_outdated: bool = False


def stored_body(connection: sqlite3.Connection, kind: str, key: str) -> bytes | None:
    row = connection.execute("SELECT body FROM published_document WHERE kind = ? AND key = ?", (kind, key)).fetchone()
    return None if row is None else row[0]


def faults_of(connection: sqlite3.Connection, document: PublishedDocument) -> RowFaults:
    """Return how the file differs from *document*; ``names`` is empty if it does not."""
    row = connection.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM published_document WHERE kind = ? AND key = ?",
        (document.kind, document.key),
    ).fetchone()
    if row is None:
        return RowFaults(("missing",), is_structural=True)  # other tables may still have its rows
    stored: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    expected: dict[str, Any] = {
        "position": document.position,
        "sort_name": fold(document.name),
        "updated_at": document.updated_at,
        "raising": int(document.raising),
        "treasury_minor": document.treasury_minor,
        "team_size": document.team_size,
        "company_count": document.company_count,
        "provenance": provenance_member(document),
        "texts_digest": columns_of(document).digest,
        "etag": digest(document.body),
        "body": document.body,
    }
    names = [name for name, value in expected.items() if stored[name] != value]
    names += _item_faults(connection, document)
    facets = _numbers(stored["facets"])
    if not _has_filters(connection, document, facets):
        names.append("filters")
    has_words = _has_words(connection, document)
    if not has_words:
        names.append("search text")
    body = stored["body"]
    is_intact = isinstance(body, bytes) and digest(body) == stored["etag"]
    is_structural = not _is_consistent(connection, stored, facets)
    # A row with the digest of the present texts would be left as it is.
    is_structural = is_structural or not (has_words or "texts_digest" in names)
    return RowFaults(tuple(names), is_intact, is_structural)


def _is_consistent(connection: sqlite3.Connection, stored: dict[str, Any], facets: list[int]) -> bool:
    """Return whether a row can be replaced alone: its numbers are numbers, and its filter entries are there."""
    if not all(isinstance(stored[name], int) for name in ("position", "raising")):
        return False
    if not isinstance(stored["treasury_minor"], int | None):
        return False
    # CROSS JOIN begins with the few numbers, here and below: SQLite may choose to begin with all rows of the table.
    (entries,) = connection.execute(
        "SELECT count(*) FROM json_each(?) s CROSS JOIN published_facet f ON f.value_id = s.value AND f.position = ?",
        (msgspec.json.encode(facets).decode(), stored["position"]),
    ).fetchone()
    return bool(entries == len(facets))


def _item_faults(connection: sqlite3.Connection, document: PublishedDocument) -> list[str]:
    row = connection.execute(
        f"SELECT {ITEM}, provenance FROM published_item_{document.kind} WHERE position = ?", (document.position,)
    ).fetchone()
    return [] if row == (with_checksum(document.item), provenance_member(document)) else ["item"]


def _has_filters(connection: sqlite3.Connection, document: PublishedDocument, facets: list[int]) -> bool:
    """Return whether the row names the values of *document*, and no others."""
    wanted = sorted((name, value) for name, values in document.facets.items() for value in dict.fromkeys(values))
    rows = connection.execute(
        "SELECT v.name, v.value FROM json_each(?) s CROSS JOIN published_value v ON v.id = s.value AND v.kind = ?",
        (msgspec.json.encode(facets).decode(), document.kind),
    )
    return sorted(rows.fetchall()) == wanted


def _numbers(stored: Any) -> list[int]:
    """Return the stored list of numbers; one that no row has if it is no such list."""
    try:
        return msgspec.json.decode(stored, type=list[int])
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError):
        return [-1]


def _has_words(connection: sqlite3.Connection, document: PublishedDocument) -> bool:
    row = connection.execute(
        f"SELECT {', '.join(Columns._fields)} FROM published_text_{document.kind} WHERE rowid = ?", (document.position,)
    ).fetchone()
    return bool(row == columns_of(document))


def stored_document(connection: "psycopg.Connection[Any]", kind: str, key: str) -> PublishedDocument | None:
    """Return a row's document, or None; raise msgspec.DecodeError if it is damaged."""
    row = connection.execute(
        "SELECT document FROM published_document WHERE kind = %s AND key = %s", (kind, key)
    ).fetchone()
    return None if row is None else _feed_decoder.decode(row[0])


def faults_of_feed_row(connection: "psycopg.Connection[Any]", document: PublishedDocument) -> RowFaults:
    """Return how a row on PostgreSQL differs from *document*; ``names`` is empty if it does not."""
    try:
        stored = stored_document(connection, document.kind, document.key)
    except msgspec.DecodeError:
        return RowFaults(("body",))
    if stored is None:
        return RowFaults(("missing",))
    names = tuple(name for name in _FEED_FIELDS if getattr(stored, name) != getattr(document, name))
    return RowFaults(names, is_intact=True, is_outdated=stored.schema < SCHEMA_VERSION)


def faults_of_indexes(connection: sqlite3.Connection) -> list[str]:
    """Return which index tables do not match the documents. Call it in one snapshot."""
    found = [fault for kind in KINDS for fault in _of_kind(connection, kind)]
    lost = connection.execute(
        "SELECT count(*) FROM published_facet f WHERE NOT EXISTS (SELECT 1 FROM published_value v"
        " JOIN published_document d ON d.kind = v.kind AND d.position = f.position WHERE v.id = f.value_id)"
    ).fetchone()[0]
    if lost:
        found.append(f"{lost:,} filter entries belong to no document")
    miscounted = connection.execute(
        "SELECT count(*) FROM published_value v WHERE n <> (SELECT count(*) FROM published_facet WHERE value_id = v.id)"
    ).fetchone()[0]
    if miscounted:
        found.append(f"{miscounted:,} filter values have a wrong count")
    wrong_bits = value_bits.faults(connection)
    if wrong_bits:
        found.append(f"{wrong_bits:,} filter values have wrong bits")
    return found


def _of_kind(connection: sqlite3.Connection, kind: str) -> list[str]:
    found = []
    documents = connection.execute(f"SELECT count(*) FROM ({_PLACE.format(kind=kind)})").fetchone()[0]
    tables = (
        ("items of lists", f"published_item_{kind}", "position"),
        ("search texts", f"published_text_{kind}_content", "id"),
    )
    for words, table, column in tables:
        rows, strays = connection.execute(
            f"SELECT count(*), count(*) FILTER (WHERE {column} NOT IN ({_PLACE.format(kind=kind)})) FROM {table}"
        ).fetchone()
        if rows != documents or strays:
            found.append(f"{rows:,} {words} for {documents:,} documents of kind {kind}, {strays:,} of none")
    total = connection.execute("SELECT n, raising, treasury_minor FROM published_total WHERE kind = ?", (kind,))
    if total.fetchone() != _totals(connection, kind):
        found.append(f"the totals of kind {kind} do not match its documents")
    if not _blocks_match(connection, kind):
        found.append(f"the blocks of kind {kind} do not match its documents")
    return found


def _totals(connection: sqlite3.Connection, kind: str) -> tuple[int, int, str]:
    """Add in Python: the sum of a million treasuries may exceed 64 bits."""
    n = raising = treasury = 0
    rows = connection.execute("SELECT raising, treasury_minor FROM published_document WHERE kind = ?", (kind,))
    for is_raising, minor in rows:
        if not isinstance(minor, int | None) or not isinstance(is_raising, int):
            return -1, 0, ""  # a damaged value
        n, raising, treasury = n + 1, raising + is_raising, treasury + (minor or 0)
    return n, raising, str(treasury)


def _blocks_match(connection: sqlite3.Connection, kind: str) -> bool:
    rows = connection.execute(
        "WITH b AS (SELECT first, n, lead(first, 1, 9223372036854775807) OVER (ORDER BY first) AS following"
        " FROM published_block WHERE kind = ?1) SELECT n, (SELECT count(*) FROM published_document d"
        " WHERE d.kind = ?1 AND d.position >= b.first AND d.position < b.following) FROM b",
        (kind,),
    ).fetchall()
    return bool(rows) and all(n == counted for n, counted in rows)
