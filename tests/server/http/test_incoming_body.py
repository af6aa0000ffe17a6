"""A body arrives without long pauses, within a time limit, and is mostly content."""

import pytest

from muniment.server.http.incoming_body import MIN_UPLOAD_BYTES_PER_S, IncomingBody


def body(*, is_upload=False, pause_s=10, deadline_s=30):
    made = IncomingBody(pause_s, deadline_s)
    made.begin(1000, is_upload=is_upload)
    return made


def fault(dripped, now, *, is_paused=False):
    """Look after one more byte has just arrived."""
    dripped.content_bytes += 1
    return dripped.fault(now, now, is_paused=is_paused)


def test_a_pause_ends_a_body():
    paused = body()
    assert paused.fault(1010, 1000, is_paused=False) is None
    assert paused.fault(1010.1, 1000, is_paused=False).status == 408


def test_a_dripped_body_ends_at_the_deadline():
    dripped = body()
    assert [fault(dripped, 1000 + second) for second in range(31)] == [None] * 31
    assert "within 30 s" in fault(dripped, 1031).message


def test_the_time_in_which_this_process_does_not_read_is_not_counted():
    waiting = body()
    assert [fault(waiting, 1000 + second, is_paused=second > 5) for second in range(200)] == [None] * 200
    assert [fault(waiting, 1200 + second) for second in range(24)] == [None] * 24
    assert fault(waiting, 1225).status == 408


def test_an_upload_may_take_longer_at_a_minimum_rate_and_a_dripped_one_ends():
    upload, dripped = body(is_upload=True), body(is_upload=True)
    for second in range(3000):
        upload.content_bytes += MIN_UPLOAD_BYTES_PER_S
        assert upload.fault(1000 + second, 1000 + second, is_paused=False) is None
    assert [fault(dripped, 1000 + second) for second in range(31)] == [None] * 31
    assert "8 KB a second" in fault(dripped, 1031).hint


def test_chunk_extensions_are_counted_and_small_chunks_are_allowed():
    extended = body()
    assert extended.frame(64 << 10) is None
    assert extended.frame(1).status == 413
    small = body()
    for _ in range(1 << 20):
        small.content_bytes += 1
        assert small.frame(5) is None


@pytest.mark.parametrize(("is_upload", "taken_s", "cost"), [(False, 0.9, 0), (False, 12, 12), (True, 12, 0)])
def test_only_slow_bodies_cost_their_client_something(is_upload, taken_s, cost):
    assert body(is_upload=is_upload).taken_s(1000 + taken_s) == cost
