"""
How long a caller waits for the database: a request no longer than its client, a command as long as it takes.

Both backends ask here how long they may wait for a lock; that of PostgreSQL also how long for any answer.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

REQUEST_S: Final = 10.0
"""Seconds that the operation of one request waits for the database in all: its own work does not count."""
SILENT_S: Final = 2.0
"""Seconds without an answer to a trivial question, after which a service counts as silent."""


@dataclass(slots=True)
class Patience:
    """The seconds that are left to wait."""

    left_s: float

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0


_current: ContextVar[Patience | None] = ContextVar("patience", default=None)


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
