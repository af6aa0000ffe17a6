"""
Database cache for rate limits of sign-in, client registration and token creation.

A database table, so that all processes and nodes share one count.
"""

import base64
import pickle
from typing import Any, Final

from django.core.cache.backends.db import DatabaseCache
from django.db import connections, router, transaction

from muniment.kernel.json import JSONObject

MAX_ENTRIES: Final = 20_000
"""Beyond it, live entries are culled too: small enough to count, larger than a guessing attacker can fill."""


class CounterCache(DatabaseCache):
    """Django's database cache with an atomic :meth:`incr`."""

    def __init__(self, table: str, params: JSONObject) -> None:
        options = {"MAX_ENTRIES": MAX_ENTRIES, **params.get("OPTIONS", {})}
        super().__init__(table, {**params, "OPTIONS": options})
        self._quoted = table

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
