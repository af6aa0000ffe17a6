"""How a page shows whether a vote has ended."""

from datetime import timedelta

import pytest

from muniment.kernel.ids import now
from muniment.web.presenters.company import proposal_row
from muniment.web.presenters.company_lists import states_of


@pytest.mark.parametrize(
    ("proposal", "has_ended"),
    [
        ({"status": "active", "endDate": "2025-04-18"}, True),
        ({"status": "active", "endDate": "2025-04-18T10:00:00Z"}, True),
        ({"status": "passed", "endDate": "2999-01-01"}, True),
        ({"status": "failed", "endDate": "2999-01-01"}, True),
        ({"status": "active", "endDate": f"{now() + timedelta(days=2):%Y-%m-%d}"}, False),
        ({"status": "active", "endDate": "12 May 2999"}, False),
        ({"status": "pending"}, False),
    ],
)
def test_a_vote_has_ended_after_its_day_or_with_its_result(proposal, has_ended):
    assert proposal_row({"title": "Plant willows", **proposal})["has_ended"] is has_ended


def test_a_vote_that_has_ended_without_a_result_says_so():
    ended = {"title": "Plant willows", "endDate": "2025-04-18"}
    assert proposal_row({**ended, "status": "active"})["is_undecided"]
    assert not proposal_row({**ended, "status": "passed"})["is_undecided"]
    assert not proposal_row({"title": "Plant willows", "status": "active", "endDate": "2999-01-01"})["is_undecided"]


def test_a_vote_that_has_ended_without_a_result_is_not_shown_as_active():
    left = {"title": "Plant willows", "endDate": "2025-04-18", "status": "active"}
    pending, passed, coming = (
        {**left, "status": "pending"},
        {**left, "status": "passed"},
        {**left, "endDate": "2999-01-01"},
    )
    shown = [(each["state"], each["outcome"]) for each in map(proposal_row, (left, pending, passed, coming))]
    assert shown == [("ended", "Ended"), ("ended", "Ended"), ("passed", "Passed"), ("active", "Active")]
    rows = [passed, left, {"status": "odd"}, pending, coming]
    assert states_of(rows, "2026-11-26") == {"active": 1, "passed": 1, "ended": 2, "odd": 1}
