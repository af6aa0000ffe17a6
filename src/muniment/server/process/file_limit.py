"""The limit of open files (RLIMIT_NOFILE): raise it, and keep connections below it, so that accepting never fails."""

import logging
import resource
from typing import Final

from muniment.server.http.holders import MAX_CONNECTIONS
from muniment.server.process.sockets import BACKLOG

RESERVED_FILES: Final = 512
"""For databases, blobs, replicas and outgoing connections."""
NEEDED_FILES: Final = 56
"""A process with SQLite has so many open, without any connection (measured: 35 at rest, more with all threads busy)."""
FEWEST: Final = 8
log = logging.getLogger("muniment.server")


def reachable_file_limit() -> int:
    """Return the limit that MAX_CONNECTIONS needs, or a lower one if the system does not allow it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # All waiting clients may be accepted in one turn of the event loop, before others make room.
    wanted = MAX_CONNECTIONS + RESERVED_FILES + BACKLOG
    if resource.RLIM_INFINITY in {soft, hard}:
        return wanted
    return max(soft, min(wanted, hard))


def raise_file_limit() -> int:
    """Raise the soft limit to what is reachable; return how many connections it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = reachable_file_limit()
    if soft != resource.RLIM_INFINITY and soft < files:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
        except (ValueError, OSError):
            files = soft
    allowed = connections_within(MAX_CONNECTIONS, files)
    if allowed < MAX_CONNECTIONS:
        extra = {"allowed": allowed, "files": files}
        log.warning("fewer connections than usual: the limit of open files is low", extra=extra)
    return allowed


def connections_within(max_connections: int, files: int) -> int:
    """Return how many connections *files* open files allow, at most *max_connections*."""
    reserved = max(NEEDED_FILES, min(RESERVED_FILES, files // 2))
    return min(max_connections, max(FEWEST, files - reserved))


def backlog_within(connections: int, files: int) -> int:
    """
    Return how many clients may wait to be accepted while *connections* of *files* open files may be in use.

    All of them may be accepted in one turn of the event loop, so with few files only a few may wait; the system lets
    the others try again, a second or more later.
    """
    has_room = connections >= RESERVED_FILES or files >= connections + RESERVED_FILES + BACKLOG
    return BACKLOG if has_room else max(FEWEST // 2, connections // 16)
