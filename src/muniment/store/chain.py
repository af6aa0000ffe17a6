"""
The chain of the change feed, by which a reader notices that the feed has another past than the one it has read.

The chain of a change is the root of the public log after its leaf (:mod:`muniment.store.public_log`). It is stored
beside the feed: one row for each change, in the file, in copies of it and on PostgreSQL alike. The value of the first
row counts for changes before it too.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from muniment.store.published_document import KINDS
from muniment.store.statements import Connection, insert, on_sqlite, run

# Versions before the log had a leaf, a salt and a digest in each row; they are kept for nodes of such a version.
SQLITE_TABLE: Final = """CREATE TABLE IF NOT EXISTS published_chain (
    sequence INTEGER PRIMARY KEY, chain BLOB NOT NULL, leaf BLOB, salt BLOB, digest BLOB)"""
POSTGRESQL_TABLE: Final = """CREATE TABLE IF NOT EXISTS published_chain (
    sequence bigint PRIMARY KEY, chain bytea NOT NULL, leaf bytea, salt bytea, digest bytea)"""


class Link(NamedTuple):
    """The chain after a change."""

    sequence: int
    chain: bytes


def body_digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


class StateDigest:
    """The digest of all published documents, which are added in the order of kind and key."""

    def __init__(self) -> None:
        self._found = hashlib.sha256(b"muniment state\n")

    def add(self, kind: str, key: str, body: bytes) -> None:
        for part in (kind.encode(), key.encode(), body_digest(body)):
            self._found.update(len(part).to_bytes(8))
            self._found.update(part)

    def digest(self) -> bytes:
        return self._found.digest()


_LATEST: Final = "SELECT sequence, chain FROM published_chain ORDER BY sequence DESC LIMIT 1"
_COLUMNS: Final = f"published_chain ({', '.join(Link._fields)})"


class _Body(msgspec.Struct):
    body: bytes


_decode_body: Final = msgspec.msgpack.Decoder(_Body).decode


def add(connection: Connection, links: Sequence[Link]) -> None:
    insert(connection, _COLUMNS, links)


def latest(connection: Connection) -> Link | None:
    row = run(connection, _LATEST).fetchone()
    return None if row is None else Link(*row)


def oldest(connection: Connection) -> Link | None:
    row = run(connection, _LATEST.replace("DESC", "ASC")).fetchone()
    return None if row is None else Link(*row)


def chain_at(connection: Connection, number: int) -> bytes | None:
    """Return the chain after change *number*, which the feed must still reach; None if it has none yet."""
    row = run(
        connection, "SELECT chain FROM published_chain WHERE sequence >= %s ORDER BY sequence LIMIT 1", number
    ).fetchone()
    return None if row is None else bytes(row[0])


def links(connection: Connection, after: int = -1, until: int = (1 << 63) - 1) -> Iterator[Link]:
    """Return the numbers after *after*, up to *until*, with their chain, in order."""
    statement = "SELECT sequence, chain FROM published_chain WHERE sequence > %s AND sequence <= %s ORDER BY sequence"
    return (Link(*row) for row in run(connection, statement, after, until))


def copy(file: sqlite3.Connection, given: Iterable[Link]) -> None:
    """Write links of the source into the file of a node."""
    file.executemany("INSERT OR REPLACE INTO published_chain (sequence, chain) VALUES (?, ?)", given)


def begin(connection: Connection, edition: int, value: bytes) -> None:
    """
    Begin the chain again with *value* at *edition*, in the caller's transaction.

    Required whenever published documents change without an entry in the feed.
    """
    run(connection, "DELETE FROM published_chain")
    add(connection, [Link(edition, value)])


def state_digest(connection: Connection) -> bytes:
    """
    Digest kind, key and body of every published document, in order: equal on any two equal registries.

    On PostgreSQL, call it in a transaction.
    """
    found = StateDigest()
    for kind in sorted(KINDS):
        for key, body in bodies(connection, kind):
            found.add(kind, key, body)
    return found.digest()


def bodies(connection: Connection, kind: str) -> Iterator[tuple[str, bytes]]:
    """
    Yield the key and the body of every published document of a kind, by key.

    On PostgreSQL, call it in a transaction.
    """
    if on_sqlite(connection):
        yield from connection.execute("SELECT key, body FROM published_document WHERE kind = ? ORDER BY key", (kind,))
        return
    with connection.cursor(name="published_bodies") as cursor:
        cursor.execute("SELECT key, document FROM published_document WHERE kind = %s ORDER BY key", (kind,))
        for key, document in cursor:
            yield key, _decode_body(document).body


def trim(connection: Connection, gone: int) -> None:
    """Remove the links before *gone*, the last change that the feed no longer has."""
    run(connection, "DELETE FROM published_chain WHERE sequence < %s", gone)
