"""
When scheduled backups are made and which are kept: by the process's settings, else as an operator chose on the page.

What an operator chooses is a part of the registry's settings: it is versioned, and valid on every node.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from muniment import config, setting_values
from muniment.config import Config
from muniment.registry_toml import applied


class Schedule(NamedTuple):
    """
    The schedule that is valid now.

    Args:
        is_interval_fixed: the environment or the file of settings sets the interval, so no operator can.
        is_keep_fixed: the same of what is kept.
    """

    interval_s: int
    keep: Mapping[str, int]
    is_paused: bool
    is_interval_fixed: bool
    is_keep_fixed: bool


def schedule(settings: Config) -> Schedule:
    """Return the schedule of this instance."""
    chosen = applied.current().backups
    is_interval_fixed = settings.origins["backup_interval_s"] != "default"
    is_keep_fixed = settings.origins["backup_keep"] != "default"
    return Schedule(
        settings.backup_interval_s if is_interval_fixed or not chosen.interval_min else 60 * chosen.interval_min,
        settings.backup_keep if is_keep_fixed or not chosen.keep else setting_values.retention(chosen.keep),
        chosen.paused and not is_interval_fixed,
        is_interval_fixed,
        is_keep_fixed,
    )


def pace_s() -> int:
    """Return the seconds between two backups; 0 while they are paused."""
    found = schedule(config.current())
    return 0 if found.is_paused else found.interval_s


def next_at(at: datetime, interval_s: int) -> datetime:
    """Return when the next backup begins after *at*: jobs begin at whole multiples of the interval."""
    return datetime.fromtimestamp((int(at.timestamp()) // interval_s + 1) * interval_s, UTC)
