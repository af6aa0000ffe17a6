"""The saved queries that every registry has: each figure counts what the pages count under the same name."""

import pytest

from make.published import company, person
from muniment.mcp.tools.near_statements import near_statement
from muniment.registry_toml.queries import SHIPPED

SQL = {query.slug: query.sql for query in SHIPPED}
GRANTS = {"treasuryNote": "sum of grants received"}


@pytest.fixture
def published(publisher, reader, tables):
    def publish(*documents):
        publisher.publish(*documents)
        reader.refresh()
        tables.follow()

    return publish


def _money(amount):
    return {"treasury": f"${amount}", "treasuryAmount": {"amount": f"{amount}.00", "currency": "USD"}}


def test_what_is_no_treasury_is_in_no_average(published, rows):
    published(
        company(1, "quay", industry="Ports", **_money(100)),
        company(2, "pier", industry="Ports", **_money(900), **GRANTS),
        company(3, "mole", industry="Dykes", **_money(700), **GRANTS),
    )
    assert rows(SQL["treasury-by-industry"]) == [("Ports", 100.0, 1)]
    by_industry = {industry: numbers for industry, *numbers in rows(near_statement("average treasury by industry"))}
    assert by_industry == {"Ports": [1, 100.0, 100.0]}


@pytest.mark.parametrize("sql", [SQL["companies-by-country"], near_statement("companies by country")])
def test_a_company_counts_in_each_country_in_which_it_has_an_address(published, rows, sql):
    boston = {"city": "Boston", "state": "MA", "zip": "02108"}
    published(
        company(1, "quay", address=[{"country": "PT"}, {"country": "PT"}, {"country": "CH"}]),
        company(2, "pier", address=[boston], derivedCountries=["US"]),
        company(3, "mole", address=[{"country": "US"}, boston], derivedCountries=["US"]),
        company(4, "weir"),
    )
    assert rows(sql) == [("US", 2), ("CH", 1), ("PT", 1)]


def test_a_person_in_several_teams_has_each_company_once(published, rows):
    positions = [{"title": title, "person": {"slug": "ada", "name": "Ada"}} for title in ("Pilot", "Owner")]
    published(
        company(1, "quay", positions=positions),
        company(2, "pier", positions=positions),
        person(1, "ada", name="Ada", positions=(("Pilot", "quay"), ("Pilot", "pier"))),
    )
    assert rows(SQL["people-in-several-teams"]) == [("Ada", "ada", 2, "pier, quay")]
