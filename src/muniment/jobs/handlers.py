"""Which function does which kind of job, and what happens by the clock. Features register when they load."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from muniment.jobs.queue import JobRun

Ending = Literal["failed", "canceled"]


class Ended(Protocol):
    """Settles a job that ended without success, in the transaction that ends it."""

    def __call__(self, job_id: str, payload: dict[str, Any], ending: Ending, error: str) -> None:
        """Settle, for example release what was held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """
    How one kind of job is done.

    Args:
        kind: ``feature.past_event``.
        work: does it; what it returns is the job's result. It may run again after a crash, so each
            step is made to be repeated.
        lease_s: how long a silent worker keeps the job; the heartbeat renews it every third of that.
        max_attempts: after so many that kept no step the job has failed, also when each killed its process.
        back_off_s: wait before the second attempt, doubled for each further one, at most an hour.
        per_group: how many jobs of one group may run at once; 0 is any number.
        ended: called when the job failed for good or was canceled.
    """

    kind: str
    work: Callable[["JobRun"], Any]
    lease_s: float = 30.0
    max_attempts: int = 5
    back_off_s: float = 2.0
    per_group: int = 0
    ended: Ended | None = None


@dataclass(frozen=True, slots=True)
class Periodic:
    """A kind of job that is enqueued by the clock, once for all workers together."""

    kind: str
    every_s: int


_handlers: dict[str, Handler] = {}
_periodic: dict[str, Periodic] = {}


def register(handler: Handler, *, every_s: int = 0) -> None:
    """Say how a kind of job is done, and with *every_s* that it is done by the clock."""
    _handlers[handler.kind] = handler
    if every_s:
        _periodic[handler.kind] = Periodic(handler.kind, every_s)


def forget(kind: str) -> None:
    """Take a kind of job out again."""
    _handlers.pop(kind, None)
    _periodic.pop(kind, None)


def handler(kind: str) -> Handler | None:
    """Give how *kind* is done, None when nobody here knows."""
    return _handlers.get(kind)


def kinds() -> list[str]:
    """List the kinds of jobs that this process can do."""
    return sorted(_handlers)


def periodic() -> list[Periodic]:
    """List what happens by the clock."""
    return list(_periodic.values())
