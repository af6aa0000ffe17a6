"""The progress of a scrub: where it continues after a stop, what it found, and how much it may do now."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from muniment.scrub.checks import Check, Damage

log = logging.getLogger(__name__)

FIRST_AFTER_S: Final = 3_600.0
"""The first pass of a new instance begins after an hour: importing comes first."""
CPU_S: Final = 6.0
"""CPU time that one turn may use: a hundredth of a core, with a turn every ten minutes."""
_ON_TIME: Final = 0.9
"""A pass is done after this part of its time, so that the next one begins when it should."""
_LIMIT: Final = 20
_MOST: Final = 100
"""Maximum number of damages that are remembered."""
_BREATH_S: Final = 0.005


class Progress(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    The state of a scrub. Times are in seconds since the epoch.

    Args:
        began_at: the start of the pass that is running, or of the last one.
        finished_at: the end of the last pass; 0 before the first.
        check: the check that is running; empty between two passes.
        after: where it continues.
        examined: the items of this pass so far, of *total*.
        damages: what this pass has found.
        former: what the last pass has found and could not mend.
        mended: everything that was ever mended.
    """

    began_at: float = 0.0
    finished_at: float = 0.0
    check: str = ""
    after: str = ""
    examined: int = 0
    total: int = 0
    damages: tuple[Damage, ...] = ()
    former: tuple[Damage, ...] = ()
    mended: int = 0

    def open(self, checks: Sequence[Check]) -> list[Damage]:
        """Return what is damaged now: found by this pass, or by the last one where this one has not been yet."""
        names = [check.name for check in checks]
        ahead = set(names[names.index(self.check) :] if self.check in names else ())
        found = [damage for damage in self.damages if not damage.is_mended]
        known = {(damage.check, damage.subject) for damage in found}
        found += [each for each in self.former if each.check in ahead and (each.check, each.subject) not in known]
        return found if self.check else list(self.former)


def turn(
    progress: Progress,
    checks: Sequence[Check],
    *,
    at: float,
    pass_s: float,
    cpu_s: float = CPU_S,
    cpu: Callable[[], float] = time.thread_time,
    between: Callable[[Progress], object] = lambda _: None,
) -> Progress:
    """
    Continue a pass as far as it must be by now, at most for *cpu_s*; begin one if it is due.

    Args:
        pass_s: the time of one pass.
        between: called after each part with the progress, to store it; an exception ends the turn.
    """
    if not progress.began_at:
        began_at = at - pass_s + min(FIRST_AFTER_S, pass_s)
        return msgspec.structs.replace(progress, began_at=began_at)  # reads may have met damage before
    if progress.began_at > at:  # the clock was set back
        progress = msgspec.structs.replace(progress, began_at=at - pass_s * progress.examined / max(1, progress.total))
    if not progress.check:
        if at < progress.began_at + pass_s:
            return progress
        progress = begun(progress, checks, at=at)
    share = min(1.0, (at - progress.began_at) / (pass_s * _ON_TIME))
    target, started = max(1, int(progress.total * share)), cpu()
    while progress.check and progress.examined < target and cpu() - started < cpu_s:
        progress = step(progress, checks, at=at)
        between(progress)
        time.sleep(_BREATH_S)
    return progress


def begun(progress: Progress, checks: Sequence[Check], *, at: float) -> Progress:
    """Return *progress* at the start of a new pass."""
    return Progress(
        began_at=at,
        finished_at=progress.finished_at,
        check=checks[0].name if checks else "",
        total=sum(check.size() for check in checks),
        former=progress.former,
        mended=progress.mended,
    )


def logged(found: Sequence[Damage]) -> list[Damage]:
    """Log damages, and return those that are remembered."""
    damages = [damage for damage in found if not damage.is_minor]
    for damage in damages:
        if damage.is_mended:
            log.warning("mended: %s", damage, extra={"check": damage.check, "subject": damage.subject})
        else:
            log.error("damaged: %s", damage, extra={"check": damage.check, "subject": damage.subject})
    return damages


def with_met(progress: Progress, found: Sequence[Damage], mended: int) -> Progress:
    """Add damages that reads met outside of the pass: those that are left stay until their check runs again."""
    known = {(damage.check, damage.subject) for damage in (*progress.damages, *progress.former)}
    new = tuple(damage for damage in found if (damage.check, damage.subject) not in known)
    if progress.check:
        progress = msgspec.structs.replace(progress, damages=(*progress.damages, *new)[:_MOST])
    else:
        progress = msgspec.structs.replace(progress, former=(*progress.former, *new)[:_MOST])
    return msgspec.structs.replace(progress, mended=progress.mended + mended)


def step(progress: Progress, checks: Sequence[Check], *, at: float, limit: int = _LIMIT) -> Progress:
    """Run one part of the pass, log what it found, and return the new progress."""
    names = [check.name for check in checks]
    if progress.check not in names:  # this version has no such check
        return begun(progress, checks, at=at)
    found = checks[names.index(progress.check)].part(progress.after, limit, mend=True)
    damages = logged(found.damages)
    following = [*names, ""][names.index(progress.check) + 1]
    progress = msgspec.structs.replace(
        progress,
        check=progress.check if found.after is not None else following,
        after=found.after or "",
        examined=progress.examined + max(1, found.examined),
        damages=(*progress.damages, *damages)[:_MOST],
        mended=progress.mended + sum(damage.is_mended for damage in damages),
    )
    if progress.check:
        return progress
    left = tuple(damage for damage in progress.damages if not damage.is_mended)
    log.info("scrub finished", extra={"examined": progress.examined, "damaged": len(left)})
    return msgspec.structs.replace(progress, finished_at=at, former=left, damages=())
