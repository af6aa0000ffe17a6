"""One state of the database, seen throughout, while writers go on."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections


@contextmanager
def snapshot(using: str = "default") -> Iterator[None]:
    """See one state of the database throughout, as a reader: writers go on meanwhile."""
    connection = connections[using]
    if connection.in_atomic_block:  # the caller's transaction is the snapshot
        yield
        return
    begin = "BEGIN" if connection.vendor == "sqlite" else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    with connection.cursor() as cursor:
        cursor.execute(begin)
        try:
            if connection.vendor == "postgresql":
                # While blobs are read, the snapshot waits without a question.
                cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            yield
        finally:
            cursor.execute("ROLLBACK")
