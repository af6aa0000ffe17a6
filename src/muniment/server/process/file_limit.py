"""The limit of open files (RLIMIT_NOFILE): raise it, and keep connections below it, so that accepting never fails."""

import contextlib
import logging
import resource
from typing import Final

from muniment.config import Config
from muniment.server.process.sockets import BACKLOG

RESERVED_FILES: Final = 512
"""For databases, blobs, replicas and outgoing connections."""
FEWEST: Final = 16
log = logging.getLogger("muniment.server")


def raised_file_limit(config: Config) -> int:
    """Raise the soft limit as far as *config* needs it and the hard limit allows; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # All waiting clients may be accepted in one turn of the event loop, before others make room.
    wanted = config.max_connections + RESERVED_FILES + BACKLOG
    if soft == resource.RLIM_INFINITY:
        return wanted
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            soft = allowed
    return soft


def connections_within(max_connections: int, files: int) -> int:
    """Return how many connections *files* open files allow, at most *max_connections*."""
    allowed = min(max_connections, max(FEWEST, files - min(RESERVED_FILES, files // 2)))
    if allowed < max_connections:
        extra = {"allowed": allowed, "files": files}
        log.warning("fewer connections than MUNIMENT_MAX_CONNECTIONS: the limit of open files is low", extra=extra)
    return allowed
