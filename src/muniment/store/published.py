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
from typing import Final

from muniment.store import modified
from muniment.store.chain import links
from muniment.store.change_feed import encode_fields, mark_in
from muniment.store.published_document import KINDS, PublishedDocument, PublishedEntry
from muniment.store.search import text_index
from muniment.store.writing import rows
from muniment.store.writing.documents import DocumentWriter, grouped
from muniment.store.writing.tables import statements

SCHEMA_VERSION: Final = 10
READABLE_SCHEMAS: Final = frozenset({SCHEMA_VERSION})
"""Versions whose tables this version can read, so that it serves them until their documents are rendered again."""
UNBUILT: Final = "unbuilt"
"""The epoch of a replica file that has not been filled yet."""
CHANGES_KEPT: Final = 200_000
"""Entries of the feed: more than two rounds of a large import. A client or node further behind copies everything."""

_TABLES: Final = statements(KINDS)
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
    Write changes: documents, list items, blocks, facets, search text, totals, feed and chain.

    Runs in the caller's transaction. The edition becomes the last sequence number. An entry that is not ``unlisted``
    and has no document goes into the feed only: a later entry brings the document.

    Args:
        is_copy: the file is a node's copy, whose chain comes from the source.
    """
    last, at = 0, ""
    chain, documents = links.Chain(connection), DocumentWriter(connection)
    feed: list[_FeedRow] = []
    for group in grouped(entries):
        for entry in group:
            if not is_copy:
                chain.add(entry.sequence, entry.kind, entry.key, entry.change, entry.body)
            feed.append(_feed_row(entry))
            last, at = max(last, entry.sequence), max(at, entry.at)
        documents.write(
            [(each.kind, each.key, each.document) for each in group if each.document or each.change == "unlisted"]
        )
    documents.finish(last)
    chain.write()
    rows.insert(connection, "published_change", feed)
    if last:
        connection.execute("UPDATE published_meta SET edition = max(edition, ?), at = max(at, ?)", (last, at))
    if last > CHANGES_KEPT:
        connection.execute("DELETE FROM published_change WHERE sequence <= ?", (last - CHANGES_KEPT,))
        links.trim(connection, last - CHANGES_KEPT)


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


_FeedRow = tuple[int, str, str, str, str, str | None]


def record(connection: sqlite3.Connection, entry: PublishedEntry) -> None:
    connection.execute("INSERT INTO published_change VALUES (?, ?, ?, ?, ?, ?)", _feed_row(entry))


def _feed_row(entry: PublishedEntry) -> _FeedRow:
    return entry.sequence, entry.kind, entry.key, entry.change, entry.at, encode_fields(entry.fields)
