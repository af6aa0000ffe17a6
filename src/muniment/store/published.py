"""
The published file: finished public documents, their order, their search index, and the change feed.

Publishers write it inside their transaction; :mod:`muniment.store.reader` reads it. On SQLite the tables are in the
main database, on PostgreSQL in a local copy on each node. Only :func:`prepare_copy` commits.

The order of a kind is one unique integer, the position. List items are clustered by it, and ``published_block`` holds
the number of items in each range of positions: a reader finds any page by a sum over about a thousand small rows, in
the same snapshot as the items, without counting.
"""

import contextlib
import re
import secrets
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from typing import Final, Literal, NamedTuple
from zlib import crc32

import msgspec

from muniment.kernel.ids import digest
from muniment.store import modified
from muniment.store.chain import links
from muniment.store.change_feed import encode_fields, mark_in
from muniment.store.published_index import Totals, Values, enter_block, leave_block, statements
from muniment.store.search import text_index
from muniment.store.search.text_index import Columns, Replacements, SearchTexts
from muniment.store.search.vocabulary import Words
from muniment.store.search_text import fold

Kind = Literal["company", "person", "framework"]
Change = Literal["published", "updated", "unlisted"]

KINDS: Final[tuple[Kind, ...]] = ("company", "person", "framework")
SCHEMA_VERSION: Final = 10
READABLE_SCHEMAS: Final = frozenset({2, 3, 4, 5, 6, 7, 8, 9, SCHEMA_VERSION})
"""Versions whose tables this version can read, so that it serves them until their documents are rendered again."""
UNBUILT: Final = "unbuilt"
"""The epoch of a replica file that has not been filled yet."""
CHANGES_KEPT: Final = 200_000


class PublishedDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    A finished public document.

    Nodes of former versions read it from PostgreSQL: there, fields keep their types, and unknown values are left out.

    Args:
        kind: ``company``, ``person`` or ``framework``.
        position: unique order within the kind, ``listed_day << 40 | publication_number``; the day is a proleptic
            ordinal, 0 when unknown and for kinds without dates.
        item: the JSON object in lists.
        body: the whole response of the detail endpoint.
        updated_at: in the format of :func:`muniment.kernel.wire.timestamp`.
        provenance: the origin of its text and the day, such as ``reviewed 2026-11-22``; no part of the body.
        name: the display name, which ``sort=name`` orders by.
        facets: the document's values for each filter.
        texts: search texts by weight: symbol, slug, domain and handles; description; body.
        search: further search texts.
        treasury_minor: minor units that count towards the registry's total; None if unknown.
        team_size: of a company, if known.
        company_count: of a person: the number of companies with a position.
        raising: whether a funding round is open.
        schema: on PostgreSQL, that of the version which rendered it; 0 if that version did not say so.
        modified_at: the stamp of the last change of the body, as :mod:`muniment.store.modified`.
    """

    kind: str
    key: str
    position: int
    item: bytes
    body: bytes
    updated_at: str
    name: str
    provenance: str = ""
    facets: dict[str, tuple[str, ...]] = {}
    texts: tuple[str, str, str] = ("", "", "")
    search: SearchTexts = SearchTexts()
    treasury_minor: int | None = None
    team_size: int | None = None
    company_count: int | None = None
    raising: bool = False
    schema: int = 0
    modified_at: str = ""


class PublishedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """
    One change to a document, with its dense sequence number. No document if unlisted.

    Args:
        fields: the members that an update changed; None where they are unknown, or the change is no update.
    """

    sequence: int
    kind: str
    key: str
    change: str
    at: str
    document: PublishedDocument | None = None
    fields: tuple[str, ...] | None = None

    @property
    def body(self) -> bytes | None:
        return None if self.document is None else self.document.body


_TABLES: Final = statements(KINDS)
_ADDED: Final = (
    ("published_change", "fields", "TEXT"),
    ("published_document", "team_size", "INTEGER"),
    ("published_document", "company_count", "INTEGER"),
    ("published_value", "changed", "INTEGER NOT NULL DEFAULT 0"),
    ("published_document", "modified_at", "TEXT NOT NULL DEFAULT ''"),
    *(
        (table, "provenance", "TEXT NOT NULL DEFAULT ''")
        for table in ("published_document", *(f"published_item_{kind}" for kind in KINDS))
    ),
)
"""Columns that tables of readable schemas may lack."""
_NAMES: Final = re.findall(r"TABLE IF NOT EXISTS (\w+)", ";".join(_TABLES))


class SchemaMismatch(Exception):  # noqa: N818 - a state of the file, reported to the operator
    """The published tables were written by another version of the software."""


def create(connection: sqlite3.Connection, *, epoch: str | None = None) -> None:
    """
    Create the published tables if they are missing, with *epoch* or a random one.

    Raises:
        SchemaMismatch: they exist in another version; :func:`clear` them and publish everything again.
    """
    if _exists(connection):
        check(connection)  # first: statements of this version may not fit tables of another
        _add_columns(connection)
    for statement in (*_TABLES, modified.TABLE):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO published_meta VALUES (1, ?, 0, ?, '') ON CONFLICT DO NOTHING",
        (SCHEMA_VERSION, epoch or secrets.token_hex(8)),
    )
    for kind in KINDS:
        text_index.settle(connection, kind)
        connection.execute("INSERT INTO published_total VALUES (?, 0, 0, '0') ON CONFLICT DO NOTHING", (kind,))
        connection.execute("INSERT INTO published_block VALUES (?, 0, 0) ON CONFLICT DO NOTHING", (kind,))


def _exists(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'published_meta'").fetchone() is not None


def check(connection: sqlite3.Connection) -> None:
    """Raise SchemaMismatch if another version of the software wrote the tables."""
    _require(connection, {SCHEMA_VERSION})


def is_current(connection: sqlite3.Connection) -> bool:
    """Return whether this version can write the tables, not only read them."""
    with contextlib.suppress(SchemaMismatch):
        check(connection)
        return True
    return False


def check_readable(connection: sqlite3.Connection) -> None:
    """Raise SchemaMismatch if this version cannot even read the tables."""
    _require(connection, READABLE_SCHEMAS)


def has_column(connection: sqlite3.Connection, table: str, column: str) -> bool:
    """Return whether a table has a column that earlier schemas lack."""
    return any(name == column for _, name, *_ in connection.execute(f"PRAGMA table_info({table})"))


def _add_columns(connection: sqlite3.Connection) -> None:
    for table, column, definition in _ADDED:
        found = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
        if found and column not in found:  # a table that is missing is made with it
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {definition}")


def _require(connection: sqlite3.Connection, versions: Collection[int]) -> None:
    row = connection.execute("SELECT schema FROM published_meta").fetchone()
    schema = row[0] if row else None
    if schema not in versions:
        message = f"the published tables have schema {schema}, this version writes {SCHEMA_VERSION}"
        raise SchemaMismatch(message)


def prepare_copy(connection: sqlite3.Connection) -> None:
    """
    Create the tables of a replica file.

    Those of another version are dropped, since the feed has their content; if they can be read, they are served until
    the feed's documents are rendered again.
    """
    with contextlib.suppress(sqlite3.OperationalError, SchemaMismatch):
        check_readable(connection)
        _add_columns(connection)
        connection.execute(links.SQLITE_TABLE)
        connection.execute(modified.TABLE)
        return  # without the write lock, which another process that builds the file may hold
    connection.execute("BEGIN IMMEDIATE")
    try:
        create(connection, epoch=UNBUILT)
    except SchemaMismatch:
        clear(connection, epoch=UNBUILT)
    connection.execute("COMMIT")


def clear(connection: sqlite3.Connection, *, epoch: str | None = None, edition: int = 0) -> None:
    """Delete everything and start *epoch*, random if absent; the next sequence number is one more than *edition*."""
    for name in _NAMES:
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    create(connection)
    connection.execute("UPDATE published_meta SET epoch = ?, edition = ?", (epoch or secrets.token_hex(8), edition))


def reserve(connection: sqlite3.Connection, count: int) -> int:
    """
    Advance the edition by *count*, take the write lock and return the first new number; *count* entries must follow.

    Call it after the last write to the source and before rendering: the holder of the edition sees every earlier
    publisher's writes.
    """
    statement = "UPDATE published_meta SET edition = edition + ? RETURNING edition"
    (edition,) = connection.execute(statement, (count,)).fetchone()
    return int(edition) - count + 1


def lock(connection: sqlite3.Connection) -> str:
    """Take the write lock and return the time of the last change."""
    (at,) = connection.execute("UPDATE published_meta SET edition = edition RETURNING at").fetchone()
    return str(at)


def renew_epoch(connection: sqlite3.Connection) -> None:
    """Renew the identity of the feed; keep the mark of the declared fields."""
    mark = mark_in(head(connection)[1])
    set_epoch(connection, secrets.token_hex(8))
    mark_epoch(connection, mark)


def mark_epoch(connection: sqlite3.Connection, mark: str) -> None:
    """Add the mark of the declared fields that the documents are rendered with, if there are any."""
    if mark:
        connection.execute("UPDATE published_meta SET epoch = epoch || '-' || ?", (mark,))


def set_epoch(connection: sqlite3.Connection, epoch: str) -> None:
    connection.execute("UPDATE published_meta SET epoch = ?", (epoch,))


def document_id(kind: str, key: str) -> int:
    """
    Return the preferred row id of a document: the CRC-32 of its kind and key.

    A look-up by row id walks one tree instead of two. On a collision, some hundred pairs in a million, the later
    document takes the next free id and is found by its key.
    """
    return crc32(f"{kind}\0{key}".encode())


def _free_id(connection: sqlite3.Connection, kind: str, key: str) -> int:
    wanted = document_id(kind, key)
    while connection.execute("SELECT 1 FROM published_document WHERE id = ?", (wanted,)).fetchone():
        wanted = (wanted + 1) & ((1 << 63) - 1)
    return wanted


class _Stored(NamedTuple):
    """The former values of a document that are needed to remove it."""

    id: int
    position: int
    raising: int
    treasury_minor: int
    facets: list[int]
    texts_digest: str


def apply(
    connection: sqlite3.Connection,
    entries: Iterable[PublishedEntry],
    *,
    changes_kept: int = CHANGES_KEPT,
    is_copy: bool = False,
) -> None:
    """
    Write changes: documents, list items, blocks, facets, search text, totals, feed and chain.

    Runs in the caller's transaction. The edition becomes the last sequence number. An entry that is not ``unlisted``
    and has no document goes into the feed only: a later entry brings the document.

    Args:
        is_copy: the file is a node's copy, whose chain comes from the source.
    """
    last, at = 0, ""
    totals, values, chain = Totals(), Values(connection), links.Chain(connection)
    words = Words(connection)
    texts = Replacements(connection, words)
    feed: list[_FeedRow] = []
    for entry in entries:
        if not is_copy:
            chain.add(entry.sequence, entry.kind, entry.key, entry.change, entry.body)
        if entry.document is not None or entry.change == "unlisted":
            old = _stored(connection, entry.kind, entry.key)
            if old is not None:
                totals.add(entry.kind, -1, -old.raising, -old.treasury_minor)
            if entry.document is not None:
                totals.add(entry.kind, 1, int(entry.document.raising), entry.document.treasury_minor or 0)
                _put(connection, entry.document, old, values, texts)
            elif old is not None:
                _remove(connection, entry.kind, old, values, texts)
        feed.append(_feed_row(entry))
        last, at = max(last, entry.sequence), max(at, entry.at)
    totals.write(connection)
    values.write(last)
    texts.write()
    words.write()
    chain.write()
    connection.executemany(_RECORD, feed)
    if last:
        connection.execute("UPDATE published_meta SET edition = max(edition, ?), at = max(at, ?)", (last, at))
    if last > changes_kept:
        connection.execute("DELETE FROM published_change WHERE sequence <= ?", (last - changes_kept,))
        links.trim(connection, last - changes_kept)


def load(connection: sqlite3.Connection, documents: Iterable[PublishedDocument], *, at: str) -> None:
    """Fill the tables after :func:`clear` without writing to the feed."""
    totals, values, words = Totals(), Values(connection), Words(connection)
    texts = Replacements(connection, words)
    for document in documents:
        totals.add(document.kind, 1, int(document.raising), document.treasury_minor or 0)
        _put(connection, document, None, values, texts)
    totals.write(connection)
    values.write(0)
    texts.write()
    words.write()
    for _ in merged(connection):
        pass
    connection.execute("UPDATE published_meta SET at = ?", (at,))


def merged(connection: sqlite3.Connection) -> Iterator[None]:
    """Merge the search indexes after many changes; each step may be a transaction of its own."""
    for kind in KINDS:
        yield from text_index.merge(connection, kind)


def head(connection: sqlite3.Connection) -> tuple[int, str, str]:
    edition, epoch, at = connection.execute("SELECT edition, epoch, at FROM published_meta").fetchone()
    return edition, epoch, at


def etags(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    return connection.execute("SELECT kind, key, etag FROM published_document")


def bodies(connection: sqlite3.Connection, kind: str, keys: list[str]) -> dict[str, tuple[bytes, str]]:
    """Return the stored bodies of documents and their stamps, by key."""
    marks = ", ".join("?" * len(keys))
    statement = f"SELECT key, body, modified_at FROM published_document WHERE kind = ? AND key IN ({marks})"
    return {key: (body, stamp) for key, body, stamp in connection.execute(statement, (kind, *keys))}


_FeedRow = tuple[int, str, str, str, str, str | None]
_RECORD: Final = "INSERT OR REPLACE INTO published_change VALUES (?, ?, ?, ?, ?, ?)"


def record(connection: sqlite3.Connection, entry: PublishedEntry) -> None:
    connection.execute(_RECORD, _feed_row(entry))


def _feed_row(entry: PublishedEntry) -> _FeedRow:
    return entry.sequence, entry.kind, entry.key, entry.change, entry.at, encode_fields(entry.fields)


def _stored(connection: sqlite3.Connection, kind: str, key: str) -> _Stored | None:
    row = connection.execute(
        "SELECT id, position, raising, treasury_minor, facets, texts_digest"
        " FROM published_document WHERE kind = ? AND key = ?",
        (kind, key),
    ).fetchone()
    if row is None:
        return None
    number, position, raising, treasury_minor, facets, texts_digest = row
    values = msgspec.json.decode(facets, type=list[int])
    return _Stored(number, position, raising, treasury_minor or 0, values, texts_digest)


def _remove(connection: sqlite3.Connection, kind: str, old: _Stored, values: Values, texts: Replacements) -> None:
    connection.execute("DELETE FROM published_document WHERE id = ?", (old.id,))
    connection.execute(f"DELETE FROM published_item_{kind} WHERE position = ?", (old.position,))
    leave_block(connection, kind, old.position)
    values.leave(old.facets, old.position)
    texts.add(kind, old.position)


def columns_of(document: PublishedDocument) -> Columns:
    """Return everything by which a document can be searched."""
    return text_index.columns(document.name, document.key, document.texts, document.search)


def provenance_member(document: PublishedDocument) -> str:
    """Return a document's key and mark as a member of a JSON object; empty without a mark."""
    return msgspec.json.encode({document.key: document.provenance})[1:-1].decode() if document.provenance else ""


_COLUMNS: Final = (
    *("position", "sort_name", "updated_at", "raising", "treasury_minor", "team_size", "company_count", "provenance"),
    *("facets", "texts_digest", "etag", "body", "modified_at"),
)
_UPDATE: Final = f"UPDATE published_document SET {', '.join(f'{each} = ?' for each in _COLUMNS)} WHERE id = ?"
_INSERT: Final = (
    f"INSERT INTO published_document ({', '.join(_COLUMNS)}, id, kind, key)"
    f" VALUES ({', '.join('?' * len(_COLUMNS))}, ?, ?, ?)"
)


def _put(
    connection: sqlite3.Connection,
    document: PublishedDocument,
    old: _Stored | None,
    values: Values,
    texts: Replacements,
) -> None:
    kind, position = document.kind, document.position
    moved = old is None or old.position != position
    if old is not None and moved:
        connection.execute(f"DELETE FROM published_item_{kind} WHERE position = ?", (old.position,))
        leave_block(connection, kind, old.position)
    provenance = provenance_member(document)
    connection.execute(
        f"INSERT OR REPLACE INTO published_item_{kind} (position, provenance, item) VALUES (?, ?, ?)",
        (position, provenance, document.item),
    )
    facets = [
        values.id_of(kind, name, value) for name, given in document.facets.items() for value in dict.fromkeys(given)
    ]
    kept = frozenset[int]() if old is None or moved else frozenset(old.facets) & frozenset(facets)
    if old is not None:
        values.leave([value for value in old.facets if value not in kept], old.position)
    values.enter([value for value in facets if value not in kept], position)
    columns = columns_of(document)
    texts_digest = columns.digest
    if moved or old is None or old.texts_digest != texts_digest:
        texts.add(kind, None if old is None else old.position, position, columns)
    # An update leaves the indexes of columns that have not changed as they are.
    connection.execute(
        _UPDATE if old else _INSERT,
        (
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
            *((old.id,) if old else (_free_id(connection, kind, document.key), kind, document.key)),
        ),
    )
    if moved:
        enter_block(connection, kind, position)
