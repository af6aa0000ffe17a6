"""The clock of a process: it looks around often while somebody asks, and seldom while nobody does."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from muniment.server.app.app import App

REFRESH_S: Final = 0.05
"""How old what a process shows may be, when another of its machine has changed it."""
SECOND_S: Final = 1.0
log = logging.getLogger("muniment.server")


class Poller:
    """
    Calls *look* every 50 ms while requests come, and once a second while none do.

    The first bytes that come to a process at rest end the rest: it looks before it reads them. So nobody is shown
    anything older than before, and a process that nobody asks costs next to nothing.

    Args:
        front: is given what ends a rest, for its connections to call.
        look: takes notice of what other processes did.
        each_second: what is done once a second in any case; takes the loop's time.
        answered: how many requests have been answered so far.
        may_rest: whether everything has started, and those who ask can end a rest.
    """

    def __init__(
        self,
        front: App,
        *,
        look: Callable[[], object],
        each_second: Callable[[float], object],
        answered: Callable[[], int],
        may_rest: Callable[[], bool],
    ) -> None:
        self._front = front
        self._look = look
        self._each_second = each_second
        self._answered = answered
        self._may_rest = may_rest
        self._loop = asyncio.get_running_loop()
        self._second = 0.0
        self._seen = 0
        self._asked_at = time.monotonic()
        self._next = self._loop.call_later(REFRESH_S, self._turn)

    @property
    def quiet_s(self) -> float:
        """Tell for how long nobody has asked."""
        return time.monotonic() - self._asked_at

    def stop(self) -> None:
        """Look no more."""
        self._next.cancel()
        self._front.end_rest = None

    def _turn(self) -> None:
        self._try(self._look)
        now = self._loop.time()
        if now - self._second >= SECOND_S - REFRESH_S / 2:
            self._second = now
            self._try(lambda: self._each_second(now))
        seen, self._seen = self._seen, self._answered()
        if seen != self._seen:
            self._asked_at = time.monotonic()
        rests = seen == self._seen and self._may_rest()
        self._front.end_rest = self._end_rest if rests else None
        self._next = self._loop.call_later(SECOND_S if rests else REFRESH_S, self._turn)

    def _end_rest(self) -> None:
        self._front.end_rest = None
        self._asked_at = time.monotonic()
        self._next.cancel()
        self._try(self._look)
        self._next = self._loop.call_later(REFRESH_S, self._turn)

    @staticmethod
    def _try(work: Callable[[], object]) -> None:
        try:
            work()
        except Exception:
            log.exception("the clock's work failed; it goes on")
