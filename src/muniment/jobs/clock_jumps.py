"""Mends what a clock that was set has left behind; :mod:`muniment.jobs.steadiness` notices it."""

import logging
from datetime import timedelta
from typing import Final

from django.db.models import Q

from muniment.jobs import handlers, queue
from muniment.jobs.models import Job, State

FURTHEST: Final = timedelta(hours=2)
"""No pause and no lease is longer."""
SLACK: Final = timedelta(minutes=1)
log = logging.getLogger(__name__)


class ClockJumps:
    """Mends what a jump of the clock has left behind."""

    def __init__(self) -> None:
        self._seen, self._set_back_s = queue.steadiness.jumps, queue.steadiness.set_back_s

    def are_new(self) -> bool:
        """Return whether the clock has jumped since the last call."""
        former, self._seen = self._seen, queue.steadiness.jumps
        if former == self._seen:
            return False
        log.warning("the clock was set; leases are renewed, and nothing waits for the former time")
        return True

    def settle(self) -> None:
        set_back_s = queue.steadiness.set_back_s
        settle(is_set_back=set_back_s > self._set_back_s)
        if set_back_s > self._set_back_s:
            for forget in handlers.set_back_watchers:
                forget()
        self._set_back_s = set_back_s


def settle(*, is_set_back: bool) -> None:
    """
    Make due what a clock that was set back has left in the future, and let periodic jobs run again.

    Args:
        is_set_back: it was set back while this process ran, so that every pause is over too.
    """
    moment = queue.clock()
    states = (State.QUEUED,) if queue.steadiness.is_settling() else queue.UNFINISHED
    beyond = Q(state__in=states, run_at__gt=moment + FURTHEST)
    if is_set_back:
        beyond |= Q(state=State.QUEUED, run_at__gt=moment)
    if Job.objects.filter(beyond).exists():
        Job.objects.filter(beyond).update(run_at=moment)
        queue.work_signal.notify()
    done = Job.objects.filter(kind__in=handlers.periodic(), finished_at__gt=moment + SLACK, unique_key__isnull=False)
    if done.exists():
        done.update(unique_key=None)
