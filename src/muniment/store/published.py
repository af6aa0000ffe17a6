"""
The published file: finished public documents, their order, their search index, and the change feed.

Publishers write it inside their transaction; :mod:`muniment.store.reader` reads it. On SQLite the tables are in the
main database, on PostgreSQL in a local copy on each node. Only :func:`prepare_copy` commits.

The order of a kind is one unique integer, the position. List items are clustered by it, and ``published_block`` holds
the number of items in each range of positions: a reader finds any page by a sum over about a thousand small rows, in
the same snapshot as the items, without counting.

Documents are written in groups (`DocumentWriter`), because a statement of its own costs more than a row: totals, facet
values, and items in blocks of positions are counted meanwhile and written once.
"""

import contextlib
import re
import secrets
import sqlite3
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from muniment.kernel.http.representations import digest
from muniment.store import public_log, value_bits
from muniment.store.published_document import KINDS, PublishedDocument, PublishedEntry
from muniment.store.search import text_index
from muniment.store.search.text_index import Columns, Replacements
from muniment.store.search.values import singular
from muniment.store.search_text import fold
from muniment.store.statements import Connection, insert_rows, run

NUMBERS: Final = {"treasury_minor": "company", "team_size": "company", "company_count": "person"}
"""Columns by which documents are sorted and bounded, each with the only kind that has it."""


SCHEMA_VERSION: Final = 13
READABLE_SCHEMAS: Final = frozenset({SCHEMA_VERSION})
"""Versions whose tables this version can read, so that it serves them until their documents are rendered again."""
UNBUILT: Final = "unbuilt"
"""The epoch of a replica file that has not been filled yet."""
CHANGES_KEPT: Final = 200_000
"""Entries of the feed: more than two rounds of a large import. A client or node further behind copies everything."""

STAMP_TABLE: Final = """CREATE TABLE IF NOT EXISTS published_modified (
    id integer PRIMARY KEY CHECK (id = 1), edition bigint NOT NULL, at text NOT NULL)"""
"""The stamp of the latest edition that has one."""
_PUT_STAMP: Final = """INSERT INTO published_modified (id, edition, at) VALUES (1, %s, %s)
    ON CONFLICT (id) DO UPDATE SET edition = excluded.edition, at = excluded.at"""
_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS published_meta (
        id INTEGER PRIMARY KEY CHECK (id = 1), schema INTEGER NOT NULL, edition INTEGER NOT NULL,
        epoch TEXT NOT NULL, at TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS published_total (
        kind TEXT PRIMARY KEY, n INTEGER NOT NULL, raising INTEGER NOT NULL, treasury_minor TEXT NOT NULL)""",
    # The body is last, so that reading the other columns skips its overflow pages.
    """CREATE TABLE IF NOT EXISTS published_document (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, position INTEGER NOT NULL,
        sort_name TEXT NOT NULL, updated_at TEXT NOT NULL, raising INTEGER NOT NULL,
        treasury_minor INTEGER, team_size INTEGER, company_count INTEGER, modified_at TEXT NOT NULL DEFAULT '',
        provenance TEXT NOT NULL, facets BLOB NOT NULL, texts_digest TEXT NOT NULL,
        etag TEXT NOT NULL, body BLOB NOT NULL)""",
    "CREATE UNIQUE INDEX IF NOT EXISTS published_document_key ON published_document (kind, key)",
    "CREATE INDEX IF NOT EXISTS published_document_name ON published_document (kind, sort_name, position)",
    "CREATE INDEX IF NOT EXISTS published_document_updated ON published_document (kind, updated_at, position)",
    # With the columns that orders and ranges look up for each match: the row itself is on a page of its own.
    f"""CREATE INDEX IF NOT EXISTS published_document_position ON published_document (
        kind, position, {", ".join(NUMBERS)}, updated_at, sort_name)""",
    *(
        f"CREATE INDEX IF NOT EXISTS published_document_{column} ON published_document (kind, {column}, position)"
        f" WHERE kind = '{kind}'"
        for column, kind in NUMBERS.items()
    ),
    *(
        f"CREATE TABLE IF NOT EXISTS published_item_{kind} (position INTEGER PRIMARY KEY,"
        " provenance TEXT NOT NULL, item BLOB NOT NULL)"
        for kind in KINDS
    ),
    """CREATE TABLE IF NOT EXISTS published_block (
        kind TEXT NOT NULL, first INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (kind, first)) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS published_value (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, n INTEGER NOT NULL,
        folded TEXT NOT NULL, changed INTEGER NOT NULL DEFAULT 0, UNIQUE (kind, name, value))""",
    "CREATE INDEX IF NOT EXISTS published_value_folded ON published_value (kind, name, folded)",
    "CREATE INDEX IF NOT EXISTS published_value_used ON published_value (kind, name, n)",
    """CREATE TABLE IF NOT EXISTS published_facet (
        value_id INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (value_id, position)) WITHOUT ROWID""",
    value_bits.TABLE,
    *(statement for kind in KINDS for statement in text_index.tables(kind)),
    """CREATE TABLE IF NOT EXISTS published_change (
        sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, change TEXT NOT NULL, at TEXT NOT NULL,
        fields TEXT)""",
    "CREATE INDEX IF NOT EXISTS published_change_key ON published_change (kind, key, sequence)",
    # The condition as in muniment.store.database.erasure.
    """CREATE INDEX IF NOT EXISTS published_change_erased ON published_change (sequence)
        WHERE key >= 'erased:' AND key < 'erased;'""",
    public_log.SQLITE_CHAIN,
)
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
    for statement in (*_TABLES, STAMP_TABLE, *public_log.SQLITE_TABLES):
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


def apply(
    connection: sqlite3.Connection,
    entries: Iterable[PublishedEntry],
    *,
    stamp: str = "",
    is_copy: bool = False,
) -> None:
    """
    Write changes: documents, list items, blocks, facets, search text, totals, feed, public log and chain.

    Runs in the caller's transaction. The edition becomes the last sequence number. An entry that is not ``unlisted``
    and has no document goes into the feed only: a later entry brings the document.

    Args:
        stamp: the stamp of the edition, unless the caller puts it.
        is_copy: the file is a node's copy, whose chain comes from the source, and which has no log.
    """
    last, at = 0, ""
    documents, log = DocumentWriter(connection), public_log.Log(connection)
    feed: list[_FeedRow] = []
    for group in grouped(entries):
        for entry in group:
            if not is_copy:
                log.add(entry)
            feed.append(_feed_row(entry))
            last, at = max(last, entry.sequence), max(at, entry.at)
        documents.write(
            [(each.kind, each.key, each.document) for each in group if each.document or each.change == "unlisted"]
        )
    documents.finish(last)
    log.write()
    insert_rows(connection, "published_change", feed)
    if stamp:
        run(connection, _PUT_STAMP, last, stamp)
    if last:
        connection.execute("UPDATE published_meta SET edition = max(edition, ?), at = max(at, ?)", (last, at))
    if last > CHANGES_KEPT:
        connection.execute("DELETE FROM published_change WHERE sequence <= ?", (last - CHANGES_KEPT,))
        public_log.trim_chain(connection, last - CHANGES_KEPT)


def load(connection: sqlite3.Connection, documents: Iterable[PublishedDocument], *, at: str) -> None:
    """Fill the tables after :func:`clear` without writing to the feed."""
    writing = DocumentWriter(connection)
    for group in grouped(documents):
        writing.write([(each.kind, each.key, each) for each in group])
    writing.finish(0)
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


def last_stamp(connection: Connection) -> tuple[int, str]:
    """Return the latest edition with a stamp, and the stamp; -1 and an empty text without any."""
    row = connection.execute("SELECT edition, at FROM published_modified").fetchone()
    return row or (-1, "")


def put_stamp(connection: Connection, edition: int, stamp: str) -> None:
    """Write the stamp of *edition*, in the caller's transaction."""
    run(connection, _PUT_STAMP, edition, stamp)


_FeedRow = tuple[int, str, str, str, str, str | None]


def record(connection: sqlite3.Connection, entry: PublishedEntry) -> None:
    connection.execute("INSERT INTO published_change VALUES (?, ?, ?, ?, ?, ?)", _feed_row(entry))


def _feed_row(entry: PublishedEntry) -> _FeedRow:
    return entry.sequence, entry.kind, entry.key, entry.change, entry.at, encode_fields(entry.fields)


def encode_fields(fields: tuple[str, ...] | None) -> str | None:
    """Return the stored form of the changed members of an entry; None where they are unknown."""
    return None if fields is None else msgspec.json.encode(fields).decode()


def decode_fields(stored: str | None) -> tuple[str, ...] | None:
    return None if stored is None else msgspec.json.decode(stored, type=tuple[str, ...])


def feed_of(epoch: str) -> str:
    """Return the id of a feed, without the schema and, in a node's copy, the number of its build."""
    return epoch.rpartition(":")[2]


def mark_in(epoch: str) -> str:
    """Return the mark of the declared fields that the documents of an epoch were rendered with; empty for none."""
    return epoch.partition("-")[2]


class ChangeRow(NamedTuple):
    """
    An entry of the change feed.

    Args:
        fields: the changed members of an update, where they are known.
        chain: the chain of the feed up to this entry, in hexadecimal digits, where it is known.
    """

    sequence: int
    kind: str
    key: str
    change: str
    at: str
    fields: tuple[str, ...] | None = None
    chain: str | None = None


class WantedChanges(NamedTuple):
    """
    Which entries of the change feed are asked for.

    Args:
        kinds: only of these kinds; all if empty.
        keys: only of documents with these keys; all if empty.
    """

    kinds: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


ALL_CHANGES: Final = WantedChanges()


def change_rows(connection: sqlite3.Connection, condition: str, *parameters: str | int) -> list[ChangeRow]:
    """Return the entries of the feed that meet a condition, without their chain."""
    columns = "sequence, kind, key, change, at, fields"
    rows = connection.execute(f"SELECT {columns} FROM published_change {condition}", parameters)
    return [ChangeRow._make((*row[:5], decode_fields(row[5]), None)) for row in rows]


def number_before(connection: sqlite3.Connection, at: str) -> int:
    """
    Return the number of the last entry before a time, in the order of which entries are numbered.

    If all entries are later, it is the number before the oldest one.
    """
    low, high = connection.execute("SELECT min(sequence) - 1, max(sequence) FROM published_change").fetchone()
    if high is None:
        return 0
    nearest = "SELECT at FROM published_change WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1"
    while low < high:
        middle = (low + high + 1) // 2
        (found,) = connection.execute(nearest, (middle,)).fetchone()
        low, high = (middle, high) if found < at else (low, middle - 1)
    return int(low)


def chained_rows(
    connection: sqlite3.Connection, after: int, limit: int, *, wanted: WantedChanges, until: int
) -> list[ChangeRow]:
    """Return at most *limit* of the *wanted* entries after number *after* up to *until*, with their chain."""
    condition = "WHERE sequence > ? AND sequence <= ?"
    parameters: list[str | int] = [after, until]
    for column, values in (("kind", wanted.kinds), ("+key", wanted.keys)):
        if values:
            # "+" keeps SQLite from reading all entries of a document in order to sort them.
            condition += f" AND {column} IN ({', '.join('?' * len(values))})"
            parameters += values
    rows = change_rows(connection, f"{condition} ORDER BY sequence LIMIT ?", *parameters, limit)
    if not rows:
        return rows
    first = public_log.oldest_link(connection)
    chains = {link.sequence: link.chain.hex() for link in public_log.links(connection, after, rows[-1].sequence)}
    if first is not None:
        # The first value counts for all entries before it.
        unchained = [row.sequence for row in rows if row.sequence < first.sequence]
        chains = {**dict.fromkeys(unchained, first.chain.hex()), **chains}
    return [row._replace(chain=chains.get(row.sequence)) for row in rows]


def chain_after(connection: sqlite3.Connection, number: int) -> str | None:
    """Return the chain after entry *number*, which the feed must still reach; None if it is unknown."""
    found = public_log.chain_at(connection, number)
    return None if found is None else found.hex()


class Changes(NamedTuple):
    """
    Entries of the change feed, and the sequence number to continue from.

    Args:
        feed_id: the feed that the numbers belong to; new after a restore or a rebuild.
        edition: the feed's highest number.
        version: the version of the file that they were read from.
        chain: the chain after *next_after*, where it is known.
    """

    rows: list[ChangeRow]
    next_after: int
    feed_id: str
    edition: int
    modified_at: str
    version: int
    chain: str | None


class FeedGapError(LookupError):
    """The change feed does not reach back that far; start again from an export."""


class FeedAheadError(LookupError):
    """The change feed has not reached that number: it belongs to another feed. Start again from an export."""


class FeedDivergedError(LookupError):
    """The change feed has another past than the given one: it is another feed. Start again from an export."""


# ---------------------------------------------------------------- documents, and what is counted of them

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
    if not document.provenance:
        return ""
    return msgspec.json.encode({document.key: document.provenance})[1:-1].decode()


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
        self._texts = Replacements(connection)

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
        self._texts.finish()

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
        columns, sort_name = columns_of(document), fold(document.name)
        texts_digest, etag = columns.digest, digest(document.body)
        if moved or old is None or old.texts_digest != texts_digest:
            self._texts.add(kind, None if old is None else old.position, position, columns)
        values_of_row = (
            position,
            sort_name,
            document.updated_at,
            int(document.raising),
            document.treasury_minor,
            document.team_size,
            document.company_count,
            provenance,
            msgspec.json.encode(facets),
            texts_digest,
            etag,
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


MAX_ENTERED: Final = 100_000
"""Rows of values that wait in memory: sorted, they are written faster. A registry of a million has eight million."""


class Values:
    """Facet values: each is looked up once, and their counts are written once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ids = _ValueIds(connection)
        self._added: Counter[int] = Counter()
        self._entered: list[tuple[int, int]] = []
        self._memberships: value_bits.Memberships | None = None
        """None until a document gains or loses a value, as in few changes of an owner."""

    def ids_of(self, kind: str, facets: Mapping[str, Iterable[str]]) -> list[int]:
        """Return the ids of the facets of a document, each once."""
        ids: dict[int, None] = {}
        for name, values in facets.items():
            for value in values:
                ids[self._ids[kind, name, value]] = None
        return list(ids)

    def enter(self, values: list[int], position: int) -> None:
        if not values:
            return
        if len(self._entered) >= MAX_ENTERED:
            self._write_entered()
        self._entered += [(value, position) for value in values]
        self._added.update(values)
        self._remember(values, position, has_value=True)

    def leave(self, values: list[int], position: int) -> None:
        if not values:
            return
        self._write_entered()  # of which these may be some
        left = [(value, position) for value in values]
        self._connection.executemany("DELETE FROM published_facet WHERE value_id = ? AND position = ?", left)
        self._added.subtract(values)
        self._remember(values, position, has_value=False)

    def _remember(self, values: list[int], position: int, *, has_value: bool) -> None:
        if self._memberships is None:
            self._memberships = value_bits.Memberships()
        self._memberships.set(values, position, has_value=has_value)

    def _write_entered(self) -> None:
        if self._entered:
            insert_rows(self._connection, "published_facet", sorted(self._entered, key=itemgetter(0)))
            self._entered.clear()

    def write(self, sequence: int) -> None:
        """Write the counts of the values whose documents changed with *sequence*; unused values are deleted."""
        self._write_entered()
        self._connection.executemany(
            "UPDATE published_value SET n = n + ?, changed = ? WHERE id = ?",
            [(added, sequence, value) for value, added in self._added.items()],
        )
        if self._memberships is not None:
            self._memberships.write(self._connection, self._added)
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
