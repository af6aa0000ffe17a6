"""Probes: they run in the background, tell a silent service from one that refuses, and never make a request wait."""

import asyncio
import threading

import pytest

from muniment.config import Config
from muniment.server.app import readiness as module
from muniment.server.app.readiness import Probe, State
from muniment.server.observability.outages import Outages


class Service:
    """A service that answers, refuses, or is silent until it is let go; it counts how often it is asked."""

    def __init__(self):
        self.asked = 0
        self.is_up = True
        self.speaks = threading.Event()
        self.speaks.set()

    def __call__(self):
        self.asked += 1
        self.speaks.wait(60)
        if not self.is_up:
            raise ConnectionError("refused")


async def until(holds):
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what is awaited has no event
            await asyncio.sleep(0.01)


async def known(probe):
    """Have the service probed, and wait for its answer."""
    question = probe.want()
    assert question is not None
    await question
    return probe.state


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(module, "PROBE_EVERY_S", 0.01)


def test_requests_share_one_probe_until_it_is_old():
    async def run():
        service = Service()
        probe = Probe("store", service, Outages(), succeeded_for_s=3600)
        questions = {probe.want() for _ in range(50)}
        assert len(questions) == 1
        await questions.pop()
        assert probe.state is State.ANSWERS
        assert probe.want() is None, "the last state is used"
        assert service.asked == 1

    asyncio.run(run())


def test_a_service_is_probed_in_the_background_while_health_checks_come(monkeypatch):
    async def run():
        service = Service()
        probe = Probe("store", service, Outages(), succeeded_for_s=0.01)
        assert await known(probe) is State.ANSWERS
        service.is_up = False
        await until(lambda: probe.state is State.REFUSES)
        monkeypatch.setattr(probe, "_wanted_until", 0.0)
        await until(lambda: probe._asking is None and probe._resting is None)
        asked = service.asked
        assert await known(probe) is State.REFUSES
        assert service.asked == asked + 1

    asyncio.run(run())


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(caplog):
    now = [100.0]

    async def run():
        service = Service()
        probe = Probe("document store", service, Outages(lambda: now[0]), succeeded_for_s=0.01)
        assert await known(probe) is State.ANSWERS
        service.is_up = False
        await until(lambda: probe.state is State.REFUSES)
        asked = service.asked
        await until(lambda: service.asked > asked + 2)
        now[0] += 7.5
        service.is_up = True
        await until(lambda: probe.state is State.ANSWERS)

    asyncio.run(run())
    assert [record.getMessage() for record in caplog.records] == [
        "the document store does not answer: refused",
        "the document store answers again",
    ]
    assert caplog.records[1].seconds == 7.5


def test_a_silent_service_is_told_from_one_that_refuses_and_blocks_one_thread(caplog):
    async def run():
        service = Service()
        probe = Probe("database", service, Outages(), succeeded_for_s=0.01, silent_after_s=0.05)
        assert await known(probe) is State.ANSWERS
        service.speaks.clear()
        await until(lambda: probe.state is State.SILENT)
        asked = service.asked
        for _ in range(50):
            probe.want()
            await asyncio.sleep(0)
        assert service.asked == asked, "it is not asked again before it has answered"
        service.speaks.set()
        await until(lambda: probe.state is State.ANSWERS)

    asyncio.run(run())
    assert [record.getMessage() for record in caplog.records] == [
        "the database does not answer: no answer for 0.05 seconds",
        "the database answers again",
    ]


def test_a_health_check_shows_no_words_of_a_driver_which_the_log_has(caplog):
    words = 'connection to server at "10.0.0.7" failed: FATAL: role "muniment" is not permitted to log in'

    def refuse():
        raise ConnectionError(words)

    def explain():
        raise module.Refused("another session has held the edition for 5 seconds")

    async def run():
        probe = Probe("database for writes", refuse, Outages())
        assert await known(probe) is State.REFUSES
        assert probe.reason == "it refuses, and the log says why"
        explained = Probe("database", explain, Outages())
        assert await known(explained) is State.REFUSES
        assert explained.reason == "another session has held the edition for 5 seconds"

    asyncio.run(run())
    assert words in caplog.text


def test_what_was_known_long_ago_is_not_told_again(monkeypatch):
    async def run():
        service = Service()
        probe = Probe("database for writes", service, Outages(), succeeded_for_s=0.01)
        assert await known(probe) is State.ANSWERS
        monkeypatch.setattr(probe, "_wanted_until", 0.0)
        await until(lambda: probe._asking is None and probe._resting is None)
        assert (probe.state, probe.reason) == (State.UNKNOWN, "")

    asyncio.run(run())


@pytest.fixture
def readiness(tmp_path):
    made = module.Readiness(Config(data=tmp_path), Outages())
    made._disk, made._reads, made._store = (Probe(name, lambda: None, Outages()) for name in ("disk", "file", "store"))
    return made


async def asked(readiness):
    """Return the states of a health check's probes, and for how long it has waited for them."""
    began = asyncio.get_running_loop().time()
    await readiness._ask(has_pages=True, tries=False)
    return readiness._database.state, asyncio.get_running_loop().time() - began


def test_the_first_health_check_waits_for_a_slow_service_and_later_ones_use_its_last_state(readiness, monkeypatch):
    monkeypatch.setattr(module, "FIRST_S", 60.0)

    async def run():
        service = Service()
        service.speaks.clear()
        readiness._database = Probe("database", service, Outages(), succeeded_for_s=0.01)
        asyncio.get_running_loop().call_later(0.5, service.speaks.set)
        assert await asked(readiness) == (State.ANSWERS, pytest.approx(0.5, abs=30))
        service.speaks.clear()
        await until(lambda: service.asked > 1)
        state, waited_s = await asked(readiness)
        assert state is State.ANSWERS
        assert waited_s < 30
        service.speaks.set()

    asyncio.run(run())


def test_the_first_health_check_does_not_wait_for_a_silent_service(readiness, monkeypatch):
    monkeypatch.setattr(module, "FIRST_S", 0.05)

    async def run():
        service = Service()
        service.speaks.clear()
        readiness._database = Probe("database", service, Outages())
        state, waited_s = await asked(readiness)
        assert state is State.UNKNOWN
        assert 0.05 <= waited_s < 30
        service.speaks.set()

    asyncio.run(run())


def test_a_probe_whose_thread_did_not_start_starts_it_for_the_next_question(monkeypatch):
    class Refused:
        def __init__(self, **_):
            pass

        def start(self):
            raise RuntimeError("can't start new thread")

    async def run():
        service = Service()
        probe = Probe("store", service, Outages())
        with monkeypatch.context() as patch:
            patch.setattr(module.threading, "Thread", Refused)
            with pytest.raises(RuntimeError):
                await known(probe)
        await until(lambda: probe.state is State.ANSWERS)

    asyncio.run(run())


def test_a_database_that_has_not_answered_yet_is_not_ready_for_writes(readiness):
    readiness._database.state = readiness._store.state = State.ANSWERS
    assert readiness._of_services(tries=False) == []
    assert readiness._of_services(tries=True) == ["the database cannot be written: it has not answered yet"]
    readiness._writes.state = State.ANSWERS
    assert readiness._of_services(tries=True) == []
