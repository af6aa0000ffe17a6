"""What the database counts for those who watch: asked seldom, in the bridge, and never waited for long."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from muniment.credits.operations import totals
from muniment.documents.cleanup import totals_by_state
from muniment.jobs.queue import queue_statuses
from muniment.server.app.metrics import Family

QUEUE_EVERY_S: Final = 5.0
SUMS_EVERY_S: Final = 60.0
"""Sums over whole tables: of credits, and of documents."""
PATIENCE_S: Final = 1.0
log = logging.getLogger("muniment.server")


class Census:
    """
    Asks the database, and keeps what it said.

    Args:
        call: runs an operation in a thread and gives what it returns.
    """

    def __init__(self, call: Callable[..., Awaitable[Any]]) -> None:
        self._call = call
        self._answers = False
        self._queue: list[Family] = []
        self._sums: list[Family] = []
        self._queue_at = self._sums_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Ask again if the last answer is old; what takes longer than a moment is there the next time."""
        if self._asking is None or self._asking.done():
            if asyncio.get_running_loop().time() - self._queue_at < QUEUE_EVERY_S:
                return
            self._asking = asyncio.create_task(self._ask())
        await asyncio.wait([self._asking], timeout=PATIENCE_S)

    async def _ask(self) -> None:
        clock = asyncio.get_running_loop().time
        try:
            self._queue = await self._call(_of_the_queue)
            self._queue_at = clock()
            if clock() - self._sums_at >= SUMS_EVERY_S:
                self._sums = await self._call(_of_sums)
                self._sums_at = clock()
            self._answers = True
        except Exception as error:  # noqa: BLE001 - whatever it is, the database does not answer
            log.warning("the database did not count for the metrics: %s", error)
            # Old numbers would pass for new ones.
            self._answers, self._queue, self._sums = False, [], []
            self._sums_at = float("-inf")
            self._queue_at = clock()

    def families(self) -> Iterable[Family]:
        """Give what the database said last."""
        yield Family.single("muniment_database_up", "Whether the database answered when last asked.", self._answers)
        yield from self._queue
        yield from self._sums


def _of_the_queue() -> list[Family]:
    rows = queue_statuses()
    jobs: dict[tuple[str, ...], float] = {(row.kind, row.state): row.jobs for row in rows}
    waits: dict[tuple[str, ...], float] = {(row.kind,): row.waits_s for row in rows if row.state == "queued"}
    return [
        Family.gauge("muniment_jobs", "Jobs by kind and state; failed ones for 7 days.", ("kind", "state"), jobs),
        Family.gauge(
            "muniment_jobs_oldest_waiting_seconds",
            "How long the job that is due longest has waited, by kind.",
            ("kind",),
            waits,
        ),
    ]


def _of_sums() -> list[Family]:
    ledger = totals()
    documents = totals_by_state()
    counts: dict[tuple[str, ...], float] = {(row.state,): row.documents for row in documents}
    sizes: dict[tuple[str, ...], float] = {(row.state,): row.size_bytes for row in documents}
    return [
        Family.single("muniment_ledger_balance_credits", "Credits that accounts have.", ledger.balance),
        Family.single("muniment_ledger_held_credits", "Credits that open holds keep.", ledger.held),
        Family.single("muniment_ledger_agrees", "1 while the ledger's sums agree.", int(ledger.agrees)),
        Family.gauge("muniment_documents", "Documents by state.", ("state",), counts),
        Family.gauge("muniment_documents_bytes", "Size of documents by state.", ("state",), sizes),
    ]
