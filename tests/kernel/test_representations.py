"""Negotiated encodings are remembered, but not values that only an attacker sends; a stamp is of one version alone."""

import pytest

from muniment.kernel.http import representations
from muniment.kernel.http.representations import digest, negotiated
from muniment.mcp.protocol import http
from muniment.mcp.protocol.http import NotAcceptable, OriginPolicy, check_types


@pytest.mark.parametrize(
    ("accepted", "chosen"), [(b"br", b"br"), (b"br;q=0", b""), (b"gzip, br;q=0.5", b"gzip"), (b"*", b"zstd")]
)
def test_the_preferred_encoding_is_chosen_also_from_a_long_value(accepted, chosen):
    assert negotiated(accepted) == chosen
    assert negotiated(accepted + b", x-unknown" * 1000) == chosen


def test_long_header_values_are_not_kept_in_memory():
    kept = representations._remembered.cache_info().currsize, http._remembered.cache_info().currsize
    policy = OriginPolicy("http://registry.example")
    for number in range(50):
        long = b", x%d" % number * 100
        negotiated(b"br" + long)
        check_types({b"content-type": b"application/json", b"accept": b"application/json" + long})
        with pytest.raises(NotAcceptable):
            check_types({b"content-type": b"application/json", b"accept": b"text/html" + long})
        policy.admit(b"registry.example", b"https://%d.example" % number * 50)
    found = representations._remembered.cache_info().currsize, http._remembered.cache_info().currsize
    assert found == kept
    assert policy._admitted == set()


@pytest.mark.parametrize(
    ("moment", "former", "stamp"),
    [
        ("2026-01-05T10:00:04.999999Z", "", "2026-01-05T10:00:04Z"),
        ("2026-01-05T10:00:05.000001Z", "", "2026-01-05T10:00:04Z"),
        ("2026-01-05T10:00:05.000001Z", "2026-01-05T10:00:02Z", "2026-01-05T10:00:04Z"),
        ("2026-01-05T10:00:05.000001Z", "2026-01-05T10:00:04Z", "2026-01-05T10:00:06Z"),
        ("2025-12-31T00:00:00.000000Z", "2026-01-05T10:59:58Z", "2026-01-05T11:00:00Z"),
    ],
    ids=["even", "odd", "later", "the same two seconds", "a clock set back"],
)
def test_stamps_are_even_and_only_rise(moment, former, stamp):
    assert representations.stamp_after(moment, former) == stamp


def test_the_first_stamp_of_a_server_is_not_before_it():
    assert representations.stamp_from("2026-01-05T10:00:05Z") == "2026-01-05T10:00:06Z"
    assert representations.stamp_from("2026-01-05T10:00:06Z") == "2026-01-05T10:00:08Z"


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        ("2026-01-05T10:00:04Z", "2026-01-05T10:00:04Z"),
        ("2026-01-05T10:00:08Z", "2026-01-05T10:00:05Z"),
        ("2026-01-05T10:00:04.000000Z", "2026-01-05T10:00:03Z"),
        ("2026-01-05T10:00:03.500000Z", "2026-01-05T10:00:03Z"),
        ("2026-01-05T00:00:00.000000Z", "2026-01-04T23:59:59Z"),
        ("2026-01-06T00:00:00.000000Z", "2026-01-05T10:00:05Z"),
    ],
)
def test_only_a_stamp_that_has_come_is_shown_as_one(monkeypatch, moment, shown):
    monkeypatch.setattr(representations, "_seen", "")
    monkeypatch.setattr(representations, "present", lambda: "2026-01-05T10:00:06Z")
    assert representations.shown(moment) == shown


def test_a_digest_tells_contents_apart_and_nothing_more():
    assert digest(b"a") != digest(b"b")
    assert digest(b"a") == digest(b"a")
    assert len(digest(b"")) == 24
