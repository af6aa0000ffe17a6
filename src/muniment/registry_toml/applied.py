"""
The applied settings of this instance, in each process, without a database.

The database has every version (:mod:`muniment.registry.settings.versions`). The latest is copied into a file of the
data folder, so that a node knows it before, and without, its database. A process looks at that file at most ten times
per second.
"""

import logging
import os
import threading
import time
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from muniment import config
from muniment.durable_files import replacing
from muniment.registry_toml.document import DEFAULT, RegistrySettings

UNNAMED: Final = "Muniment"
"""The name of a registry that has declared none."""
COPY: Final = "registry-applied.json"
LOOK_S: Final = 0.1
log = logging.getLogger(__name__)


class Applied(Struct, frozen=True, omit_defaults=True):
    """
    Settings with the number of their version, 0 if there are none.

    Args:
        stamp: when they were applied, as a stamp of :mod:`muniment.kernel.http.representations`.
    """

    number: int = 0
    stamp: str = ""
    settings: RegistrySettings = DEFAULT


NONE: Final = Applied()


class _Seen:
    """The file that a process last read, and its content."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.config: config.Config | None = None
        self.identity: tuple[int, int, int] | None = None
        self.applied = NONE
        self.looked_at = float("-inf")


_seen = _Seen()


def applied() -> Applied:
    """Return the applied settings; costs nothing for a tenth of a second after the last look at the file."""
    if time.monotonic() - _seen.looked_at < LOOK_S and config.current() is _seen.config:
        return _seen.applied
    return look()


def look() -> Applied:
    """Return the applied settings of the file as it is now."""
    settings = config.current()
    path = settings.data / COPY
    try:
        found = os.stat(path)  # noqa: PTH116 - a third of the cost
        identity = (found.st_ino, found.st_mtime_ns, found.st_size)
    except OSError:
        identity = None
    with _seen.lock:
        if identity != _seen.identity or settings is not _seen.config:
            _seen.applied = _read(path) if identity else NONE
            _seen.identity, _seen.config = identity, settings
        _seen.looked_at = time.monotonic()
        return _seen.applied


def current() -> RegistrySettings:
    """Return the settings of the registry."""
    return applied().settings


def registry_name() -> str:
    """Return the name of the registry on pages, in mail, on server cards and in documents."""
    return current().registry.name or UNNAMED


def keep(found: Applied) -> None:
    """Make *found* the applied settings of every process of this data folder."""
    path = config.current().data / COPY
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(msgspec.json.encode(found))
    look()


def _read(path: Path) -> Applied:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Applied)
    except (OSError, msgspec.DecodeError) as error:
        log.warning("%s cannot be read, so the defaults are used until the database has been asked: %s", path, error)
        return NONE
