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
from typing import Any, Final, NamedTuple

import msgspec

from muniment.store import chain, public_log
from muniment.store.published_document import KINDS, PublishedDocument, PublishedEntry
from muniment.store.search import text_index, vocabulary
from muniment.store.sqlite.bulk_writes import insert_rows
from muniment.store.writing import DocumentWriter, grouped

NUMBERS: Final = {"treasury_minor": "company", "team_size": "company", "company_count": "person"}
"""Columns by which documents are sorted and bounded, each with the only kind that has it."""


SCHEMA_VERSION: Final = 12
READABLE_SCHEMAS: Final = frozenset({10, 11, SCHEMA_VERSION})
"""Versions whose tables this version can read, so that it serves them until their documents are rendered again."""
UNBUILT: Final = "unbuilt"
"""The epoch of a replica file that has not been filled yet."""
CHANGES_KEPT: Final = 200_000
"""Entries of the feed: more than two rounds of a large import. A client or node further behind copies everything."""

STAMP_TABLE: Final = """CREATE TABLE IF NOT EXISTS published_modified (
    id integer PRIMARY KEY CHECK (id = 1), edition bigint NOT NULL, at text NOT NULL)"""
"""The stamp of the latest edition that has one."""
StampConnection = Any
"""A connection of sqlite3 or of psycopg; both execute statements alike."""
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
    *(statement for kind in KINDS for statement in text_index.tables(kind)),
    *(statement for kind in KINDS for statement in vocabulary.tables(kind)),
    """CREATE TABLE IF NOT EXISTS published_change (
        sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, change TEXT NOT NULL, at TEXT NOT NULL,
        fields TEXT)""",
    "CREATE INDEX IF NOT EXISTS published_change_key ON published_change (kind, key, sequence)",
    # The condition as in muniment.store.database.erasure.
    """CREATE INDEX IF NOT EXISTS published_change_erased ON published_change (sequence)
        WHERE key >= 'erased:' AND key < 'erased;'""",
    chain.SQLITE_TABLE,
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
    is_copy: bool = False,
) -> None:
    """
    Write changes: documents, list items, blocks, facets, search text, totals, feed, public log and chain.

    Runs in the caller's transaction. The edition becomes the last sequence number. An entry that is not ``unlisted``
    and has no document goes into the feed only: a later entry brings the document.

    Args:
        is_copy: the file is a node's copy, whose chain comes from the source, and which has no log.
    """
    last, at = 0, ""
    log, documents = public_log.Log(connection), DocumentWriter(connection)
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
    if last:
        connection.execute("UPDATE published_meta SET edition = max(edition, ?), at = max(at, ?)", (last, at))
    if last > CHANGES_KEPT:
        connection.execute("DELETE FROM published_change WHERE sequence <= ?", (last - CHANGES_KEPT,))
        chain.trim(connection, last - CHANGES_KEPT)


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


def last_stamp(connection: StampConnection) -> tuple[int, str]:
    """Return the latest edition with a stamp, and the stamp; -1 and an empty text without any."""
    row = connection.execute("SELECT edition, at FROM published_modified").fetchone()
    return row or (-1, "")


def put_stamp(connection: StampConnection, edition: int, stamp: str) -> None:
    """Write the stamp of *edition*, in the caller's transaction."""
    statement = (
        "INSERT INTO published_modified (id, edition, at) VALUES (1, %s, %s)"
        " ON CONFLICT (id) DO UPDATE SET edition = excluded.edition, at = excluded.at"
    )
    is_sqlite = isinstance(connection, sqlite3.Connection)
    connection.execute(statement.replace("%s", "?") if is_sqlite else statement, (edition, stamp))


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
    first = chain.oldest(connection)
    chains = {link.sequence: link.chain.hex() for link in chain.links(connection, after, rows[-1].sequence)}
    if first is not None:
        # The first value counts for all entries before it.
        unchained = [row.sequence for row in rows if row.sequence < first.sequence]
        chains = {**dict.fromkeys(unchained, first.chain.hex()), **chains}
    return [row._replace(chain=chains.get(row.sequence)) for row in rows]


def chain_after(connection: sqlite3.Connection, number: int) -> str | None:
    """Return the chain after entry *number*, which the feed must still reach; None if it is unknown."""
    found = chain.chain_at(connection, number)
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
