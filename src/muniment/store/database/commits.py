"""
Commits: how long they take, and those that end neither in success nor in an ordinary failure.

The latter happens on a database with synchronous standbys.
"""

from bisect import bisect_left
from typing import Final, Protocol

from django.db import OperationalError


class Confirms(Protocol):
    """Whether a standby of one database confirms the commits of this process."""

    is_silent: bool
    unconfirmed: int


known: list[Confirms] = []
"""The databases with commits of this process; empty on SQLite."""


BOUNDS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
"""Upper bounds of the counts of :data:`durations`, as those of requests."""
durations: Final = [0] * (len(BOUNDS_S) + 1)
"""The commits of this process by the bound that they took at most; the last count is of those beyond all bounds."""
total_s: float = 0.0
"""The seconds that all of them took."""
given_up: int = 0
"""Changes of this process that were refused because they had waited too long; nothing of them was saved."""


def took(seconds: float) -> None:
    """Count one commit."""
    global total_s  # noqa: PLW0603 - of this process
    durations[bisect_left(BOUNDS_S, seconds)] += 1
    total_s += seconds


def give_up() -> None:
    """Count a change that waited too long."""
    global given_up  # noqa: PLW0603 - of this process
    given_up += 1


def status() -> tuple[bool, int]:
    """Return whether a standby is silent, and the number of unconfirmed commits of this process."""
    return any(each.is_silent for each in known), sum(each.unconfirmed for each in known)


class Unconfirmed(OperationalError):  # noqa: N818 - an outcome, not a fault
    """The primary committed, but no standby confirmed it: a failover may lose the change. The outcome is unknown."""


class StandbySilent(OperationalError):  # noqa: N818 - a state, not a fault
    """Nothing was committed: no standby confirms changes at the moment."""
