"""Silent services: a socket that accepts and never answers, and stopped processes."""

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self


class Silent:
    """A server that accepts every connection, takes what is sent, and never answers."""

    def __init__(self, port: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self.port = int(self._listener.getsockname()[1])
        self.address = f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()


def _with_children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(process for child in children for process in _with_children(int(child)))]


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop a process and its children: the kernel accepts connections and data for them, and they say nothing."""
    os.kill(pid, signal.SIGSTOP)  # first, so that it starts no others
    processes = _with_children(pid)
    for process in processes[1:]:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in reversed(processes):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
