"""The bridge: how the event loop calls operations, which are synchronous and use the database."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

THREADS: Final = 4
"""Threads add no throughput under one interpreter lock; they only keep a slow call from blocking the rest."""

P = ParamSpec("P")
R = TypeVar("R")


class Bridge:
    """
    A fixed pool of threads. Each call begins and ends without a stale database connection.

    An operation whose transaction the database took back is called again, see :mod:`muniment.store.database.retry`.
    """

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="bridge")

    async def call(self, operation: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run *operation* in the pool and give what it returns, or raise what it raises."""
        loop = asyncio.get_running_loop()
        here = contextvars.copy_context()  # lines that the operation logs carry the request's id
        return await loop.run_in_executor(self.pool, here.run, lambda: self._run(operation, *args, **kwargs))

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
        """Take no more calls; those that wait are dropped, those that run end by themselves."""
        self.pool.shutdown(wait=False, cancel_futures=True)
