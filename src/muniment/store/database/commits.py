"""Commits on a database with synchronous standbys that end neither in success nor in an ordinary failure."""

from typing import Protocol

from django.db import OperationalError


class Confirms(Protocol):
    """Whether a standby of one database confirms the commits of this process."""

    is_silent: bool
    unconfirmed: int


known: list[Confirms] = []
"""The databases with commits of this process; empty on SQLite."""


def status() -> tuple[bool, int]:
    """Return whether a standby is silent, and the number of unconfirmed commits of this process."""
    return any(each.is_silent for each in known), sum(each.unconfirmed for each in known)


class Unconfirmed(OperationalError):  # noqa: N818 - an outcome, not a fault
    """The primary committed, but no standby confirmed it: a failover may lose the change. The outcome is unknown."""


class StandbySilent(OperationalError):  # noqa: N818 - a state, not a fault
    """Nothing was committed: no standby confirms changes at the moment."""
