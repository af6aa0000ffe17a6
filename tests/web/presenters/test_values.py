"""Values as the pages write them, for those who compare and decide."""

import pytest

from muniment.languages.speaking import speaking
from muniment.web.presenters import differences
from muniment.web.presenters.values import field_of, kind_of, value_text

VOTE = {
    "id": "v1",
    "title": "Buy the creek",
    "status": "failed",
    "votes": {"for": 812_400, "against": 0.5},
    "endDate": "2025-04-18",
}
CASES = [
    ("status", "active", "Active", "Aktiv"),
    ("listedAt", "2024-01-31", "31 January 2024", "31. Januar 2024"),
    ("createdAt", "March 2024", "March 2024", "März 2024"),
    (
        "treasuryAmount",
        {"amount": "12345678.00", "currency": "USD"},
        "12,345,678 USD",
        "12.345.678 USD",
    ),
    ("treasuryAmount", {"amount": "1249999.99", "currency": "USD"}, "1,249,999.99 USD", "1.249.999,99 USD"),
    ("address", [{"id": "a", "city": "Lyon", "country": "FR"}], "Lyon, France", "Lyon, Frankreich"),
    ("capTable", [{"id": "h", "name": "Treasury", "percentage": 12.5}], "Treasury, 12.5%", "Treasury, 12,5 %"),
    (
        "proposals",
        [VOTE],
        "Buy the creek, Failed, Votes for 812,400, Votes against 0.5, 18 April 2025",
        "Buy the creek, Abgelehnt, Ja-Stimmen 812.400, Gegenstimmen 0,5, 18. April 2025",
    ),
    (
        "proposals",
        [{"title": "Dam", "endDate": "2025-04-18", "createdAt": "2025-04-01", "round": 2, "url": "https://a.example"}],
        "Dam, 18 April 2025, Created at: 1 April 2025, Round: 2, URL: https://a.example",
        "Dam, 18. April 2025, Created at: 1. April 2025, Round: 2, URL: https://a.example",
    ),
]


@pytest.mark.parametrize(("name", "value", "english", "german"), CASES)
def test_a_value_is_written_as_public_pages_write_it_in_each_language(name, value, english, german):
    kind = kind_of(field_of(name))
    assert value_text(value, kind) == english
    with speaking("de"):
        assert value_text(value, kind).replace("\xa0", " ") == german


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "dormant"),
        ("listedAt", "soon"),
        ("listedAt", "2024-13-45"),
        ("updatedAt", "yesterday"),
        ("address", [{"country": "Atlantis"}]),
        ("treasuryAmount", {"amount": "much"}),
        ("proposals", [{"endDate": "2025-04-18T10:00:00Z"}]),
        ("name", "2024-01-31"),
        ("registrationOffice", "active"),
    ],
)
def test_a_value_that_is_none_of_its_kind_is_shown_as_it_was_given(name, value):
    (given,) = value.values() if isinstance(value, dict) else value[0].values() if isinstance(value, list) else (value,)
    assert value_text(value, kind_of(field_of(name))) == given


def test_differences_compare_days_and_states_in_words():
    (first, second) = differences.lines_of(
        {
            "status": {"before": "upcoming", "after": "active"},
            "treasuryAmount": {"before": None, "after": {"amount": "5.10", "currency": "EUR"}},
        }
    )
    assert (first.was, first.now) == ("Upcoming", "Active")
    assert (second.was, second.now) == ("", "5.10 EUR")


def test_a_moment_has_its_time():
    assert value_text("2026-01-31T09:30:00.000000Z", kind_of(field_of("reviewedAt"))) == "31 January 2026, 09:30"
