"""The listening sockets, which stand before anything else is imported."""

import socket
from typing import Final

BACKLOG: Final = 2048


def bind(host: str, port: int) -> socket.socket:
    """
    Listen, so that who connects from now on waits instead of being refused.

    Raises:
        OSError: the address is taken, or not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listener.setblocking(False)  # noqa: FBT003 - the socket's own signature
    return listener


def share(listener: socket.socket) -> None:
    """
    Let :func:`bind_beside` take the address too.

    Said only once it is bound: another instance that wants the same port is refused as ever.
    """
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def bind_beside(listener: socket.socket) -> socket.socket:
    """
    Bind a further socket to the address of a shared one, which does not listen yet.

    The kernel hands new connections to all that listen in equal parts. One queue for all processes does not: who is
    idle takes them all at once.
    """
    beside = socket.socket(listener.family, socket.SOCK_STREAM)
    beside.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    beside.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if listener.family == socket.AF_INET6:
        beside.setsockopt(
            socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
        )
    beside.bind(listener.getsockname())
    beside.setblocking(False)  # noqa: FBT003 - the socket's own signature
    return beside
