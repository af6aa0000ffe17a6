"""Other services have a deadline for all of a call, and a silent one costs one caller its deadline."""

import threading
from contextvars import ContextVar

import pytest

from muniment.outbound.deadlines import Service, StillSilent, within
from services.ports import wait_until

LATE = "it took too long"
name = ContextVar("name", default="")


@pytest.fixture
def slots():
    """Yield the slots, which are all free in the end: no thread keeps one."""
    made = threading.BoundedSemaphore(2)
    yield made
    wait_until(lambda: made._value == 2, within_s=60, what="the end of the calls")


@pytest.fixture
def ends():
    event = threading.Event()
    yield event
    event.set()


def test_a_call_in_time_returns_its_result_or_raises_its_error_and_knows_its_request(slots):
    name.set("r-1")
    assert within(60, name.get, slots, late=LATE) == "r-1"
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: 1 // 0, slots, late=LATE)


def test_a_call_that_takes_too_long_is_left_behind_and_the_number_of_them_is_bounded(slots, ends):
    for _ in range(2):
        with pytest.raises(TimeoutError, match=LATE):
            within(0.02, lambda: ends.wait(60), slots, late=LATE)
    with pytest.raises(TimeoutError, match="too many earlier calls"):
        within(0.02, lambda: pytest.fail("it has no slot"), slots, late=LATE)


def test_without_a_thread_the_slot_is_free_again(slots, monkeypatch):
    def fail(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(RuntimeError):
        within(60, lambda: None, slots, late=LATE)


def ask(service, error=None):
    with service.asked():
        if error is not None:
            raise error
        return "answer"


def test_while_a_service_is_silent_one_caller_tries_it_and_the_others_are_refused_at_once():
    service = Service("the store", silent_after_s=0)
    with pytest.raises(OSError, match="late"):
        ask(service, OSError("late"))
    with service.asked(), pytest.raises(StillSilent, match="the store does not answer"):
        ask(service)
    with service.asked():
        assert ask(service) == "answer", "it answered"


def test_a_trial_that_fails_lets_the_next_caller_try():
    service = Service("the store", silent_after_s=0)
    for _ in range(3):
        with pytest.raises(OSError, match="late"):
            ask(service, OSError("late"))
    assert ask(service) == "answer"


def test_a_service_that_refuses_is_not_silent():
    service = Service("the store", silent_after_s=60)
    with pytest.raises(OSError, match="refused"):
        ask(service, OSError("refused"))
    with service.asked():
        assert ask(service) == "answer"
