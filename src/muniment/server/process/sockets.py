"""The listening sockets, and the limit of open files (RLIMIT_NOFILE) that accepting on them must not reach."""

import errno
import logging
import resource
import socket
import time
from collections.abc import Callable
from typing import Final

from muniment.server.http.holders import MAX_CONNECTIONS

BACKLOG: Final = 2048
ORPHANS_END_WITHIN_S: Final = 5.0
"""Processes whose supervisor was killed may hold its address for this long."""
LOOK_S: Final = 0.05


def bind(host: str, port: int, *, pause: Callable[[float], object] = time.sleep) -> socket.socket:
    """
    Listen, so that clients wait from now on instead of being refused.

    If processes of a supervisor hold the address, wait for them: they end soon if it was killed.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for left in range(round(ORPHANS_END_WITHIN_S / LOOK_S), -1, -1):
        try:
            listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not left or not _is_shared(family, host, port):
                raise
            pause(LOOK_S)
        else:
            listener.setblocking(False)  # noqa: FBT003 - socket's signature
            return listener
    raise AssertionError  # the last attempt has returned or raised


def _is_shared(family: socket.AddressFamily, host: str, port: int) -> bool:
    """Return whether every socket at an address is of a process of this user's that shares it."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def share(listener: socket.socket) -> None:
    """Let :func:`bind_beside` use the address; set after binding, so that another instance is still refused."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def bind_beside(listener: socket.socket) -> socket.socket:
    """
    Bind another socket to a shared address, without listening yet.

    The kernel distributes new connections evenly between listening sockets. With one shared queue, an idle process
    would take all of them.
    """
    other = socket.socket(listener.family, socket.SOCK_STREAM)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if listener.family == socket.AF_INET6:
        only_v6 = socket.IPPROTO_IPV6, socket.IPV6_V6ONLY
        other.setsockopt(*only_v6, listener.getsockopt(*only_v6))
    other.bind(listener.getsockname())
    other.setblocking(False)  # noqa: FBT003 - socket's signature
    return other


RESERVED_FILES: Final = 512
"""Open files reserved for databases, blobs, replicas and outgoing connections."""
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
