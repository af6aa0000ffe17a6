"""
Django's PostgreSQL backend, without a state of the session, and with a memory for what is away.

A pooler that gives connections by transaction keeps neither cursors nor prepared statements between two of them.
Django prepares nothing by itself; here no cursor of the server is used outside a transaction either.
"""

import threading
import time
from typing import Any, Final

from django.db.backends.postgresql import base
from django.db.utils import OperationalError

from muniment.store.database.retry import is_taken_back

AWAY_S: Final = 1.0
"""For how long nobody knocks again at a server that did not open: a queue of those who wait would hold every thread."""


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that counts what it was asked to commit, for :func:`muniment.store.database.retry.attempted`."""

    _lock = threading.Lock()
    _away: "dict[str, tuple[float, str]]" = {}  # noqa: RUF012 - shared by the connections of all threads

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commits = 0

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """
        Connect, unless somebody has found the server away just now.

        Raises:
            OperationalError: it is away.
        """
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
        """Give a cursor of the server inside a transaction, and an ordinary one outside."""
        return super().chunked_cursor() if self.in_atomic_block else self.cursor()

    def _commit(self) -> None:
        self.commits += 1  # before it is tried: who loses the connection meanwhile cannot know
        try:
            super()._commit()  # type: ignore[misc]  # private: not in the stubs
        except Exception as error:
            if is_taken_back(error):
                self.commits -= 1
            raise
