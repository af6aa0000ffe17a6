"""Parts of the console that packages above the pages contribute; they set them when Django loads."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from muniment.kernel.actor import Actor


class BackupRow(NamedTuple):
    """A backup in the list; *fault* says why it cannot be used, if it is damaged."""

    name: str
    made_at: datetime
    size_bytes: int
    fault: str = ""


class BackupSchedule(NamedTuple):
    """
    When backups are made and which are kept.

    Args:
        next_at: None while they are paused, or if no place is set.
    """

    interval_min: int
    keep: str
    is_paused: bool
    next_at: datetime | None


class BackupList(NamedTuple):
    """
    The backups of the instance.

    Args:
        place: where they go, without credentials; empty if none are made.
        says: their state in words.
        is_running: one waits or is being made.
    """

    place: str
    says: str
    needs_attention: bool
    is_running: bool
    rows: list[BackupRow]
    schedule: BackupSchedule


backups: tuple[Callable[[], BackupList], Callable[[Actor], None]] | None = None
"""Reads the list, and asks for a backup."""
