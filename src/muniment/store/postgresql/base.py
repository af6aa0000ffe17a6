"""
Django's PostgreSQL backend without session state, for poolers; fails fast while the server is down.

A commit that no standby confirms raises an error, see :mod:`muniment.store.postgresql.standby`.

A pooler in transaction mode keeps neither cursors nor prepared statements between two transactions. Django prepares
no statements by default; this backend uses no server-side cursor outside a transaction.
"""

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, Final

import psycopg
from django.db.backends.postgresql import base
from django.db.utils import OperationalError

from muniment.kernel.json import JSONObject
from muniment.store.database import commits, patience
from muniment.store.database.retry import is_rolled_back
from muniment.store.postgresql.connection import SILENCE, EndingConnection
from muniment.store.postgresql.standby import Standby

STANDBY_WAIT_S: Final = 10.0
"""Seconds that a change waits for a synchronous standby, which Patroni replaces in 10, before it is unconfirmed."""
AWAY_S: Final = 1.0
"""Seconds without another attempt after a failed connection: waiting for each would block every thread."""


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that counts its commits, for :func:`muniment.store.database.retry.with_retry`."""

    Database: Any = SimpleNamespace(**{**vars(psycopg), "connect": EndingConnection.opened})
    """The driver, whose connections end their waits."""
    _lock = threading.Lock()
    _away: "dict[str, tuple[float, str]]" = {}  # noqa: RUF012 - shared by the connections of all threads
    """Why a server could not be used the last time, and until when no other attempt is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commits = 0
        self._key = ""
        self._standby: Standby | None = None
        self._is_unconfirmed = False
        self.execute_wrappers.append(self._confirmed)

    def get_new_connection(self, conn_params: JSONObject) -> Any:
        """Connect; raise OperationalError if the server is unavailable, or a connection to it has just failed."""
        key = repr(sorted((name, str(value)) for name, value in conn_params.items() if name != "password"))
        self._key = key
        with self._lock:
            until, reason = self._away.get(key, (0.0, ""))
            if time.monotonic() < until:
                raise OperationalError(reason)
            if reason:  # one thread tries a server that was away, and no other waits with it
                self._away[key] = (float("inf"), reason)
        try:
            connection = super().get_new_connection(conn_params)
        except BaseException as error:
            self._note_away(str(error))
            raise
        with self._lock:
            self._away.pop(key, None)
        connection.on_silence = lambda: self._note_away(SILENCE)
        plain = {name: value for name, value in conn_params.items() if name not in {"context", "cursor_factory"}}
        self._standby = Standby.of(key, plain, STANDBY_WAIT_S)
        connection.add_notice_handler(self._hear)
        return connection

    def _note_away(self, reason: str) -> None:
        with self._lock:
            self._away[self._key] = (time.monotonic() + AWAY_S, reason)

    def is_usable(self) -> bool:
        """Return whether the server answers on this connection; a silent one is waited for once, not by each thread."""
        with self._lock:
            is_away = self._key in self._away
        if is_away:
            return False
        with patience.within(patience.SILENT_S):
            return super().is_usable()

    def _hear(self, notice: Any) -> None:
        self._is_unconfirmed = self._is_unconfirmed or Standby.is_cancelled(notice)

    def chunked_cursor(self) -> Any:
        """Return a server-side cursor inside a transaction, and a client-side one outside."""
        return super().chunked_cursor() if self.in_atomic_block else self.cursor()

    def _commit(self) -> None:
        standby = self._standby
        if standby is not None and standby.is_silent and self._has_changed():
            standby.check()
        self.commits += 1  # counted first: if the connection is lost, the outcome is unknown
        self._is_unconfirmed = False
        began = time.monotonic()
        try:
            with standby.watched(self.connection) if standby is not None else nullcontext():
                super()._commit()  # type: ignore[misc]  # private: not in the stubs
        except Exception as error:
            if is_rolled_back(error):
                self.commits -= 1
            raise
        finally:
            commits.took(time.monotonic() - began)
        if self._is_unconfirmed and standby is not None:
            raise standby.fall_silent()

    def _has_changed(self) -> bool:
        """Return whether the transaction has written anything."""
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")
            return bool(cursor.fetchone()[0])

    def _confirmed(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001 - Django's signature
        """Execute a statement; outside a transaction it commits by itself."""
        if self.in_atomic_block or str(sql).lstrip()[:6].upper() == "SELECT":
            return execute(sql, params, many, context)
        standby = self._standby
        if standby is None:
            return execute(sql, params, many, context)
        standby.check()
        self._is_unconfirmed = False
        with standby.watched():
            result = execute(sql, params, many, context)
        if self._is_unconfirmed:
            raise standby.fall_silent()
        return result
