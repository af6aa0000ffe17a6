"""
When scheduled backups are made and which are kept, as an operator chose on the page.

It is a part of the registry's settings, versioned, and valid on every node.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from muniment import setting_values
from muniment.registry_toml import applied

INTERVAL_S: Final = 900
"""The default: a lost database costs the changes of a quarter of an hour. Without changes, no backup is made."""
KEEP: Final[Mapping[str, int]] = {"recent": 4, "hourly": 24, "daily": 7, "weekly": 4}
"""The default: enough to go back to before an error that was noticed after a month."""


class Schedule(NamedTuple):
    """The schedule that is valid now."""

    interval_s: int
    keep: Mapping[str, int]
    is_paused: bool


def schedule() -> Schedule:
    """Return the schedule of this instance."""
    chosen = applied.current().backups
    return Schedule(
        60 * chosen.interval_min or INTERVAL_S,
        setting_values.retention(chosen.keep) if chosen.keep else KEEP,
        chosen.paused,
    )


def pace_s() -> int:
    """Return the seconds between two backups; 0 while they are paused."""
    found = schedule()
    return 0 if found.is_paused else found.interval_s


def next_at(at: datetime, interval_s: int) -> datetime:
    """Return when the next backup begins after *at*: jobs begin at whole multiples of the interval."""
    return datetime.fromtimestamp((int(at.timestamp()) // interval_s + 1) * interval_s, UTC)
