"""Listening sockets, bound before anything else is imported."""

import errno
import socket
import time
from collections.abc import Callable
from typing import Final

BACKLOG: Final = 2048
ORPHANS_END_WITHIN_S: Final = 5.0
"""How long processes whose supervisor was killed may hold its address."""
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
