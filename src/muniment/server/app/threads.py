"""Thread pool: run synchronous operations, which use the database, from the event loop."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final, ParamSpec, TypeVar

from muniment.kernel import fairness
from muniment.kernel.fairness import Holder
from muniment.server.app.turns import Turns

THREADS: Final = 4
"""More threads add no throughput under the interpreter lock; several keep a slow call from blocking the others."""

P = ParamSpec("P")
R = TypeVar("R")


class Bridge:
    """
    A fixed pool of threads. Each call starts and ends without a stale database connection.

    Calls for a request wait for the turn of its holder, see :mod:`muniment.server.app.turns`; calls of the process
    itself come first.

    An operation whose transaction was rolled back is retried, see :mod:`muniment.store.database.retry`.
    """

    def __init__(self) -> None:
        self._turns = Turns(THREADS)

    async def call(self, operation: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        loop = asyncio.get_running_loop()
        here = contextvars.copy_context()  # keeps the request id in the operation's log lines
        turn = self.turn(fairness.holder.get())
        return await loop.run_in_executor(turn, here.run, lambda: self._run(operation, *args, **kwargs))

    def turn(self, holder: Holder | None) -> Executor:
        """Return an executor that runs calls when the turn of *holder* comes; None is the process itself."""
        return self._turns.of(holder)

    @staticmethod
    def _run(operation: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        from django.db import close_old_connections

        from muniment.store.database.retry import with_retry

        close_old_connections()
        try:
            return with_retry(operation, *args, **kwargs)
        finally:
            close_old_connections()

    def close(self) -> None:
        self._turns.close()
