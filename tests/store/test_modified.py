"""Stamps: whole seconds, each of one version alone."""

import pytest

from muniment.store import modified


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
    assert modified.stamp_after(moment, former) == stamp


def test_the_first_stamp_of_a_server_is_not_before_it():
    assert modified.stamp_from("2026-01-05T10:00:05Z") == "2026-01-05T10:00:06Z"
    assert modified.stamp_from("2026-01-05T10:00:06Z") == "2026-01-05T10:00:08Z"


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
    monkeypatch.setattr(modified, "_seen", "")
    monkeypatch.setattr(modified, "present", lambda: "2026-01-05T10:00:06Z")
    assert modified.shown(moment) == shown
