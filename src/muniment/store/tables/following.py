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
from typing import Final

import msgspec

from muniment.schema.objects import Schema
from muniment.store.cache import release_free_memory
from muniment.store.database import erasure
from muniment.store.database.faults import DamagedDocument, is_damage
from muniment.store.database.handles import open_counted
from muniment.store.database.reading import open_for_reading
from muniment.store.exports.exports import Stopped
from muniment.store.published_document import KINDS
from muniment.store.reader import PublishedFile
from muniment.store.tables.copying import (
    AT_ONCE,
    FOLLOWED,
    PAGE_BYTES,
    SOME,
    Followed,
    OtherFeed,
    Unwritten,
    changes_after,
    create,
    finish,
    followed,
    insert,
    read,
    row_of_change,
)
from muniment.store.tables.form import CHANGES, Form

log = logging.getLogger(__name__)

LOOK_S: Final = 0.2
"""Seconds between two looks for a new edition, which the reader has in memory."""
LONGEST_PAUSE_S: Final = 10.0
"""Maximum pause after failures, such as a full disk; pauses double."""
BREATH_S: Final = 0.01
"""Such a pause: tables that are made again take a fifth of a core instead of a whole one, beside the requests."""
_PEOPLE: Final = "SELECT slug FROM people WHERE slug > ? ORDER BY slug LIMIT ?"
_GONE: Final = (
    "SELECT value FROM json_each(?) WHERE NOT EXISTS"
    " (SELECT 1 FROM published_document WHERE kind = 'person' AND key = value)"
)


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
        self._counted: tuple[Followed, dict[str, int]] | None = None
        """The last count: it reads every page of the file, and is asked for by each visitor of the data page."""
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
            except (OSError, sqlite3.Error, DamagedDocument, OtherFeed) as error:
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
            with contextlib.suppress(OtherFeed):
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
            if self._counted is None or self._counted[0] != held:
                names = own.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
                counts = {name: own.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in names}
                self._counted = (held, counts)
            return self._counted

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
            create(own, form)
            self._copy_changes(own, began)
            for kind in KINDS:
                self._copy_documents(own, kind, form)
            self._catch_up(own, began, form)
            finish(own, form)
        # Former tables leave free pages, and rows that come one by one leave pages that are not full.
        erasure.compact(own)
        self.rebuilds += 1
        release_free_memory()

    def _copy_documents(self, own: sqlite3.Connection, kind: str, form: Form) -> None:
        """Copy the documents of a *kind*, by their key; what is published meanwhile is followed afterwards."""
        after = ""
        while True:
            with self._published.snapshot() as (source, _):
                keys = [key for (key,) in source.execute(SOME, (kind, after, AT_ONCE))]
                documents = read(source, kind, keys)
            if not keys:
                return
            after = keys[-1]
            insert(own, form, kind, documents)
            self._breathe()

    def _copy_changes(self, own: sqlite3.Connection, there: Followed) -> None:
        """Copy the feed as far as it goes back, up to the edition *there*, after which it is followed."""
        with self._published.snapshot() as (source, _):
            (oldest,) = source.execute("SELECT min(sequence) FROM published_change").fetchone()
        after = there.edition if oldest is None else oldest - 1
        while after < there.edition:
            with self._published.snapshot() as (source, state):
                rows = changes_after(source, state, there, after, AT_ONCE)
            own.executemany(CHANGES.insert, map(row_of_change, rows))
            after = rows[-1][0]
            self._breathe()

    def _catch_up(self, own: sqlite3.Connection, held: Followed, form: Form) -> Followed:
        """Apply the changes after *held* until the tables are level with the published documents."""
        after = held.edition
        while True:
            documents_of: list[tuple[str, list[Unwritten]]] = []
            with self._published.snapshot() as (source, state):
                now = held._replace(edition=state.edition, erased=erasure.latest(source))
                rows = changes_after(source, state, held, after, AT_ONCE)
                for kind in KINDS:
                    keys = dict.fromkeys([key for _, of, key, *_ in rows if of == kind])
                    documents_of.append((kind, read(source, kind, [*keys])))
            own.executemany(CHANGES.insert, map(row_of_change, rows))
            for changed_kind, documents in documents_of:
                for table in form.of_kind[changed_kind]:
                    own.executemany(table.delete, [(each.key,) for each in documents])
                insert(own, form, changed_kind, documents)
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
        own.execute(f"PRAGMA page_size={PAGE_BYTES}")  # of a new file
        own.execute("PRAGMA journal_mode=WAL")
        own.execute("PRAGMA secure_delete=ON")
        # A crash loses nothing that the published documents do not have.
        own.execute("PRAGMA synchronous=NORMAL")
        own.execute(FOLLOWED)
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
