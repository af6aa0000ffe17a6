"""The state of scheduled backups, from the jobs that made them: the same on every node."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from muniment.backup.scheduled.schedule import schedule
from muniment.config import Config
from muniment.jobs.models import Job, State
from muniment.kernel.ids import new_id, now
from muniment.kernel.phrases.phrase import Joined, Phrase, marked

KIND: Final = "backup.interval_ended"
GRACE: Final = timedelta(minutes=10)
"""Beyond two intervals, before a backup is overdue."""


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run: see :class:`~muniment.backup.scheduled.making.Outcome`."""

    place: str
    covered_at: datetime
    interval_s: int
    name: str | None = None
    size_bytes: int = 0
    kept: int = 0
    lost: list[str] = []
    damaged: list[str] = []


class BackupStatus(msgspec.Struct, frozen=True, kw_only=True):
    """
    The state of scheduled backups.

    Args:
        last: the last run that succeeded, in the last 7 days.
        age_s: the time since then; changes of this time are lost with the database.
        is_overdue: the last good backup is older than it should be.
        error: why the last run failed; empty if it did not.
    """

    last: JobResult | None
    age_s: float
    is_overdue: bool
    error: str


def has_run(*, except_job: str) -> bool:
    return Job.objects.filter(kind=KIND).exclude(pk=except_job).exists()


def record_run(result: JobResult) -> None:
    """Record a run that another scheduler started, such as cron: it counts like a job."""
    at = now()
    Job.objects.create(
        id=new_id(), kind=KIND, state=State.SUCCEEDED, run_at=at, finished_at=at, result=msgspec.to_builtins(result)
    )


def backup_status() -> BackupStatus:
    """Return the state of the backups of this instance, whichever process makes them."""
    moment = now()
    jobs = Job.objects.filter(kind=KIND)
    done = jobs.filter(state=State.SUCCEEDED).order_by("-finished_at").values_list("finished_at", "result")
    results = [(at, msgspec.convert(result, JobResult, strict=False)) for at, result in done[:3] if result]
    last = results[0][1] if results else None
    since = last.covered_at if last else jobs.order_by("id").values_list("created_at", flat=True).first()
    newest = jobs.exclude(error="").order_by("-run_at").values_list("run_at", "error", "state").first()
    done_at = results[0][0] if results else None
    failed = newest is not None and newest[2] != State.SUCCEEDED and (done_at is None or newest[0] > done_at)
    interval_s = last.interval_s if last else schedule().interval_s
    patience = timedelta(seconds=2 * interval_s) + GRACE
    return BackupStatus(
        last=last,
        age_s=max(0.0, (moment - since).total_seconds()) if since else 0.0,
        is_overdue=since is not None and moment - since > patience,
        error=newest[1] if failed and newest else "",
    )


def described(found: BackupStatus, config: Config) -> tuple[str, bool]:
    """Return the state in words, with the changes that would be lost now, and whether it needs attention."""
    if found.last is None and not config.backup_place:
        if config.backups == "off":
            return marked("off; with the database, every change since a backup of your own would be lost"), False
        words = marked(
            "none are made: with the database, every change since a backup of your own would be lost;"
            " set MUNIMENT_BACKUPS (off if you have others, such as an archive of the write-ahead log)"
        )
        return words, True
    if found.last is None:
        words = Phrase(
            "none yet in {place}; the first follows within {span}",
            place=_shown(config),
            span=_span(schedule().interval_s),
        )
    else:
        last = found.last
        words = Phrase(
            "the last {age} of changes would be lost with the database; the newest good backup in "
            "{place} covers everything until {covered_at} UTC, one is made every "
            "{interval} with changes, {kept:,} are kept",
            age=_span(found.age_s),
            place=last.place,
            covered_at=f"{last.covered_at:%Y-%m-%d %H:%M:%S}",
            interval=_span(last.interval_s),
            kept=last.kept,
        )
    faults = []
    if schedule().is_paused:
        faults.append(marked("paused on /operate/backups: none are made until an operator resumes them"))
    elif found.is_overdue:
        faults.append(marked("OVERDUE"))
    if found.error:
        faults.append(Phrase("the last run failed: {error}", error=Phrase.of(found.error)))
    if found.last and found.last.lost:
        faults.append(
            Phrase("{count:,} documents had no good file; see muniment doctor --storage", count=len(found.last.lost))
        )
    return Joined("; ", [*faults, words]), bool(faults)


def _shown(config: Config) -> str:
    return "an S3 store" if config.backup_place.startswith("s3:") else config.backup_place


def _span(seconds: float) -> str:
    for unit_s, unit, limit in ((1, "s", 120), (60, "min", 7200)):
        if seconds < limit:
            return f"{seconds / unit_s:,.0f} {unit}"
    return f"{seconds / 3600:,.0f} h"
