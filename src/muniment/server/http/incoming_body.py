"""The body of a request while it arrives: time limits, and bytes that are not content."""

from http import HTTPStatus
from typing import Final

from muniment.kernel.problems import Problem, TooLarge

PAUSE_S: Final = 60
"""The longest pause in a body. Mobile networks hand over, and laptops change their network, within less."""
DEADLINE_S: Final = 30
"""The longest time of a whole body. All but uploads are small, so a slower client holds a connection on purpose."""
MIN_UPLOAD_BYTES_PER_S: Final = 8_000
"""On average, after the time limit of other bodies."""
FRAMING_BYTES: Final = 64 << 10
FRAMING_PER_BYTE: Final = 6
"""A chunk of one byte takes five more; extensions and trailers have no use here."""
SHORT_S: Final = 1.0
"""Bodies that take no longer cost their client nothing."""


class TooSlow(Problem):
    """The request did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT


class IncomingBody:
    """
    The body that a connection receives.

    Args:
        pause_s: the longest pause.
        deadline_s: the longest time in total; a document upload needs a minimum rate from then on instead.
    """

    __slots__ = (
        "_began_at",
        "_checked_at",
        "_deadline_s",
        "_framing_bytes",
        "_pause_s",
        "content_bytes",
        "is_complete",
        "is_upload",
    )

    def __init__(self, pause_s: float, deadline_s: float) -> None:
        self._pause_s, self._deadline_s = pause_s, deadline_s
        self.content_bytes = self._framing_bytes = 0
        self._began_at = self._checked_at = 0.0
        self.is_complete = True
        self.is_upload = False

    def begin(self, now: float, *, is_upload: bool) -> None:
        self.content_bytes = self._framing_bytes = 0
        self._began_at = self._checked_at = now
        self.is_complete = False
        self.is_upload = is_upload

    def frame(self, count: int) -> Problem | None:
        """Count received bytes that are not content, which the parser does not report; return why they are too many."""
        self._framing_bytes += count
        if self._framing_bytes <= FRAMING_BYTES + FRAMING_PER_BYTE * self.content_bytes:
            return None
        return TooLarge("The body has more chunk extensions and trailers than content.", "Send plain chunks.")

    def taken_s(self, now: float) -> float:
        """Return how long the body has taken, for its client's budget; 0 for uploads, which have their own limits."""
        taken_s = now - self._began_at
        return 0.0 if self.is_upload or taken_s <= SHORT_S else taken_s

    def fault(self, now: float, heard_at: float, *, is_paused: bool) -> Problem | None:
        """
        Return why the body is too slow, or None.

        Args:
            heard_at: when the last bytes arrived.
            is_paused: this process does not read at present, so the client is not to blame.
        """
        since_s, self._checked_at = now - self._checked_at, now
        if is_paused:
            self._began_at += since_s
            return None
        if now - heard_at > self._pause_s:
            return TooSlow("The body did not arrive in time.", "Send it without pauses.")
        taken_s = now - self._began_at
        if taken_s <= self._deadline_s:
            return None
        if self.is_upload:
            if self.content_bytes >= taken_s * MIN_UPLOAD_BYTES_PER_S:
                return None
            rate = f"{MIN_UPLOAD_BYTES_PER_S // 1000} KB a second"
            return TooSlow("The upload is too slow.", f"Send at least {rate}; ask for a new link if this one expires.")
        return TooSlow(f"The body did not arrive within {self._deadline_s:g} s.", "Send it faster, or send less.")
