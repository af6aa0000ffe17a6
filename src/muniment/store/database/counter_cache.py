"""
Database cache for rate limits of sign-in, client registration and token creation, and for submitted forms.

Database tables, so that all processes and nodes share one count. Entries are evicted only by others of their kind, so
that a flood of one kind resets no limit of another.
"""

import base64
import pickle
from datetime import datetime
from typing import Any, Final

from django.core.cache import caches
from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.db import DatabaseCache
from django.db import connections, router, transaction

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.store.database.faults import disk_fault

MAX_ENTRIES: Final = 20_000
"""Above this number, expired entries are deleted. It is small enough to count them at each addition."""
MAX_OF_A_KIND: Final = 20_000
"""Above this number, live entries of the kind are evicted too. An attacker who guesses cannot fill it."""
_PARTS_OF_A_KIND: Final = {"allauth": 4, "once": 2, "share": 2}
"""The number of key parts that name a kind: the action of a rate limit, the account of a form, the bound of a share."""


class CounterCache(DatabaseCache):
    """Django's database cache with an atomic :meth:`incr` and an eviction by kind."""

    def __init__(self, table: str, params: JSONObject) -> None:
        options = {"MAX_ENTRIES": MAX_ENTRIES, **params.get("OPTIONS", {})}
        self._max_of_a_kind: int = options.pop("MAX_OF_A_KIND", MAX_OF_A_KIND)
        super().__init__(table, {**params, "OPTIONS": options})
        self._quoted = table
        self._adding = ""

    def incr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        """Add *delta* to the value of *key* atomically, keeping its expiry; raise ValueError if it has none."""
        full_key = self.make_and_validate_key(key, version=version)
        using = router.db_for_write(self.cache_model_class)
        connection = connections[using]
        table = connection.ops.quote_name(self._quoted)
        locked = connection.ops.for_update_sql() if connection.features.has_select_for_update else ""
        with transaction.atomic(using=using), connection.cursor() as cursor:
            cursor.execute(f"SELECT value FROM {table} WHERE cache_key = %s {locked}", [full_key])
            row = cursor.fetchone()
            if row is None:
                message = f"Key {key!r} not found"
                raise ValueError(message)
            value = int(pickle.loads(base64.b64decode(row[0]))) + delta  # noqa: S301 - the table is ours
            stored = base64.b64encode(pickle.dumps(value, self.pickle_protocol)).decode("ascii")
            cursor.execute(f"UPDATE {table} SET value = %s WHERE cache_key = %s", [stored, full_key])
        return value

    def sweep(self) -> int:
        """Delete the expired entries, which are otherwise deleted when there are too many; return how many."""
        connection = connections[router.db_for_write(self.cache_model_class)]
        moment = connection.ops.adapt_datetimefield_value(now())
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(self._quoted)} WHERE expires < %s", [moment])
            return int(cursor.rowcount)

    def _base_set(self, mode: str, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT) -> bool:
        self._adding = key  # each thread has its own cache object
        connection: Any = connections[router.db_for_write(self.cache_model_class)]
        connection.refusal = None
        is_set = bool(super()._base_set(mode, key, value, timeout))  # type: ignore[misc]  # private: not in the stubs
        if not is_set and disk_fault(connection.refusal):
            raise connection.refusal  # Django ignores it; a caller would take it for a limit that is reached
        return is_set

    def _cull(self, db: str, cursor: Any, now: datetime, num: int) -> None:  # noqa: ARG002 - Django's signature
        """Delete expired entries; then, of the kind that is being added, those that expire first."""
        operations = connections[db].ops
        table = operations.quote_name(self._quoted)
        moment = operations.adapt_datetimefield_value(now)
        cursor.execute(f"DELETE FROM {table} WHERE expires < %s", [moment])
        like = operations.prep_for_like_query(_kind(self._adding)) + ":%"
        of_kind = "cache_key LIKE %s ESCAPE '\\'"
        cursor.execute(f"SELECT COUNT(*) FROM {table} WHERE {of_kind}", [like])
        excess = cursor.fetchone()[0] - self._max_of_a_kind
        if excess >= 0:
            # A tenth more, so that not every addition has to count and sort.
            evicted = f"SELECT cache_key FROM {table} WHERE {of_kind} ORDER BY expires, cache_key LIMIT %s"
            batch = excess + 1 + self._max_of_a_kind // 10
            cursor.execute(f"DELETE FROM {table} WHERE cache_key IN ({evicted})", [like, batch])


def sweep() -> int:
    """Delete what has expired in every table of this kind."""
    tables = (caches[alias] for alias in caches.settings)
    return sum(table.sweep() for table in tables if isinstance(table, CounterCache))


def _kind(key: str) -> str:
    """Return the beginning of *key* that names its kind, with Django's prefix and version."""
    parts = key.split(":")
    return ":".join(parts[: 2 + _PARTS_OF_A_KIND.get(parts[2] if len(parts) > 2 else "", 1)])
