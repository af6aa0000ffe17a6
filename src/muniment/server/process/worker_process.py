"""Pre-fork worker: what a server process inherits from its supervisor and reports back."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Final, NamedTuple, Self

from muniment.server.process.shared_metrics import SharedMetrics

LISTENING: Final = b"L"
READY: Final = b"R"


class WorkerProcess(NamedTuple):
    """
    The place of a process among its siblings.

    Args:
        number: its number, from 1; the first process has number 1.
        listener: its listening socket, which the slot's previous process may have used.
        supervisor: receives the progress of the process; when it closes, the process stops.
        admin: the administrative listener, which all processes share, if it is separate.
        since: when the processes were started, or began to be replaced, in seconds since 1970.
    """

    number: int
    listener: socket.socket
    supervisor: socket.socket
    metrics: SharedMetrics
    admin: socket.socket | None = None
    since: int = 0

    @classmethod
    def inherited(cls, text: str) -> Self:
        number, since, listener, supervisor, metrics, *admin = map(int, text.split(","))
        return cls(
            number,
            socket.socket(fileno=listener),
            socket.socket(fileno=supervisor),
            SharedMetrics(metrics, number),
            socket.socket(fileno=admin[0]) if admin else None,
            since,
        )

    def tell(self, progress: bytes) -> None:
        with contextlib.suppress(OSError):  # `watch` notices a dead supervisor
            self.supervisor.send(progress)

    def watch(self, loop: asyncio.AbstractEventLoop, on_end: Callable[[], None]) -> None:
        self.supervisor.setblocking(False)  # noqa: FBT003 - the socket's own signature

        def heard() -> None:
            try:
                is_open = bool(self.supervisor.recv(64))
            except BlockingIOError:
                return
            except OSError:  # the connection is reset if the supervisor dies before it has read the last report
                is_open = False
            if not is_open:
                loop.remove_reader(self.supervisor)
                on_end()

        loop.add_reader(self.supervisor, heard)


def inheritance(number: int, since: int, *descriptors: int) -> str:
    """Encode a process's number, its generation's start and inherited descriptors as a command-line argument."""
    return ",".join(map(str, (number, since, *descriptors)))
