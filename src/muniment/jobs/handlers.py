"""Job handlers: which function runs each kind of job, and which jobs are periodic. Features register at load time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from muniment.kernel.json import JSONObject

if TYPE_CHECKING:
    from muniment.jobs.queue import JobRun

# Outcomes of a job other than a result: its handler asks for one, or its worker meets one.


class LeaseLost(Exception):  # noqa: N818 - an outcome, not a fault of the job
    """Another attempt has the job; drop everything."""


class Canceled(Exception):  # noqa: N818 - an outcome, not a fault of the job
    """The job was canceled; the queue ends it."""


class HandedBack(Exception):  # noqa: N818 - an outcome, not a fault of the job
    """The worker is stopping: another one continues from the last step."""


class Postponed(Exception):  # noqa: N818 - an outcome that a handler asks for
    """
    Raised by a handler whose job is to be tried again later, for a known reason: it is not logged as an error.

    Args:
        pause_s: the pause before the next attempt; None for the handler's own.
        is_excused: the attempt does not count, because a service that the job needs is away.
    """

    def __init__(self, reason: str, *, pause_s: float | None = None, is_excused: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.pause_s, self.is_excused = pause_s, is_excused


class Abandoned(Exception):  # noqa: N818 - an outcome that a handler asks for
    """Raised by a handler whose job can never succeed: it is not retried."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Ending = Literal["failed", "canceled"]
Ended = Callable[[str, JSONObject, Ending, str], None]
"""Cleans up after a job without success, in the transaction that ends it: job id, payload, ending, error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """
    A kind of job: its work, its limits and its lane.

    Args:
        kind: ``feature.past_event``.
        work: runs the job and returns its result. It may run again after a crash: each step must be repeatable.
        lease_s: how long a silent worker keeps the job; the heartbeat renews it every third of that.
        max_attempts: attempts without a finished step before the job fails.
        max_kills: how many of them may end with their process. It is small, because what a file or a site makes a job
            do may end the process, and with it the requests and jobs of others.
        back_off_s: pause before the second attempt, doubled for each further one, at most an hour.
        lane: jobs of a lane have threads of their own, so that they never wait for jobs that take long.
        per_group: how many jobs of one group may run at once; 0 means no limit.
        successes_kept: how long jobs that succeeded are kept, if shorter than others: many, or caused by visitors.
        ended: called when the job fails permanently or is canceled.
    """

    kind: str
    work: Callable[["JobRun"], Any]
    lease_s: float = 30.0
    max_attempts: int = 5
    max_kills: int = 2
    back_off_s: float = 2.0
    lane: str = ""
    per_group: int = 0
    successes_kept: timedelta | None = None
    ended: Ended | None = None


_handlers: dict[str, Handler] = {}
_periodic: dict[str, int | Callable[[], int]] = {}


class ClockWatcher(NamedTuple):
    """What a feature looks at every *every_s* seconds, and does when the process stops."""

    look: Callable[[], None]
    leave: Callable[[], None]
    every_s: float


clock_watchers: list[ClockWatcher] = []
set_back_watchers: list[Callable[[], None]] = []


def register(handler: Handler, *, every_s: int | Callable[[], int] = 0) -> None:
    """
    Register a handler.

    Args:
        every_s: its job is enqueued at this interval, once for all workers together. A function is asked each time, and
            returns 0 while the job is paused.
    """
    _handlers[handler.kind] = handler
    if every_s:
        _periodic[handler.kind] = every_s


WATCH_S: Final = 5.0
"""Seconds between checks by features for changes that other processes made."""


def watch_clock(
    look: Callable[[], None], leave: Callable[[], None] = lambda: None, *, every_s: float = WATCH_S
) -> None:
    """Call *look* every few seconds, at least one, in each process that runs jobs, and *leave* when it stops."""
    clock_watchers.append(ClockWatcher(look, leave, every_s))


def when_set_back(forget: Callable[[], None]) -> None:
    """Call *forget* in each process that runs jobs after the clock was set back."""
    set_back_watchers.append(forget)


def unregister(kind: str) -> None:
    _handlers.pop(kind, None)
    _periodic.pop(kind, None)


def handler(kind: str) -> Handler | None:
    return _handlers.get(kind)


def kinds(lane: str | None = None) -> list[str]:
    """Return the kinds of jobs in a lane, or all."""
    return sorted(kind for kind, found in _handlers.items() if lane is None or found.lane == lane)


def lanes() -> list[str]:
    """Return the lanes besides the main one."""
    return sorted({found.lane for found in _handlers.values()} - {""})


def periodic() -> dict[str, int]:
    """Return the interval in seconds of each periodic kind that is not paused."""
    intervals = {}
    for kind, every_s in _periodic.items():
        interval_s = every_s if isinstance(every_s, int) else every_s()
        if interval_s:
            intervals[kind] = interval_s
    return intervals
