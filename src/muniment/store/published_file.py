"""Open the published file read-only: a connection per thread, snapshots, and the current edition."""

import sqlite3
import threading
from pathlib import Path
from typing import Final
from urllib.parse import quote

from muniment.store.cache import ResponseCache
from muniment.store.published import UNBUILT
from muniment.store.snapshot_state import SnapshotState, load, touched

PAGE_CACHE_KIB: Final = 2_000
TICKER_PAGE_CACHE_KIB: Final = 12_000
"""For the thread that serves details: it caches the upper pages of large trees; each miss costs a system call."""


class PublishedFile:
    """The published file at *path*, with its tables (:func:`muniment.store.published.create`), read by any thread."""

    def __init__(self, path: Path, *, cache_bytes: int) -> None:
        self.path = path
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        self.answers = ResponseCache(cache_bytes)
        self._probe = self._open()
        self._data_version = -1
        self._generation = 0
        self._ticker = -1
        self._ticker_connection = self._probe
        self._held = -1
        with self._lock:
            self._state = load(self._probe, None)
            self.answers.move(self._state.version, None)
        self.refresh()

    @property
    def edition(self) -> int:
        return self._state.edition

    @property
    def version(self) -> int:
        """Return a number for caches, which no other state of the file has in this process."""
        return self._state.version

    @property
    def is_built(self) -> bool:
        """Return whether the file is filled; a new replica is not."""
        return self._state.epoch != UNBUILT

    @property
    def updated_at(self) -> str:
        return self._state.at

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def refresh(self) -> bool:
        """
        Load what was published since the last refresh, and drop what it changed from the caches.

        Costs one cheap query when nothing changed. Called on a timer, and after this process publishes.
        """
        with self._lock:
            (version,) = self._probe.execute("PRAGMA data_version").fetchone()
            if version == self._data_version:
                return False
            self._probe.execute("BEGIN")
            try:
                moved = self._advance(self._probe)
            finally:
                self._probe.execute("COMMIT")
            self._data_version = version
            return moved

    def tick(self) -> bool:
        """
        Refresh on behalf of the one thread that calls this several times per second.

        On that thread, document look-ups share a snapshot, which saves the locks of a read transaction; each tick
        releases the snapshot, so that the write-ahead log can be reset.
        """
        if self._held >= 0:
            self._held = -1
            self._connection().execute("COMMIT")
        if self._ticker != threading.get_ident():
            self._ticker = threading.get_ident()
            self._ticker_connection = self._connection()
            self._ticker_connection.execute(f"PRAGMA cache_size=-{TICKER_PAGE_CACHE_KIB}")
        return self.refresh()

    def connection_for_details(self) -> sqlite3.Connection:
        """Return the thread's connection; the ticking thread's is in a snapshot of the current generation."""
        if threading.get_ident() != self._ticker:
            return self._connection()
        connection = self._ticker_connection
        # The generation is advanced before the edition, so a snapshot of it is at least as new as the edition.
        generation = self._generation
        if self._held != generation:
            if self._held >= 0:
                connection.execute("COMMIT")
            connection.execute("BEGIN")
            self._held = generation
        return connection

    def snapshot(self) -> "Snapshot":
        connection = self._connection()
        if self._held >= 0 and threading.get_ident() == self._ticker:
            self._held = -1
            connection.execute("COMMIT")
        return Snapshot(self, connection)

    def _connection(self) -> sqlite3.Connection:
        try:
            return self._local.connection  # type: ignore[no-any-return]  # a thread's own values are Any
        except AttributeError:
            connection = self._local.connection = self._open()
            return connection

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=ro", uri=True, isolation_level=None, check_same_thread=False, timeout=20
        )
        connection.execute("PRAGMA query_only=ON")
        connection.execute(f"PRAGMA cache_size=-{PAGE_CACHE_KIB}")
        self._connections.append(connection)
        return connection

    def _current(self, connection: sqlite3.Connection) -> SnapshotState:
        """Return the state of the snapshot that *connection* reads; advance to it if it is newer."""
        state = self._state
        row = connection.execute("SELECT edition, epoch FROM published_meta").fetchone()
        if row == (state.edition, state.epoch):
            return state
        with self._lock:
            if self._is_past(*row):
                # This snapshot started before another thread advanced to a later edition.
                return load(connection, self._state)
            self._advance(connection)
            return self._state

    def _is_past(self, edition: int, epoch: str) -> bool:
        """Return whether a snapshot is older than the current state. Requires the lock."""
        if epoch == self._state.epoch:
            return edition < self._state.edition
        found: tuple[int, str] = self._probe.execute("SELECT edition, epoch FROM published_meta").fetchone()
        return found == (self._state.edition, self._state.epoch)

    def _advance(self, connection: sqlite3.Connection) -> bool:
        """Advance to the edition of the open snapshot. Requires the lock."""
        former = self._state
        if connection.execute("SELECT edition, epoch FROM published_meta").fetchone() == (former.edition, former.epoch):
            return False
        state = load(connection, former)
        self._generation += 1
        self._state = state
        self.answers.move(state.version, touched(connection, former, state))
        return True


class Snapshot:
    """One read transaction and its state."""

    __slots__ = ("_connection", "_file")

    def __init__(self, file: PublishedFile, connection: sqlite3.Connection) -> None:
        self._file = file
        self._connection = connection

    def __enter__(self) -> tuple[sqlite3.Connection, SnapshotState]:
        self._connection.execute("BEGIN")
        try:
            return self._connection, self._file._current(self._connection)  # noqa: SLF001 - of this module
        except BaseException:
            self._connection.execute("COMMIT")
            raise

    def __exit__(self, *_: object) -> None:
        self._connection.execute("COMMIT")
