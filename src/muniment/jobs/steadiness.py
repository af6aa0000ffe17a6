"""Notices that the clock of the database was set, by comparing it with the time that this process has measured."""

import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

JUMP_S: Final = 5.0
"""Less may be a slow answer of the database."""
GRACE_S: Final = 3.0
"""Seconds after a jump until other leases count as over: running workers renew theirs within a second."""


class Steadiness:
    """The jumps of the clock that this process has seen."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._offset: float | None = None
        self._jumped_at = float("-inf")
        self.jumps = 0
        self.set_back_s = 0.0
        """Total seconds by which the clock was set back."""

    def note(self, moment: datetime) -> None:
        """Compare *moment*, which the clock has just told, with what is known."""
        with self._lock:
            measured = self._monotonic()
            offset = moment.timestamp() - measured
            jump = 0.0 if self._offset is None else offset - self._offset
            if self._offset is None or abs(jump) > JUMP_S:
                self._offset = offset
            if abs(jump) > JUMP_S:
                self._jumped_at = measured
                self.jumps += 1
                self.set_back_s += max(0.0, -jump)

    def is_settling(self) -> bool:
        """Return whether leases may only seem to be over, because the clock has just jumped."""
        return self._monotonic() < self._jumped_at + GRACE_S
