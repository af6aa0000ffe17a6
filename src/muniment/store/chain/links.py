"""
The chain as it is stored beside the change feed: one row for each change, in the file and on PostgreSQL alike.

The first row has no leaf to check: it is the genesis, or the last change that the feed no longer has. Its value counts
for changes before it too, because it covers all documents at that time.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from muniment.store.chain.hashes import Link, StateDigest, body_digest, chain_of, genesis_of, leaf_of, link, salts
from muniment.store.writing import rows

Connection = Any
"""A connection of sqlite3 or of psycopg; both execute statements alike."""

SQLITE_TABLE: Final = """CREATE TABLE IF NOT EXISTS published_chain (
    sequence INTEGER PRIMARY KEY, chain BLOB NOT NULL, leaf BLOB, salt BLOB, digest BLOB)"""
POSTGRESQL_TABLE: Final = """CREATE TABLE IF NOT EXISTS published_chain (
    sequence bigint PRIMARY KEY, chain bytea NOT NULL, leaf bytea, salt bytea, digest bytea)"""
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
        rows.insert(connection, _COLUMNS, links)
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
        if former is not None and each.sequence != former.sequence + 1:
            yield f"the chain has no link for change {former.sequence + 1}"
        elif former is not None and (
            each.leaf is None or each.chain != chain_of(former.chain, each.sequence, each.leaf)
        ):
            yield f"the chain breaks at change {each.sequence}"
        if kind is None and former is not None:
            yield f"change {each.sequence} is missing from the feed"
        if kind is not None and each.salt and each.leaf != leaf_of(each.salt, kind, key, change, each.digest):
            yield f"change {each.sequence} is not the one that was chained"
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

    def add(self, sequence: int, kind: str, key: str, change: str, body: bytes | None) -> None:
        """Link a change. Call it before the document is written."""
        if self._former is None:
            self._former = _until(self._connection, sequence - 1)
        digest = None if body is None else body_digest(body)
        made = link(self._former, sequence, kind, key, change, digest=digest, salt=next(self._salts))
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
