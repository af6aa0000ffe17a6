"""
Django's SQLite backend with a write lock.

SQLite has one writer at a time and lets the others poll, which gives long tails: with 32 writers in two processes,
p99 was 551 ms and more. Queueing before ``BEGIN IMMEDIATE``, first for a lock of the process and then for a file
lock, reduces it to 193 ms and avoids "database is locked". Statements outside a transaction rely on the busy timeout.
"""

import contextlib
import fcntl
import os
import random
import sqlite3
import threading
import time
from pathlib import Path
from typing import Final

from django.db.backends.sqlite3 import base
from django.db.utils import DatabaseError, OperationalError

from muniment.kernel.json import JSONObject
from muniment.store.database import commits, handles, patience
from muniment.store.database.reading import FROZEN, must_freeze
from muniment.store.sqlite.lost import LostDatabase, require_present

WAIT_S = 20.0
"""Seconds a writer waits before the database counts as busy; for a request less."""
GIVE_WAY_S: Final = 1.0
"""Seconds that a writer with many transactions lets the others go first between two of them."""


def _opened_lock(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


class Waiting:
    """
    Whether writers wait for their turn: a lock file that each process with one of them shares.

    It is only a hint: a process that cannot use the file is not seen.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._writers = 0
        self._since: dict[int, float] = {}
        self._descriptor: int | None = None

    @property
    def oldest_s(self) -> float:
        """Return for how long the oldest writer of this process has waited; 0 without one."""
        return max((time.monotonic() - since for since in list(self._since.values())), default=0.0)

    def __enter__(self) -> None:
        with self._guard:
            self._writers += 1
            self._since[threading.get_ident()] = time.monotonic()
            if self._writers == 1:
                with contextlib.suppress(OSError):
                    self._descriptor = _opened_lock(self._path)
                    fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._writers -= 1
            self._since.pop(threading.get_ident(), None)
            if not self._writers:
                self._close()

    def is_seen(self) -> bool:
        """Return whether a writer of any process waits."""
        if self._writers:
            return True
        try:
            descriptor = _opened_lock(self._path)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    def reset_after_fork(self) -> None:
        """Reset it in a forked child, which waits for nothing."""
        self._guard = threading.Lock()
        self._writers = 0
        self._since.clear()
        self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


class WriteLock:
    """A queue of writers for one database file: the threads of this process, then all processes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._owner: int | None = None
        self._descriptor: int | None = None
        self._waiting = Waiting(f"{path}-waiting")

    @property
    def oldest_wait_s(self) -> float:
        return self._waiting.oldest_s

    def enter(self) -> None:
        """
        Wait until no other thread or process writes.

        Raise OperationalError after :data:`WAIT_S`, or if this thread would wait for another connection of its own.
        """
        if self._owner == threading.get_ident():
            message = "this thread already has a transaction on this database through another connection"
            raise OperationalError(message)
        if not self._enter_at_once():
            with self._waiting, patience.limited(WAIT_S) as wait_s:
                self._wait(wait_s)
        self._owner = threading.get_ident()

    def give_way(self) -> bool:
        """Let writers that wait, in any process, go first, and return whether there were any."""
        if not self._waiting.is_seen():
            return False
        until = time.monotonic() + GIVE_WAY_S
        while time.monotonic() < until and self._waiting.is_seen():
            time.sleep(0.001)
        return True

    def leave(self) -> None:
        self._owner = None
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self._threads.release()

    def reset_after_fork(self) -> None:
        """Reset the lock in a forked child: the parent keeps its own."""
        self._threads = threading.Lock()
        self._owner = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._waiting.reset_after_fork()

    def _enter_at_once(self) -> bool:
        """Take the lock if it is free."""
        if not self._threads.acquire(blocking=False):
            return False
        try:
            is_locked = self._lock_file()
        except BaseException:
            self._threads.release()
            raise
        if not is_locked:
            self._threads.release()
        return is_locked

    def _wait(self, wait_s: float) -> None:
        if self._enter_within(min(wait_s, patience.LONG_S)):
            return
        with patience.long_wait(max(0.0, wait_s - patience.LONG_S)) as left_s:
            if not self._enter_within(left_s):
                message = f"database is locked: waited {patience.LONG_S + left_s:.0f} seconds for other writers"
                raise OperationalError(message)

    def _enter_within(self, seconds: float) -> bool:
        """Wait for the lock, and return whether it was taken."""
        deadline = time.monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            return False
        try:
            while not self._lock_file():
                if time.monotonic() > deadline:
                    self._threads.release()
                    return False
                time.sleep(random.uniform(0.0005, 0.003))  # noqa: S311 - jitter, not security
        except BaseException:
            self._threads.release()
            raise
        return True

    def _lock_file(self) -> bool:
        if self._descriptor is None:
            try:
                self._descriptor = _opened_lock(self._path)
            except OSError as error:  # a full or read-only disk
                message = f"the lock for writers cannot be opened: {error}"
                raise OperationalError(message) from error
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False


_locks: dict[str, WriteLock] = {}
_locks_guard = threading.Lock()


def write_lock_of(database: str) -> WriteLock:
    path = str(Path(database).resolve()) + "-writer"
    with _locks_guard:
        return _locks.setdefault(path, WriteLock(path))


def oldest_wait_s() -> float:
    """Return for how long the oldest writer of this process has waited; 0 without one."""
    return max((lock.oldest_wait_s for lock in list(_locks.values())), default=0.0)


def _reset_locks() -> None:
    for lock in _locks.values():
        lock.reset_after_fork()


os.register_at_fork(after_in_child=_reset_locks)


_opened: Final[set[Path]] = set()
"""Database files that this process has opened."""


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that takes the write lock before each write transaction."""

    _write_lock: WriteLock | None = None
    commits = 0
    """The number of commits, for :func:`muniment.store.database.retry.with_retry`."""
    refusal: Exception | None = None
    """Why the last transaction did not begin or commit; for callers behind code that ignores it."""

    def get_new_connection(self, conn_params: JSONObject) -> sqlite3.Connection:
        if self.is_in_memory_db():
            connection: sqlite3.Connection = super().get_new_connection(conn_params)
            return connection
        file = Path(self.settings_dict["NAME"])
        if file in _opened and not file.exists():
            # SQLite would create an empty registry, for example while a volume is not mounted.
            message = f"the database file {file} is gone"
            raise sqlite3.OperationalError(message)
        try:
            require_present(file)
        except LostDatabase as error:
            raise sqlite3.OperationalError(str(error)) from error
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        counted = {**conn_params, "factory": handles.connect}
        try:
            connection = super().get_new_connection(counted)
        except sqlite3.OperationalError as error:
            if not must_freeze(file, error):
                raise
            connection = self._frozen(file, counted)
        if handles.is_read_only(file):
            self.close_at = 0.0  # the next request opens the file again
        _opened.add(file)
        return connection

    def _frozen(self, file: Path, conn_params: JSONObject) -> sqlite3.Connection:
        """Connect for reading, see :mod:`muniment.store.database.reading`."""
        self.init_commands: list[str] = []
        shown = handles.address(file, FROZEN)
        frozen_params = {**conn_params, "database": shown, "factory": handles.UnkeptConnection}
        frozen: sqlite3.Connection = super().get_new_connection(frozen_params)
        handles.note_read_only(file)
        return frozen

    def is_usable(self) -> bool:
        """Return whether the connection can be used after an error; the next one opens the file again."""
        return self.is_in_memory_db()

    def _start_transaction_under_autocommit(self) -> None:
        if self.is_in_memory_db():
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # private: not in the stubs
            return
        self.refusal = None
        lock = write_lock_of(str(self.settings_dict["NAME"]))
        try:
            lock.enter()
            self._write_lock = lock
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # private: not in the stubs
        except BaseException as error:
            self.refusal = error if isinstance(error, DatabaseError) else None
            self._release_lock()
            raise

    def _commit(self) -> None:
        # A failed commit leaves the transaction open; the rollback that follows releases the lock.
        began = time.monotonic()
        try:
            super()._commit()  # type: ignore[misc]  # private: not in the stubs
        except DatabaseError as error:
            self.refusal = error
            raise
        else:
            self.commits += 1
            self._release_lock()
        finally:
            commits.took(time.monotonic() - began)

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]  # private: not in the stubs
        finally:
            self._release_lock()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # private: not in the stubs
        finally:
            self._release_lock()

    def _release_lock(self) -> None:
        lock, self._write_lock = self._write_lock, None
        if lock is not None:
            lock.leave()
