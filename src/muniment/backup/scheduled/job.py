"""
The job of scheduled backups, and their state, which its runs tell: the same on every node.

One process of an instance starts it at each interval. A process of its own makes the backup, at low priority, so that
requests do not wait for the interpreter or the disk. It ends with the process that runs the job.
"""

import logging
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Final

import msgspec
from django.db.models import QuerySet

from muniment.backup.scheduled.schedule import pace_s, schedule
from muniment.config import Config
from muniment.jobs.handlers import Handler, Postponed
from muniment.jobs.models import Job, State
from muniment.jobs.queue import JobRun
from muniment.kernel.ids import new_id, now
from muniment.kernel.json import JSONObject
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
    last, done_at = _last_success(jobs)
    if last is not None:
        since: datetime | None = last.covered_at
        interval_s = last.interval_s
    else:
        since = jobs.order_by("id").values_list("created_at", flat=True).first()
        interval_s = schedule().interval_s
    age = moment - since if since is not None else timedelta()
    return BackupStatus(
        last=last,
        age_s=max(0.0, age.total_seconds()),
        is_overdue=age > timedelta(seconds=2 * interval_s) + GRACE,
        error=_latest_error(jobs, done_at),
    )


def _last_success(jobs: QuerySet[Job]) -> tuple[JobResult | None, datetime | None]:
    succeeded = jobs.filter(state=State.SUCCEEDED).order_by("-finished_at")
    for finished_at, result in succeeded.values_list("finished_at", "result")[:3]:
        if result:  # without one, it was the first of an instance, or the backups were paused
            return msgspec.convert(result, JobResult, strict=False), finished_at
    return None, None


def _latest_error(jobs: QuerySet[Job], done_at: datetime | None) -> str:
    """Return why the newest run that had an error failed; empty if it, or a later one, has succeeded."""
    newest = jobs.exclude(error="").order_by("-run_at").values_list("run_at", "error", "state").first()
    if newest is None:
        return ""
    run_at, error, state = newest
    has_succeeded = state == State.SUCCEEDED or (done_at is not None and run_at <= done_at)
    return "" if has_succeeded else error


def described(status: BackupStatus, config: Config) -> tuple[str, bool]:
    """Return the state in words, with the changes that would be lost now, and whether it needs attention."""
    if status.last is None and not config.backup_place:
        if config.backups == "off":
            return marked("off; with the database, every change since a backup of your own would be lost"), False
        words = marked(
            "none are made: with the database, every change since a backup of your own would be lost;"
            " set MUNIMENT_BACKUPS (off if you have others, such as an archive of the write-ahead log)"
        )
        return words, True
    if status.last is None:
        words = Phrase(
            "none yet in {place}; the first follows within {span}",
            place=_shown(config),
            span=_span(schedule().interval_s),
        )
    else:
        last = status.last
        words = Phrase(
            "the last {age} of changes would be lost with the database; the newest good backup in "
            "{place} covers everything until {covered_at} UTC, one is made every "
            "{interval} with changes, {kept:,} are kept",
            age=_span(status.age_s),
            place=last.place,
            covered_at=f"{last.covered_at:%Y-%m-%d %H:%M:%S}",
            interval=_span(last.interval_s),
            kept=last.kept,
        )
    faults = []
    if schedule().is_paused:
        faults.append(marked("paused on /operate/backups: none are made until an operator resumes them"))
    elif status.is_overdue:
        faults.append(marked("OVERDUE"))
    if status.error:
        faults.append(Phrase("the last run failed: {error}", error=Phrase.of(status.error)))
    if status.last and _is_elsewhere(status.last.place, config):
        faults.append(Phrase("none yet in {place}, where they are stored now", place=_shown(config)))
    if status.last and status.last.lost:
        count = len(status.last.lost)
        faults.append(Phrase("{count:,} documents had no good file; see muniment doctor --storage", count=count))
    return Joined("; ", [*faults, words]), bool(faults)


def _is_elsewhere(place: str, config: Config) -> bool:
    """Return whether the newest backup is in another place than those that follow, as after a restore."""
    if config.backup_place.startswith("s3:"):
        return not place.startswith("s3:")
    return bool(config.backup_place) and Path(place) != Path(config.backup_place)


def _shown(config: Config) -> str:
    return "an S3 store" if config.backup_place.startswith("s3:") else config.backup_place


def _span(seconds: float) -> str:
    for unit_s, unit, limit in ((1, "s", 120), (60, "min", 7200)):
        if seconds < limit:
            return f"{seconds / unit_s:,.0f} {unit}"
    return f"{seconds / 3600:,.0f} h"


COMMAND: Final = (sys.executable, "-m", "muniment", "backup", "--scheduled")
LOOK_S: Final = 0.5
"""Seconds between checks of the job for a request to stop."""
LONGEST_S: Final = 6 * 3600.0
ERROR_CHARACTERS: Final = 600
log = logging.getLogger(__name__)


def run_backup(run: JobRun) -> JSONObject:
    """
    Make a backup, unless they are paused, or this is the first run: an instance's first follows one interval later.

    One that an operator asks for is made at once.

    Raises:
        Postponed: it failed, and is tried again.
    """
    if not run.payload.get("asked") and (pace_s() == 0 or not has_run(except_job=run.id)):
        return {}
    out, error, code = _watched(run)
    if code != 0:
        reason = _last_words(error) or Phrase("the process ended with status {code}", code=code)
        log.warning("the scheduled backup failed: %s", reason)
        raise Postponed(reason)
    made = msgspec.json.decode(out, type=JobResult)
    for damage in made.damaged:
        log.warning("backups in %s: %s", made.place, damage)
    if made.name:
        log.info("backup made", extra={"name_of_backup": made.name, "bytes": made.size_bytes, "place": made.place})
    result: JSONObject = msgspec.to_builtins(made)
    return result


def _watched(run: JobRun) -> tuple[bytes, bytes, int]:
    """Run the command until it ends, and return its output, its errors and its status; end it if the job must stop."""
    deadline = time.monotonic() + LONGEST_S
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=out, stderr=errors) as process,  # noqa: S603 - this program itself
    ):
        try:
            while True:
                try:
                    # The input stays open: the command ends when it is closed, also by the death of this process.
                    process.wait(LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    run.check()
                    if time.monotonic() > deadline:
                        raise Postponed(
                            Phrase("it took longer than {hours:.0f} hours", hours=LONGEST_S / 3600)
                        ) from None
            return _read(out), _read(errors), process.returncode
        except BaseException:
            process.kill()
            raise


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _last_words(error: bytes) -> str:
    text = error.decode("utf-8", "replace").strip()
    return " ".join(text[text.rfind("error: ") :].removeprefix("error: ").split())[:ERROR_CHARACTERS]


HANDLER: Final = Handler(kind=KIND, work=run_backup, max_attempts=4, back_off_s=30.0, lane="backup")
