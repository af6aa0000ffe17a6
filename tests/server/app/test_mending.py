"""What reads found damaged is mended in turn: one document that cannot be mended keeps no other one waiting."""

import asyncio

import pytest

from muniment.config import Config
from muniment.registry.publishing import republishing
from muniment.scrub import database_file
from muniment.server.app.mending import Mending
from muniment.server.observability.metrics import Metrics
from muniment.store.database.faults import damage_seen, damages_read

NAMES = [("company", "alpha"), ("company", "beta"), ("person", "gamma")]


@pytest.fixture(autouse=True)
def nothing_waits(monkeypatch):
    monkeypatch.setattr("muniment.store.database.faults.REST_S", 0.0)
    damages_read.take_documents()
    damage_seen.clear()
    yield
    damages_read.take_documents()
    damage_seen.clear()


@pytest.fixture
def mended(monkeypatch):
    """Yield what is mended, in order; the first document cannot be."""
    names = []

    def mend(given):
        names.extend(given)
        if NAMES[0] in given:
            raise ValueError("its source cannot be rendered")

    monkeypatch.setattr(republishing, "mend_damaged", mend)
    monkeypatch.setattr(database_file, "record_unreadable", lambda: names.append("pages"))
    return names


async def call(operation, *arguments):
    return operation(*arguments)


def look(tmp_path, *, times):
    async def run():
        mending = Mending(Config(data=tmp_path), call, Metrics())
        for _ in range(times):
            mending.look()
            if mending._running is not None:
                await mending._running

    asyncio.run(run())


def test_a_document_that_cannot_be_mended_keeps_no_other_one_waiting(tmp_path, mended, caplog):
    for name in NAMES:
        damages_read.document(*name)
    damage_seen.set()
    look(tmp_path, times=3)
    assert mended == [*NAMES, "pages"], "each once, and that pages are damaged is recorded once"
    assert "the published document company alpha could not be mended" in caplog.text


def test_pages_that_a_scrub_found_whole_are_forgotten_without_a_restart(tmp_path, mended, monkeypatch):
    monkeypatch.setattr("muniment.server.app.mending.LOOK_AGAIN_S", 0.0)
    known = [True, OSError("the database is away"), False]

    def is_unreadable():
        answer = known.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(database_file, "is_unreadable", is_unreadable)
    damage_seen.set()
    look(tmp_path, times=3)
    assert damage_seen.is_set()
    look(tmp_path, times=4)
    assert not damage_seen.is_set()
    assert mended == ["pages", "pages"], "once by each of both servers"
