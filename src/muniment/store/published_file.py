"""Open the published file read-only: a connection per thread, snapshots, and the current edition."""

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from pathlib import Path
from typing import Final

from muniment.kernel.http.representations import is_ahead
from muniment.store.cache import ResponseCache
from muniment.store.database import handles
from muniment.store.database.faults import fault_of
from muniment.store.database.node_copy import identity
from muniment.store.database.reading import open_for_reading
from muniment.store.published import UNBUILT
from muniment.store.snapshot_state import SnapshotState, load, touched

PAGE_CACHE_KIB: Final = 2_000
LARGE_BYTES: Final = 500_000_000
PAGE_CACHE_OF_LARGE_KIB: Final = 8_000
"""The page cache of each thread that reads a file of this size, in which a search reads many places."""
TICKER_PAGE_CACHE_KIB: Final = 12_000
"""The page cache of the thread that serves details: the upper pages of large trees; a miss costs a system call."""
THAW_S: Final = 0.5
THAW_MOST_S: Final = 30.0
"""Maximum pause before a frozen file is tried again. Pauses double, because a try looks through all objects."""


class PublishedFile:
    """
    The published file at *path*, with its tables (:func:`muniment.store.published.create`), read by any thread.

    It is opened again when another file has taken its place, and when a full or read-only disk can be written again.

    Args:
        is_copy: whether the file may be replaced, as the copy of a node.
        since: from when this server composes its answers, as a stamp; empty if it does not matter.
    """

    def __init__(self, path: Path, *, cache_bytes: int, is_copy: bool = False, since: str = "") -> None:
        self.path = path
        self._since = since
        self._is_copy = is_copy
        self._identity = identity(path)
        self._serial = 0
        """Counts how often the file was opened; connections of an earlier one are replaced when they are used."""
        self._thaw_at, self._thaw_wait_s = 0.0, THAW_S
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: weakref.WeakSet[sqlite3.Connection] = weakref.WeakSet()
        self.answers = ResponseCache(cache_bytes)
        self._probe = self._open()
        self._data_version = -1
        self._generation = 0
        self._ticker = -1
        self._ticker_connection = self._probe
        self._held = -1
        with self._lock:
            self._state = load(self._probe, None, since=since)
            self._unstamped: SnapshotState | None = self._state
            """The state since which answers may lack a stamp that was still ahead."""
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
    def modified_at(self) -> str:
        """Return the stamp of the edition, as :mod:`muniment.kernel.http.representations`."""
        return self._state.modified_at

    @property
    def is_built(self) -> bool:
        """Return whether the file is filled; a new replica is not."""
        return self._state.epoch != UNBUILT

    @property
    def updated_at(self) -> str:
        return self._state.at

    def close(self) -> None:
        for connection in list(self._connections):
            connection.close()

    def refresh(self) -> bool:
        """
        Load what was published since the last refresh, and drop what it changed from the caches.

        Costs one cheap query when nothing changed. Called on a timer, and after this process publishes.
        """
        with self._lock:
            (version,) = self._probe.execute("PRAGMA data_version").fetchone()
            if version == self._data_version:
                self._show_stamp()
                return False
            self._probe.execute("BEGIN")
            try:
                moved = self._advance(self._probe)
            finally:
                self._probe.execute("COMMIT")
            self._data_version = version
            return moved

    def renew(self, since: str) -> None:
        """Show the same documents as another version, composed *since*: settings of the answers have changed."""
        with self._lock:
            self._since = max(self._since, since)
            self._probe.execute("BEGIN")
            try:
                self._state = self._unstamped = load(self._probe, self._state._replace(epoch=""), since=self._since)
            finally:
                self._probe.execute("COMMIT")
            self._generation += 1
            self._forget(self._state.version)

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
        if self._is_copy or handles.is_read_only(self.path):
            self._follow_file()
        return self.refresh()

    def _follow_file(self) -> None:
        """Open the file again if it was replaced, or once a disk that could not be written can be."""
        with contextlib.suppress(sqlite3.Error):
            if self._is_copy and identity(self.path) not in {None, self._identity}:
                with self._lock:
                    self._open_again()
            elif handles.is_read_only(self.path) and time.monotonic() >= self._thaw_at:
                self._thaw_at = time.monotonic() + self._thaw_wait_s
                if os.access(self.path, os.W_OK) and not fault_of(self.path.parent):
                    self._thaw_wait_s = min(2 * self._thaw_wait_s, THAW_MOST_S)
                    self._open_alone()
                if not handles.is_read_only(self.path):
                    self._thaw_wait_s = THAW_S

    def _open_alone(self) -> None:
        """Let go of every connection, and open the file again when the rest of the process has closed its own."""
        with self._lock:
            self._probe.close()
            self._ticker_connection.close()
            self._local = threading.local()  # nothing else refers to a connection that no thread uses
            with handles.alone(self.path):
                try:
                    self._open_again()
                    can_write = handles.can_write(self.path)
                except sqlite3.Error:
                    handles.note_read_only(self.path)  # so that the next tick tries again
                    raise
                if not can_write:
                    handles.note_read_only(self.path)

    def _open_again(self) -> None:
        found = identity(self.path)
        former, self._probe = self._probe, self._open()
        former.close()
        self._identity = found
        self._serial += 1
        self._generation += 1
        self._data_version = -1
        self._state = self._unstamped = load(self._probe, None, since=self._since)
        self._forget(self._state.edition)
        self._ticker_connection = self._connection()
        self._ticker_connection.execute(f"PRAGMA cache_size=-{TICKER_PAGE_CACHE_KIB}")

    def _forget(self, edition: int) -> None:
        """Drop everything that was read from the former file."""
        self.answers.move(edition, None)

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
        local = self._local
        try:
            if local.serial == self._serial:
                return local.connection  # type: ignore[no-any-return]  # a thread's own values are Any
        except AttributeError:
            local.former = None
        return self._connect_here()

    def _connect_here(self) -> sqlite3.Connection:
        """Open the connection of this thread. The former one may still be in a snapshot; the one before is not."""
        local, serial = self._local, self._serial
        if local.former is not None:
            local.former.close()
        local.former = getattr(local, "connection", None)
        connection: sqlite3.Connection = self._open()
        local.connection, local.serial = connection, serial
        return connection

    def _open(self) -> sqlite3.Connection:
        connection = open_for_reading(self.path, isolation_level=None, check_same_thread=False, timeout=20)
        connection.execute("PRAGMA query_only=ON")
        is_large = self.path.stat().st_size >= LARGE_BYTES
        connection.execute(f"PRAGMA cache_size=-{PAGE_CACHE_OF_LARGE_KIB if is_large else PAGE_CACHE_KIB}")
        self._connections.add(connection)
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
                return load(connection, self._state, since=self._since)
            self._advance(connection)
            return self._state

    def _show_stamp(self) -> None:
        """Drop answers that were made without a stamp because it was still ahead. Requires the lock."""
        if self._unstamped is not None and not is_ahead(self._state.modified_at):
            self.answers.move(self._state.version, touched(self._probe, self._unstamped, self._state))
            self._unstamped = None

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
        state = load(connection, former, since=self._since)
        self._generation += 1
        if self._unstamped is None and is_ahead(state.modified_at):
            self._unstamped = former
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
