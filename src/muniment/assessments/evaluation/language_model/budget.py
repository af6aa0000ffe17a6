"""How many tokens and seconds of a model a run has used, and has left."""

import time
from typing import Final

from muniment.assessments.evaluation.judgement import Spent

_BYTES_A_TOKEN: Final = 3


def estimated_tokens(text: str) -> int:
    """Give how many tokens a text may be: rather too many, since it is asked before an endpoint has counted."""
    return len(text.encode()) // _BYTES_A_TOKEN + 1


class Budget:
    """
    What is left for one run.

    Args:
        spent: what earlier attempts at the run used.
    """

    def __init__(self, tokens: int, seconds: float, spent: Spent) -> None:
        self._tokens = tokens - spent.tokens
        self._before = spent
        self._used = 0
        self._reserved = 0
        self._began = time.monotonic()
        self._ends = self._began + seconds - spent.seconds

    @property
    def spent(self) -> Spent:
        """Give what the run has used, with its earlier attempts."""
        return Spent(self._before.tokens + self._used, round(self._before.seconds + time.monotonic() - self._began, 3))

    @property
    def seconds_left(self) -> float:
        """Give the seconds that are left; below zero when none are."""
        return self._ends - time.monotonic()

    def reserve(self, tokens: int) -> bool:
        """Set *tokens* aside for a request, unless the run has too little left for it."""
        if self.seconds_left <= 0 or self._used + self._reserved + tokens > self._tokens:
            return False
        self._reserved += tokens
        return True

    def settle(self, reserved: int, used: int) -> None:
        """Count what a request used in place of what was set aside for it."""
        self._reserved -= reserved
        self._used += used
