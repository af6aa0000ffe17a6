"""The pace of a scheduled backup: it rests as long as it works, so that reads and writes keep the processor."""

import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

Each = TypeVar("Each")
_LONGEST_REST_S: Final = 1.0


class Pace:
    """
    Rests between pieces of work.

    Args:
        share: the share of the time to work; 1 never rests.
        clock: seconds that always grow.
    """

    def __init__(
        self,
        share: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._rest = 1 / share - 1
        self._clock = clock
        self._sleep = sleep
        self._began = clock()

    def rest(self) -> None:
        """Rest in proportion to the work since the last rest."""
        worked = self._clock() - self._began
        if self._rest and worked > 0:
            self._sleep(min(worked * self._rest, _LONGEST_REST_S))
        self._began = self._clock()

    def through(self, pieces: Iterator[Each]) -> Iterator[Each]:
        for each in pieces:
            yield each
            self.rest()
