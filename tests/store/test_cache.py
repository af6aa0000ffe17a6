"""The response cache: bounded by bytes, and dropped by the documents that an answer shows."""

import pytest

from muniment.store import cache as module
from muniment.store.cache import ENTRY_OVERHEAD_BYTES, REQUEST_OVERHEAD_BYTES, ResponseCache

LIMIT_BYTES = 100_000
SHOWN = (("company", "quay"),)


@pytest.fixture
def cache():
    return ResponseCache(LIMIT_BYTES)


def put(cache, key, *, size_bytes=20_000, edition=0, depends=SHOWN):
    value = object()
    cache.put(key, value, size_bytes=size_bytes, version=edition, depends=depends)
    return value


def test_the_oldest_answers_make_room(cache):
    for key in range(6):
        put(cache, key)
    assert list(cache.ready) == [2, 3, 4, 5]
    assert cache.currsize == 4 * (20_000 + ENTRY_OVERHEAD_BYTES)


def test_an_answer_beyond_a_quarter_or_of_an_earlier_edition_is_not_kept(cache):
    put(cache, "large", size_bytes=LIMIT_BYTES // 4)
    cache.drop_changed(1, ())
    put(cache, "stale", edition=0)
    assert (cache.ready, cache.currsize) == ({}, 0)


def test_an_answer_that_grows_beyond_the_limit_is_kept_alone_and_can_be_replaced(cache):
    put(cache, "other", size_bytes=3_000)
    grown = put(cache, "grown", size_bytes=24_000)
    for _ in range(4):
        cache.grow("grown", grown, 30_000)
    assert cache.ready == {"grown": grown}
    assert cache.currsize == LIMIT_BYTES
    cache.grow("grown", object(), 30_000)  # another version, which is no longer kept
    put(cache, "next")
    assert list(cache.ready) == ["next"]


def test_an_answer_is_dropped_with_any_document_that_it_shows(cache):
    put(cache, "both", depends=(("company", "quay"), ("person", "ada")))
    put(cache, "person", depends=(("person", "ada"),))
    put(cache, "other", depends=(("company", "mole"),))
    cache.drop_changed(1, [("company", "quay"), ("company", "unknown")])
    assert sorted(cache.ready) == ["other", "person"]
    cache.drop_changed(2, [("person", "ada")])
    assert list(cache.ready) == ["other"]
    cache.drop_changed(3, None)
    assert (cache.ready, cache.currsize) == ({}, 0)


def test_a_request_is_remembered_for_as_long_as_its_answer_is_kept(cache):
    kept, other = put(cache, "kept"), put(cache, "other", depends=(("person", "ada"),))
    for number in range(3):
        cache.remember(b"request %d" % number, "kept", kept, number)
    cache.remember(b"of another", "other", other, "given")
    cache.remember(b"request 1", "kept", kept, "again")
    cache.remember(b"too late", "kept", object(), "of a former answer")
    assert cache.by_request == {b"request 0": 0, b"request 1": 1, b"request 2": 2, b"of another": "given"}
    cache.drop_changed(1, SHOWN)
    assert cache.by_request == {b"of another": "given"}
    cache.drop_changed(2, None)
    assert cache.by_request == {}


def test_remembered_requests_go_with_an_answer_that_makes_room(cache):
    first = put(cache, 0)
    cache.remember(b"request", 0, first, "given")
    for key in range(1, 6):
        put(cache, key)
    assert cache.by_request == {}


def test_the_memory_of_requests_is_bounded(cache, monkeypatch):
    monkeypatch.setattr(module, "MAX_REQUESTS_BYTES", 3 * (REQUEST_OVERHEAD_BYTES + 2))
    kept = put(cache, "kept")
    for number in range(8):
        cache.remember(b"%02d" % number, "kept", kept, number)
        assert list(cache.by_request.values()) == list(range(number // 3 * 3, number + 1))
    cache.drop_changed(1, SHOWN)  # what was forgotten is not looked for again
    put(cache, "kept", edition=1)
    assert cache.by_request == {}
