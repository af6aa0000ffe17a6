"""Listening sockets, bound before anything else is imported."""

import socket
from typing import Final

BACKLOG: Final = 2048


def bind(host: str, port: int) -> socket.socket:
    """Listen, so that clients wait from now on instead of being refused."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listener.setblocking(False)  # noqa: FBT003 - socket's signature
    return listener


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
