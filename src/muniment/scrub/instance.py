"""The scrub of the instance, as a job that one process runs every ten minutes."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from django.db import transaction

from muniment.jobs.handlers import Handler
from muniment.jobs.queue import JobRun
from muniment.scrub.checks import Damage, checks
from muniment.scrub.models import ScrubState
from muniment.scrub.progress import Progress, begun, logged, step, turn, with_met

EVERY_S: Final = 600
PASS_DAYS: Final = 7
"""Everything stored is verified once in this number of days: damage is found while weekly backups are still kept."""
PASS_S: Final = PASS_DAYS * 86_400.0
_ROW: Final = 1
_MET: Final = 2
"""The row of what reads have met, until the next turn takes it over."""


def stored() -> Progress:
    """Return the progress of the scrub, with what reads have met since; that of none if there was no turn yet."""
    met = _row(_MET)
    return with_met(_row(_ROW), met.former, met.mended)


def _row(number: int) -> Progress:
    found = ScrubState.objects.filter(pk=number).values_list("progress", flat=True).first()
    return Progress() if found is None else msgspec.convert(found, Progress)


def moment(seconds: float) -> datetime | None:
    """Return a time of the progress; None for one that has not come."""
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def store(progress: Progress) -> None:
    ScrubState.objects.update_or_create(pk=_ROW, defaults={"progress": msgspec.to_builtins(progress)})


def record_met(found: Sequence[Damage]) -> None:
    """Remember damages that reads met, for the metrics and their alert."""
    damages = logged(found)
    left = [damage for damage in damages if not damage.is_mended]
    with transaction.atomic():
        # In a row of their own: a turn that runs meanwhile writes what it knows itself.
        met = with_met(_row(_MET), left, len(damages) - len(left))
        ScrubState.objects.update_or_create(pk=_MET, defaults={"progress": msgspec.to_builtins(met)})


def _taken_over() -> Progress:
    """Return the progress, and let it have what reads have met."""
    with transaction.atomic():
        progress = stored()
        if ScrubState.objects.filter(pk=_MET).delete()[0]:
            store(progress)
    return progress


def forget(subject: str) -> None:
    """Remove what was found about *subject*, such as a person who is erased, in the caller's transaction."""
    progress = _taken_over()
    if any(damage.subject == subject for damage in (*progress.damages, *progress.former)):
        damages = tuple(each for each in progress.damages if each.subject != subject)
        former = tuple(each for each in progress.former if each.subject != subject)
        store(msgspec.structs.replace(progress, damages=damages, former=former))


def take_turn(run: JobRun, *, clock: Callable[[], float] = time.time) -> None:
    """Continue the pass of this instance."""

    def between(progress: Progress) -> None:
        store(progress)
        run.check()

    progress = _taken_over()
    result = turn(progress, checks(), at=clock(), pass_s=PASS_S, between=between)
    if result != progress:
        store(result)


def run_whole_pass(told: Callable[[Progress], object]) -> Progress:
    """Run a whole pass now, mending what can be mended, and return its result."""
    progress = begun(_taken_over(), checks(), at=time.time())
    while progress.check:
        progress = step(progress, checks(), at=time.time(), limit=200)
        store(progress)
        told(progress)
    return progress


HANDLER: Final = Handler(kind="scrub.due", work=take_turn, lease_s=120)
