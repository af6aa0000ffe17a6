"""One of several processes: what it tells its supervisor, and what it has from it."""

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
        number: its own, from 1; the first process of all has that.
        listener: its own listening socket, or the one of the process that it follows.
        supervisor: told of the process's progress; its end is the supervisor's.
        figures: shared with the siblings.
    """

    number: int
    listener: socket.socket
    supervisor: socket.socket
    figures: SharedMetrics

    @classmethod
    def inherited(cls, text: str) -> Self:
        """Read :func:`bequest`."""
        number, listener, supervisor, figures = map(int, text.split(","))
        return cls(
            number, socket.socket(fileno=listener), socket.socket(fileno=supervisor), SharedMetrics(figures, number)
        )

    def tell(self, progress: bytes) -> None:
        """Tell how far the process is."""
        with contextlib.suppress(OSError):  # its end is noticed by who watches
            self.supervisor.send(progress)

    def watch(self, loop: asyncio.AbstractEventLoop, on_end: Callable[[], None]) -> None:
        """Call *on_end* when the supervisor is gone."""
        self.supervisor.setblocking(False)  # noqa: FBT003 - the socket's own signature

        def heard() -> None:
            with contextlib.suppress(BlockingIOError):
                if not self.supervisor.recv(64):
                    loop.remove_reader(self.supervisor)
                    on_end()

        loop.add_reader(self.supervisor, heard)


def bequest(number: int, listener: int, supervisor: int, figures: int) -> str:
    """Name a process's number and the descriptors that it inherits, as an argument of its command line."""
    return f"{number},{listener},{supervisor},{figures}"
