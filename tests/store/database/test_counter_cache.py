"""The rate limits that all processes and nodes share."""

import base64
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.core.cache import cache, caches
from django.db import connection, connections, transaction

from muniment.kernel.ids import now
from muniment.store.database import counter_cache
from muniment.store.database.counter_cache import MAX_ENTRIES, MAX_OF_A_KIND

pytestmark = pytest.mark.django_db(transaction=True)


def test_concurrent_increments_are_all_counted():
    cache.add("tries", 0, timeout=3_700)
    together = threading.Barrier(6)

    def count():
        together.wait(60)
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


def fill(table, keys, *, seconds=3_700):
    """Insert entries as the cache stores them."""
    value = base64.b64encode(pickle.dumps(1)).decode()
    ends = connection.ops.adapt_datetimefield_value((now() + timedelta(seconds=seconds)).replace(microsecond=0))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s)", [(f":1:{key}", value, ends) for key in keys])


def kept(table):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {table}")
        return cursor.fetchone()[0]


SIGN_IN = ("allauth:rl:account:login_failed:5/300/key:0a", "allauth:rl:account:login:30/60/ip:ip:192.0.2.1")
OTHERS = ("client-documents:2026112219", "invitations-sent:7:2026112219", "oauth-register:00:2026112219")


@pytest.mark.parametrize("alias", ["default", "forms"])
def test_submitted_forms_evict_no_sign_in_counter(alias):
    for key in (*SIGN_IN, *OTHERS):
        cache.set(key, 7, timeout=3_700)
    table = {"default": "accounts_cache", "forms": "web_forms"}[alias]
    fill(table, (f"once:{number % 9}:{number}" for number in range(MAX_ENTRIES + 1)))
    for number in range(5):
        assert caches[alias].add(f"once:{number}:last", "/manage", timeout=3_600)
    assert [cache.get(key) for key in (*SIGN_IN, *OTHERS)] == [7] * 5


def test_a_flood_of_one_kind_evicts_its_own_entries_those_that_end_first():
    for key in (*SIGN_IN, *OTHERS):
        cache.set(key, 7, timeout=60)
    fill("accounts_cache", (f"oauth-register:{number:06}:x" for number in range(MAX_OF_A_KIND)), seconds=600)
    cache.set("oauth-register:ffffff:x", 7, timeout=3_700)
    cache.set("oauth-register:eeeeee:x", 7, timeout=3_700)
    assert [cache.get(key) for key in (*SIGN_IN, *OTHERS[:2])] == [7] * 4
    assert cache.get(OTHERS[2]) is None, "the first of its kind to end"
    assert cache.get("oauth-register:ffffff:x") == cache.get("oauth-register:eeeeee:x") == 7
    assert kept("accounts_cache") <= MAX_OF_A_KIND + 6


def test_expired_entries_go_first():
    fill("accounts_cache", (f"oauth-register:{number}:x" for number in range(MAX_ENTRIES)), seconds=-10)
    cache.set(SIGN_IN[0], 7, timeout=60)
    cache.set(OTHERS[0], 7, timeout=60)
    assert kept("accounts_cache") == 2


def test_an_account_keeps_a_bounded_number_of_forms_and_takes_none_from_others():
    forms = caches["forms"]
    forms.add("once:7:a", "/manage", timeout=3_600)
    fill("web_forms", (f"once:8:{number}" for number in range(5_000)), seconds=3_000)
    assert forms.add("once:8:last", "/manage", timeout=3_600)
    assert kept("web_forms") <= 202
    assert forms.get("once:7:a") == forms.get("once:8:last") == "/manage"


def test_many_clients_do_not_evict_the_limits_of_others():
    cache.set("a-first", 7, timeout=3_700)
    for number in range(320):
        cache.add(f"knock-{number}", 0, timeout=3_700)
    assert cache.get("a-first") == 7


def test_counts_that_ended_are_deleted_every_hour():
    fill("accounts_cache", ("oauth-register:old:x", "sign-ins-failed:old:x"), seconds=-10)
    fill("web_forms", ("once:7:old",), seconds=-10)
    cache.set(SIGN_IN[0], 7, timeout=60)
    assert counter_cache.sweep() == 3
    assert (kept("accounts_cache"), kept("web_forms")) == (1, 0)
