"""Probes behind health checks: one at a time, whose result all requests share for a moment."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from muniment.server.observability.outages import Outages

PROBE_WAIT_S: Final = 3.0
"""How long a health check waits for a probe."""
PROBE_EVERY_S: Final = 1.0


class Probe:
    """
    Asks a service whether it answers, at most once per second however many requests need it.

    Args:
        succeeded_for_s: how long a success is reused.
    """

    def __init__(
        self,
        service: str,
        ask: Callable[[], Awaitable[object]],
        outages: Outages,
        *,
        succeeded_for_s: float = PROBE_EVERY_S,
    ) -> None:
        self._service, self._ask, self._outages = service, ask, outages
        self._succeeded_for_s = succeeded_for_s
        self._asking: asyncio.Future[object] | None = None
        self._result: asyncio.Future[bool] | None = None
        self._reused_until = 0.0
        self.reason = ""
        """Why the service did not answer the last time; empty if it did."""

    async def answers(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._result is None or (self._result.done() and now >= self._reused_until):
            self._result = asyncio.ensure_future(self._look())
        return await asyncio.shield(self._result)

    async def _look(self) -> bool:
        if self._asking is None or self._asking.done():
            # An unresponsive service blocks one thread of the pool, not another one each second.
            self._asking = asyncio.ensure_future(self._ask())
            self._asking.add_done_callback(_retrieve)
        clock = asyncio.get_running_loop().time
        try:
            await asyncio.wait_for(asyncio.shield(self._asking), PROBE_WAIT_S)
        except Exception as error:  # noqa: BLE001 - any failure means that it is unavailable
            self.reason = str(error) or type(error).__name__
            self._outages.failed(self._service, self.reason)
            self._reused_until = clock() + PROBE_EVERY_S
            return False
        self.reason = ""
        self._outages.answered(self._service)
        self._reused_until = clock() + self._succeeded_for_s
        return True


def _retrieve(asked: "asyncio.Future[object]") -> None:
    """Take the exception of a probe that no request waits for any more."""
    if not asked.cancelled():
        asked.exception()
