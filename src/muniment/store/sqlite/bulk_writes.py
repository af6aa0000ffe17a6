"""The settings of a SQLite connection that writes many rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

PAGE_CACHE_KIB: Final = 64 * 1024
"""Published documents are keyed by digests, so that their pages are spread over the whole table."""
CHECKPOINT_PAGES: Final = 8_000
"""Pages of 4 KB in the write-ahead log before they are copied into the file: batches write many of them repeatedly."""
_PRAGMAS: Final = {"cache_size": -PAGE_CACHE_KIB, "wal_autocheckpoint": CHECKPOINT_PAGES}


@contextmanager
def bulk_write_settings(connection: Any) -> Iterator[None]:
    """Enlarge the page cache of a connection and checkpoint it less often; PostgreSQL needs neither."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        former = {name: cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in _PRAGMAS}
        for name, value in _PRAGMAS.items():
            cursor.execute(f"PRAGMA {name} = {value}")
        try:
            yield
        finally:
            for name, value in former.items():
                cursor.execute(f"PRAGMA {name} = {value}")
