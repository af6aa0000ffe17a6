"""
Thread pool: run synchronous operations, which use the database, from the event loop.

A few threads are shared in turns between accounts and addresses, so that none takes all of them.
"""

import asyncio
import contextvars
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from muniment.kernel import fairness
from muniment.kernel.fairness import Holder
from muniment.kernel.http.addresses import site_key
from muniment.kernel.problems import TooMany
from muniment.store.database import patience

THREADS_A_HOLDER: Final = 2
"""Threads that one account, or the visitors of one address, may use at once."""
THREADS_AN_ADDRESS: Final = 3
"""Threads that all accounts and visitors of one address, or the visitors of one site, may use at once."""
THREADS_FOR_PASSWORDS: Final = 2
"""Threads that all requests which may hash a password use at once; more would wait for each other in the threads."""
THREADS_FOR_STATEMENTS: Final = 1
"""Threads for pages of statements, which no two visitors see alike: more of them would hold back all other reads."""
SPARES: Final = 4
"""Threads that take the places of those that wait long for the database."""
MAX_WAITING: Final = 64
"""Calls of one holder that may wait for a thread."""
_PASSWORDS: Final = "passwords"
_STATEMENTS: Final = "statements"

P = ParamSpec("P")
R = TypeVar("R")


class Turns:
    """
    A pool of threads that runs calls of holders in turn.

    The visitors of one site, who may have 65,536 addresses, share the turns of one holder, and take these in turn; so
    do all who look at answers to statements.

    A thread that ends a call takes the next one itself, because a detour by the event loop would cost more than most
    calls. Calls of the process itself come first.

    A call that waits long for the database, for example for a change of others, lends its thread's place to another
    one: four changes that wait for the same lock would keep everyone from signing in. At most `SPARES` do.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="bridge")
        self._spares = ThreadPoolExecutor(SPARES, thread_name_prefix="bridge spare")
        self._lock = threading.Lock()
        self._is_closed = False
        self._busy = 0
        """Calls that run."""
        self._waiting_long = 0
        """Those of them that wait long."""
        self._own: deque[_Call] = deque()
        self._running: Counter[str] = Counter()
        """Threads by holder, by site, by address, and for passwords."""
        self._waiting: OrderedDict[str, OrderedDict[str, deque[_Call]]] = OrderedDict()
        """Calls by site and holder; the site, and of it the holder, whose turn is next comes first."""

    def of(self, holder: Holder | None) -> Executor:
        """Return an executor of the calls for *holder*; None is the process itself."""
        return _Turn(self, holder)

    def submit(self, holder: Holder | None, function: Callable[[], R]) -> Future[R]:
        """Run *function* when its turn comes; raise TooMany if too many calls of *holder* wait already."""
        call = _Call(holder, function)
        with self._lock:
            queue = self._own
            if holder is not None:
                queue = self._waiting.setdefault(call.site, OrderedDict()).setdefault(call.key, deque())
            is_full = holder is not None and len(queue) >= MAX_WAITING
            if not is_full:
                queue.append(call)
        if is_full:
            fairness.current().count_refusal("threads")
            message = "Too many requests at once."
            raise TooMany(message, "Wait for the responses, then try again.", retry_after_s=1)
        self._wake()
        return call.future

    def close(self) -> None:
        """Cancel the calls that wait."""
        with self._lock:
            self._is_closed = True
            left = [*self._own]
            for site in self._waiting.values():
                for queue in site.values():
                    left += queue
            self._own.clear()
            self._waiting.clear()
        for call in left:
            call.future.cancel()
        self._pool.shutdown(wait=False)
        self._spares.shutdown(wait=False)

    def begin_wait(self) -> bool:
        """Let another thread take the place of this one, which waits; return whether there is one."""
        with self._lock:
            if self._waiting_long >= SPARES or self._is_closed:
                return False
            self._spares.submit(self._work_in_place)
            self._waiting_long += 1
        return True

    def end_wait(self) -> None:
        with self._lock:
            self._waiting_long -= 1

    def _work_in_place(self) -> None:
        """Work in the place of a thread that waits, and keep no connection: a database has a limited number."""
        from django.db import connections

        try:
            self._work()
        finally:
            connections.close_all()

    def _work(self) -> None:
        patience.tell_long_waits_to(self)
        call = self._next(None)
        while call is not None:
            call.run()
            call = self._next(call)

    def _next(self, done: "_Call | None") -> "_Call | None":
        """Return the call whose turn is next, after *done*; None if none may run."""
        with self._lock:
            if done is not None:
                self._count(done, -1)
                self._busy -= 1
            if self._busy - self._waiting_long >= self._threads:
                return None  # one that waited works again; each thread that ends its call looks for another
            if self._own:
                self._busy += 1
                return self._own.popleft()
            call = self._eligible()
            if call is None:
                return None
            self._take(call)
            self._count(call, 1)
            self._busy += 1
            has_more = self._eligible() is not None
        if has_more:
            self._wake()  # one end may let several run: of the account, the address, for a password
        return call

    def _wake(self) -> None:
        """Let a thread look for a call; all those of the pool may be waiting."""
        self._pool.submit(self._work)
        if self._waiting_long:
            self._spares.submit(self._work_in_place)

    def _take(self, call: "_Call") -> None:
        """Take *call*, the first of its holder, and let the others go before its holder and its site."""
        site = self._waiting[call.site]
        queue = site[call.key]
        queue.popleft()
        if queue:
            site.move_to_end(call.key)
        else:
            del site[call.key]
        if site:
            self._waiting.move_to_end(call.site)
        else:
            del self._waiting[call.site]

    def _eligible(self) -> "_Call | None":
        """Return the first call that may run."""
        has_passwords = self._running[_PASSWORDS] < THREADS_FOR_PASSWORDS
        for site in self._waiting.values():
            for queue in site.values():
                holder = queue[0].holder
                if holder is not None and holder.may_hash and not has_passwords:
                    if not holder.account:
                        break  # all calls of this site's queues may hash
                    continue
                if self._may_run(queue[0]):
                    return queue[0]
        return None

    def _may_run(self, call: "_Call") -> bool:
        if call.holder is None:
            return True
        if self._running[call.key] >= THREADS_A_HOLDER:
            return False
        if self._running[call.holder.address] >= THREADS_AN_ADDRESS:
            return False
        most_of_site = THREADS_FOR_STATEMENTS if call.site == _STATEMENTS else THREADS_AN_ADDRESS
        return self._running[call.site] < most_of_site

    def _count(self, call: "_Call", change: int) -> None:
        if call.holder is None:
            return
        names = {call.key, call.site, call.holder.address}  # a set, because an account is its own site: it counts once
        if call.holder.may_hash:
            names.add(_PASSWORDS)
        for name in names:
            self._running[name] += change
            if not self._running[name]:
                del self._running[name]


class _Call:
    """A call that waits or runs."""

    __slots__ = ("_function", "future", "holder", "key", "site")

    def __init__(self, holder: Holder | None, function: Callable[[], Any]) -> None:
        self.holder, self._function = holder, function
        self.key = "" if holder is None else _key(holder)
        self.site = "" if holder is None else _site(holder)
        self.future: Future[Any] = Future()

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._function()
        except BaseException as error:  # noqa: BLE001 - the caller raises it, as with any executor
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


def _key(holder: Holder) -> str:
    if holder.account:
        return f"account {holder.account}"
    # Pages of visitors do not wait for the passwords of others at their address.
    return f"{'password ' if holder.may_hash else ''}at {holder.address}"


def _site(holder: Holder) -> str:
    """Return the group that takes turns with others: pages of statements, an account, or the visitors of a site."""
    if holder.has_asked:
        return _STATEMENTS
    if holder.account:
        return _key(holder)
    site = site_key(holder.address)
    return _key(holder) if site is None else _key(holder._replace(address=site))


class _Turn(Executor):
    """An executor for the calls of one holder."""

    def __init__(self, turns: Turns, holder: Holder | None) -> None:
        self._turns, self._holder = turns, holder

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        return self._turns.submit(self._holder, partial(function, *args, **kwargs))


THREADS: Final = 4
"""More threads add no throughput under the interpreter lock; several keep a slow call from blocking the others."""


class Bridge:
    """
    A fixed pool of threads. Each call starts and ends without a stale database connection.

    Calls for a request wait for the turn of its holder, see :class:`Turns`; calls of the process
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
            with patience.within(patience.REQUEST_S):
                return with_retry(operation, *args, **kwargs)
        finally:
            close_old_connections()

    def close(self) -> None:
        self._turns.close()
