"""Threads are shared in turn: no client takes all of them, and none is forgotten."""

import asyncio
import threading

import pytest

from muniment.kernel import fairness
from muniment.kernel.fairness import Fairness, Holder
from muniment.kernel.problems import TooMany
from muniment.server.app.threads import Bridge
from muniment.server.app.turns import MAX_WAITING, Turns

ADA, BEN, CLEO = Holder("192.0.2.1", "1"), Holder("192.0.2.2", "2"), Holder("192.0.2.3")


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


class Asked:
    """Requests for a turn, and which of them run."""

    def __init__(self, threads=4):
        self.turns = Turns(threads)
        self.running = []
        self.tasks = {}

    async def _run(self, holder, name):
        await self.turns.take(holder)
        self.running.append(name)

    async def ask(self, holder, *names):
        for name in names:
            self.tasks[name] = asyncio.create_task(self._run(holder, name))
            await settled()

    async def end(self, holder, name):
        self.running.remove(name)
        self.turns.end(holder)
        await settled()


def test_one_holder_uses_two_threads_and_the_others_go_ahead():
    async def run():
        asked = Asked()
        await asked.ask(ADA, "a1", "a2", "a3", "a4")
        await asked.ask(BEN, "b1")
        assert asked.running == ["a1", "a2", "b1"]
        await asked.end(ADA, "a1")
        assert asked.running == ["a2", "b1", "a3"]
        await asked.end(BEN, "b1")
        await asked.end(ADA, "a2")
        assert asked.running == ["a3", "a4"]

    asyncio.run(run())


def test_the_accounts_of_one_address_leave_a_thread_to_others():
    async def run():
        asked = Asked()
        for number in range(5):
            await asked.ask(Holder("192.0.2.9", str(number)), f"x{number}")
        assert asked.running == ["x0", "x1", "x2"]
        await asked.ask(CLEO, "c1")
        assert asked.running == ["x0", "x1", "x2", "c1"]
        await asked.end(Holder("192.0.2.9", "0"), "x0")
        assert asked.running == ["x1", "x2", "c1", "x3"]

    asyncio.run(run())


def test_who_waits_gets_a_turn_before_a_holder_that_had_one():
    async def run():
        asked = Asked(threads=1)
        await asked.ask(ADA, "a1", "a2", "a3")
        await asked.ask(BEN, "b1", "b2")
        await asked.ask(CLEO, "c1")
        order = []
        while asked.running:
            (name,) = asked.running
            order.append(name)
            await asked.end({"a": ADA, "b": BEN, "c": CLEO}[name[0]], name)
        assert order == ["a1", "a2", "b1", "c1", "a3", "b2"]

    asyncio.run(run())


def test_a_holder_with_too_many_waiting_requests_is_refused_and_another_is_not():
    async def run():
        before, limits = fairness.current(), fairness.use(Fairness())
        try:
            asked = Asked(threads=1)
            await asked.ask(ADA, *(f"a{number}" for number in range(MAX_WAITING + 1)))
            with pytest.raises(TooMany):
                await asked.turns.take(ADA)
            await asked.ask(BEN, "b1")
            assert not asked.tasks["b1"].done()
            assert limits.refused == {"threads": 1}
        finally:
            fairness.use(before)
            for task in asked.tasks.values():
                task.cancel()

    asyncio.run(run())


def test_a_request_that_ends_while_it_waits_takes_no_thread():
    async def run():
        asked = Asked(threads=1)
        await asked.ask(ADA, "a1")
        await asked.ask(BEN, "b1", "b2")
        asked.tasks["b1"].cancel()
        await asked.end(ADA, "a1")
        assert asked.running == ["b2"]
        await asked.ask(CLEO, "c1", "c2")
        asked.running.remove("b2")
        asked.turns.end(BEN)
        asked.tasks["c1"].cancel()  # in the moment in which its turn came
        await settled()
        assert asked.running == ["c2"]

    asyncio.run(run())


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
        assert await asyncio.wait_for(call(BEN, lambda: "done"), 30) == "done"
        assert await asyncio.wait_for(call(CLEO, lambda: "done"), 30) == "done"
        assert await asyncio.wait_for(bridge.call(lambda: "done"), 30) == "done", "the process itself does not wait"
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
