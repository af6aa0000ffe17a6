"""
The chain of the change feed, by which a reader notices that the feed has another past than the one it has read.

A link covers the former link, its sequence number and a leaf; the leaf covers a random salt and the change. Without the
salt, a leaf tells nothing of the person that it was made for. The hashes are SHA-256 over a tag and length-prefixed
parts.

The chain is stored beside the feed: one row for each change, in the file and on PostgreSQL alike. The first row has no
leaf to check: it is the genesis, or the last change that the feed no longer has. Its value counts for changes before it
too, because it covers all documents at that time.
"""

import hashlib
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from muniment.store.published_document import PublishedEntry
from muniment.store.sqlite.bulk_writes import insert_rows

HASH_BYTES: Final = 32
_SALT_BYTES: Final = 16
_SALTS_AT_ONCE: Final = 32

Connection = Any
"""A connection of sqlite3 or of psycopg; both execute statements alike."""

SQLITE_TABLE: Final = """CREATE TABLE IF NOT EXISTS published_chain (
    sequence INTEGER PRIMARY KEY, chain BLOB NOT NULL, leaf BLOB, salt BLOB, digest BLOB)"""
POSTGRESQL_TABLE: Final = """CREATE TABLE IF NOT EXISTS published_chain (
    sequence bigint PRIMARY KEY, chain bytea NOT NULL, leaf bytea, salt bytea, digest bytea)"""


class Link(NamedTuple):
    """
    The link of a change.

    Args:
        leaf: None in the copy of a node, which has the chain alone.
        salt: None also once the change's person was erased.
        digest: the digest of the document's body; None if the change left none, or its person was erased.
    """

    sequence: int
    chain: bytes
    leaf: bytes | None = None
    salt: bytes | None = None
    digest: bytes | None = None


def _hash(tag: bytes, *parts: bytes) -> bytes:
    joined = b"".join([len(part).to_bytes(8) + part for part in parts])
    return hashlib.sha256(b"muniment %b\n%b" % (tag, joined)).digest()


def body_digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def leaf_of(salt: bytes, kind: str, key: str, change: str, digest: bytes | None) -> bytes:
    return _hash(b"leaf", salt, kind.encode(), key.encode(), change.encode(), digest or b"")


def chain_of(former: bytes, sequence: int, leaf: bytes) -> bytes:
    return _hash(b"link", former, sequence.to_bytes(8), leaf)


def genesis_of(feed_id: str, edition: int, state: bytes) -> bytes:
    """Return the value that a chain begins with: *state* is the digest of all published documents at *edition*."""
    return _hash(b"genesis", feed_id.encode(), edition.to_bytes(8), state)


def salts() -> Iterator[bytes]:
    """Yield random salts without end; to ask the system for each takes as long as the hashes."""
    while True:
        some = secrets.token_bytes(_SALT_BYTES * _SALTS_AT_ONCE)
        for first in range(0, len(some), _SALT_BYTES):
            yield some[first : first + _SALT_BYTES]


def link(former: bytes, sequence: int, kind: str, key: str, change: str, *, digest: bytes | None, salt: bytes) -> Link:
    leaf = leaf_of(salt, kind, key, change, digest)
    return Link(sequence, chain_of(former, sequence, leaf), leaf, salt, digest)


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


def _on_sqlite(connection: Connection) -> bool:
    return isinstance(connection, sqlite3.Connection)


def _run(connection: Connection, statement: str, *values: object) -> Any:
    return connection.execute(statement.replace("%s", "?") if _on_sqlite(connection) else statement, values)


def _insert(connection: Connection, links: Sequence[Link]) -> None:
    if _on_sqlite(connection):
        insert_rows(connection, _COLUMNS, links)
        return
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {_COLUMNS} VALUES (%s, %s, %s, %s, %s)", links)


def latest(connection: Connection) -> Link | None:
    row = _run(connection, _LATEST).fetchone()
    return None if row is None else Link(*row)


def oldest(connection: Connection) -> Link | None:
    row = _run(connection, _LATEST.replace("DESC", "ASC")).fetchone()
    return None if row is None else Link(*row)


def chain_at(connection: Connection, number: int) -> bytes | None:
    """Return the chain after change *number*, which the feed must still reach; None if it has none yet."""
    row = _run(
        connection, "SELECT chain FROM published_chain WHERE sequence >= %s ORDER BY sequence LIMIT 1", number
    ).fetchone()
    return None if row is None else bytes(row[0])


def links(connection: Connection, after: int = -1, until: int = (1 << 63) - 1) -> Iterator[Link]:
    """Return the numbers after *after*, up to *until*, with their chain, in order."""
    statement = "SELECT sequence, chain FROM published_chain WHERE sequence > %s AND sequence <= %s ORDER BY sequence"
    return (Link(*row) for row in _run(connection, statement, after, until))


def copy(file: sqlite3.Connection, given: Iterable[Link]) -> None:
    """Write links of the source into the file of a node."""
    statement = "INSERT OR REPLACE INTO published_chain (sequence, chain, leaf, salt, digest) VALUES (?, ?, ?, ?, ?)"
    file.executemany(statement, given)


def begin(connection: Connection, edition: int) -> bytes:
    """
    Begin the chain again at *edition*, in the caller's transaction, and return its genesis.

    Required whenever published documents change without an entry in the feed.
    """
    table = "published_meta" if _on_sqlite(connection) else "published_edition"
    (epoch,) = _run(connection, f"SELECT epoch FROM {table}").fetchone()
    genesis = genesis_of(epoch.rpartition(":")[2], edition, state_digest(connection))
    _run(connection, "DELETE FROM published_chain")
    _insert(connection, [Link(edition, genesis)])
    return genesis


def state_digest(connection: Connection) -> bytes:
    """
    Digest kind, key and body of every published document, in order: equal on any two equal registries.

    On PostgreSQL, call it in a transaction.
    """
    found = StateDigest()
    if _on_sqlite(connection):
        for kind, key, body in connection.execute("SELECT kind, key, body FROM published_document ORDER BY kind, key"):
            found.add(kind, key, body)
        return found.digest()
    with connection.cursor(name="published_state") as cursor:
        cursor.execute('SELECT kind, key, document FROM published_document ORDER BY kind COLLATE "C", key')
        for kind, key, document in cursor:
            found.add(kind, key, _decode_body(document).body)
    return found.digest()


def faults(connection: Connection) -> Iterator[str]:
    """
    Verify the chain of a source, and yield what is wrong with it.

    On PostgreSQL, call it in a transaction.
    """
    statement = (
        "SELECT l.sequence, l.chain, l.leaf, l.salt, l.digest, c.kind, c.key, c.change FROM published_chain l"
        " LEFT JOIN published_change c ON c.sequence = l.sequence ORDER BY l.sequence"
    )
    former: Link | None = None
    for *columns, kind, key, change in _run(connection, statement):
        each = Link(*columns)
        if former is not None:
            if each.sequence != former.sequence + 1:
                yield f"the chain has no link for change {former.sequence + 1}"
            elif each.leaf is None or each.chain != chain_of(former.chain, each.sequence, each.leaf):
                yield f"the chain breaks at change {each.sequence}"
        if kind is not None:
            # A salt is absent in the first row, and once the change's person was erased.
            if each.salt and each.leaf != leaf_of(each.salt, kind, key, change, each.digest):
                yield f"change {each.sequence} is not the one that was chained"
        elif former is not None:
            yield f"change {each.sequence} is missing from the feed"
        former = each


def trim(connection: Connection, gone: int) -> None:
    """Remove the links before *gone*, the last change that the feed no longer has."""
    _run(connection, "DELETE FROM published_chain WHERE sequence < %s", gone)


class Chain:
    """Links for the changes of one transaction, which holds the edition; written once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._former: bytes | None = None
        self._added: list[Link] = []
        self._salts = salts()

    def add(self, entry: PublishedEntry) -> None:
        """Link a change. Call it before the document is written."""
        if self._former is None:
            self._former = _until(self._connection, entry.sequence - 1)
        digest = None if entry.document is None else body_digest(entry.document.body)
        salt = next(self._salts)
        made = link(self._former, entry.sequence, entry.kind, entry.key, entry.change, digest=digest, salt=salt)
        self._former = made.chain
        self._added.append(made)

    def write(self) -> None:
        _insert(self._connection, self._added)
        self._added = []


def _until(connection: Connection, number: int) -> bytes:
    """Return the chain after change *number*; begin it again there if its last link is of another change."""
    last = latest(connection)
    if last is not None and last.sequence == number:
        return bytes(last.chain)
    return begin(connection, number)
