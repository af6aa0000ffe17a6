"""Job handlers: which function runs each kind of job, and which jobs are periodic. Features register at load time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from muniment.kernel.json import JSONObject

if TYPE_CHECKING:
    from muniment.jobs.queue import JobRun

Ending = Literal["failed", "canceled"]


class Ended(Protocol):
    """Called when a job ends without success, in the transaction that ends it."""

    def __call__(self, job_id: str, payload: JSONObject, ending: Ending, error: str) -> None:
        """Clean up, for example release a hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """
    How one kind of job runs.

    Args:
        kind: ``feature.past_event``.
        work: runs the job and returns its result. It may run again after a crash, so each step must be
            repeatable.
        lease_s: how long a silent worker keeps the job; the heartbeat renews it every third of that.
        max_attempts: attempts without a finished step before the job fails, also if each killed its process.
        back_off_s: pause before the second attempt, doubled for each further one, at most an hour.
        per_group: how many jobs of one group may run at once; 0 means no limit.
        ended: called when the job fails permanently or is canceled.
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
    """A kind of job that is enqueued at intervals, once for all workers together."""

    kind: str
    every_s: int


_handlers: dict[str, Handler] = {}
_periodic: dict[str, Periodic] = {}


def register(handler: Handler, *, every_s: int = 0) -> None:
    _handlers[handler.kind] = handler
    if every_s:
        _periodic[handler.kind] = Periodic(handler.kind, every_s)


def unregister(kind: str) -> None:
    _handlers.pop(kind, None)
    _periodic.pop(kind, None)


def handler(kind: str) -> Handler | None:
    return _handlers.get(kind)


def kinds() -> list[str]:
    return sorted(_handlers)


def periodic() -> list[Periodic]:
    return list(_periodic.values())
