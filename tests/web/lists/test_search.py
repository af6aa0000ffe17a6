"""What is asked of a list, and the one address that it has."""

import pytest
from django.http import QueryDict

from muniment.kernel.problems import BadRequest
from muniment.languages.speaking import speaking
from muniment.schema.filters import Range
from muniment.schema.kinds import DATE
from muniment.schema.objects import registry_schema
from muniment.schema.record import Field
from muniment.web.lists.search import (
    MAX_VALUES,
    Search,
    chips_of,
    feed_address,
    json_address,
    list_query,
    orders_of,
    registry_list,
    reliefs_of,
    save_address,
)

COMPANIES, PEOPLE, FRAMEWORKS = map(registry_list, ("companies", "people", "frameworks"))


def read(query, of=COMPANIES):
    return Search.read(of, QueryDict(query))


@pytest.mark.parametrize(
    ("query", "canonical"),
    [
        ("", ""),
        ("sort=name&q=tide", "q=tide&sort=name"),
        ("type=DAO&type=collective&type=DAO", "type=DAO&type=collective"),
        ("theme=b%2Cc&theme=a", "theme=a&theme=b%2Cc"),
        ("q=+++two++words+&type=&city=&page=1", "q=two+words"),
        ("sort=newest", ""),
        ("sort=relevance", ""),
        ("q=a&sort=relevance", "q=a"),
        ("q=a&sort=newest", "q=a&sort=newest"),
        ("page=3&type=DAO", "type=DAO&page=3"),
        ("country=france&country=FR", "country=FR"),
        ("treasuryMin=1M&treasuryMin=2M", "treasuryMin=2M"),
        ("raising=true&status=active&type=x&utm_source=mail", "type=x&raising=true&status=active"),
        ("q=a%00b", "q=a+b"),
    ],
)
def test_every_search_has_one_canonical_address(query, canonical):
    search = read(query)
    address = search.address(page=search.page)
    assert address == ("/companies?" + canonical if canonical else "/companies")
    assert read(canonical) == search
    assert read(canonical).is_canonical(QueryDict(canonical))
    assert search.is_canonical(QueryDict(query)) == (query == canonical)
    assert search.is_canonical(QueryDict(f"{canonical}&utm_source=mail"))


@pytest.mark.parametrize(
    "query",
    ["status=gone", "sort=size", "page=0", "teamMin=many", "listedFrom=soon", "raising=1"]
    + ["&".join(f"theme={n}" for n in range(MAX_VALUES + 1))],
)
def test_what_a_list_does_not_take_is_refused(query):
    with pytest.raises(BadRequest):
        read(query)


def test_a_reversed_range_names_its_two_filters():
    with pytest.raises(BadRequest, match="“Team from” is greater than “Team to”"):
        list_query(read("teamMin=9&teamMax=3"))


def test_every_filter_of_the_api_is_one_of_the_page(settings):
    for of in (COMPANIES, PEOPLE, FRAMEWORKS):
        assert {each.name for each in of.parameters} == set(settings.SCHEMA.listings[of.kind].criteria)


def test_each_chosen_value_is_a_chip_whose_link_removes_it_alone():
    search = read("q=tide&type=DAO&type=collective&raising=true&country=FR&sort=name")
    assert [(chip.text, chip.address) for chip in chips_of(search)] == [
        ("“tide”", "/companies?type=DAO&type=collective&country=FR&raising=true&sort=name"),
        ("Type: DAO", "/companies?q=tide&type=collective&country=FR&raising=true&sort=name"),
        ("Type: Collective", "/companies?q=tide&type=DAO&country=FR&raising=true&sort=name"),
        ("Country: France", "/companies?q=tide&type=DAO&type=collective&raising=true&sort=name"),
        ("Fundraising: Raising now", "/companies?q=tide&type=DAO&type=collective&country=FR&sort=name"),
    ]


def test_the_orders_of_a_search_keep_its_filters():
    found = {each.name: each.address for each in orders_of(read("q=a&type=DAO&page=2"))}
    assert found[""] == "/companies?q=a&type=DAO"
    assert found["newest"] == "/companies?q=a&type=DAO&sort=newest"
    assert {"name", "treasury", "team", "updated"} < set(found)
    assert "newest" not in {each.name for each in orders_of(read("type=DAO"))}
    assert "companies" in {each.name for each in orders_of(read("", PEOPLE))}


def test_the_other_forms_of_a_search_carry_its_filters():
    search = read("q=a&type=DAO&sort=name&page=2")
    assert json_address(search) == "/api/v1/companies?q=a&type=DAO&sort=name&page=2"
    assert feed_address(search) == "/companies.atom?q=a&type=DAO"
    assert save_address(search) == "/manage/searches/new?list=companies&q=a&type=DAO&sort=name"


def test_without_results_the_filter_that_hides_most_is_named_first():
    counts = {"/companies?q=tide": 3, "/companies?q=tide&type=DAO": 0, "/companies?type=DAO&status=inactive": 12}
    search = read("q=tide&type=DAO&status=inactive")
    counts["/companies?q=tide&status=inactive"] = 5
    found = reliefs_of(search, lambda less: counts[less.address()])
    assert [(each.removed, each.total) for each in found] == [("“tide”", 12), ("Type: DAO", 5)]
    assert reliefs_of(read("type=DAO"), lambda _: 9) == []


@pytest.mark.parametrize("kind", ["companies", "people", "frameworks"])
def test_each_built_in_filter_of_a_list_has_a_label_of_its_own(kind):
    labels = [str(each.label) for each in registry_list(kind).parameters]
    assert sorted(set(labels)) == sorted(labels), "two filters with one label; give the new one its label in _SHOWN"
    assert "" not in labels


def test_the_bounds_of_a_declared_field_are_named_in_the_language_of_each_visitor(settings):
    bounds = Range("foundedFrom", "Founded on this day or later.", "foundedTo", "Founded on this day or earlier.")
    founded = Field("foundedOn", DATE, "Founded", order="founded", range=bounds)
    settings.SCHEMA = registry_schema("USD").declare(company=(founded,))
    labels = {each.name: each.label for each in registry_list("companies").parameters}
    assert (str(labels["foundedFrom"]), str(labels["foundedTo"])) == ("Founded from", "Founded to")
    with speaking("de"):
        assert (str(labels["foundedFrom"]), str(labels["foundedTo"])) == ("Founded ab", "Founded bis")
