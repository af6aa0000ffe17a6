"""Files that only this user can read: the mask of every process, and files of versions that set none."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MASK: Final = 0o077
_OURS: Final = (
    *("muniment.sqlite3*", "published.sqlite3*", "suppressions.*"),
    *("keys", "keys/*", "mail", "blobs", "exports", "copies", "backups"),
)
"""Private paths in the data folder; a private folder needs no private files in it."""


def begin() -> None:
    """Let everything that this process and its children write be readable by this user only."""
    os.umask(MASK)


def tighten(data: Path) -> None:
    """Make files of the data folder that belong to this user private; others are left to `doctor`."""
    for path in loose(data):
        try:
            path.chmod(path.stat().st_mode & ~MASK)
        except OSError:  # a read-only disk, or a file that has just gone
            continue


def loose(data: Path) -> Iterator[Path]:
    """Yield the files and folders of this user in the data folder that other users can reach."""
    for pattern in _OURS:
        for path in sorted(data.glob(pattern)):
            try:
                found = path.lstat()
            except OSError:
                continue
            if not stat.S_ISLNK(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & MASK:
                yield path
