"""Scheduled backups for the operator's pages: the list, and one more on request."""

from pathlib import Path
from typing import Final

import msgspec
from django.db import transaction

from muniment.accounts.operations import require_operator
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.backup.scheduled.job import KIND, JobResult, backup_status, described
from muniment.backup.scheduled.place import Place
from muniment.backup.scheduled.schedule import next_at, schedule
from muniment.config import Config
from muniment.jobs.models import Job, State
from muniment.jobs.queue import UNFINISHED, enqueue
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict
from muniment.masking import masked
from muniment.web.views.operate.contributed import BackupList, BackupRow, BackupSchedule

MOST: Final = 100


def read_backups(config: Config) -> BackupList:
    """
    Return the backups in a folder, or those that jobs of the last days have made in an S3 store.

    No page waits for a remote store.
    """
    says, needs_attention = described(backup_status(), config)
    place = config.backup_place
    is_running = Job.objects.filter(kind=KIND, state__in=UNFINISHED).exclude(payload={}).exists()
    rows: list[BackupRow] = []
    if place.startswith("s3:"):
        rows = _made_by_jobs()
    elif place:
        rows = _in_folder(place, config)
    return BackupList(masked(place), masked(says), needs_attention, is_running, rows[:MOST], _schedule(config))


def _schedule(config: Config) -> BackupSchedule:
    current = schedule()
    is_made = config.backup_place and not current.is_paused
    return BackupSchedule(
        interval_min=max(1, round(current.interval_s / 60)),
        keep=",".join(f"{name}={number}" for name, number in current.keep.items()),
        is_paused=current.is_paused,
        next_at=next_at(now(), current.interval_s) if is_made else None,
    )


def ask_for_backup(actor: Actor, config: Config) -> None:
    """
    Enqueue a backup.

    Raises:
        Forbidden: the actor is not an operator.
        Conflict: no place is set, or one that was asked for is not made yet.
    """
    require_operator(actor)
    if not config.backup_place:
        raise Conflict("No place for backups is set.", "Set MUNIMENT_BACKUPS and restart.")
    with transaction.atomic():
        if Job.objects.filter(kind=KIND, state__in=UNFINISHED).exclude(payload={}).exists():
            raise Conflict("A backup is being made already.", "Reload this page in a moment.")
        enqueue(KIND, {"asked": True})
        record(Event.COMMAND_RUN, actor=actor, detail={"command": "backup"})


def _in_folder(place: str, config: Config) -> list[BackupRow]:
    if not Path(place).is_dir():
        return []
    opened = Place(place, config.data)
    damaged = opened.index().damaged
    newest_first = reversed(opened.records())
    return [
        BackupRow(record.name, record.made_at, record.size_bytes, damaged.get(record.name, ""))
        for record in newest_first
    ]


def _made_by_jobs() -> list[BackupRow]:
    succeeded = Job.objects.filter(kind=KIND, state=State.SUCCEEDED).order_by("-finished_at")
    rows = []
    for result in succeeded.values_list("result", flat=True)[: 10 * MOST]:
        if not result:
            continue
        made = msgspec.convert(result, JobResult, strict=False)
        if made.name:  # otherwise nothing had changed
            rows.append(BackupRow(made.name, made.covered_at, made.size_bytes))
    return rows
