"""
Django's PostgreSQL backend without session state, for poolers; fails fast while the server is down.

A pooler in transaction mode keeps neither cursors nor prepared statements between two transactions. Django prepares
no statements by default; this backend uses no server-side cursor outside a transaction.
"""

import threading
import time
from typing import Any, Final

from django.db.backends.postgresql import base
from django.db.utils import OperationalError

from muniment.kernel.json import JSONObject
from muniment.store.database.retry import is_rolled_back

AWAY_S: Final = 1.0
"""Seconds without another attempt after a failed connection: waiting for each would block every thread."""


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that counts its commits, for :func:`muniment.store.database.retry.with_retry`."""

    _lock = threading.Lock()
    _away: "dict[str, tuple[float, str]]" = {}  # noqa: RUF012 - shared by the connections of all threads

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commits = 0

    def get_new_connection(self, conn_params: JSONObject) -> Any:
        """Connect; raise OperationalError if the server is unavailable, or a connection to it has just failed."""
        key = repr(sorted((name, str(value)) for name, value in conn_params.items() if name != "password"))
        with self._lock:
            until, reason = self._away.get(key, (0.0, ""))
        if time.monotonic() < until:
            raise OperationalError(reason)
        try:
            return super().get_new_connection(conn_params)
        except self.Database.OperationalError as error:
            with self._lock:
                self._away[key] = (time.monotonic() + AWAY_S, str(error))
            raise

    def chunked_cursor(self) -> Any:
        """Return a server-side cursor inside a transaction, and a client-side one outside."""
        return super().chunked_cursor() if self.in_atomic_block else self.cursor()

    def _commit(self) -> None:
        self.commits += 1  # counted first: if the connection is lost, the outcome is unknown
        try:
            super()._commit()  # type: ignore[misc]  # private: not in the stubs
        except Exception as error:
            if is_rolled_back(error):
                self.commits -= 1
            raise
