"""
Remove a slug from the change feed, and deleted content from the files of the database.

Followers must learn of an erasure, so the last entry keeps the slug for 30 days. All other entries get a random id at
once. An entry under that id tells replicas and export files that something was erased.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from django.db import connection, transaction

from muniment.kernel.ids import new_id, now
from muniment.registry.fields import rows
from muniment.registry.models import FeedTombstone
from muniment.registry.publishing.publisher import forget_in_log, record_unlisted
from muniment.store.database.erasure import ERASED_KEY_PREFIX, PURGE_INDEX, compact
from muniment.store.sqlite.base import write_lock_of
from muniment.webhooks import events

KEPT_FOR: Final = timedelta(days=30)
SPARSE_BYTES: Final = 1 << 20
SPARSE_PART: Final = 5
"""A file is rewritten when one part of so many is free: it costs little for what it gives."""
also_forget: Final[list[Callable[[str, str], None]]] = []
"""Called with the kind and the slug of what is redacted; features above this one add what forgets it with them."""
_TABLES: Final = (
    *("registry_person", "registry_position", "registry_historyentry", "registry_petition", "registry_picture"),
    *("registry_givenslug", "published_document", "published_change", "published_chain", "published_leaf"),
    *("webhooks_delivery", "searches_subscription"),
)


def overwrite_deleted() -> None:
    """Let this connection overwrite what it deletes from now on, where the database can do that."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete = ON")


def redact_feed(kind: str, slug: str, *, is_followed: bool = True) -> None:
    """
    Replace *slug* in the change feed by a random id, in the caller's transaction, after its document was unlisted.

    The log keeps the leaves, and nothing that tells what they are of.

    Args:
        is_followed: keep the last entry for 30 days; otherwise followers start over anyway.
    """
    replacement, since = f"{ERASED_KEY_PREFIX}{new_id()}", now() - KEPT_FOR
    entries = rows(
        "SELECT sequence, change, at FROM published_change WHERE kind = %s AND key = %s ORDER BY sequence", [kind, slug]
    )
    if is_followed and entries and entries[-1][1] == "unlisted":
        last_sequence, _, last_at = entries[-1]
        unlisted_at = datetime.fromisoformat(last_at)
        if unlisted_at > since:
            due_at = min(unlisted_at, now()) + KEPT_FOR  # a clock that was ahead must not keep it longer
            FeedTombstone.objects.create(sequence=last_sequence, replacement=replacement, due_at=due_at)
            entries.pop()
    _replace([(replacement, sequence) for sequence, *_ in entries])
    forget_in_log(kind, slug)
    events.forget(f"{kind}:{slug}")
    for forget in also_forget:
        forget(kind, slug)
    if is_followed:
        record_unlisted(kind, replacement)


def retire_exports() -> None:
    """Let no export file from before this transaction be served again; the next one is made at once."""
    record_unlisted("person", f"{ERASED_KEY_PREFIX}{new_id()}")


def replace_due_tombstones(*, at: datetime | None = None) -> int:
    """Replace the slugs of erasures older than 30 days, and return how many were replaced."""
    with transaction.atomic():
        due = list(FeedTombstone.objects.select_for_update().filter(due_at__lte=at or now()))
        if not due:
            return 0
        overwrite_deleted()
        _replace([(each.replacement, each.sequence) for each in due])
        FeedTombstone.objects.filter(pk__in=[each.pk for each in due]).delete()
        record_unlisted("person", due[0].replacement)
    return len(due)


def _replace(pairs: list[tuple[str, int]]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany("UPDATE published_change SET key = %s WHERE sequence = %s", pairs)
        # What versions before the log kept here, and what could confirm a guess at the person.
        numbers = [(sequence,) for _, sequence in pairs]
        cursor.executemany("UPDATE published_chain SET salt = NULL, digest = NULL WHERE sequence = %s", numbers)
    purge_search_index()


def purge_search_index() -> None:
    """Leave no word in the search index that no document has; copies of nodes follow by the change feed."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for statement in PURGE_INDEX:
                cursor.execute(statement)


def compact_if_sparse() -> bool:
    """Rewrite SQLite's file without its free space, if that is a fifth of it; return whether it was."""
    if connection.vendor != "sqlite":
        return False
    pragmas = ("freelist_count", "page_count", "page_size")
    with connection.cursor() as cursor:
        free, pages, size = (cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
    is_sparse = bool(free * size >= SPARSE_BYTES and free * SPARSE_PART >= pages)
    if is_sparse:
        compact_database()
    return is_sparse


def compact_database() -> None:
    """Leave nothing deleted in the files of the database. Call it outside a transaction; writers wait meanwhile."""
    connection.ensure_connection()
    if connection.vendor == "sqlite":
        lock = write_lock_of(str(connection.settings_dict["NAME"]))
        lock.enter()
        try:
            compact(connection.connection)
        finally:
            lock.leave()
        return
    with connection.cursor() as cursor:  # removes dead rows; the write-ahead log and its archive are the operator's
        cursor.execute(f"VACUUM {', '.join(_TABLES)}")
