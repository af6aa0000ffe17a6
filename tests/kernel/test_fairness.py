"""The limits of a process."""

import pytest

from muniment.kernel import fairness
from muniment.kernel.fairness import Fairness
from muniment.kernel.problems import TooMany

LIMITS = (
    *("new_connections", "requests", "unauthenticated", "credentials", "registrations"),
    *("writes", "written_bytes", "page_cpu"),
)


def limited():
    return Fairness(rate=60, burst=2, writes=60, page_cpu_ms=2_000)


@pytest.mark.parametrize("name", LIMITS)
def test_a_client_over_a_limit_is_told_how_long_to_wait_and_another_one_passes(name):
    limits = limited()
    limiter = getattr(limits, name)
    limits.take(name, 7, limiter.burst)
    with pytest.raises(TooMany) as refusal:
        limits.take(name, 7, limiter.burst)
    assert f"Wait {refusal.value.retry_after_s} s" in refusal.value.hint
    assert refusal.value.headers["Retry-After"] == str(refusal.value.retry_after_s)
    limits.take(name, 8)
    assert limits.refused == {name: 1}


def test_an_overdrawn_limit_is_checked_without_a_charge():
    limits = limited()
    limits.page_cpu._clock = lambda: 0.0
    limits.page_cpu.charge("7", limits.page_cpu.burst)
    assert [limits.check("page_cpu", 7).remaining for _ in range(3)] == [0] * 3
    limits.page_cpu.charge("7", 1)
    with pytest.raises(TooMany, match="computing time"):
        limits.check("page_cpu", 7)
    limits.check("page_cpu", 8)


def test_a_setting_that_is_off_disables_its_limits():
    limits = Fairness()
    for name in LIMITS:
        assert not getattr(limits, name).is_enabled
        limits.take(name, 7, 1e12)
    assert limits.refused == {}


def test_the_limits_of_the_process_can_be_replaced():
    before = fairness.current()
    try:
        mine = fairness.use(limited())
        assert fairness.current() is mine
    finally:
        fairness.use(before)
