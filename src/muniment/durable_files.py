"""Files that survive a power cut: written completely or not at all, and synced before they count as stored."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """
    Provide a new file that replaces *path* when the context ends. Readable by this user only.

    If the context raises, *path* stays as it was.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w+b") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        draft.replace(path)
        sync(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def sync_with_folders(file: Path, top: Path) -> None:
    """Sync a file that another library wrote, its name, and the names of the folders between it and *top*."""
    sync(file)
    for folder in file.parents:
        sync(folder)
        if folder == top:
            break


def sync(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
