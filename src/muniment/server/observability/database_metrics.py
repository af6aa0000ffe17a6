"""Database gauges: numbers that the database counts, queried rarely, in the thread pool, with a time limit."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from django.db import connection

from muniment import config
from muniment.backup.scheduled.job import backup_status
from muniment.credits.operations import totals
from muniment.documents.cleanup import totals_by_state
from muniment.jobs.queue import queue_statuses
from muniment.mail.delivery import mail_status
from muniment.registry.publishing import witnesses
from muniment.scrub import instance as scrub
from muniment.scrub.checks import checks
from muniment.searches import digests
from muniment.server.observability.metrics import Family, Metrics
from muniment.server.observability.outages import Outages
from muniment.store.database import commits
from muniment.store.database.faults import notice
from muniment.store.sqlite.base import oldest_wait_s
from muniment.webhooks.endpoints import webhook_status

QUEUE_EVERY_S: Final = 5.0
SUMS_EVERY_S: Final = 60.0
"""Seconds between sums over whole tables: credits, documents and webhooks."""
PATIENCE_S: Final = 1.0
LOCK_WAIT: Final = "muniment_lock_wait_oldest_seconds"
LOCK_WAIT_HELP: Final = "Time that the oldest change has waited for a lock."
_OLDEST_WAIT: Final = """
    SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart)), 0)::float8
    FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database()
"""


class DatabaseMetrics:
    """Queries the database by *call*, which runs an operation in a thread, and caches the results."""

    def __init__(self, call: Callable[..., Awaitable[Any]], outages: Outages) -> None:
        self._call = call
        self._outages = outages
        self._answers = False
        self._queue: list[Family] = []
        self._sums: list[Family] = []
        self._queue_at = self._sums_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Query again if the cached results are old; do not wait long, a slow result is used next time."""
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
            self._outages.answered("database")
        except Exception as error:  # noqa: BLE001 - any failure means that the database is unavailable
            notice(error)
            self._outages.failed("database", error)
            # Outdated numbers must not be mistaken for current ones.
            self._answers, self._queue, self._sums = False, [], []
            self._sums_at = float("-inf")
            self._queue_at = clock()

    def families(self) -> Iterable[Family]:
        yield Family.single("muniment_database_up", "1 if the database answered the last query.", self._answers)
        yield from self._queue
        yield from self._sums


def _of_the_queue() -> list[Family]:
    rows = queue_statuses()
    jobs: dict[tuple[str, ...], float] = {(row.kind, row.state): row.jobs for row in rows}
    waits: dict[tuple[str, ...], float] = {(row.kind,): row.waits_s for row in rows if row.state == "queued"}
    mail = mail_status()
    return [
        *_of_locks(),
        *_of_backups(),
        *_of_scrub(),
        *_of_witnesses(),
        Family.single("muniment_mail_waiting", "Messages that wait for delivery.", mail.waiting),
        Family.single("muniment_mail_oldest_waiting_seconds", "Age of the oldest waiting message.", mail.oldest_s),
        Family.of("muniment_jobs", "Jobs by kind and state; failed ones for 7 days.", ("kind", "state"), jobs),
        Family.of(
            "muniment_jobs_oldest_waiting_seconds", "Waiting time of the oldest due job, by kind.", ("kind",), waits
        ),
    ]


def _of_backups() -> list[Family]:
    """Return nothing on an instance without scheduled backups."""
    found = backup_status()
    if found.last is None and not config.current().backup_place:
        return []
    return [
        Family.single("muniment_backup_age_seconds", "Time whose changes are in no scheduled backup.", found.age_s),
        Family.single(
            "muniment_backup_overdue", "1 if the last good backup is older than it should be.", int(found.is_overdue)
        ),
    ]


def _of_sums() -> list[Family]:
    ledger = totals()
    documents = totals_by_state()
    counts: dict[tuple[str, ...], float] = {(row.state,): row.documents for row in documents}
    sizes: dict[tuple[str, ...], float] = {(row.state,): row.size_bytes for row in documents}
    webhooks = webhook_status()
    endpoints: dict[tuple[str, ...], float] = dict(webhooks.endpoints.items())
    return [
        Family.single("muniment_ledger_balance_credits", "Credits owned by accounts.", ledger.balance),
        Family.single("muniment_ledger_held_credits", "Credits in open holds.", ledger.held),
        Family.single("muniment_ledger_agrees", "1 if the sums of the ledger agree.", int(ledger.agrees)),
        Family.of("muniment_documents", "Documents by state.", ("state",), counts),
        Family.of("muniment_documents_bytes", "Size of documents by state.", ("state",), sizes),
        Family.of("muniment_webhooks", "Webhooks by whose they are and state.", ("of", "state"), endpoints),
        Family.single("muniment_webhook_events_waiting", "Events not delivered yet.", webhooks.waiting),
        Family.single("muniment_digest_delay_seconds", "How late the most overdue digest is.", digests.delay_s()),
    ]


def _of_scrub() -> list[Family]:
    progress, every = scrub.stored(), checks()
    damages: dict[tuple[str, ...], float] = {(check.name,): 0 for check in every}
    for damage in progress.open(every):
        damages[damage.check,] = damages.get((damage.check,), 0) + 1
    share = progress.examined / progress.total if progress.check and progress.total else 1.0
    return [
        Family.of("muniment_scrub_damaged", "Damages that the scrub could not mend, by check.", ("check",), damages),
        Family.single("muniment_scrub_mended", "Damages that the scrub has ever mended.", progress.mended),
        Family.single("muniment_scrub_progress_ratio", "Progress of the pass that is running.", min(1.0, share)),
        Family.single(
            "muniment_scrub_finished_timestamp_seconds",
            "When the last pass of the scrub ended; 0 before the first.",
            progress.finished_at,
        ),
    ]


def _of_witnesses() -> list[Family]:
    """Return nothing on an instance without witnesses of its log."""
    found = witnesses.statuses()
    if not found:
        return []
    behind: dict[tuple[str, ...], float] = {}
    accuses: dict[tuple[str, ...], float] = {}
    cosigned_at: dict[tuple[str, ...], float] = {}
    for status in found:
        # Two keys of a witness have one name; the first part of a key after the name is its id.
        labels = status.name, status.key.split("+")[1]
        behind[labels], accuses[labels] = status.behind, int(status.accuses)
        cosigned_at[labels] = 0 if status.cosigned_at is None else status.cosigned_at.timestamp()
    label = ("witness", "key")
    return [
        Family.of("muniment_log_witness_behind_leaves", "Leaves that a witness has not cosigned.", label, behind),
        Family.of(
            "muniment_log_witness_accuses",
            "1 if a witness says that the log was rewritten or taken back.",
            label,
            accuses,
        ),
        Family.of(
            "muniment_log_witness_cosigned_timestamp_seconds",
            "Time of the latest cosignature of a witness; 0 before the first.",
            label,
            cosigned_at,
        ),
    ]


def _of_locks() -> list[Family]:
    """Return the age of the oldest wait for a lock on PostgreSQL; on SQLite, each process knows its own."""
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST_WAIT)
        (oldest_s,) = cursor.fetchone()
    return [Family.single(LOCK_WAIT, LOCK_WAIT_HELP, max(0.0, oldest_s))]


def observe_commits(metrics: Metrics) -> None:
    """Add what this process knows of its changes: how long commits take, and what was given up."""
    name, explanation = "muniment_commit_duration_seconds", "Time that the database takes to commit a change."
    metrics.histogram(name, explanation, lambda: (commits.durations, commits.total_s), bounds=commits.BOUNDS_S)
    metrics.gauge("muniment_changes_given_up_total", "Changes that waited too long.", lambda: commits.given_up)
    if connection.vendor == "sqlite":
        metrics.gauge(LOCK_WAIT, LOCK_WAIT_HELP, oldest_wait_s)


def observe_standby(metrics: Metrics) -> None:
    """Add what this process knows of the synchronous standby of PostgreSQL."""
    metrics.gauge("muniment_standby_silent", "1 while no standby confirms changes.", lambda: commits.status()[0])
    unconfirmed = "Changes that no standby confirmed in time."
    metrics.gauge("muniment_commits_unconfirmed_total", unconfirmed, lambda: commits.status()[1])
