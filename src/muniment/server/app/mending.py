"""Mend at once what reads of this process have found damaged, and let the metrics tell of it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from muniment.config import Config
from muniment.server.observability.metrics import Metrics
from muniment.store.database.faults import damage_seen, damages_read

LOOK_AGAIN_S: Final = 60.0
"""Seconds between two questions whether a scrub has found the damaged pages whole."""
log = logging.getLogger("muniment.server")


class Mending:
    """
    Has damaged documents published again from their source, in a thread.

    On PostgreSQL, the replica mends the copy of the node by itself, and only the metrics are kept here.

    Args:
        call: runs an operation in a thread.
    """

    def __init__(self, config: Config, call: Callable[..., Awaitable[Any]], metrics: Metrics) -> None:
        self._mends = not config.has_copy
        self._call = call
        self._running: asyncio.Task[None] | None = None
        self._has_told_of_pages = False
        self._looks_again_at = 0.0
        explanation = "Reads that met damage, by what was damaged: a document, or pages of the database file."
        metrics.counter("muniment_damaged_reads_total", explanation, "what", lambda: damages_read.counts)

    def look(self) -> None:
        """Start to mend what waits, unless a former turn still runs. Called once per second, when Django is loaded."""
        if not self._mends or (self._running is not None and not self._running.done()):
            return
        names = damages_read.take_documents()
        tells_of_pages = damage_seen.is_set() and not self._has_told_of_pages
        if names or tells_of_pages:
            self._running = asyncio.create_task(self._mend(names, tells_of_pages=tells_of_pages))
        elif damage_seen.is_set() and time.monotonic() >= self._looks_again_at:
            self._running = asyncio.create_task(self._look_again())

    async def _mend(self, names: list[tuple[str, str]], *, tells_of_pages: bool) -> None:
        from muniment.registry.publishing.republishing import mend_damaged
        from muniment.scrub.database_file import record_unreadable

        for name in names:
            try:
                await self._call(mend_damaged, [name])
            except Exception:  # of this one: the others are mended, and a later read of it asks again
                log.exception("the published document %s %s could not be mended", *name)
        if tells_of_pages:
            try:
                await self._call(record_unreadable)
            except Exception:
                log.exception("that pages are damaged could not be recorded")
            self._has_told_of_pages = True
            self._looks_again_at = time.monotonic() + LOOK_AGAIN_S

    async def _look_again(self) -> None:
        """Forget damaged pages that a scrub has mended; health checks would tell of them until a restart."""
        from muniment.scrub.database_file import is_unreadable

        self._looks_again_at = time.monotonic() + LOOK_AGAIN_S
        try:
            if not await self._call(is_unreadable):
                damage_seen.clear()
                self._has_told_of_pages = False
        except Exception:
            log.exception("whether pages are still damaged could not be looked up")
