"""
How long a caller waits for the database: a request no longer than its client, a command as long as it takes.

Both backends ask here how long they may wait for a lock; that of PostgreSQL also how long for any answer.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol

REQUEST_S: Final = 10.0
"""Seconds that the operation of one request waits for the database in all: its own work does not count."""
SILENT_S: Final = 2.0
"""Seconds without an answer to a trivial question, after which a service counts as silent."""

LONG_S: Final = 0.25
"""Seconds after which a wait counts as long: a few threads serve all requests, and this one serves none meanwhile."""
CROWDED_S: Final = 2.0
"""Seconds that a request waits while as many others as may wait long do so already."""


class Waits(Protocol):
    """The long waits of the threads of a pool, which lets others take their place."""

    def begin_wait(self) -> bool:
        """Count a long wait; return whether another thread takes the place of this one."""

    def end_wait(self) -> None: ...


@dataclass(slots=True)
class Patience:
    """The seconds that are left to wait."""

    left_s: float

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0


_current: ContextVar[Patience | None] = ContextVar("patience", default=None)
_of_thread = threading.local()


def current() -> Patience | None:
    """Return how long this caller waits; None is without a limit."""
    return _current.get()


@contextmanager
def within(seconds: float) -> Iterator[Patience]:
    """Let the caller's waits for the database take at most *seconds* in all."""
    patience = Patience(seconds)
    token = _current.set(patience)
    try:
        yield patience
    finally:
        _current.reset(token)


@contextmanager
def limited(longest_s: float) -> Iterator[float]:
    """Provide how long the caller waits now, at most *longest_s*, and charge the wait to its patience."""
    patience = current()
    if patience is None:
        yield longest_s
        return
    began = time.monotonic()
    try:
        yield max(0.0, min(longest_s, patience.left_s))
    finally:
        patience.left_s -= time.monotonic() - began


def is_over() -> bool:
    """Return whether this caller has waited for as long as it may."""
    patience = current()
    return patience is not None and patience.is_over


def tell_long_waits_to(waits: Waits) -> None:
    """Let *waits* know from now on when this thread waits for long."""
    _of_thread.waits = waits


@contextmanager
def long_wait(left_s: float) -> Iterator[float]:
    """
    Provide how long the caller, which has waited for `LONG_S`, may wait for another *left_s*.

    When the threads that may wait are waiting already, it gives up early, so that the others serve what need not wait.
    """
    waits: Waits | None = getattr(_of_thread, "waits", None)
    if waits is None:
        yield left_s
    elif waits.begin_wait():
        try:
            yield left_s
        finally:
            waits.end_wait()
    else:
        began = time.monotonic()
        shortest_s = min(left_s, CROWDED_S)
        try:
            yield shortest_s
        finally:
            patience = current()
            if patience is not None and time.monotonic() - began >= shortest_s:
                patience.left_s = 0.0  # it is not tried again


@contextmanager
def elsewhere() -> Iterator[None]:
    """Wait for another service than the database in this context, which has a deadline of its own for its answer."""
    waits: Waits | None = getattr(_of_thread, "waits", None)
    is_lent = waits is not None and waits.begin_wait()
    try:
        yield
    finally:
        if waits is not None and is_lent:
            waits.end_wait()
