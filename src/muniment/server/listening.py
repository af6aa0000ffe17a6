"""The listening socket, which stands before anything else is imported."""

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
