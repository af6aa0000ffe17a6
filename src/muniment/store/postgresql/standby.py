"""
The wait of a commit for a synchronous standby: bounded, and never taken for success when it was cancelled.

PostgreSQL does not limit this wait, not even by ``statement_timeout``. When it is cancelled, PostgreSQL only warns and
then answers as after a success, although a failover may lose the change.

Source: PostgreSQL's manual, section 27.2.8, and SyncRepWaitForLSN in syncrep.c.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import psycopg

from muniment.kernel.json import JSONObject
from muniment.store.database import commits
from muniment.store.database.commits import StandbySilent, Unconfirmed

log = logging.getLogger(__name__)

EVERY_S: Final = 1.0
_CANCELLED: Final = "01000"
"""The SQLSTATE of the warning; its text depends on the server's language."""
_PROBE: Final = "SELECT pg_logical_emit_message(true, 'muniment.standby', '')"
_CANCEL: Final = (
    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = current_user"
    " AND datname = current_database() AND wait_event = 'SyncRep' AND query NOT LIKE '%%muniment.standby%%'"
    " AND state_change < clock_timestamp() - make_interval(secs => %s)"
)


class Standby:
    """
    Whether a standby confirms the changes of this process; one per database.

    Args:
        params: the parameters of a connection to the database.
        wait_s: how long a commit waits.
    """

    _all: ClassVar["dict[str, Standby]"] = {}
    _of_all = threading.Lock()

    def __init__(self, params: JSONObject, wait_s: float) -> None:
        self._params, self._wait_s = params, wait_s
        self._condition = threading.Condition()
        self._pending: dict[object, tuple[float, psycopg.Connection[Any] | None]] = {}
        self._watcher: threading.Thread | None = None
        self.is_silent = False
        self.unconfirmed = 0
        """Commits whose wait was cancelled."""

    @classmethod
    def of(cls, key: str, params: JSONObject, wait_s: float) -> "Standby":
        with cls._of_all:
            if key not in cls._all:
                cls._all[key] = cls(params, wait_s)
                commits.known.append(cls._all[key])
            return cls._all[key]

    @contextlib.contextmanager
    def watched(self, connection: "psycopg.Connection[Any] | None" = None) -> Iterator[None]:
        """
        Cancel the wait for the standby when it takes too long.

        Args:
            connection: sends nothing but a commit, so that the wait can be cancelled directly, even if a pooler has
                no connection left.
        """
        token = object()
        self._pending[token] = (time.monotonic(), connection)
        if self._watcher is None:
            self._start()
        try:
            yield
        finally:
            self._pending.pop(token, None)

    def fall_silent(self) -> Unconfirmed:
        """Refuse changes until a standby confirms again; return the error for the unconfirmed one."""
        self.unconfirmed += 1
        with self._condition:
            if not self.is_silent:
                self.is_silent = True
                log.error("no standby confirmed a change within the limit: changes are refused until one does")
                threading.Thread(target=self._await_standby, name="standby", daemon=True).start()
        return Unconfirmed("the wait for the standby was cancelled; the change is committed on the primary only")

    def check(self) -> None:
        """Raise StandbySilent if no standby confirms changes."""
        if self.is_silent:
            raise StandbySilent("no standby of the database confirms changes")

    @staticmethod
    def is_cancelled(warning: psycopg.errors.Diagnostic) -> bool:
        """Return whether a notice says that the wait for the standby was cancelled."""
        return warning.severity_nonlocalized == "WARNING" and warning.sqlstate == _CANCELLED

    def _start(self) -> None:
        with self._condition:
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="commit-waits", daemon=True)
                self._watcher.start()

    def _watch(self) -> None:
        """Look after waiting commits, and end when there are none."""
        while True:
            time.sleep(EVERY_S)
            with self._condition:
                pending = list(self._pending.values())
                if not pending:
                    self._watcher = None
                    return
            latest = time.monotonic() - self._wait_s
            for connection in [connection for began, connection in pending if began < latest]:
                with contextlib.suppress(psycopg.Error, OSError):
                    self._cancel(connection)

    def _cancel(self, connection: "psycopg.Connection[Any] | None") -> None:
        if connection is not None:
            connection.cancel_safe(timeout=EVERY_S)
            return
        # A single statement may take long for other reasons, so only those that wait for a standby are cancelled.
        with psycopg.connect(**self._params, autocommit=True) as other:
            other.execute(_CANCEL, (self._wait_s,))

    def _await_standby(self) -> None:
        """Commit an empty message, which waits until a standby confirms it."""
        while self.is_silent:
            try:
                with psycopg.connect(**self._params, autocommit=True) as connection:
                    heard: list[psycopg.errors.Diagnostic] = []
                    connection.add_notice_handler(heard.append)
                    connection.execute(_PROBE)
                    self.is_silent = any(map(self.is_cancelled, heard))
            except psycopg.Error as error:
                log.warning("the probe of the standby failed: %s", error)
                if isinstance(error, psycopg.errors.InsufficientPrivilege):
                    self.is_silent = False  # the next change is the probe
                time.sleep(EVERY_S)
        log.warning("a standby confirms changes again")
