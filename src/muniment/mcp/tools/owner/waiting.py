"""
Waits for report runs: one query at a time for all of them, and no thread or connection in between.

Source: decisions, section 5, report runs.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import Context
from typing import Final, NamedTuple

from muniment.assessments.run_views import Standing
from muniment.kernel.json import JSONObject
from muniment.mcp.declarations import Arguments, Caller, Report
from muniment.oauth.token_authentication import Bridge

MAX_S: Final = 55
"""Clients end a call after 60 s."""
EACH_S: Final = 0.5
WAITS_OF_AN_ACCOUNT: Final = 4
WAITS: Final = 128
Handler = Callable[[Arguments, Caller], JSONObject]


class _Wait(NamedTuple):
    """One call that waits: what it was last told, and the news for it."""

    run_id: str
    news: "asyncio.Queue[Standing]"


class Waiting:
    """
    The waits of a process. A call beyond a limit does not wait.

    Args:
        look: returns how far runs are, by id.
    """

    def __init__(self, call: Bridge, look: Callable[[Iterable[str]], Mapping[str, Standing]]) -> None:
        self._call, self._look = call, look
        self._waits: set[_Wait] = set()
        self._accounts: Counter[int | None] = Counter()
        self._ticking: asyncio.Task[None] | None = None
        self._is_ending = False

    def stop(self) -> None:
        """End all waits at once, and begin no other: the process is about to end."""
        self._is_ending = True
        for each in self._waits:
            each.news.put_nowait(Standing(is_active=False, done=0, total=0, step=""))

    def in_time(self, handler: Handler, *, status: Handler) -> Callable[[Arguments, Caller], Awaitable[JSONObject]]:
        """Return *handler* so that it answers with the *status* at the end of the run, or after waitSeconds."""

        async def answer(arguments: Arguments, caller: Caller) -> JSONObject:
            found: JSONObject = await self._call(handler, arguments, caller)
            seconds = arguments.get("waitSeconds", 0)
            if seconds and found["data"]["shouldPoll"] and not arguments.get("dryRun", False):
                now = found["data"]["progress"]
                if caller.report is not None:
                    await caller.report(now["done"], now["total"], now["step"])
                await self.until_over(found["data"]["runId"], caller, seconds, told=now["done"])
                found = await self._call(status, arguments, caller)
            return found

        return answer

    async def until_over(self, run_id: str, caller: Caller, seconds: float, *, told: int = -1) -> None:
        """Return when the run is no longer active, after so many *seconds*, or at once if too many wait."""
        account = caller.owner.account_id
        is_full = self._accounts[account] >= WAITS_OF_AN_ACCOUNT or len(self._waits) >= WAITS
        if self._is_ending or is_full:
            return
        wait = _Wait(run_id, asyncio.Queue())
        self._waits.add(wait)
        self._accounts[account] += 1
        if self._ticking is None or self._ticking.done():
            # In a context of its own: the query is the process's, not that of the call that happens to be first.
            self._ticking = asyncio.get_running_loop().create_task(self._tick(), context=Context())
        try:
            async with asyncio.timeout(min(seconds, MAX_S)):
                await _followed(wait, caller.report, told)
        except TimeoutError:
            pass
        finally:
            self._waits.discard(wait)
            self._accounts[account] -= 1
            if not self._accounts[account]:
                del self._accounts[account]

    async def _tick(self) -> None:
        """Look at the runs that are waited for, as long as there are any."""
        while self._waits:
            found = await self._call(self._look, {each.run_id for each in self._waits})
            for each in list(self._waits):
                if each.run_id in found:
                    each.news.put_nowait(found[each.run_id])
            await asyncio.sleep(EACH_S)


async def _followed(wait: _Wait, report: Report | None, told: int) -> None:
    """Return when the run is no longer active; report each step forward of what the client was *told*."""
    while (standing := await wait.news.get()).is_active:
        if report is not None and standing.done > told:
            told = standing.done
            await report(standing.done, standing.total, standing.step)
