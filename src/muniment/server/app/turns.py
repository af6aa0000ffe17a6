"""Turns: share a few threads between accounts and addresses, so that none takes all of them."""

import asyncio
import contextlib
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Final, NamedTuple, ParamSpec, Self, TypeVar

from muniment.kernel import fairness
from muniment.kernel.fairness import Holder
from muniment.kernel.problems import TooMany

THREADS_A_HOLDER: Final = 2
"""Threads that one account, or the visitors of one address, may use at once."""
THREADS_AN_ADDRESS: Final = 3
"""Threads that all accounts and visitors of one address may use at once."""
MAX_WAITING: Final = 64
"""Requests of one holder that may wait for a thread."""

P = ParamSpec("P")
R = TypeVar("R")


class Turns:
    """Grants threads to holders in turn. Use it in the event loop only."""

    def __init__(self, threads: int) -> None:
        self._free = threads
        self._running: Counter[str] = Counter()
        """Threads by holder and by address."""
        self._waiting: OrderedDict[str, deque[_Waiting]] = OrderedDict()
        """Requests by holder; the holder whose turn is next comes first."""

    async def take(self, holder: Holder) -> None:
        """Wait for a thread; raise TooMany if too many requests of *holder* wait already."""
        if self._free and self._may_run(holder):
            self._begin(holder)
            return
        queue = self._waiting.setdefault(_key(holder), deque())
        if len(queue) >= MAX_WAITING:
            fairness.current().count_refusal("threads")
            message = "Too many requests at once."
            raise TooMany(message, "Wait for the responses, then try again.", retry_after_s=1)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(_Waiting(holder, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.end(holder)  # granted in the moment of the cancellation
            raise

    def end(self, holder: Holder) -> None:
        """Return a thread, and grant it to the next holder."""
        self._free += 1
        for each in (_key(holder), holder.address):
            self._running[each] -= 1
            if not self._running[each]:
                del self._running[each]
        while self._free and self._grant_next():
            pass

    def _grant_next(self) -> bool:
        for key, queue in list(self._waiting.items()):
            while queue and queue[0].turn.done():
                queue.popleft()  # canceled
            if not queue:
                del self._waiting[key]
            elif self._may_run(queue[0].holder):
                holder, turn = queue.popleft()
                self._begin(holder)
                turn.set_result(None)
                self._waiting.move_to_end(key)
                return True
        return False

    def _may_run(self, holder: Holder) -> bool:
        running = self._running
        return running[_key(holder)] < THREADS_A_HOLDER and running[holder.address] < THREADS_AN_ADDRESS

    def _begin(self, holder: Holder) -> None:
        self._free -= 1
        self._running[_key(holder)] += 1
        self._running[holder.address] += 1


class _Waiting(NamedTuple):
    holder: Holder
    turn: asyncio.Future[None]


def _key(holder: Holder) -> str:
    return f"account {holder.account}" if holder.account else f"visitors {holder.address}"


class Turn(Executor):
    """An executor for one call, whose thread *turns* has granted to *holder*. Enter it before the call."""

    def __init__(self, turns: Turns, pool: ThreadPoolExecutor, holder: Holder) -> None:
        self._turns, self._pool, self._holder = turns, pool, holder
        self._is_used = False

    async def __aenter__(self) -> Self:
        await self._turns.take(self._holder)
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_used:
            self._turns.end(self._holder)

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run the call. Its thread is free when it ends, even if a slow client still receives the response."""
        future = self._pool.submit(function, *args, **kwargs)
        self._is_used = True
        future.add_done_callback(self._end)
        return future

    def _end(self, _: Future[Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(self._turns.end, self._holder)
