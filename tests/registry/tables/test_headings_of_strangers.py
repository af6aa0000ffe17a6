"""Headings that an office writes its own way: money that was raised, days with more words, and what a member does."""

import pytest

from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.proposing import propose


def mapped(heading, *values):
    sheet = Sheet("t", [["Company", heading], *([f"Company {n}", value] for n, value in enumerate(values))])
    [table] = propose([sheet], "t.csv").table
    return table.column[1].field, table.column[1].check


@pytest.mark.parametrize(
    "heading",
    [
        *("Raised", "Funding raised (USD)", "Capital raised", "Total funding (m€)", "Market cap", "Valuation"),
        *("Eingeworbenes Kapital", "Levée de fonds (k€)", "Capital captado", "Capitale raccolto", "Opgehaald kapitaal"),
        *("Pozyskany kapitał", "Získané investice", "資金調達額", "融资额", "투자유치액"),
    ],
)
def test_raised_money_and_a_valuation_are_no_treasury(heading):
    assert mapped(heading, "1200000", "90000") == ("", False)


@pytest.mark.parametrize("heading", ["Treasury (USD)", "Kapital", "Trésorerie (€)", "Patrimonio"])
def test_what_an_organization_has_is_its_treasury(heading):
    assert mapped(heading, "1200000 €", "90000 €") == ("treasury", False)


@pytest.mark.parametrize("heading", ["Joined cohort", "Date joined network", "Beitritt Netzwerk", "Adhésion réseau"])
def test_a_day_with_more_words_is_a_guess(heading):
    assert mapped(heading, "2019-03-07", "2020-11-30") == ("listedAt", True)


@pytest.mark.parametrize("heading", ["Joined via", "Founded by whom", "Joined cohort"])
def test_what_begins_like_a_day_and_holds_none_is_left_out(heading):
    assert mapped(heading, "a friend of the house", "the open day") == ("", False)


@pytest.mark.parametrize(
    "heading",
    ["What they do", "Tätigkeitsbeschreibung", "Activités menées", "Attività svolte", "Opis działalności"],
)
def test_what_a_member_does_is_its_summary(heading):
    assert mapped(heading, "Repairs clocks of towers", "Carves oars for lake boats") == ("description", False)
