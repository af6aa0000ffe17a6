"""Ending a command by SIGTERM or Ctrl-C: what it waits for ends at once, and what it writes is finished."""

import select
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Self


class Ending:
    """
    Hears the signals that end a command, inside its context.

    A signal is heard by a socket: a handler that sets an Event deadlocks, or is heard too late, if the signal comes as
    the wait for it begins.
    """

    def __init__(self) -> None:
        self._interrupt: Callable[[], object] = lambda: None
        self._heard, self._wake = socket.socketpair()
        self._wake.setblocking(False)  # noqa: FBT003 - the socket's own signature
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for end in (self._heard, self._wake):
            self._stack.enter_context(end)
        self._stack.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(self._wake.fileno()))
        for number in (signal.SIGTERM, signal.SIGINT):
            self._stack.callback(signal.signal, number, signal.signal(number, lambda *_: self._interrupt()))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def interrupts(self, interrupt: Callable[[], object]) -> None:
        """Call *interrupt* with the signal, so that it ends a wait of its own."""
        self._interrupt = interrupt

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for *seconds*, or without a limit, for a signal; return whether one has come."""
        signals, _, _ = select.select([self._heard], [], [], seconds)
        return bool(signals)
