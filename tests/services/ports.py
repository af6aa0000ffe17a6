"""Free loopback ports, and polling with a time limit."""

import socket
import time
from collections.abc import Callable
from typing import Final

SEEN_WITHIN_S: Final = 30
"""How long another process may take to notice what the contract says it sees within a second: machines are busy."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(holds: Callable[[], bool], *, within_s: float, what: str, every_s: float = 0.02) -> None:
    """
    Poll *holds* until it is true.

    Raises:
        TimeoutError: it was still false after *within_s* seconds; names *what* was awaited.
    """
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            message = f"{what} did not happen within {within_s:g} s"
            raise TimeoutError(message)
        time.sleep(every_s)
