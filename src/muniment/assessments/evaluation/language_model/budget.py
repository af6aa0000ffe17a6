"""The tokens and seconds of a model that a run has used and has left."""

import time
from typing import Final

from muniment.assessments.evaluation.judgement import Usage

_BYTES_A_TOKEN: Final = 3


def estimated_tokens(text: str) -> int:
    """Return an upper estimate of a text's tokens, used before an endpoint reports a count."""
    return len(text.encode()) // _BYTES_A_TOKEN + 1


class Budget:
    """The remaining budget of one run; *spent* is the usage of its earlier attempts."""

    def __init__(self, tokens: int, seconds: float, spent: Usage) -> None:
        self._tokens = tokens - spent.tokens
        self._before = spent
        self._used = 0
        self._reserved = 0
        self._began = time.monotonic()
        self._ends = self._began + seconds - spent.seconds

    @property
    def spent(self) -> Usage:
        """Return the usage of the run, including its earlier attempts."""
        return Usage(self._before.tokens + self._used, round(self._before.seconds + time.monotonic() - self._began, 3))

    @property
    def seconds_left(self) -> float:
        """Return the remaining seconds; negative when the time is used up."""
        return self._ends - time.monotonic()

    def reserve(self, tokens: int) -> bool:
        """Reserve *tokens* for a request; return False if the run has too little left."""
        if self.seconds_left <= 0 or self._used + self._reserved + tokens > self._tokens:
            return False
        self._reserved += tokens
        return True

    def settle(self, reserved: int, used: int) -> None:
        """Replace a reservation by a request's actual usage."""
        self._reserved -= reserved
        self._used += used
