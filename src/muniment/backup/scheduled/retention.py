"""Retention of backups: the newest, and the newest of each hour, day, week and month that has one."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

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
    found = set(newest_first[:1])
    for name, number in rule.items():
        periods: dict[tuple[int, ...], datetime] = {}
        for at in newest_first:
            periods.setdefault(_PERIODS[name](at), at)
        found.update(list(periods.values())[:number])
    return found
