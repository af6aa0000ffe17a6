"""Threads are shared in turn: no client takes all of them, and none is forgotten."""

import asyncio
import threading
from functools import partial

import pytest

from muniment.kernel import fairness
from muniment.kernel.fairness import Fairness, Holder
from muniment.kernel.problems import TooMany
from muniment.server.app.threads import MAX_WAITING, SPARES, THREADS, Bridge, Turns
from muniment.store.database import patience

ADA, BEN, CLEO = Holder("192.0.2.1", "1"), Holder("192.0.2.2", "2"), Holder("192.0.2.3")


class Asked:
    """Calls that run until they are ended, and the order in which they began."""

    def __init__(self, threads=4):
        self.turns = Turns(threads)
        self.began, self.futures, self._ends = [], {}, {}
        self._changed = threading.Condition()

    def _run(self, name):
        with self._changed:
            self.began.append(name)
            self._changed.notify_all()
        assert self._ends[name].wait(30)

    def ask(self, holder, *names):
        for name in names:
            self._ends[name] = threading.Event()
            self.futures[name] = self.turns.submit(holder, partial(self._run, name))

    def end(self, *names):
        for name in names:
            self._ends[name].set()
            self.futures[name].result(30)

    def until(self, *names):
        """Wait until these calls, and no others, have begun."""
        with self._changed:
            assert self._changed.wait_for(lambda: set(self.began) >= set(names), 60), self.began
        assert set(self.began) == set(names)

    def close(self):
        for end in self._ends.values():
            end.set()
        self.turns.close()


@pytest.fixture
def asked():
    made = Asked()
    yield made
    made.close()


@pytest.fixture
def alone():
    made = Asked(threads=1)
    yield made
    made.close()


def test_one_holder_uses_two_threads_and_the_others_go_ahead(asked):
    asked.ask(ADA, "a1", "a2", "a3", "a4")
    asked.ask(BEN, "b1")
    asked.until("a1", "a2", "b1")
    asked.end("a1")
    asked.until("a1", "a2", "b1", "a3")
    asked.end("b1", "a2")
    asked.until("a1", "a2", "b1", "a3", "a4")


def test_the_accounts_of_one_address_leave_a_thread_to_others(asked):
    for number in range(5):
        asked.ask(Holder("192.0.2.9", str(number)), f"x{number}")
    asked.until("x0", "x1", "x2")
    asked.ask(CLEO, "c1")
    asked.until("x0", "x1", "x2", "c1")
    asked.end("x0")
    asked.until("x0", "x1", "x2", "c1", "x3")


def test_sign_ups_from_many_addresses_leave_two_threads_to_others(asked):
    for number in range(8):
        asked.ask(Holder(f"192.0.2.{number}", may_hash=True), f"s{number}")
    asked.until("s0", "s1")
    asked.ask(ADA, "a1")
    asked.ask(CLEO, "c1")
    asked.until("s0", "s1", "a1", "c1")
    asked.end("s0")
    asked.until("s0", "s1", "a1", "c1", "s2")
    asked.end("s1", "s2")
    asked.until("s0", "s1", "a1", "c1", "s2", "s3", "s4")


@pytest.mark.parametrize("may_hash", [True, False])
def test_a_site_has_the_turns_of_one_client_however_many_addresses_it_has(alone, may_hash):
    alone.ask(None, "own")
    alone.until("own")
    for number in range(4):
        alone.ask(Holder(f"2001:db8:1:{number:x}::/64", may_hash=may_hash), f"site{number}", f"again{number}")
    alone.ask(Holder("2001:db8:2::/64", may_hash=may_hash), "other1", "other2")
    alone.ask(Holder("192.0.2.1", may_hash=may_hash), "last")
    order = ["own", "site0", "other1", "last", "site1", "other2", "site2", "site3", "again0", "again1"]
    for count in range(1, len(order) + 1):
        with alone._changed:
            assert alone._changed.wait_for(lambda wanted=count: len(alone.began) == wanted, 60)
        if count < len(order):
            alone.end(alone.began[-1])
    assert alone.began == order


def test_the_visitors_of_a_site_leave_a_thread_to_others(asked):
    for number in range(4):
        asked.ask(Holder(f"2001:db8:1:{number:x}::/64"), f"s{number}")
    asked.until("s0", "s1", "s2")
    asked.ask(Holder("2001:db8:2::/64"), "other")
    asked.until("s0", "s1", "s2", "other")
    asked.end("s0")
    asked.until("s0", "s1", "s2", "other", "s3")


def test_pages_of_statements_have_one_thread_and_the_turns_of_one_client(asked):
    for number in range(4):
        asked.ask(Holder(f"192.0.2.{number}", has_asked=True), f"s{number}")
    asked.ask(ADA._replace(has_asked=True), "a1")
    asked.until("s0")
    asked.ask(ADA, "a2")
    asked.ask(Holder("192.0.2.1"), "other")
    asked.until("s0", "a2", "other")
    asked.end("a2", "other", "s0")
    asked.until("s0", "a2", "other", "s1")
    asked.end("s1", "s2", "s3", "a1")


def test_a_page_of_a_visitor_waits_for_one_page_of_statements_at_most(alone):
    alone.ask(None, "own")
    alone.until("own")
    for number in range(3):
        alone.ask(Holder(f"192.0.2.{number}", has_asked=True), f"s{number}")
    alone.ask(CLEO, "c1", "c2")
    for name in ("own", "s0", "c1", "s1", "c2", "s2"):
        alone.end(name)
    assert alone.began == ["own", "s0", "c1", "s1", "c2", "s2"]


def test_an_end_lets_a_call_run_that_waited_for_the_password_of_another(asked):
    one, other = Holder("192.0.2.9", "1", may_hash=True), Holder("192.0.2.7", "2", may_hash=True)
    asked.ask(one, "p1")
    asked.ask(other, "p2")
    asked.until("p1", "p2")
    asked.ask(Holder("192.0.2.8", "3", may_hash=True), "p3")  # two hash already
    asked.ask(Holder("192.0.2.9", "1"), "a1")
    asked.ask(Holder("192.0.2.9", "4"), "b1")
    asked.until("p1", "p2", "a1", "b1")
    asked.ask(Holder("192.0.2.9", "1"), "a2")  # the account has two threads already
    asked.end("p1")
    asked.until("p1", "p2", "a1", "b1", "p3")
    asked.end("a1")
    asked.until("p1", "p2", "a1", "b1", "p3", "a2")


def test_an_end_that_lets_two_calls_run_starts_both(asked):
    asked.ask(Holder("192.0.2.9", "1"), "a1", "a2")
    asked.ask(Holder("192.0.2.9", "2"), "b1", "b2")
    asked.until("a1", "a2", "b1")
    asked.ask(Holder("192.0.2.8", "1"), "a3")  # the account has two threads already
    asked.end("a1")
    asked.until("a1", "a2", "b1", "b2", "a3")


def test_who_waits_gets_a_turn_before_a_holder_that_had_one(alone):
    alone.ask(ADA, "a1")
    alone.until("a1")
    alone.ask(ADA, "a2", "a3")
    alone.ask(BEN, "b1", "b2")
    alone.ask(CLEO, "c1")
    alone.ask(None, "own")
    for count in range(1, 8):
        with alone._changed:
            assert alone._changed.wait_for(lambda wanted=count: len(alone.began) == wanted, 60)
        if count < 7:
            alone.end(alone.began[-1])
    assert alone.began == ["a1", "own", "a2", "b1", "c1", "a3", "b2"]


def test_a_holder_with_too_many_waiting_calls_is_refused_and_another_is_not(alone, monkeypatch):
    limits = Fairness()
    monkeypatch.setattr(fairness, "_current", limits)
    alone.ask(ADA, "a0")
    alone.until("a0")
    alone.ask(ADA, *(f"a{number}" for number in range(1, MAX_WAITING + 1)))
    with pytest.raises(TooMany):
        alone.turns.submit(ADA, lambda: None)
    alone.ask(BEN, "b1")
    assert limits.refused == {"threads": 1}


def test_a_call_that_is_canceled_while_it_waits_does_not_run(alone):
    alone.ask(ADA, "a1")
    alone.until("a1")
    alone.ask(BEN, "b1", "b2")
    assert alone.futures["b1"].cancel()
    alone.end("a1")
    alone.until("a1", "b2")


def test_calls_that_wait_at_the_end_are_canceled(alone):
    alone.ask(ADA, "a1")
    alone.until("a1")
    alone.ask(ADA, "a2")
    alone.ask(None, "own")
    alone.turns.close()
    assert alone.futures["a2"].cancelled()
    assert alone.futures["own"].cancelled()
    alone.end("a1")


def test_a_slow_operation_of_one_account_does_not_keep_another_from_the_threads():
    async def run():
        bridge = Bridge()
        release, started = threading.Event(), []

        def slow():
            started.append(1)
            release.wait(30)

        async def call(holder, operation):
            fairness.holder.set(holder)
            return await bridge.call(operation)

        stuck = [asyncio.create_task(call(ADA, slow)) for _ in range(10)]
        assert await asyncio.wait_for(call(BEN, lambda: "done"), 60) == "done"
        assert await asyncio.wait_for(call(CLEO, lambda: "done"), 60) == "done"
        assert await asyncio.wait_for(bridge.call(lambda: "done"), 60) == "done", "the process itself does not wait"
        assert len(started) == 2
        release.set()
        await asyncio.gather(*stuck)
        assert len(started) == 10
        bridge.close()

    asyncio.run(run())


def test_an_operation_that_fails_returns_its_thread():
    async def run():
        bridge = Bridge()
        fairness.holder.set(ADA)
        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                await bridge.call(lambda: 1 // 0)
        assert await bridge.call(lambda: "done") == "done"
        bridge.close()

    asyncio.run(run())


def others(count, first=1):
    """Return accounts at addresses of their own."""
    return [Holder(f"198.51.100.{number}", f"other {number}") for number in range(first, first + count)]


def test_calls_that_wait_long_lend_their_places_and_no_more_than_the_spares():
    turns = Turns(THREADS)
    ends, waiting, crowded = threading.Event(), threading.Semaphore(0), threading.Semaphore(0)

    def wait():
        with patience.long_wait(60) as left_s:
            (waiting if left_s == 60 else crowded).release()
            assert left_s in {60, patience.CROWDED_S}
            ends.wait(60)

    stuck = [turns.submit(holder, wait) for holder in others(SPARES)]
    for _ in stuck:
        assert waiting.acquire(timeout=60)
    stuck += [turns.submit(holder, wait) for holder in others(THREADS - 1, first=SPARES + 1)]
    for _ in range(THREADS - 1):
        assert crowded.acquire(timeout=60), "the last places are lent for a short time only"
    assert turns.submit(ADA, lambda: "done").result(60) == "done"
    ends.set()
    for call in stuck:
        call.result(60)
    together, at_once = threading.Barrier(THREADS, timeout=60), []

    def meet():
        at_once.append(together.wait())

    for call in [turns.submit(holder, meet) for holder in others(2 * THREADS)]:
        call.result(60)
    assert len(at_once) == 2 * THREADS
    turns.close()


def test_after_the_waits_no_more_threads_work_than_before():
    turns = Turns(1)
    waits, ends = threading.Event(), threading.Event()

    def wait():
        with patience.long_wait(60):
            waits.set()
            assert ends.wait(60)
        began.append("waited")

    began = []
    first = turns.submit(ADA, wait)
    assert waits.wait(60)
    begins, ended = threading.Event(), threading.Event()

    def take_the_place():
        begins.set()
        assert ended.wait(60)
        began.append("in its place")

    second = turns.submit(BEN, take_the_place)
    assert begins.wait(60)
    ends.set()
    first.result(60)
    third = turns.submit(CLEO, lambda: began.append("after both"))
    ended.set()
    second.result(60)
    third.result(60)
    assert began == ["waited", "in its place", "after both"]
    turns.close()


def test_the_threads_end_with_the_last_call(alone):
    before = set(threading.enumerate())

    def wait():
        with patience.long_wait(60):
            assert alone.turns.submit(BEN, lambda: "in its place").result(60) == "in its place"

    alone.turns.submit(ADA, wait).result(60)
    threads = set(threading.enumerate()) - before
    assert {thread.name.rpartition("_")[0] for thread in threads} == {"bridge", "bridge spare"}
    alone.turns.close()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


def test_a_wait_while_the_process_ends_keeps_its_place():
    turns = Turns(1)
    turns.close()
    assert not turns.begin_wait()
