"""
Replication: copy the change feed on PostgreSQL into a node's published file, and rebuild it after a gap.

Several processes of a node may replicate into one file; each takes the file's write lock and reads its edition again
before it applies changes. While PostgreSQL is down, the node keeps serving its current file.

The file joins the feed only where both have the same chain. After a failover or a restore, the feed may have another
history under the same numbers: the file is then rebuilt in one transaction, and its former content served meanwhile.
One node renews the identity of the feed, so that clients who have read the lost history are told.
"""

import contextlib
import logging
import secrets
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import psycopg

from muniment.store import postgres_feed, public_log, published
from muniment.store.database import erasure, handles, node_copy, patience
from muniment.store.database.faults import damage_seen, damages_read, notice
from muniment.store.postgres_feed import Connection, JoinedHead
from muniment.store.postgresql.connection import EndingConnection
from muniment.store.public_log import Link
from muniment.store.published import DocumentWriter
from muniment.store.published_document import PublishedEntry
from muniment.store.verifying.published_rows import stored_document

log = logging.getLogger(__name__)

MANY_CHANGES: Final = 20_000
"""Beyond this, rebuilding the file is faster than applying the changes."""
LONGEST_PAUSE_S: Final = 0.5
"""Between two attempts after a failure: nodes are level again soon after the database is back."""
GIVE_UP_S: Final = 5.0
"""Seconds without an answer after which a poll is given up: behind a lost network, a new connection answers sooner."""
GIVE_UP_BUILDING_S: Final = 60.0
"""The same while the file is built: the first row of a large table may take long."""
RENEW_S: Final = 2.0
CATCH_UP_S: Final = 1.0
"""Seconds that a request waits for the newest edition; the follower has it a moment later."""
UNMIGRATED_PAUSE_S: Final = 0.5
"""Pause between checks of a database without tables."""


class ReplicaStatus(NamedTuple):
    """The state of a replica."""

    edition: int
    newest: int | None
    """The latest edition of the feed; None while PostgreSQL does not answer: it refuses, or is silent."""
    behind_s: float
    """Seconds since the file was known to be current."""
    is_building: bool
    answers_s: float = 0.0
    """Seconds for which PostgreSQL has answered without an interruption; 0 while it does not."""


class _Held(NamedTuple):
    """The state of the file: its edition, the epoch of its source, and its latest link of the chain."""

    edition: int
    epoch: str
    link: Link | None

    def is_at(self, there: JoinedHead) -> bool:
        chain = None if self.link is None else self.link.chain
        return (self.edition, self.epoch, chain) == (there.edition, there.epoch, there.chain)


class _Join(Enum):
    """The relation of a file and a feed."""

    SAME = "the feed continues the file"
    DIVERGED = "the feed has another history under the same numbers"
    UNKNOWN = "another feed or schema, or a feed that does not reach back to the file"


class Gap(Exception):  # noqa: N818 - a state, not an error
    """The feed cannot continue the file: another epoch, deleted changes, or a missing number."""


class Replica:
    """
    Copies the feed of *database_url* into the published file at *path*, every *poll_s* seconds.

    Args:
        on_moved: called by the thread of this copy when the file has changed.
    """

    def __init__(
        self,
        database_url: str,
        path: Path,
        *,
        poll_s: float = 0.2,
        on_moved: Callable[[], object] = lambda: None,
    ) -> None:
        self._database_url = database_url
        self._path = path
        self._poll_s = poll_s
        self._on_moved = on_moved
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._source: EndingConnection | None = None
        self._lost: _Held | None = None
        """The state of the file in a history that the database no longer has, until the feed is renewed."""
        self._renew_at = 0.0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = node_copy.open_copy(path)
        self._is_released = False
        self._identity = node_copy.identity(path)
        self.rebuilds = Counter({"damaged": 0, "diverged": 0, "gap": 0})
        """The number of rebuilds by reason: a damaged file, a different history, a feed that does not reach back."""
        self._status = ReplicaStatus(self._head().edition, None, 0.0, is_building=False)
        self._level_at = time.monotonic()
        """The time at which the file was last known to match the feed."""
        self._connecting_since: float | None = None
        self._answers_since: float | None = None
        """When PostgreSQL began to answer; None while it does not."""
        self._is_away = False
        """Whether the last attempt failed because PostgreSQL did not answer."""

    @property
    def status(self) -> ReplicaStatus:
        """Return the replica's state without waiting for its writer."""
        seen = self._status
        now = time.monotonic()
        late_s = now - self._level_at
        # Between two polls the file counts as current.
        if seen.newest == seen.edition and late_s <= 1 + 2 * self._poll_s:
            late_s = 0.0
        since = self._answers_since
        if since is None or self._is_silent(now):
            return seen._replace(newest=None, behind_s=late_s)
        return seen._replace(behind_s=late_s, answers_s=now - since)

    @property
    def is_away(self) -> bool:
        """Return whether PostgreSQL does not answer: it refused the last time, or is silent."""
        return self._is_away or self._is_silent(time.monotonic())

    def _is_silent(self, now: float) -> bool:
        """Return whether PostgreSQL has been asked, and has said nothing for longer than an answer may take."""
        source = self._source
        waits_since = None if source is None else source.waits_since
        if waits_since is None:
            waits_since = self._connecting_since
        longest_s = GIVE_UP_BUILDING_S if self._status.is_building else patience.SILENT_S
        return waits_since is not None and now - waits_since > longest_s

    @property
    def edition(self) -> int:
        with self._lock:
            self._open_released()
            return self._head().edition

    def catch_up(self) -> bool:
        """Bring the file to the feed's current edition and return whether it changed."""
        with self._lock:
            try:
                self._open_released()
                return self._catch_up()
            finally:
                self._release_read_only()

    def _catch_up(self) -> bool:
        try:
            moved = self._follow(self._connected())
        except psycopg.Error as error:
            self._disconnect()
            self._status = self._status._replace(newest=None)
            self._answers_since = None
            self._is_away = isinstance(error, psycopg.OperationalError)
            raise
        except sqlite3.Error as error:
            notice(error)
            raise
        finally:
            self._status = self._status._replace(is_building=False)
        self._renew_feed()
        edition = self._head().edition
        self._status = self._status._replace(edition=edition)
        if edition == self._status.newest:
            self._level_at = time.monotonic()
        return moved

    def catch_up_if_possible(self) -> None:
        """
        Bring the file to the newest edition for a request, which waits neither long nor for a silent database.

        The follower does it otherwise, a moment later.
        """
        if self.is_away or not self._lock.acquire(timeout=CATCH_UP_S):
            return
        try:
            self._open_released()
            with patience.within(CATCH_UP_S):
                self._catch_up()
        except (psycopg.Error, sqlite3.Error) as error:
            log.warning("cannot replicate yet: %s", error)
        finally:
            self._release_read_only()
            self._lock.release()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._disconnect()
            self._file.close()

    def _run(self) -> None:
        trouble_s = 0.0
        is_interrupted = False
        while not self._stop.wait(max(trouble_s, self._poll_s)):
            try:
                if self.catch_up():
                    self._on_moved()
            except psycopg.errors.UndefinedTable:
                trouble_s = UNMIGRATED_PAUSE_S
            except (psycopg.Error, sqlite3.Error) as error:
                if not is_interrupted:
                    log.warning("cannot replicate; serving the last known state: %s", error)
                is_interrupted = True
                trouble_s = min(max(trouble_s, self._poll_s) * 2, LONGEST_PAUSE_S)
            except Exception:
                log.exception("replication failed; serving the last known state")
                is_interrupted = True
                trouble_s = LONGEST_PAUSE_S
            else:
                if is_interrupted:
                    log.warning("replication resumed")
                trouble_s, is_interrupted = 0.0, False

    def _connected(self) -> EndingConnection:
        if self._source is None or self._source.closed:
            self._connecting_since = time.monotonic()
            try:
                # Without prepared statements: a pooler may run the next transaction on another connection.
                source = EndingConnection.opened(self._database_url, autocommit=True, prepare_threshold=None)
            finally:
                self._connecting_since = None
            source.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            source.read_only = True
            self._source = source
        return self._source

    def _disconnect(self) -> None:
        if self._source is not None:
            with contextlib.suppress(psycopg.Error):
                self._source.close()
            self._source = None

    def _head(self) -> _Held:
        edition, epoch, _ = published.head(self._file)
        return _Held(edition, _source_epoch(epoch), public_log.latest_link(self._file))

    def _release_read_only(self) -> None:
        """Close a file that could not be written when it was opened: see :mod:`muniment.store.database.handles`."""
        if handles.is_read_only(self._path):
            self._file.close()
            self._is_released = True

    def _open_released(self) -> None:
        if self._is_released:
            self._file = node_copy.open_copy(self._path)
            self._is_released = False

    def _hear(self, newest: int) -> None:
        """Note that PostgreSQL answers."""
        self._is_away = False
        if self._answers_since is None:
            self._answers_since = time.monotonic()
        self._status = self._status._replace(newest=newest)

    def _open_again(self, source: EndingConnection) -> None:
        """Open the file that has taken the place of ours; replace ours first if it is damaged or gone."""
        self._status = self._status._replace(is_building=True)
        source.limit_s = GIVE_UP_BUILDING_S
        log.warning("the published file is damaged, gone or replaced; opening it again")
        if node_copy.replace(self._path, self._identity, lambda file: self._fill_new(file, source)):
            self.rebuilds["damaged"] += 1
        self._file.close()
        self._file = node_copy.open_copy(self._path)
        self._identity = node_copy.identity(self._path)
        damage_seen.clear()

    @staticmethod
    def _fill_new(file: sqlite3.Connection, source: Connection) -> None:
        with source.transaction():
            there = postgres_feed.joined_head(source)
            file.execute("BEGIN IMMEDIATE")
            _fill(file, source, there)
            file.execute("COMMIT")

    def _follow(self, source: EndingConnection) -> bool:
        source.limit_s = GIVE_UP_S
        if damage_seen.is_set() or node_copy.identity(self._path) != self._identity:
            self._open_again(source)
        there = postgres_feed.joined_head(source)
        self._hear(there.edition)
        damaged = damages_read.take_documents()
        if self._head().is_at(there) and not damaged:
            return False
        self._file.execute("BEGIN IMMEDIATE")
        erased = erasure.latest(self._file)
        try:
            with source.transaction():
                there = postgres_feed.joined_head(source)
                moved = self._apply(source, there)
                if damaged:
                    self._mend(source, damaged)
            self._status = self._status._replace(newest=there.edition)
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")
        if erasure.latest(self._file) > erased:
            erasure.compact(self._file)
        return moved

    def _mend(self, source: Connection, names: list[tuple[str, str]]) -> None:
        """Write documents again in which a read found damage, from the feed's open snapshot."""
        documents = []
        for kind, key in names:
            try:
                document = stored_document(source, kind, key)
            except msgspec.DecodeError:
                # Raised, it would roll back the changes of this turn, and of each one while the document is read.
                log.error("cannot mend %s %s: it is damaged in the database, too; run muniment scrub", kind, key)  # noqa: TRY400 - the reason is said
                continue
            if document is not None:  # otherwise it was unlisted meanwhile
                documents.append(document)
        if not documents:
            return
        try:
            writing = DocumentWriter(self._file)
            writing.write([(each.kind, each.key, each) for each in documents])
            writing.finish(self._head().edition)
        except Exception:
            damage_seen.set()  # other parts of these rows are damaged, too: the next turn builds the whole file again
            raise
        log.warning("mended: %s", ", ".join(f"{each.kind} {each.key}" for each in documents))

    def _apply(self, source: EndingConnection, there: JoinedHead) -> bool:
        here = self._head()
        if here.is_at(there):
            return False  # another process of this node was faster
        join = _join(source, here, there) if published.is_current(self._file) else _Join.UNKNOWN
        if not (join is _Join.SAME and self._apply_missed(source, here, there)):
            self._rebuild(source, there, here, is_diverged=join is _Join.DIVERGED)
        if join is _Join.DIVERGED:
            self._lost = here
        return True

    def _rebuild(self, source: EndingConnection, there: JoinedHead, here: _Held, *, is_diverged: bool) -> None:
        self._status = self._status._replace(is_building=True)
        source.limit_s = GIVE_UP_BUILDING_S
        message = "rebuilding the published file: it is at %s, the feed is at %s"
        if is_diverged:
            message = "the database has another history than this node, for example after a failover; " + message
        log.warning(message, here.edition, there.edition)
        _fill(self._file, source, there)
        if here.epoch != published.UNBUILT:
            self.rebuilds["diverged" if is_diverged else "gap"] += 1

    def _renew_feed(self) -> None:
        """
        Renew the identity of the feed, which clients compare, if it does not have the history that was served here.

        Of several nodes, the first one does it: the others find another identity.
        """
        if self._lost is None or time.monotonic() < self._renew_at:
            return
        self._renew_at = time.monotonic() + RENEW_S
        try:
            with EndingConnection.opened(self._database_url, prepare_threshold=None) as primary:
                primary.limit_s = GIVE_UP_S
                primary.execute("SET LOCAL lock_timeout = '2s'")
                postgres_feed.lock(primary)
                there = postgres_feed.joined_head(primary)
                is_lost = there.epoch == self._lost.epoch and _join(primary, self._lost, there) is _Join.DIVERGED
                if is_lost:
                    postgres_feed.renew_epoch(primary)
        except psycopg.Error as error:  # a standby, a publication that takes long
            log.warning("cannot renew the identity of the change feed yet: %s", error)
            return
        self._lost = None
        if is_lost:
            log.warning("the change feed has a new feedId, because a history that clients may have read is gone")

    def _apply_missed(self, source: Connection, here: _Held, there: JoinedHead) -> bool:
        """Apply the missed changes if the feed still has all of them."""
        target = there.edition
        edition, oldest = here.edition, postgres_feed.oldest(source)
        has_all_missed = edition >= target or (oldest is not None and oldest <= edition + 1)
        if target - edition > MANY_CHANGES or not has_all_missed:
            return False
        missed = _dense(postgres_feed.changes(source, edition), edition)
        self._file.execute("SAVEPOINT changes")
        try:
            erased = erasure.latest(self._file)
            published.apply(self._file, missed, is_copy=True)
            whole = self._head().edition == target
            if whole and erasure.latest(self._file) > erased:
                erasure.redact(self._file, postgres_feed.erased(source))
            public_log.copy_links(
                self._file, public_log.links(source, after=-1 if here.link is None else here.link.sequence)
            )
            published.put_stamp(self._file, *published.last_stamp(source))
            if here.epoch != there.epoch:
                published.set_epoch(self._file, _copy_epoch(there.epoch))
        except Gap:
            whole = False
        if not whole:
            self._file.execute("ROLLBACK TO changes")
        self._file.execute("RELEASE changes")
        return whole


def _fill(file: sqlite3.Connection, source: Connection, there: JoinedHead) -> None:
    """Fill *file* from the source, in the caller's transactions."""
    published.clear(file, epoch=_copy_epoch(there.epoch), edition=there.edition)
    published.load(file, postgres_feed.documents(source), at=there.at)
    for entry in postgres_feed.changes(source, 0):
        published.record(file, entry)
    public_log.copy_links(file, public_log.links(source))
    published.put_stamp(file, *published.last_stamp(source))


def _join(source: Connection, here: _Held, there: JoinedHead) -> _Join:
    """Compare the history of a file with that of the feed, in the feed's open snapshot."""
    if here.epoch != there.epoch:
        return _Join.SAME if _is_renamed(source, here, there) else _Join.UNKNOWN
    if here.link is None:  # nothing was chained when the file was filled
        return _Join.UNKNOWN if there.chain is not None else _Join.SAME
    if here.edition > there.edition:
        return _Join.DIVERGED
    oldest = public_log.oldest_link(source)
    if oldest is None or here.link.sequence < oldest.sequence:
        return _Join.UNKNOWN
    has_same_past = public_log.chain_at(source, here.link.sequence) == here.link.chain
    return _Join.SAME if has_same_past else _Join.DIVERGED


def _is_renamed(source: Connection, here: _Held, there: JoinedHead) -> bool:
    """Return whether a feed of another identity has everything that the file has."""
    oldest, link = public_log.oldest_link(source), here.link
    if oldest is None or link is None or not oldest.sequence <= link.sequence == here.edition <= there.edition:
        return False
    is_same_schema = here.epoch.partition(":")[0] == there.epoch.partition(":")[0]
    return is_same_schema and public_log.chain_at(source, link.sequence) == link.chain


def _copy_epoch(epoch: str) -> str:
    """Return an epoch for a copy of the feed *epoch*, of its own, so that readers keep nothing of a former one."""
    return f"{secrets.token_hex(4)}:{epoch}"


def _source_epoch(epoch: str) -> str:
    """Return the epoch of the source of a file, without the part that each rebuild adds: ``f00d:4:cafe`` is 4:cafe."""
    return epoch.partition(":")[2] if epoch.count(":") > 1 else epoch


def _dense(entries: Iterator[PublishedEntry], after: int) -> Iterator[PublishedEntry]:
    """Yield *entries*, and raise :class:`Gap` at the first number that is not consecutive."""
    for entry in entries:
        if entry.sequence != after + 1:
            raise Gap
        after = entry.sequence
        yield entry
