"""The job that publishes all documents with the fields that an operator has just declared, while the servers serve."""

import gc
from typing import Final

from django.conf import settings
from django.db import transaction

from muniment.jobs.handlers import Handler
from muniment.jobs.queue import JobRun
from muniment.registry.declared import progress
from muniment.registry.declared.current import look, times_replaced
from muniment.registry.declared.stored import mark_of
from muniment.registry.publishing import publisher
from muniment.store.cache import release_free_memory
from muniment.store.database.migrations import migration_lock


def _apply(run: JobRun) -> dict[str, bool]:
    look()
    try:
        with migration_lock():
            is_renewed = _render_again(again=bool(run.payload.get("again")))
    finally:
        progress.forget()
        gc.collect()  # the former schema and its tools refer to each other
        release_free_memory()
    if is_renewed:
        publisher.published.send(None, edition=publisher.head()[0])
    return {"renewed": is_renewed}


def _render_again(*, again: bool) -> bool:
    """Render all documents again unless they have these fields; *again*: in any case. Return whether it was done."""
    while again or publisher.is_outdated():
        used = times_replaced()
        with transaction.atomic():
            # A new number: the exports get other columns, so they are made again too.
            edition = publisher.head()[0] + 1
            mark = mark_of(settings.DECLARED_FIELDS)
            publisher.render_again(edition=edition, mark=mark, told=progress.tell)
            # Another thread may have begun to use other fields, with which some documents are rendered.
            is_whole = used == times_replaced()
            transaction.set_rollback(not is_whole)
        if is_whole:
            return True
    return False


HANDLER: Final = Handler(kind=progress.KIND, work=_apply, lease_s=600, max_kills=5)
