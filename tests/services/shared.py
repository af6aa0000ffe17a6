"""What all processes of one run of the suite share: made by the first one that needs it, then only read."""

import atexit
import fcntl
import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar


class Shared:
    """The folder of this run; None until it is given or needed."""

    folder: ClassVar[Path | None] = None


def shared(name: str, make: Callable[[Path], object]) -> Path:
    """
    Return the file or folder that *make* creates, once for all processes of this run; do not change it.

    Args:
        name: its name; the same in each process.
        make: creates it at the path it is given, where nothing is yet.
    """
    folder = Shared.folder or _own()
    place, unfinished = folder / name, folder / f"{name}.unfinished"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            if unfinished.is_dir():
                shutil.rmtree(unfinished)
            unfinished.unlink(missing_ok=True)
            make(unfinished)
            unfinished.rename(place)
    return place


@functools.cache
def _own() -> Path:
    """Return a folder of this process."""
    folder = Path(tempfile.mkdtemp(prefix="muniment-shared-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
