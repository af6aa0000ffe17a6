"""
The job queue: enqueue, claim, renew, checkpoint, finish.

A claim is a lease. Every write of a worker is conditional on its attempt number, so a worker that was presumed dead
can change nothing. Steps run at least once; whatever shares the transaction of :meth:`JobRun.finish` happens exactly
once.

Source: decisions, section 5, report runs.
"""

import logging
import random
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import connection, transaction
from django.db.models import Count, F, Min, Q, QuerySet

from muniment.jobs import handlers
from muniment.jobs.handlers import Canceled, HandedBack, LeaseLost, Postponed
from muniment.jobs.models import Job, State, Step
from muniment.jobs.steadiness import Steadiness
from muniment.kernel.ids import new_id, now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.phrases.storing import shortened

UNFINISHED: Final = (State.QUEUED, State.RUNNING)
MAX_BACK_OFF_S: Final = 3600.0
KILLED: Final = "not tried again: its process ended {times} times while it ran"
"""The error of a job that is given up because of that."""
MAX_ERROR: Final = 4_000
"""Characters of a longer error that are kept."""
KEPT_DAYS: Final = 7
"""Days that finished jobs are kept."""


class WorkSignal:
    """Wakes this process's idle workers when a job was enqueued and committed."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.count = 0
        """The number of signals: a worker that read it before checking the queue misses no later signal."""

    def notify(self) -> None:
        with self._condition:
            self.count += 1
            self._condition.notify_all()

    def wait(self, seen: int) -> None:
        """Wait until it was set more often than *seen* times."""
        with self._condition:
            self._condition.wait_for(lambda: self.count != seen)


work_signal = WorkSignal()
_claiming = threading.Lock()
log = logging.getLogger(__name__)
steadiness = Steadiness()


def clock() -> datetime:
    """Return the database's time, which workers on several machines share."""
    found: datetime = now()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            found = cursor.fetchone()[0]
    steadiness.note(found)
    return found


def enqueue(
    kind: str,
    payload: JSONObject | None = None,
    *,
    priority: int = 0,
    delay_s: float = 0,
    group: str = "",
    unique_key: str | None = None,
    job_id: str | None = None,
) -> str:
    """
    Enqueue a job, in the caller's transaction if there is one, and return its id.

    Args:
        priority: lower comes first.
        group: jobs of one group share a limit, for example those of an account.
        unique_key: as long as a job with this key is kept, no second one is created; its id is returned.
    """
    job = Job(
        id=job_id or new_id(),
        kind=kind,
        payload=payload or {},
        priority=priority,
        run_at=clock() + timedelta(seconds=delay_s),
        group=group,
        unique_key=unique_key,
    )
    if unique_key is None:
        job.save(force_insert=True)
    else:
        Job.objects.bulk_create([job], ignore_conflicts=True)
        job.id = Job.objects.values_list("id", flat=True).get(unique_key=unique_key)
    transaction.on_commit(work_signal.notify)
    return job.id


def is_due(lane: str | None = None) -> bool:
    """Return whether a job of a lane, or of any, may be due: one simple query, run every second."""
    kinds = handlers.kinds(lane)
    if not kinds:
        return False
    moment, given = "clock_timestamp()", kinds
    if connection.vendor != "postgresql":
        moment, given = "%s", [str(connection.ops.adapt_datetimefield_value(now())), *kinds]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT 1 FROM jobs_job WHERE state IN ('queued', 'running') AND run_at <= {moment}"
            f" AND kind IN ({', '.join(['%s'] * len(kinds))}) LIMIT 1",
            given,
        )
        return cursor.fetchone() is not None


def claim(worker: str, lane: str = "") -> "JobRun | None":
    """
    Claim the first due job of a lane for the length of its lease.

    Due jobs that are canceled or out of attempts are ended. A running one whose lease is over has ended its process, or
    was beside one that has: a process runs one such job at a time, so that none is blamed for another.
    """
    if not is_due(lane):
        return None  # without a write lock
    with _claiming, transaction.atomic():
        moment = clock()
        due = Job.objects.filter(state__in=UNFINISHED, run_at__lte=moment, kind__in=handlers.kinds(lane))
        if steadiness.is_settling():
            due = due.exclude(state=State.RUNNING)
        if _running(moment).filter(worker=worker, kills__gt=0).exists():
            due = due.exclude(Q(kills__gt=0) | Q(state=State.RUNNING))
        found = due.exclude(_full_groups(moment))
        for job in found.select_for_update(skip_locked=True).order_by("priority", "run_at")[:20]:
            handler = handlers.handler(job.kind)
            if handler is None:
                continue
            job.kills += job.state == State.RUNNING
            if job.cancel_requested:
                _end(job, State.CANCELED, "")
            elif job.kills >= handler.max_kills:
                log.error("%s %s is given up: its process ended %d times while it ran", job.kind, job.id, job.kills)
                _end(job, State.FAILED, Phrase(KILLED, times=job.kills))
            elif job.attempt - job.excused >= handler.max_attempts:
                _end(
                    job,
                    State.FAILED,
                    job.error or Phrase("stopped {times} times before it finished", times=handler.max_attempts),
                )
            elif _has_room(job, handler, moment):
                job.attempt += 1
                job.state = State.RUNNING
                job.worker = worker
                job.run_at = moment + timedelta(seconds=handler.lease_s)
                job.save(update_fields=["attempt", "state", "worker", "run_at", "kills"])
                return JobRun(job, handler)
    return None


def _has_room(job: Job, handler: handlers.Handler, moment: datetime) -> bool:
    """
    Return whether the group of *job* has room for it; it then has until this claim is committed.

    It does not wait for the group's lock: its holder claims a job of the group, and wakes workers afterwards.
    """
    if connection.vendor != "postgresql" or not (handler.per_group and job.group):
        return True  # SQLite has one claim at a time
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [f"jobs:{job.kind}:{job.group}"])
        is_ours: bool = cursor.fetchone()[0]
    if not is_ours:
        return False
    transaction.on_commit(work_signal.notify)
    if job.state == State.RUNNING:
        return True  # its lease has expired; it keeps its place in the group
    return _running(moment).filter(kind=job.kind, group=job.group).count() < handler.per_group


def _running(moment: datetime) -> QuerySet[Job]:
    # This is the condition of an index: with the queued jobs, each claim would read all that wait.
    return Job.objects.filter(state=State.RUNNING, run_at__gt=moment)


def _full_groups(moment: datetime) -> Q:
    full = Q(pk__in=[])
    limits: dict[str, int] = {}
    for kind in handlers.kinds():
        handler = handlers.handler(kind)
        if handler is not None and handler.per_group:
            limits[kind] = handler.per_group
    if not limits:
        return full
    running = _running(moment).filter(kind__in=limits).exclude(group="").values_list("kind", "group")
    for kind, group, count in running.annotate(running=Count("id")):
        if count >= limits[kind]:
            full |= Q(kind=kind, group=group, state=State.QUEUED)
    return full


def _end(job: Job, state: str, error: str) -> None:
    """End *job* without success and clean up, in the caller's transaction."""
    job.state, job.error, job.finished_at = state, shortened(error, MAX_ERROR), clock()
    job.save(update_fields=["state", "error", "finished_at", "kills"])
    handler = handlers.handler(job.kind)
    if handler is not None and handler.ended is not None:
        handler.ended(job.id, job.payload, "canceled" if state == State.CANCELED else "failed", job.error)


def cancel(job_id: str) -> bool:
    """Cancel a job, at once or at its next checkpoint; return whether there was anything left to cancel."""
    with transaction.atomic():
        job = Job.objects.select_for_update().filter(pk=job_id, state__in=UNFINISHED).first()
        if job is None:
            return False
        if job.state == State.QUEUED:
            _end(job, State.CANCELED, "")
        else:
            Job.objects.filter(pk=job.pk).update(cancel_requested=True)
    return True


def enqueue_periodic() -> None:
    """Enqueue periodic jobs: one per interval, no matter how many workers."""
    moment = clock().timestamp()
    keys = {kind: f"{kind}@{int(moment // every_s)}" for kind, every_s in handlers.periodic().items()}
    made = Job.objects.filter(unique_key__in=keys.values()).values_list("kind", flat=True)
    missing = keys.keys() - set(made)
    if missing:
        missing -= set(Job.objects.filter(kind__in=missing, state__in=UNFINISHED).values_list("kind", flat=True))
    for kind in sorted(missing):
        enqueue(kind, unique_key=keys[kind])


def is_killed(error: str) -> bool:
    """Return whether a job with this error was given up because its process ended while it ran."""
    return isinstance(error, Phrase) and error.template == KILLED


def killed_jobs() -> dict[str, int]:
    """Return how many jobs were given up because their process ended while they ran, by kind."""
    given_up = Job.objects.filter(state=State.FAILED, kills__gt=0, error__contains=KILLED)
    return dict(given_up.values_list("kind").annotate(jobs=Count("id")).order_by("kind"))


def prune() -> int:
    """Delete the jobs that ended days ago, and successes of a kind when it says; return how many rows."""
    removed, _ = Job.objects.filter(finished_at__lt=now() - timedelta(days=KEPT_DAYS)).delete()
    for kind in handlers.kinds():
        handler = handlers.handler(kind)
        if handler is not None and handler.successes_kept is not None:
            successes = Job.objects.filter(kind=kind, state=State.SUCCEEDED)
            removed += successes.filter(finished_at__lt=now() - handler.successes_kept).delete()[0]
    return removed


class QueueStatus(NamedTuple):
    """The number of jobs of one kind in one state; ``waits_s`` is how long the oldest due one has waited."""

    kind: str
    state: str
    jobs: int
    waits_s: float


def queue_statuses() -> list[QueueStatus]:
    moment = clock()
    rows = (
        Job.objects.filter(state__in=[*UNFINISHED, State.FAILED])
        .values_list("kind", "state")
        .annotate(jobs=Count("id"), first=Min("run_at"))
        .order_by("kind", "state")
    )
    statuses = []
    for kind, state, jobs, first_run_at in rows:
        waits_s = 0.0
        if state == State.QUEUED:
            waits_s = max(0.0, (moment - first_run_at).total_seconds())
        statuses.append(QueueStatus(kind, state, jobs, waits_s))
    return statuses


class JobRun:
    """One attempt at a job, passed to its handler."""

    def __init__(self, job: Job, handler: handlers.Handler) -> None:
        self.id: str = job.id
        self.kind: str = job.kind
        self.payload: JSONObject = job.payload
        self.attempt: int = job.attempt
        self.handler = handler
        self.finished = False
        self._canceled = threading.Event()
        self._lost = threading.Event()
        self._draining = threading.Event()
        self._steps: JSONObject | None = None

    def step(self, name: str, make: Callable[[], Any], *, done: int | None = None, total: int | None = None) -> Any:
        """
        Return the output of step *name*: from an earlier attempt if it finished there, otherwise from *make*.

        Let LeaseLost, Canceled and HandedBack pass: the queue handles them.
        """
        steps = self._finished()
        if name in steps:
            return steps[name]
        self.check()
        output = make()
        self.checkpoint(name, output, done=done, total=total)
        return output

    def kept(self, prefix: str) -> list[Any]:
        """Return the outputs of finished steps whose names start with *prefix*, including earlier attempts."""
        return [output for name, output in self._finished().items() if name.startswith(prefix)]

    def checkpoint(self, name: str, output: Any, *, done: int | None = None, total: int | None = None) -> None:
        """Store a finished step and the progress, and renew the lease, in one transaction."""
        values: JSONObject = {} if done is None else {"progress": {"done": done, "total": total, "step": name}}
        with transaction.atomic():
            run_at = clock() + timedelta(seconds=self.handler.lease_s)
            # A job that makes progress is not poison, however often it is interrupted: reset the count.
            self._fenced(**values, run_at=run_at, excused=self.attempt - 1, kills=0)
            Step.objects.create(job_id=self.id, name=name, attempt=self.attempt, output=output)
        if self._steps is not None:
            self._steps[name] = output

    def report(self, done: int, total: int) -> None:
        """Store the progress of work without steps; raise LeaseLost, Canceled or HandedBack as :meth:`check` does."""
        self.check()
        self._fenced(progress={"done": done, "total": total, "step": ""})

    def check(self) -> None:
        """Raise LeaseLost, Canceled or HandedBack to stop; call it between pieces of long work without steps."""
        if self._lost.is_set():
            raise LeaseLost(self.id)
        if self._canceled.is_set():
            raise Canceled(self.id)
        if self._draining.is_set():
            raise HandedBack(self.id)

    def finish(self, result: Any = None) -> None:
        """End the job with success in the caller's transaction, which must not commit after a LeaseLost."""
        self._fenced(state=State.SUCCEEDED, result=result, finished_at=clock(), error="")
        transaction.on_commit(self._mark_finished)

    def renew(self) -> None:
        """Renew the lease and find out whether the job was canceled; the handler stops at its next checkpoint."""
        held = self._held()
        if not held.update(run_at=clock() + timedelta(seconds=self.handler.lease_s)):
            if not self.finished:
                self._lost.set()
        elif held.filter(cancel_requested=True).exists():
            self._canceled.set()

    def drain(self) -> None:
        self._draining.set()

    def hand_back(self) -> None:
        """Return the job to the queue; the attempt does not count."""
        self._held().update(state=State.QUEUED, run_at=clock(), excused=F("excused") + 1)

    def leave(self) -> None:
        """Leave the job to another worker when its lease is over; that this process ends is no fault of the job."""
        self._held().update(state=State.QUEUED, excused=F("excused") + 1)

    def survived(self) -> None:
        """Take back that this attempt ended its process, as another worker had to believe."""
        if not self._draining.is_set():
            Job.objects.filter(pk=self.id, kills__gt=0).update(kills=F("kills") - 1)

    def canceled(self) -> None:
        self._end(State.CANCELED, "")

    def postponed(self, why: Postponed) -> None:
        """Return the job to the queue for a later attempt, if it has one left."""
        if not why.is_excused:
            self.failed(why.reason, for_good=False, pause_s=why.pause_s)
            return
        again = clock() + timedelta(seconds=why.pause_s or self.handler.back_off_s)
        self._held().update(
            state=State.QUEUED, run_at=again, excused=F("excused") + 1, error=shortened(why.reason, MAX_ERROR)
        )

    def failed(self, error: str, *, for_good: bool, pause_s: float | None = None) -> None:
        """Record a failed attempt: retry after a pause, by default the handler's, unless no attempts are left."""
        excused = Job.objects.filter(pk=self.id).values_list("excused", flat=True).first() or 0
        used = self.attempt - excused
        if for_good or used >= self.handler.max_attempts:
            self._end(State.FAILED, error)
            return
        pause = pause_s or min(self.handler.back_off_s * 2 ** min(used - 1, 20), MAX_BACK_OFF_S)
        pause *= random.uniform(0.8, 1.2)  # noqa: S311 - jitter, not security
        self._held().update(
            state=State.QUEUED, run_at=clock() + timedelta(seconds=pause), error=shortened(error, MAX_ERROR)
        )

    def _finished(self) -> JSONObject:
        if self._steps is None:
            self._steps = dict(Step.objects.filter(job_id=self.id).values_list("name", "output"))
        return self._steps

    def _held(self) -> QuerySet[Job]:
        return Job.objects.filter(pk=self.id, attempt=self.attempt, state=State.RUNNING)

    def _fenced(self, **values: Any) -> None:
        if not self._held().filter(cancel_requested=False).update(**values):
            if self._held().exists():
                self._canceled.set()
                raise Canceled(self.id)
            self._lost.set()
            raise LeaseLost(self.id)

    def _end(self, state: str, error: str) -> None:
        with transaction.atomic():
            job = self._held().select_for_update().first()
            if job is not None:
                _end(job, state, error)

    def _mark_finished(self) -> None:
        self.finished = True
