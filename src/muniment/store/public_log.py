"""
The public log: an append-only Merkle tree with a leaf for each change of a published document.

A leaf is a hash of a random salt and the change. Without the salt, it tells nothing of the person that it was made for,
so an erasure removes the salt, and the tree stays as it is. Every published document is the one of its latest leaf:
where documents change without an entry in the feed, the log is continued by leaves of the change ``state``.

What is stored: for each leaf what it is a hash of, and the leaf itself once its person was erased; the hash of each
tile that is complete; and one row with the size of the log and the hashes that its root is made of. A publisher appends
in its transaction. On PostgreSQL the log is there alone, and nodes copy the chain.

The *chain* of a change is the root of the log after its leaf, by which a reader notices that the feed has another past
than the one it has read. It is stored beside the feed: one row for each change, in the file, in copies of it and on
PostgreSQL alike. The value of the first row counts for changes before it too.

Source: RFC 6962, 2.1; c2sp.org/tlog-tiles.
"""

import hashlib
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from muniment.kernel.ids import now
from muniment.kernel.merkle import (
    HASH_BYTES,
    TILE_LEVELS,
    TILE_WIDTH,
    Frontier,
    Node,
    in_tile,
    leaf_hash,
    root_of,
)
from muniment.kernel.wire import timestamp
from muniment.store.published_document import KINDS, PublishedEntry
from muniment.store.statements import Connection, insert, on_sqlite, run

STATE: Final = "state"
"""The change of a leaf for a document that has changed without an entry in the feed."""
_SALT_BYTES: Final = 16
_PLACE_BITS: Final = 48
"""A tile's hash is stored under its level and number in one integer."""
# The numbers of kinds and changes are stored: new ones are added at the end.
_KINDS: Final = ("company", "person", "framework")
_CHANGES: Final = ("published", "updated", "unlisted", STATE)
_KIND_NUMBERS: Final = {kind: number for number, kind in enumerate(_KINDS)}
_CHANGE_NUMBERS: Final = {change: number for number, change in enumerate(_CHANGES)}

STATE_TABLE: Final = "published_log"
LEAF_TABLE: Final = "published_leaf"
TILE_TABLE: Final = "published_tile"
SQLITE_TABLES: Final = (
    f"""CREATE TABLE IF NOT EXISTS {STATE_TABLE} (
        id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, origin TEXT NOT NULL, begun_at TEXT NOT NULL,
        sequence INTEGER NOT NULL, size INTEGER NOT NULL, frontier BLOB NOT NULL, former_origin TEXT,
        former_size INTEGER, former_root BLOB)""",
    f"""CREATE TABLE IF NOT EXISTS {LEAF_TABLE} (
        number INTEGER PRIMARY KEY, sequence INTEGER, kind INTEGER, key TEXT, change INTEGER, leaf BLOB, salt BLOB,
        digest BLOB)""",
    f"CREATE INDEX IF NOT EXISTS {LEAF_TABLE}_key ON {LEAF_TABLE} (kind, key) WHERE key IS NOT NULL",
    f"CREATE TABLE IF NOT EXISTS {TILE_TABLE} (place INTEGER PRIMARY KEY, hash BLOB NOT NULL)",
)
# A statement of its own for the index would wait for writers, and they for it, each time that a node starts.
POSTGRESQL_TABLES: Final = (
    f"""CREATE TABLE IF NOT EXISTS {STATE_TABLE} (
        id smallint PRIMARY KEY CHECK (id = 1), name text NOT NULL, origin text NOT NULL, begun_at text NOT NULL,
        sequence bigint NOT NULL, size bigint NOT NULL, frontier bytea NOT NULL, former_origin text,
        former_size bigint, former_root bytea)""",
    f"""CREATE TABLE IF NOT EXISTS {LEAF_TABLE} (
        number bigint PRIMARY KEY, sequence bigint, kind smallint, key text COLLATE "C", change smallint, leaf bytea,
        salt bytea, digest bytea, UNIQUE (kind, key, number))""",
    f"CREATE TABLE IF NOT EXISTS {TILE_TABLE} (place bigint PRIMARY KEY, hash bytea NOT NULL)",
)

# Versions before the log had a leaf, a salt and a digest in each row; they are kept for nodes of such a version.
SQLITE_CHAIN: Final = """CREATE TABLE IF NOT EXISTS published_chain (
    sequence INTEGER PRIMARY KEY, chain BLOB NOT NULL, leaf BLOB, salt BLOB, digest BLOB)"""
POSTGRESQL_CHAIN: Final = """CREATE TABLE IF NOT EXISTS published_chain (
    sequence bigint PRIMARY KEY, chain bytea NOT NULL, leaf bytea, salt bytea, digest bytea)"""


class Link(NamedTuple):
    """The chain after a change."""

    sequence: int
    chain: bytes


_CHAIN_COLUMNS: Final = f"published_chain ({', '.join(Link._fields)})"


def leaf_of(salt: bytes, kind: str, key: str, change: str, digest: bytes | None) -> bytes:
    """Return the data of a leaf: SHA-256 over a tag and the parts, each after its length."""
    parts = (salt, kind.encode(), key.encode(), change.encode(), digest or b"")
    joined = b"".join([len(part).to_bytes(8) + part for part in parts])
    return hashlib.sha256(b"muniment leaf\n" + joined).digest()


def salts(count: int) -> list[bytes]:
    """Return random salts: to ask the system for each by itself takes as long as the hashes."""
    random_bytes = secrets.token_bytes(_SALT_BYTES * count)
    return [random_bytes[first : first + _SALT_BYTES] for first in range(0, len(random_bytes), _SALT_BYTES)]


def body_digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


class Former(NamedTuple):
    """A log that could not be continued; *root* is empty if it was lost."""

    origin: str
    size: int
    root: bytes


class LogState(NamedTuple):
    """
    The state of the log.

    Args:
        name: random, of this log alone.
        origin: the name by which strangers know it; empty until it is first asked for.
        begun_at: when it began.
        sequence: the latest change that it has.
        former: the log that this one began instead of.
        linked: the latest change that the chain has.
    """

    name: str
    origin: str
    begun_at: str
    sequence: int
    frontier: Frontier
    former: Former | None
    linked: int | None

    @property
    def size(self) -> int:
        return self.frontier.size

    @property
    def root(self) -> bytes:
        return self.frontier.root()


class Leaf(NamedTuple):
    """
    A leaf of the log.

    Args:
        kind: None, as *key*, *salt* and *digest*, once its person was erased.
        digest: the digest of the document's body; None also if the change left none.
        data: the hash of all these.
    """

    number: int
    kind: str | None
    key: str | None
    change: str
    salt: bytes | None
    digest: bytes | None
    data: bytes


_LEAF_COLUMNS: Final = "number, kind, key, change, leaf, salt, digest"


def _leaf(row: Any) -> Leaf:
    number, kind_number, key, change_number, data, salt, digest = row
    change = _CHANGES[change_number]
    if key is None:
        return Leaf(number, None, None, change, None, None, bytes(data))
    kind = _KINDS[kind_number]
    salt, digest = bytes(salt), None if digest is None else bytes(digest)
    return Leaf(number, kind, key, change, salt, digest, leaf_of(salt, kind, key, change, digest))


# ---------------------------------------------------------------- appending


class _Damaged(Exception):  # noqa: N818 - a state, and what follows is done by the caller
    """The log cannot be continued."""


def state(connection: Connection) -> LogState | None:
    """Return the state of the log; None if it has not begun, or can only begin again."""
    try:
        return _state(connection)
    except _Damaged:
        return None


def _state(connection: Connection) -> LogState | None:
    row = connection.execute(
        "SELECT name, origin, begun_at, sequence, size, frontier, former_origin, former_size, former_root,"
        f" (SELECT max(number) FROM {LEAF_TABLE}), (SELECT max(sequence) FROM published_chain) FROM {STATE_TABLE}"
    ).fetchone()
    if row is None:
        return None
    name, origin, begun_at, sequence, size, joined, former_origin, former_size, former_root, last, linked = row
    frontier = _frontier(size, joined)
    leaves = 0 if last is None else last + 1
    if frontier is None or size != leaves:
        raise _Damaged
    former = None if former_origin is None else Former(former_origin, former_size, bytes(former_root))
    return LogState(name, origin, begun_at, sequence, frontier, former, linked)


def _frontier(size: int, joined: bytes) -> Frontier | None:
    if len(joined) != size.bit_count() * HASH_BYTES:
        return None
    return Frontier(size, [bytes(joined[first : first + HASH_BYTES]) for first in range(0, len(joined), HASH_BYTES)])


def begin_again(connection: Connection) -> None:
    """Begin another log that names the present one as its former, in the caller's transaction."""
    row = connection.execute(f"SELECT origin, size, frontier FROM {STATE_TABLE}").fetchone()
    former: tuple[Any, ...] = (None, None, None)
    name, origin = secrets.token_hex(8), ""
    if row is not None and row[0]:
        former_origin, size, joined = row
        frontier = _frontier(size, joined)
        former = former_origin, size, b"" if frontier is None else frontier.root()
        origin = origin_of(former_origin.rpartition("/")[0], name)
    for table in (STATE_TABLE, LEAF_TABLE, TILE_TABLE):
        connection.execute(f"DELETE FROM {table}")
    row = (1, name, origin, timestamp(now()), -1, 0, b"", *former)
    insert(connection, STATE_TABLE, [row])


def origin_of(host: str, name: str) -> str:
    return f"{host}/{name}"


def name_origin(connection: Connection, host: str) -> None:
    """Name the log for strangers, by the host and its name, if it has no origin yet; it keeps the one that it has."""
    statement = f"UPDATE {STATE_TABLE} SET origin = %s || '/' || name WHERE origin = ''"
    run(connection, statement, host)


class _Change(NamedTuple):
    """A change that the log is to have; *sequence* is None for a document that has changed without an entry."""

    kind: str
    key: str
    change: str
    digest: bytes | None
    sequence: int | None


class Log:
    """The leaves and the chain of the changes of one transaction, which holds the edition; written once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._frontier: Frontier | None = None
        self._sequence = -1
        self._changes: list[_Change] = []

    def add(self, entry: PublishedEntry) -> None:
        """Add a change. Call it before the document is written: the log may lack what was published before."""
        digest = None if entry.document is None else body_digest(entry.document.body)
        if self._frontier is None:
            self._continue(entry.sequence - 1)
        self._changes.append(_Change(entry.kind, entry.key, entry.change, digest, entry.sequence))
        self._sequence = entry.sequence

    def write(self) -> None:
        """Append the changes that were added."""
        frontier = self._frontier
        if frontier is None:
            return
        changes, self._changes = self._changes, []
        leaves: list[tuple[Any, ...]] = []
        tiles: list[tuple[int, bytes]] = []
        links: list[Link] = []
        for change, salt in zip(changes, salts(len(changes)), strict=True):
            data = leaf_of(salt, change.kind, change.key, change.change, change.digest)
            numbers = _KIND_NUMBERS[change.kind], change.key, _CHANGE_NUMBERS[change.change]
            leaves.append((frontier.size, change.sequence, *numbers, None, salt, change.digest))
            made = frontier.append(leaf_hash(data))
            if len(made) > TILE_LEVELS:
                tiles += [_tile_row(node) for node in made if _is_tile(node)]
            if change.sequence is not None:
                links.append(Link(change.sequence, frontier.root()))
        insert(self._connection, LEAF_TABLE, leaves)
        insert(self._connection, TILE_TABLE, tiles)
        insert(self._connection, _CHAIN_COLUMNS, links)
        statement = f"UPDATE {STATE_TABLE} SET sequence = %s, size = %s, frontier = %s WHERE id = 1"
        run(self._connection, statement, self._sequence, frontier.size, b"".join(frontier.hashes))

    def continue_at(self, sequence: int) -> bytes:
        """
        Append what has changed without an entry in the feed, of which *sequence* is the latest, and return the root.

        Costs time in proportion to the documents and the leaves.
        """
        self._begin_at(sequence)
        assert self._frontier is not None  # noqa: S101 - it has just been read
        for kind, key, digest in list(unlogged(self._connection)):
            self._changes.append(_Change(kind, key, STATE, digest, None))
        self.write()
        return self._frontier.root()

    def _begin_at(self, sequence: int) -> LogState:
        found = state(self._connection)
        if found is None:
            begin_again(self._connection)
            found = state(self._connection)
            assert found is not None  # noqa: S101 - it has just begun
        self._frontier, self._sequence = found.frontier, sequence
        return found

    def _continue(self, sequence: int) -> None:
        """Read how far the log is, and let it and the chain have everything up to *sequence*."""
        found = self._begin_at(sequence)
        if found.sequence != sequence:  # a node of a former version has published, or the log begins here
            self.continue_at(sequence)
        if found.linked != sequence:
            assert self._frontier is not None  # noqa: S101 - it has been read
            begin_chain(self._connection, sequence, self._frontier.root())


def _is_tile(node: Node) -> bool:
    return node.level > 0 and not node.level % TILE_LEVELS


def _tile_row(node: Node) -> tuple[int, bytes]:
    return _place(node.level // TILE_LEVELS, node.number), node.hash


def _place(tile_level: int, index: int) -> int:
    return tile_level << _PLACE_BITS | index


def unlogged(connection: Connection) -> Iterator[tuple[str, str, bytes | None]]:
    """
    Yield kind, key and digest of each published document that is not that of its latest leaf.

    The digest is None if the log has a document that is not published any more.

    On PostgreSQL, call it in a transaction.
    """
    for kind in sorted(KINDS):
        logged = _latest_digests(connection, kind)
        logged_key, logged_digest = next(logged, _END)
        for key, body in bodies(connection, kind):
            # Both are in the order of keys; a key of the log alone is of a document that is gone.
            while logged_key is not None and logged_key < key:
                if logged_digest is not None:
                    yield kind, logged_key, None
                logged_key, logged_digest = next(logged, _END)
            digest = body_digest(body)
            if logged_key != key or logged_digest != digest:
                yield kind, key, digest
            if logged_key == key:
                logged_key, logged_digest = next(logged, _END)
        while logged_key is not None:
            if logged_digest is not None:
                yield kind, logged_key, None
            logged_key, logged_digest = next(logged, _END)


_END: Final = (None, None)


def _latest_digests(connection: Connection, kind: str) -> Iterator[tuple[str | None, bytes | None]]:
    """Yield each key of a kind that the log has, with the digest of its latest leaf, by key."""
    statement = f"SELECT key, digest FROM {LEAF_TABLE} WHERE kind = %s AND key IS NOT NULL ORDER BY key, number"
    latest: tuple[str, bytes | None] | None = None
    for key, digest in _streamed(connection, statement, _KIND_NUMBERS[kind]):
        if latest is not None and latest[0] != key:
            yield latest
        latest = key, None if digest is None else bytes(digest)
    if latest is not None:
        yield latest


def _streamed(connection: Connection, statement: str, *values: object) -> Iterator[Any]:
    """Yield rows, of which not all are read at once."""
    if on_sqlite(connection):
        yield from run(connection, statement, *values)
        return
    with connection.cursor(name="published_leaves") as cursor:
        yield from cursor.execute(statement, values)


def continue_log(connection: Connection, edition: int) -> bytes:
    """
    Let the log have every document as it is published at *edition*, in the caller's transaction; return its root.

    Required whenever published documents change without an entry in the feed.
    """
    return Log(connection).continue_at(edition)


def erase(connection: Connection, kind: str, key: str) -> None:
    """Remove what could confirm a guess at a document, in the caller's transaction; its leaves stay."""
    statement = f"SELECT {_LEAF_COLUMNS} FROM {LEAF_TABLE} WHERE kind = %s AND key = %s"
    leaves = [_leaf(row) for row in run(connection, statement, _KIND_NUMBERS[kind], key).fetchall()]
    for leaf in leaves:
        run(
            connection,
            f"UPDATE {LEAF_TABLE} SET leaf = %s, kind = NULL, key = NULL, salt = NULL, digest = NULL WHERE number = %s",
            leaf.data,
            leaf.number,
        )


# ---------------------------------------------------------------- reading


def latest_leaf(connection: Connection, kind: str, key: str) -> Leaf | None:
    """Return the leaf of a document as it is published, or of its end."""
    statement = f"SELECT {_LEAF_COLUMNS} FROM {LEAF_TABLE} WHERE kind = %s AND key = %s ORDER BY number DESC LIMIT 1"
    row = run(connection, statement, _KIND_NUMBERS[kind], key).fetchone()
    return None if row is None else _leaf(row)


def leaves(connection: Connection, first: int, count: int) -> list[Leaf]:
    """Return at most *count* leaves from number *first* on."""
    statement = f"SELECT {_LEAF_COLUMNS} FROM {LEAF_TABLE} WHERE number >= %s AND number < %s ORDER BY number"
    return [_leaf(row) for row in run(connection, statement, first, first + count)]


class Tiles:
    """The tiles of the log as far as they have been read, in one snapshot."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._read: dict[tuple[int, int], list[bytes]] = {}

    def hashes(self, level: int, number: int) -> list[bytes]:
        """Return the hashes of a tile: of leaves at level 0, of complete tiles below it above."""
        found = self._read.get((level, number))
        if found is None:
            first = number * TILE_WIDTH
            if level == 0:
                found = [leaf_hash(leaf.data) for leaf in leaves(self._connection, first, TILE_WIDTH)]
            else:
                statement = f"SELECT hash FROM {TILE_TABLE} WHERE place >= %s AND place < %s ORDER BY place"
                bounds = _place(level, first), _place(level, first + TILE_WIDTH)
                found = [bytes(row[0]) for row in run(self._connection, statement, *bounds)]
            self._read[level, number] = found
        return found

    def node(self, level: int, index: int) -> bytes:
        """Return the hash of a complete subtree."""
        place = in_tile(level, index)
        hashes = self.hashes(place.level, place.number)
        return root_of(hashes[place.first : place.first + place.width])


# ---------------------------------------------------------------- the chain, and all documents as they are published


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


_LATEST_LINK: Final = "SELECT sequence, chain FROM published_chain ORDER BY sequence DESC LIMIT 1"


class _Body(msgspec.Struct):
    body: bytes


_decode_body: Final = msgspec.msgpack.Decoder(_Body).decode


def latest_link(connection: Connection) -> Link | None:
    row = connection.execute(_LATEST_LINK).fetchone()
    return None if row is None else Link(*row)


def oldest_link(connection: Connection) -> Link | None:
    row = connection.execute(_LATEST_LINK.replace("DESC", "ASC")).fetchone()
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


def copy_links(file: sqlite3.Connection, given: Iterable[Link]) -> None:
    """Write links of the source into the file of a node."""
    file.executemany("INSERT OR REPLACE INTO published_chain (sequence, chain) VALUES (?, ?)", given)


def begin_chain(connection: Connection, edition: int, value: bytes) -> None:
    """
    Begin the chain again with *value* at *edition*, in the caller's transaction.

    Required whenever published documents change without an entry in the feed.
    """
    connection.execute("DELETE FROM published_chain")
    insert(connection, _CHAIN_COLUMNS, [Link(edition, value)])


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


def trim_chain(connection: Connection, gone: int) -> None:
    """Remove the links before *gone*, the last change that the feed no longer has."""
    run(connection, "DELETE FROM published_chain WHERE sequence < %s", gone)


# ---------------------------------------------------------------- verifying


class Fault(NamedTuple):
    """
    A fault of the log.

    Args:
        is_of_log: the log itself is damaged; otherwise a change or a document is not the one that was logged.
    """

    says: str
    is_of_log: bool


def is_damaged(connection: Connection) -> bool:
    """Return whether the log does not verify, so that it cannot be continued. On PostgreSQL, in a transaction."""
    return any(fault.is_of_log for fault in leaf_faults(connection))


def faults(connection: Connection) -> Iterator[str]:
    """
    Verify every hash of the log, and every leaf against its change and its document; yield what is wrong.

    On PostgreSQL, call it in a transaction.
    """
    for fault in leaf_faults(connection):
        yield fault.says
    found = state(connection)
    table = "published_meta" if on_sqlite(connection) else "published_edition"
    column = "edition" if on_sqlite(connection) else "value"
    (edition,) = connection.execute(f"SELECT {column} FROM {table}").fetchone()
    if found is not None and found.sequence == edition:  # otherwise a node of a former version has published since
        for kind, key, _ in unlogged(connection):
            yield f"{kind} {key} is not published as it was logged"


_LEAVES_WITH_CHANGES: Final = (
    "SELECT l.number, l.kind, l.key, l.change, l.leaf, l.salt, l.digest,"
    f" l.sequence, p.chain, c.kind, c.key, c.change FROM {LEAF_TABLE} l"
    " LEFT JOIN published_change c ON c.sequence = l.sequence"
    " LEFT JOIN published_chain p ON p.sequence = l.sequence ORDER BY l.number"
)
"""Each leaf, as of :data:`_LEAF_COLUMNS`, with the link of its change, and with the change as the feed has it."""


def leaf_faults(connection: Connection) -> Iterator[Fault]:
    """Verify every hash of the log, and every leaf against its change. On PostgreSQL, call it in a transaction."""
    try:
        found = _state(connection)
    except _Damaged:
        yield Fault("the log is not as long as it says", is_of_log=True)
        return
    if found is None:
        return
    frontier = Frontier()
    tiles = Tiles(connection)
    (oldest,) = connection.execute("SELECT min(sequence) FROM published_change").fetchone()
    first_link = oldest_link(connection)
    for row in _streamed(connection, _LEAVES_WITH_CHANGES):
        leaf = _readable(row[:7])
        if leaf is None or leaf.number != frontier.size:
            yield Fault(f"leaf {frontier.size} of the log is {'missing' if leaf else 'damaged'}", is_of_log=True)
            return
        yield from _tile_faults(tiles, leaf, frontier.append(leaf_hash(leaf.data)))
        sequence, linked, *change = row[7:]
        # The first link may be from before the log, or include what has changed without an entry.
        is_first = first_link is not None and sequence == first_link.sequence
        if not is_first and not _leads_to(linked, frontier):
            yield Fault(f"the chain of change {sequence} is not that of the log", is_of_log=False)
        # The feed drops its oldest entries; the log keeps every leaf.
        may_be_gone = sequence is None or oldest is None or sequence < oldest
        if not _is_of_change(leaf, *change, may_be_gone=may_be_gone):
            yield Fault(f"change {sequence} is not the one that was logged", is_of_log=False)
    if frontier.hashes != found.frontier.hashes:
        yield Fault("the log has another root than was logged", is_of_log=True)


def _readable(row: Any) -> Leaf | None:
    try:
        return _leaf(row)
    except (TypeError, IndexError):
        return None


def _leads_to(linked: bytes | None, frontier: Frontier) -> bool:
    """Return whether the chain of a change is the root of the log after its leaf, or is not kept any more."""
    return linked is None or bytes(linked) == frontier.root()


def _tile_faults(tiles: Tiles, leaf: Leaf, nodes: Iterable[Node]) -> Iterator[Fault]:
    """Compare the *nodes* that *leaf* completes with the stored tiles."""
    for node in nodes:
        if _is_tile(node) and not _is_stored(tiles, node):
            first = node.number << node.level
            yield Fault(f"leaves {first} to {leaf.number} are not those that were logged", is_of_log=True)


def _is_of_change(leaf: Leaf, kind: str | None, key: str | None, change: str | None, *, may_be_gone: bool) -> bool:
    """Return whether the feed has the change of a leaf, or had it."""
    if kind is None:
        return may_be_gone
    return leaf.key is None or (kind, key, change) == (leaf.kind, leaf.key, leaf.change)


def _is_stored(tiles: Tiles, node: Node) -> bool:
    place = in_tile(node.level, node.number)
    return tiles.hashes(place.level, place.number)[place.first : place.first + 1] == [node.hash]
