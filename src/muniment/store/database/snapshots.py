"""Database snapshots: a consistent read that does not block writers."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections


@contextmanager
def snapshot(using: str = "default") -> Iterator[None]:
    """Read one consistent state of the database inside the context, without blocking writers."""
    connection = connections[using]
    if connection.in_atomic_block:  # the caller's transaction is the snapshot
        yield
        return
    begin = "BEGIN" if connection.vendor == "sqlite" else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    with connection.cursor() as cursor:
        cursor.execute(begin)
        try:
            if connection.vendor == "postgresql":
                # The snapshot is idle while blobs are read.
                cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            yield
        finally:
            cursor.execute("ROLLBACK")
