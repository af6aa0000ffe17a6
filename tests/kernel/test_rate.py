"""Token buckets."""

from hypothesis import given
from hypothesis import strategies as st

from muniment.kernel.rate import Limiter


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
    assert [held.take("a")[1:3] for _ in range(3)] == [(4, 1), (3, 2), (2, 3)]


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


@given(st.integers(1, 10_000), st.integers(1, 50), st.lists(st.floats(0, 5), max_size=200))
def test_no_client_gets_more_than_its_burst_and_its_rate(per_minute, burst, waits):
    held, clock = limiter(per_minute, burst)
    passed = 0
    for wait_s in waits:
        clock.now_s += wait_s
        passed += held.take("a").allowed
    assert passed <= burst + sum(waits) * per_minute / 60 + 1
