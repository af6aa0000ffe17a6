"""The rate limits that all processes and nodes share."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.cache import cache
from django.db import connection, connections

pytestmark = pytest.mark.django_db(transaction=True)


def test_concurrent_increments_are_all_counted():
    cache.add("tries", 0, timeout=3_700)
    together = threading.Barrier(6)

    def count():
        together.wait(20)
        found = [cache.incr("tries") for _ in range(10)]
        connections.close_all()
        return found

    with ThreadPoolExecutor(6) as threads:
        counts = [number for each in [threads.submit(count) for _ in range(6)] for number in each.result()]
    assert sorted(counts) == list(range(1, 61))
    assert cache.get("tries") == 60


def test_counting_on_does_not_change_when_it_ends():
    def ends():
        with connection.cursor() as cursor:
            cursor.execute("SELECT expires FROM accounts_cache WHERE cache_key LIKE %s", ["%hourly"])
            return cursor.fetchone()[0]

    cache.add("hourly", 0, timeout=3_700)
    before = ends()
    assert cache.incr("hourly") == 1
    assert cache.incr("hourly") == 2
    assert ends() == before


def test_counting_an_unknown_key_is_an_error():
    with pytest.raises(ValueError, match="not found"):
        cache.incr("nothing")


def test_many_clients_do_not_evict_the_limits_of_others():
    cache.set("a-first", 7, timeout=3_700)
    for number in range(320):
        cache.add(f"knock-{number}", 0, timeout=3_700)
    assert cache.get("a-first") == 7
