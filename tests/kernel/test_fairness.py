"""The limits of a process."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.kernel import fairness
from muniment.kernel.fairness import Fairness, Limiter, Verdict
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


class Clock:
    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


def limiter(per_minute=600, burst=100, **more):
    clock = Clock()
    return Limiter(per_minute, burst, clock=clock, **more), clock


def test_a_burst_passes_and_the_next_request_gets_a_retry_after():
    held, _ = limiter()
    assert [held.take("a").allowed for _ in range(100)] == [True] * 100
    refused = held.take("a")
    assert (refused.allowed, refused.remaining, refused.retry_after_s) == (False, 0, 1)


def test_remaining_counts_down_and_reset_is_when_the_bucket_is_full_again():
    held, _ = limiter(per_minute=60, burst=5)
    left = [held.take("a") for _ in range(3)]
    assert [(each.remaining, each.reset_s) for each in left] == [(4, 1), (3, 2), (2, 3)]


def test_waiting_as_long_as_told_is_enough():
    held, clock = limiter(per_minute=7, burst=3)
    while (verdict := held.take("a")).allowed:
        pass
    clock.now_s += verdict.retry_after_s
    assert held.take("a").allowed


def test_clients_do_not_share_a_bucket():
    held, _ = limiter(burst=1)
    assert held.take("a").allowed
    assert not held.take("a").allowed
    assert held.take("b").allowed


def test_a_released_item_can_be_assigned_again():
    held, _ = limiter(burst=1)
    for _ in range(50):
        assert held.take("a").allowed
        assert held.refund("a").remaining == 1


def test_looking_costs_nothing():
    held, _ = limiter(burst=2)
    held.take("a")
    assert [held.peek("a").remaining for _ in range(5)] == [1] * 5


@pytest.mark.parametrize("burst", [1, 2, 5])
def test_a_refusal_is_known_beforehand_from_exactly_the_last_unit_on(burst):
    held, clock = limiter(per_minute=6, burst=burst)
    for _ in range(burst):
        assert held.refusal("a") is None
        assert held.take("a").allowed
    full_s = 10 * burst
    assert held.refusal("a") == held.take("a") == Verdict(False, 0, full_s, 10, 10.0)
    clock.now_s += 3
    assert held.refusal("a") == held.take("a") == Verdict(False, 0, full_s - 3, 7, 7.0)
    clock.now_s += 6.9
    assert held.refusal("a").retry_after_s == 1
    clock.now_s += 0.1
    assert held.refusal("a") is None
    assert held.take("a") == Verdict(True, 0, full_s, 0)
    assert held.refusal("b") is None


def test_a_refusal_that_is_known_beforehand_charges_nothing():
    held, _ = limiter(burst=2)
    for _ in range(5):
        held.refusal("a")
    assert held.peek("a").remaining == 2


def test_an_overdrawn_bucket_is_refused_until_it_holds_a_unit_again():
    held, clock = limiter(per_minute=6, burst=2)
    held.charge("a", 4)
    assert held.refusal("a").wait_s == 30.0
    clock.now_s += 20
    assert (held.peek("a").allowed, held.refusal("a").wait_s) == (True, 10.0)
    clock.now_s += 10
    assert held.refusal("a") is None


def test_a_refund_gives_back_one_unit_and_never_more_than_a_full_bucket():
    held, _ = limiter(per_minute=6, burst=2)
    held.take("a")
    assert held.refund("a") == Verdict(True, 2, 0, 0)
    assert held.refund("a") == Verdict(True, 2, 0, 0)
    held.charge("a", 2)
    assert held.refund("a") == Verdict(True, 1, 10, 0)


def test_a_request_may_cost_more_than_one_unit():
    held, clock = limiter(per_minute=60, burst=10)
    assert [held.take("a", 4).remaining for _ in range(2)] == [6, 2]
    refused = held.take("a", 4)
    assert (refused.allowed, refused.retry_after_s) == (False, 2)
    assert held.take("a", 2).allowed
    clock.now_s += 4
    assert held.take("a", 4).allowed


def test_a_cost_above_the_size_of_the_bucket_needs_a_full_bucket():
    held, clock = limiter(per_minute=60, burst=10)
    assert held.take("a", 15).allowed
    assert not held.take("a").allowed
    clock.now_s += 6
    assert held.take("a").allowed
    refused = held.take("a", 15)
    assert (refused.allowed, refused.retry_after_s) == (False, 10)
    clock.now_s += refused.retry_after_s
    assert held.take("a", 1_000).allowed


def test_a_cost_charged_afterwards_overdraws_the_bucket_until_it_is_refilled():
    held, clock = limiter(per_minute=60, burst=10)
    assert held.charge("a", 3).remaining == 7
    assert held.peek("a").allowed
    held.charge("a", 12)
    assert (held.peek("a").allowed, held.peek("a").retry_after_s) == (False, 5)
    assert not held.take("a").allowed
    assert held.peek("b").allowed
    clock.now_s += 5
    assert held.peek("a").allowed
    assert not held.take("a").allowed
    clock.now_s += 1
    assert held.take("a").allowed


def test_a_cost_far_above_the_size_of_a_full_bucket_is_paid_back_after_two_refills():
    held, clock = limiter(per_minute=60, burst=10)
    assert held.take("a", cost=1000).allowed
    clock.now_s += 20
    assert held.take("a", cost=10).allowed


def test_an_overdraft_is_bounded_and_not_forgotten_early():
    held, clock = limiter(per_minute=60, burst=10)
    held.charge("a", 1_000_000)
    assert held.peek("a").retry_after_s == 10
    for _ in range(9):
        clock.now_s += 1
        held.take("b")
        assert not held.peek("a").allowed
    clock.now_s += 1
    assert held.peek("a").allowed


class Remembering(Limiter):
    """A limiter that forgets no bucket."""

    def _keep(self, client, full_at, _now):
        self._young[client] = full_at


@pytest.mark.parametrize("step_s", [0.5, 1, 3, 9.5, 10, 20, 29.5, 30, 39.5, 40, 40.5])
def test_a_bucket_is_forgotten_only_when_it_is_full(step_s):
    for begins_at in range(50):
        clock = Clock()
        held, remembering = (kind(6, 2, clock=clock) for kind in (Limiter, Remembering))
        for number in range(int(130 / step_s)):
            clock.now_s += step_s
            if number == begins_at:
                held.charge("a", 1_000_000)  # is full again after 40 s
                remembering.charge("a", 1_000_000)
            assert held.take(str(number)).allowed  # which may be the turn of a generation
            assert held.peek("a") == remembering.peek("a")


def test_without_a_rate_nothing_is_charged():
    held, _ = limiter(per_minute=0)
    held.charge("a", 1_000_000)
    assert held.peek("a").allowed
    assert held.take("a", 1_000_000).allowed


def test_without_a_rate_everything_passes_and_nothing_is_remembered():
    held, _ = limiter(per_minute=0)
    assert all(held.take(str(index)).allowed for index in range(1000))
    assert len(held) == 0


def test_memory_is_bounded_however_many_clients_connect():
    held, _ = limiter(max_clients=100)
    for index in range(10_000):
        held.take(str(index))
    assert len(held) <= 200


def test_a_bucket_outlives_a_turn_of_the_generations():
    held, clock = limiter(per_minute=60, burst=10)
    for _ in range(10):
        held.take("a")
    clock.now_s += 0.5
    held.take("b")
    assert not held.take("a").allowed


@given(st.integers(1, 600), st.integers(1, 50), st.lists(st.tuples(st.floats(0, 5), st.floats(0, 20)), max_size=100))
def test_costs_of_any_size_stay_within_the_burst_the_rate_and_one_overdraft(per_minute, burst, uses):
    held, clock = limiter(per_minute, burst)
    spent = 0.0
    for wait_s, cost in uses:
        clock.now_s += wait_s
        if held.take("a", cost).allowed:
            spent += min(cost, 2 * burst)
    assert spent <= 2 * burst + sum(wait_s for wait_s, _ in uses) * per_minute / 60 + 1


@given(st.integers(1, 10_000), st.integers(1, 50), st.lists(st.floats(0, 5), max_size=200))
def test_no_client_gets_more_than_its_burst_and_its_rate(per_minute, burst, waits):
    held, clock = limiter(per_minute, burst)
    passed = 0
    for wait_s in waits:
        clock.now_s += wait_s
        passed += held.take("a").allowed
    assert passed <= burst + sum(waits) * per_minute / 60 + 1
