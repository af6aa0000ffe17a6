"""
Follow the published documents: one process of a node writes the tables, a moment after a publication.

The tables are in a file of their own, so that statements of strangers are read beside the published file and not in it.
They are made from published documents alone, in the thread of the follower and outside every request, and always show
one edition: they move from one to the next in one transaction. Tables of another form (another version, other declared
fields), of another feed, or of a feed that does not reach back to them are made again, and the former ones are read
until the new ones are whole.
"""

import contextlib
import fcntl
import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from muniment.kernel.http.representations import digest
from muniment.schema.objects import Schema
from muniment.store.cache import release_free_memory
from muniment.store.database import erasure
from muniment.store.database.faults import DamagedDocument, damages_read, is_damage
from muniment.store.database.handles import open_counted
from muniment.store.database.reading import open_for_reading
from muniment.store.exports.exports import Stopped
from muniment.store.published_document import KINDS
from muniment.store.reader import PublishedFile
from muniment.store.snapshot_state import SnapshotState
from muniment.store.tables.form import CHANGES, Form, Row

log = logging.getLogger(__name__)

LOOK_S: Final = 0.2
"""Seconds between two looks for a new edition, which the reader has in memory."""
LONGEST_PAUSE_S: Final = 10.0
"""Maximum pause after failures, such as a full disk; pauses double."""
AT_ONCE: Final = 200
"""Documents, or changes, between two pauses."""
BREATH_S: Final = 0.01
"""Such a pause: tables that are made again take a fifth of a core instead of a whole one, beside the requests."""
_FOLLOWED: Final = """CREATE TABLE IF NOT EXISTS _followed (
    id INTEGER PRIMARY KEY CHECK (id = 1), edition INTEGER NOT NULL, epoch TEXT NOT NULL, form TEXT NOT NULL,
    erased INTEGER NOT NULL) STRICT"""
_SOME: Final = "SELECT id, key FROM published_document WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
_CHOSEN: Final = "WHERE kind = ? AND key IN (SELECT value FROM json_each(?))"
_BODIES: Final = f"SELECT key, body, etag FROM published_document {_CHOSEN}"
_TIMES: Final = f"SELECT key, min(at) FROM published_change {_CHOSEN} GROUP BY key"
FEED: Final = (
    "SELECT sequence, kind, key, change, at, fields FROM published_change WHERE sequence > ? ORDER BY sequence LIMIT ?"
)
_PEOPLE: Final = "SELECT slug FROM people WHERE slug > ? ORDER BY slug LIMIT ?"
_GONE: Final = (
    "SELECT value FROM json_each(?) WHERE NOT EXISTS"
    " (SELECT 1 FROM published_document WHERE kind = 'person' AND key = value)"
)
_Change = tuple[int, str, str, str, str, str | None]


class _OtherFeed(Exception):  # noqa: N818 - a state
    """The feed was replaced, or does not reach back to the tables."""


class Followed(NamedTuple):
    """
    The place of the tables in the feed.

    Args:
        erased: the latest change that tells of an erased person.
    """

    edition: int
    epoch: str
    form: str
    erased: int = 0


class Tables:
    """The tables at *path*, made from *published*."""

    def __init__(self, path: Path, published: PublishedFile, schema: Schema) -> None:
        self.path = path
        self._published = published
        self.form = Form(schema)
        self._own: sqlite3.Connection | None = None
        self._turn: int | None = None
        """The descriptor of the lock that makes this process the writer."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.rebuilds = 0

    def use(self, schema: Schema) -> None:
        """Make the tables of *schema* from now on."""
        self.form = Form(schema)

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tables", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._close_own()
        if self._turn is not None:
            os.close(self._turn)
            self._turn = None

    def _run(self) -> None:
        pause_s, is_failing = LOOK_S, False
        while not self._stop.wait(pause_s):
            try:
                self.follow()
            except Stopped:
                return
            except (OSError, sqlite3.Error, DamagedDocument, _OtherFeed) as error:
                if not is_failing:
                    log.warning("the tables stay at their edition for now: %s", error)
                is_failing, pause_s = True, min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                pause_s, is_failing = LOOK_S, False

    def follow(self) -> bool:
        """Bring the tables to the edition of the published documents; return whether they changed."""
        try:
            return self._follow()
        except sqlite3.Error as error:
            self._close_own()
            if is_damage(error):
                remove(self.path)
            raise

    def _follow(self) -> bool:
        if not self._published.is_built or not self._is_writer():
            return False
        own = self._opened()
        held, form = followed(own), self.form
        with self._published.snapshot() as (_, state):
            there = Followed(state.edition, state.epoch, form.id)
        if held is not None and held[:3] == there[:3]:
            return False
        if held is not None and held[1:3] == there[1:3]:
            with contextlib.suppress(_OtherFeed):
                self._move(own, held, form)
                return True
        self._rebuild(own, form)
        return True

    def counts(self) -> tuple[Followed, dict[str, int]] | None:
        """Return the place of the tables in the feed and the number of rows of each; None if there are none yet."""
        if not self.path.exists():
            return None
        with contextlib.closing(open_for_reading(self.path, isolation_level=None, timeout=2)) as own:
            own.execute("BEGIN")
            held = followed(own)
            if held is None:
                return None
            names = own.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            counts = {name: own.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in names}
        return held, counts

    def _is_writer(self) -> bool:
        """Return whether this process writes the tables, as one of those that share the folder."""
        if self._turn is None:
            turn = os.open(
                self.path.with_name(f".{self.path.name}.writer"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(turn)
                return False
            self._turn = turn
        return True

    def _opened(self) -> sqlite3.Connection:
        """Return the connection that writes; replace a damaged file, and one that was removed."""
        if self._own is not None and not self.path.exists():
            self._close_own()
        if self._own is None:
            try:
                self._own = _open(self.path)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                log.warning("the tables are damaged and are made again: %s", error)
                remove(self.path)
                self._own = _open(self.path)
        return self._own

    def _close_own(self) -> None:
        if self._own is not None:
            self._own.close()
            self._own = None

    # ------------------------------------------------------------------ writing

    def _move(self, own: sqlite3.Connection, held: Followed, form: Form) -> None:
        """Apply the changes since the edition of the tables, in one transaction."""
        with _transaction(own):
            now = self._catch_up(own, held, form)
        if now.erased > held.erased:
            erasure.compact(own)

    def _rebuild(self, own: sqlite3.Connection, form: Form) -> None:
        """
        Make the tables again, in one transaction.

        Documents are read in steps, because a snapshot of all of them would hold back the log of the published file.
        """
        with self._published.snapshot() as (source, state):
            began = Followed(state.edition, state.epoch, form.id, erasure.latest(source))
        with _transaction(own):
            _create(own, form)
            self._copy_changes(own, began)
            for kind in KINDS:
                self._copy_documents(own, kind, form)
            self._catch_up(own, began, form)
            own.execute("PRAGMA analysis_limit = 400")
            own.execute("ANALYZE")
        erasure.compact(own)
        self.rebuilds += 1
        release_free_memory()

    def _copy_documents(self, own: sqlite3.Connection, kind: str, form: Form) -> None:
        """Copy the documents of a *kind*, by their number; what is published meanwhile is followed afterwards."""
        number = 0
        while True:
            with self._published.snapshot() as (source, _):
                found = source.execute(_SOME, (kind, number, AT_ONCE)).fetchall()
                documents = _read(source, kind, [key for _, key in found])
            if not found:
                return
            number = found[-1][0]
            _insert(own, form, kind, documents)
            self._breathe()

    def _copy_changes(self, own: sqlite3.Connection, there: Followed) -> None:
        """Copy the feed as far as it goes back, up to the edition *there*, after which it is followed."""
        with self._published.snapshot() as (source, _):
            (oldest,) = source.execute("SELECT min(sequence) FROM published_change").fetchone()
        after = there.edition if oldest is None else oldest - 1
        while after < there.edition:
            with self._published.snapshot() as (source, state):
                rows = _changes_after(source, state, there, after, AT_ONCE)
            own.executemany(CHANGES.insert, rows)
            after = rows[-1][0]
            self._breathe()

    def _catch_up(self, own: sqlite3.Connection, held: Followed, form: Form) -> Followed:
        """Apply the changes after *held* until the tables are level with the published documents."""
        after = held.edition
        while True:
            read: list[tuple[str, list[_Unwritten]]] = []
            with self._published.snapshot() as (source, state):
                now = held._replace(edition=state.edition, erased=erasure.latest(source))
                rows = _changes_after(source, state, held, after, AT_ONCE)
                for kind in KINDS:
                    keys = dict.fromkeys([key for _, of, key, *_ in rows if of == kind])
                    read.append((kind, _read(source, kind, [*keys])))
            own.executemany(CHANGES.insert, rows)
            for changed_kind, documents in read:
                for table in form.of_kind[changed_kind]:
                    own.executemany(table.delete, [(each.key,) for each in documents])
                _insert(own, form, changed_kind, documents)
            after = rows[-1][0] if rows else after
            if after == now.edition:
                break
            self._breathe()
        if now.erased > held.erased:
            self._erase(own, form)
            own.execute(f"DELETE FROM {CHANGES.name}")
            self._copy_changes(own, now)
        own.execute("INSERT OR REPLACE INTO _followed VALUES (1, ?, ?, ?, ?)", now)
        return now

    def _erase(self, own: sqlite3.Connection, form: Form) -> None:
        """Delete the rows of people who are not published: entries that named an erased one have another key by now."""
        (people,) = form.of_kind["person"]
        after = ""
        while True:
            keys = [key for (key,) in own.execute(_PEOPLE, (after, AT_ONCE))]
            if not keys:
                return
            with self._published.snapshot() as (source, _):
                gone = source.execute(_GONE, (msgspec.json.encode(keys).decode(),)).fetchall()
            own.executemany(people.delete, gone)
            after = keys[-1]

    def _breathe(self) -> None:
        if self._stop.wait(BREATH_S):
            raise Stopped


def followed(connection: sqlite3.Connection) -> Followed | None:
    """Return the place of the tables in the feed; None if they have not been made yet."""
    row = connection.execute("SELECT edition, epoch, form, erased FROM _followed").fetchone()
    return None if row is None else Followed(*row)


def make_again(path: Path) -> None:
    """Have the tables made again: their follower finds them without a place in the feed."""
    with contextlib.closing(open_counted(path, isolation_level=None, timeout=20)) as own:
        own.execute("DELETE FROM _followed")


def remove(path: Path) -> None:
    """Remove the file; processes that read it keep it open until there is a new one."""
    for suffix in ("-wal", "-shm", ""):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def _open(path: Path) -> sqlite3.Connection:
    own = open_counted(path, isolation_level=None, check_same_thread=False, timeout=20)
    try:
        own.execute("PRAGMA journal_mode=WAL")
        own.execute("PRAGMA secure_delete=ON")
        # A crash loses nothing that the published documents do not have.
        own.execute("PRAGMA synchronous=NORMAL")
        own.execute(_FOLLOWED)
    except BaseException:
        own.close()
        raise
    return own


@contextlib.contextmanager
def _transaction(own: sqlite3.Connection) -> Iterator[None]:
    own.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        own.execute("ROLLBACK")
        raise
    own.execute("COMMIT")


def _create(own: sqlite3.Connection, form: Form) -> None:
    """Create the tables of a form, without those of a former one."""
    names = own.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'").fetchall()
    for (name,) in names:
        if name != "_followed":
            own.execute(f'DROP TABLE "{name}"')
    for table in form.tables:
        for statement in table.statements:
            own.execute(statement)


class _Unwritten(NamedTuple):
    """A document to be written; without a body, it is not published any more."""

    key: str
    body: bytes | None
    first_change: str | None


def _read(source: sqlite3.Connection, kind: str, keys: list[str]) -> list[_Unwritten]:
    """
    Read documents, and when they changed first.

    Raises:
        DamagedDocument: one of them does not have its digest.
    """
    if not keys:
        return []
    chosen = msgspec.json.encode(keys).decode()
    bodies = {}
    for key, body, etag in source.execute(_BODIES, (kind, chosen)):
        if not isinstance(body, bytes) or digest(body) != etag:
            raise damages_read.document(kind, key)
        bodies[key] = body
    first_changes = dict(source.execute(_TIMES, (kind, chosen)).fetchall())
    return [_Unwritten(key, bodies.get(key), first_changes.get(key)) for key in keys]


def _changes_after(
    source: sqlite3.Connection, state: SnapshotState, held: Followed, after: int, limit: int
) -> list[_Change]:
    """
    Return the next changes after a number.

    Raises:
        _OtherFeed: the feed is another one than that of *held*, or no longer goes back that far.
    """
    rows: list[_Change] = source.execute(FEED, (after, limit)).fetchall()
    is_other = state.epoch != held.epoch or state.edition < after
    if is_other or (state.edition > after and (not rows or rows[0][0] != after + 1)):
        raise _OtherFeed("the change feed does not continue the tables")
    return rows


def _insert(own: sqlite3.Connection, form: Form, kind: str, documents: list[_Unwritten]) -> None:
    """Insert the rows of documents."""
    tables = form.of_kind[kind]
    rows: list[list[Row]] = [[] for _ in tables]
    for key, body, first_change in documents:
        if body is not None:
            for of_table, found in zip(rows, form.rows(kind, key, body, first_change), strict=True):
                of_table.extend(found)
    for table, of_table in zip(tables, rows, strict=True):
        if of_table:
            own.executemany(table.insert, of_table)
