"""
Replication source: the published documents and their change feed on PostgreSQL.

The edition is one row. A publisher locks it last and renders afterwards, so it sees every earlier publisher's
writes, and sequence numbers are dense in commit order.
"""

import contextlib
import secrets
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
import psycopg

from muniment.kernel.http.representations import digest
from muniment.store import public_log
from muniment.store.database.erasure import OF_ERASED
from muniment.store.published import (
    CHANGES_KEPT,
    SCHEMA_VERSION,
    STAMP_TABLE,
    SchemaMismatch,
    decode_fields,
    encode_fields,
    mark_in,
    put_stamp,
)
from muniment.store.published_document import PublishedDocument, PublishedEntry

Connection = psycopg.Connection[Any]

FETCH: Final = 500
_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS published_edition (
        id smallint PRIMARY KEY CHECK (id = 1), value bigint NOT NULL, epoch text NOT NULL, at text NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS published_document (
        kind text NOT NULL, key text COLLATE "C" NOT NULL, document bytea NOT NULL, PRIMARY KEY (kind, key))""",
    """CREATE TABLE IF NOT EXISTS published_change (
        sequence bigint PRIMARY KEY, kind text NOT NULL, key text COLLATE "C" NOT NULL, change text NOT NULL,
        at text NOT NULL, fields text)""",
    public_log.POSTGRESQL_CHAIN,
    STAMP_TABLE,
    *public_log.POSTGRESQL_TABLES,
)
_INSERT: Final = "INSERT INTO published_document VALUES (%s, %s, %s)"
_decoder = msgspec.msgpack.Decoder(PublishedDocument)


def decoded(document: bytes) -> PublishedDocument:
    return _decoder.decode(document)


def encoded(document: PublishedDocument) -> bytes:
    return msgspec.msgpack.encode(msgspec.structs.replace(document, schema=SCHEMA_VERSION))


def _row(document: PublishedDocument) -> tuple[str, str, bytes]:
    return document.kind, document.key, encoded(document)


class Head(NamedTuple):
    """The latest edition of the feed, its epoch, and the time of its last change."""

    edition: int
    epoch: str
    at: str


class JoinedHead(NamedTuple):
    """The head of a feed with the latest value of its chain, if it has one."""

    edition: int
    epoch: str
    at: str
    chain: bytes | None


def create(connection: Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute("INSERT INTO published_edition VALUES (1, 0, %s, '') ON CONFLICT DO NOTHING", (_epoch(),))


def check(connection: Connection) -> None:
    """Raise SchemaMismatch if another version wrote the documents; then :func:`clear` and :func:`load` them."""
    schema = _schema(head(connection).epoch)
    if schema != SCHEMA_VERSION:
        message = f"the published documents have schema {schema}, this version writes {SCHEMA_VERSION}"
        raise SchemaMismatch(message)


def _epoch() -> str:
    return f"{SCHEMA_VERSION}:{secrets.token_hex(8)}"


def _schema(epoch: str) -> int:
    schema, colon, _ = epoch.partition(":")
    return int(schema) if colon else 1


def clear(connection: Connection, *, edition: int = 0) -> None:
    """Delete everything and start a new epoch; the next sequence number is one more than *edition*."""
    connection.execute("DELETE FROM published_document")
    connection.execute("DELETE FROM published_change")
    connection.execute("DELETE FROM published_chain")
    connection.execute("UPDATE published_edition SET value = %s, at = '', epoch = %s", (edition, _epoch()))


def load(connection: Connection, documents: Iterable[PublishedDocument], *, at: str) -> None:
    """Fill the tables after :func:`clear` without writing to the feed."""
    # In batches: rendering queries the same connection, which executemany would block.
    given = iter(documents)
    with connection.cursor() as cursor:
        while batch := list(islice(given, FETCH)):
            cursor.executemany(_INSERT, map(_row, batch))
    connection.execute("UPDATE published_edition SET at = %s", (at,))


def reserve(connection: Connection, count: int) -> int:
    """
    Advance the edition by *count* and return the first new number; exactly *count* entries must follow.

    The edition stays locked until the transaction ends.
    """
    row = connection.execute("UPDATE published_edition SET value = value + %s RETURNING value", (count,)).fetchone()
    assert row is not None  # noqa: S101 - created with the tables
    return int(row[0]) - count + 1


def lock(connection: Connection) -> str:
    """
    Lock the edition until the transaction ends and return the time of the last change.

    It needs READ COMMITTED, PostgreSQL's default: what is read after it then includes all that the publisher before
    has committed. Under REPEATABLE READ it would fail instead.
    """
    # The value stays: the update is there for the lock on its row.
    row = connection.execute("UPDATE published_edition SET value = value RETURNING at").fetchone()
    assert row is not None  # noqa: S101 - created with the tables
    return str(row[0])


def renew_epoch(connection: Connection) -> None:
    """Renew the identity of the feed; keep the schema that its epoch names, and the mark of the declared fields."""
    epoch = head(connection).epoch
    schema, _, _ = epoch.rpartition(":")
    connection.execute("UPDATE published_edition SET epoch = %s", (f"{schema}:{secrets.token_hex(8)}".lstrip(":"),))
    mark_epoch(connection, mark_in(epoch))


def mark_epoch(connection: Connection, mark: str) -> None:
    """Add the mark of the declared fields that the documents are rendered with, if there are any."""
    if mark:
        connection.execute("UPDATE published_edition SET epoch = epoch || '-' || %s", (mark,))


def apply(connection: Connection, entries: Iterable[PublishedEntry], *, stamp: str = "") -> None:
    last, at = 0, ""
    log = public_log.Log(connection)
    with connection.cursor() as cursor:
        for batch in _batches(entries):
            for each in batch:
                log.add(each)
            log.write()
            cursor.executemany(
                f"{_INSERT} ON CONFLICT (kind, key) DO UPDATE SET document = excluded.document",
                [_row(entry.document) for entry in batch if entry.document is not None],
            )
            cursor.executemany(
                "DELETE FROM published_document WHERE kind = %s AND key = %s",
                [(entry.kind, entry.key) for entry in batch if entry.change == "unlisted"],
            )
            cursor.executemany(
                "INSERT INTO published_change VALUES (%s, %s, %s, %s, %s, %s)",
                [
                    (each.sequence, each.kind, each.key, each.change, each.at, encode_fields(each.fields))
                    for each in batch
                ],
            )
            last, at = batch[-1].sequence, max(at, *(entry.at for entry in batch), "")
    if stamp:
        put_stamp(connection, last, stamp)
    if last:
        connection.execute("UPDATE published_edition SET at = greatest(at, %s)", (at,))
    if last > CHANGES_KEPT:
        connection.execute("DELETE FROM published_change WHERE sequence <= %s", (last - CHANGES_KEPT,))
        public_log.trim_chain(connection, last - CHANGES_KEPT)


def _batches(entries: Iterable[PublishedEntry]) -> Iterator[list[PublishedEntry]]:
    """Split *entries* into batches that contain each document at most once, which preserves the order of writes."""
    batch: list[PublishedEntry] = []
    keys: set[tuple[str, str]] = set()
    for entry in entries:
        if len(batch) >= FETCH or (entry.kind, entry.key) in keys:
            yield batch
            batch, keys = [], set()
        batch.append(entry)
        keys.add((entry.kind, entry.key))
    if batch:
        yield batch


def head(connection: Connection) -> Head:
    row = connection.execute("SELECT value, epoch, at FROM published_edition").fetchone()
    assert row is not None  # noqa: S101 - created with the tables
    return Head(*row)


def joined_head(connection: Connection) -> JoinedHead:
    latest_chain = "SELECT chain FROM published_chain ORDER BY sequence DESC LIMIT 1"
    row = connection.execute(f"SELECT value, epoch, at, ({latest_chain}) FROM published_edition").fetchone()
    assert row is not None  # noqa: S101 - created with the tables
    return JoinedHead(*row)


def oldest(connection: Connection) -> int | None:
    row = connection.execute("SELECT min(sequence) FROM published_change").fetchone()
    return None if row is None else row[0]


def changes(connection: Connection, after: int) -> Iterator[PublishedEntry]:
    """
    Yield every change after number *after*, oldest first; only the last change of a document includes it.

    Requires a transaction with one snapshot, so that each document is the result of that change.
    """
    with connection.cursor(name="published_changes") as cursor:
        cursor.itersize = FETCH
        cursor.execute(
            "SELECT c.sequence, c.kind, c.key, c.change, c.at, c.fields,"
            " CASE WHEN c.sequence = max(c.sequence) OVER (PARTITION BY c.kind, c.key) THEN d.document END"
            " FROM published_change c LEFT JOIN published_document d ON d.kind = c.kind AND d.key = c.key"
            " WHERE c.sequence > %s ORDER BY c.sequence",
            (after,),
        )
        for sequence, kind, key, change, at, fields, document in cursor:
            yield PublishedEntry(
                sequence=sequence,
                kind=kind,
                key=key,
                change=change,
                at=at,
                document=None if document is None else _decoder.decode(document),
                fields=decode_fields(fields),
            )


def bodies(connection: Connection, kind: str, keys: list[str]) -> dict[str, tuple[bytes, str]]:
    """Return the stored bodies of documents and their stamps, by key; those that can be read."""
    stored = connection.execute(
        "SELECT key, document FROM published_document WHERE kind = %s AND key = ANY(%s)", (kind, keys)
    )
    found = {}
    for key, document in stored:
        with contextlib.suppress(msgspec.DecodeError):  # damaged, and about to be replaced
            read = _decoder.decode(document)
            found[key] = read.body, read.modified_at
    return found


def erased(connection: Connection) -> list[tuple[int, str]]:
    """Return the numbers and random ids of the entries about erased people."""
    return connection.execute(f"SELECT sequence, key FROM published_change WHERE {OF_ERASED}").fetchall()


def etags(connection: Connection) -> Iterator[tuple[str, str, str]]:
    return ((each.kind, each.key, digest(each.body)) for each in documents(connection))


def documents(connection: Connection) -> Iterator[PublishedDocument]:
    with connection.cursor(name="published_documents") as cursor:
        cursor.itersize = FETCH
        cursor.execute("SELECT document FROM published_document")
        for (document,) in cursor:
            yield _decoder.decode(document)
