"""What counts as a recent moment, and what an identity provider may state."""

import time

import pytest

from muniment.accounts.security import step_up

AT = 1_795_000_000.0


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: AT)


@pytest.mark.parametrize(
    ("age_s", "counts"), [(0, True), (899, True), (900, False), (901, False), (-60, True), (-61, False), (1e9, False)]
)
def test_a_moment_is_recent_for_fifteen_minutes_and_at_most_a_minute_ahead(age_s, counts):
    assert step_up.is_recent(AT - age_s) is counts


@pytest.mark.parametrize("moment", [None, "1795000000", True, [], {}, float("nan"), float("inf"), float("-inf")])
def test_what_is_no_moment_is_not_recent(moment):
    assert not step_up.is_recent(moment)
    assert step_up.stated_moment({"auth_time": moment}) is None


@pytest.mark.parametrize("stated", [-1, 1 << 40, 10**400])
def test_a_date_that_cannot_be_is_not_stated(stated):
    assert step_up.stated_moment({"auth_time": stated}) is None


def test_a_token_without_a_moment_states_none():
    assert step_up.stated_moment({}) is None


@pytest.mark.parametrize(
    ("late_s", "seen_s"), [(0, 0), (30, 0), (60, 0), (100, 40), (-30, 0), (-60, 0), (-3_600, -3_600)]
)
def test_a_clock_of_the_provider_may_differ_by_a_minute(late_s, seen_s):
    assert step_up.stated_moment({"auth_time": AT - late_s}) == AT - seen_s
