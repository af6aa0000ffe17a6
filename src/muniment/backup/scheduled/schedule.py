"""
When scheduled backups are made and which are kept, as an operator chose on the page.

It is a part of the registry's settings, versioned, and valid on every node.
"""

from collections.abc import Callable, Iterable, Mapping
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
    current = schedule()
    return 0 if current.is_paused else current.interval_s


def next_at(at: datetime, interval_s: int) -> datetime:
    """Return when the next backup begins after *at*: jobs begin at whole multiples of the interval."""
    return datetime.fromtimestamp((int(at.timestamp()) // interval_s + 1) * interval_s, UTC)


_PERIODS: Final[dict[str, Callable[[datetime], tuple[int, ...]]]] = {
    "recent": lambda at: (int(at.timestamp() * 1_000_000),),
    "hourly": lambda at: (at.year, at.month, at.day, at.hour),
    "daily": lambda at: (at.year, at.month, at.day),
    "weekly": lambda at: at.isocalendar()[:2],
    "monthly": lambda at: (at.year, at.month),
}


def kept(made: Iterable[datetime], rule: Mapping[str, int]) -> set[datetime]:
    """
    Return those of the moments *made* (in UTC) whose backups are kept.

    Only periods that have a backup count, so nothing is deleted because time passes, and the newest always stays.
    """
    newest_first = sorted(made, reverse=True)
    stay = set(newest_first[:1])
    for name, number in rule.items():
        newest_of_period: dict[tuple[int, ...], datetime] = {}
        for at in newest_first:
            newest_of_period.setdefault(_PERIODS[name](at), at)
        stay.update(list(newest_of_period.values())[:number])
    return stay
