"""Probes: at most one per second however many requests need it, and one log line for an outage."""

import asyncio

from muniment.server.app import readiness as module
from muniment.server.app.readiness import Probe
from muniment.server.observability.outages import Outages


class Service:
    """A service that is up or down, and counts how often it is asked."""

    def __init__(self):
        self.asked = 0
        self.is_up = True

    async def __call__(self):
        self.asked += 1
        await asyncio.sleep(0)
        if not self.is_up:
            raise ConnectionError("refused")


def test_requests_share_one_probe_until_it_is_old(monkeypatch):
    async def run():
        service = Service()
        probe = Probe("store", service, Outages())
        assert all(await asyncio.gather(*(probe.answers() for _ in range(50))))
        assert await probe.answers()
        assert service.asked == 1
        loop = asyncio.get_running_loop()
        now = loop.time()
        monkeypatch.setattr(loop, "time", lambda: now + 1.1)
        assert all(await asyncio.gather(*(probe.answers() for _ in range(50))))
        assert service.asked == 2

    asyncio.run(run())


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(monkeypatch, caplog):
    monkeypatch.setattr(module, "PROBE_EVERY_S", 0.0)
    now = [100.0]

    async def run():
        service = Service()
        probe = Probe("document store", service, Outages(lambda: now[0]), succeeded_for_s=0)
        for is_up in (True, False, False, False, True, True):
            service.is_up = is_up
            assert await probe.answers() == is_up
            now[0] += 2.5
        assert service.asked == 6

    asyncio.run(run())
    assert [record.getMessage() for record in caplog.records] == [
        "the document store does not answer: refused",
        "the document store answers again",
    ]
    assert caplog.records[1].seconds == 7.5


def test_a_service_that_hangs_is_asked_once_and_answered_for_in_time(monkeypatch, caplog):
    monkeypatch.setattr(module, "PROBE_EVERY_S", 0.0)
    monkeypatch.setattr(module, "PROBE_WAIT_S", 0.0)

    async def run():
        asked = []
        end = asyncio.Event()

        async def hang():
            asked.append(1)
            await end.wait()

        probe = Probe("database", hang, Outages())
        assert [await probe.answers() for _ in range(3)] == [False] * 3
        assert len(asked) == 1
        end.set()

    asyncio.run(run())
    assert [record.getMessage() for record in caplog.records] == ["the database does not answer: TimeoutError"]
