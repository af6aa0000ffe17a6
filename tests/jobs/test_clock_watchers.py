"""Features that look at other processes' changes in the heartbeat of a worker."""

import logging

import pytest

from muniment.jobs import handlers
from muniment.jobs.handlers import WATCH_S
from muniment.jobs.worker import ClockWatchers


@pytest.fixture
def looks(monkeypatch):
    """Register one watcher that fails, alone, and return the moments at which it was called."""
    found = []

    def look():
        found.append("look")
        raise ConnectionError

    def leave():
        found.append("leave")
        raise ConnectionError

    monkeypatch.setattr(handlers, "clock_watchers", [])
    handlers.watch_clock(look, leave)
    return found


def test_a_watcher_that_fails_is_called_again_after_its_interval_and_not_before(looks):
    watchers = ClockWatchers()
    for moment in (100.0, 100.02, 100.04, 100.0 + WATCH_S - 0.01, 100.0 + WATCH_S):
        before = len(looks)
        try:
            watchers.look(moment)
        except ConnectionError:
            assert len(looks) == before + 1
    assert looks == ["look", "look"]


def test_a_watcher_that_fails_does_not_keep_a_worker_from_stopping(looks, caplog):
    with caplog.at_level(logging.ERROR):
        ClockWatchers().leave()
    assert looks == ["leave"]
    assert "could not be reported" in caplog.text
