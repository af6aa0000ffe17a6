"""Filters know a value in any case, accent and number, and name what exists."""

import json

import pytest

from make.published import Publisher, company
from make.queries import companies_by
from muniment.store.reader import Reader
from muniment.store.search import closest
from muniment.store.search.values import singular
from muniment.store.search_text import handle_of, host_of, squeeze


@pytest.fixture
def reader(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(
        company(1, type="DAO", industry="Énergie", themes=["public-goods", "DAOs"]),
        company(2, type="non-profit", industry="Energy", themes=["public goods", "dao", "DAO"]),
        company(3, type="DAO", industry="Fisheries", themes=["glass, old"]),
    )
    made = Reader(tmp_path / "published.sqlite3")
    yield made
    made.close()
    publisher.close()


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"type": "dao"}, {1, 3}),
        ({"type": "DAOs"}, {1, 3}),
        ({"type": "Non profit"}, {2}),
        ({"type": "non-profits"}, {2}),
        ({"type": "nonprofit"}, {2}),
        ({"type": "Not-for-profit"}, {2}),
        ({"type": "charity"}, set()),
        ({"type": "decentralized autonomous organizations"}, {1, 3}),
        ({"industry": "energie"}, {1}),
        ({"industry": "energies"}, {2}),
        ({"industry": "fishery"}, {3}),
        ({"theme": "public good"}, {1, 2}),
        ({"theme": "DAO"}, {1, 2}),
        ({"theme": "Dao", "type": "dao"}, {1}),
        ({"theme": "glass, old"}, {3}),
        ({"theme": "glass"}, set()),
        ({"theme": "DAO", "sort": "name"}, {1, 2}),
        ({"theme": "DAO", "ids": ("company-1", "company-3")}, {1}),
    ],
)
def test_a_value_is_known_in_any_form(reader, filters, found):
    page = reader.companies(companies_by(**filters))
    assert {json.loads(item)["id"] for item in page.items} == {f"company-{number}" for number in found}
    assert page.total == len(found)


def test_an_unknown_value_is_named_with_what_exists_the_most_similar_first(reader):
    hint = reader.companies(companies_by(type="DOA", industry="Energy")).hint
    assert hint == 'No company has the type "DOA". Values in use: DAO (2), non-profit (1).'


def test_filters_that_exclude_one_another_are_named(reader):
    hint = reader.companies(companies_by(type="DAO", industry="Energy")).hint
    assert hint == "No company matches all of industry, type. Alone, industry Energy matches 1, type DAO matches 2."


@pytest.mark.parametrize(("counted", "shown"), [(100_000, "2"), (2, "up to 3")])
def test_a_document_with_several_of_the_values_that_a_filter_means_counts_once(reader, monkeypatch, counted, shown):
    monkeypatch.setattr(closest, "MAX_COUNTED", counted)
    hint = reader.companies(companies_by(theme="DAO", industry="Fisheries")).hint
    assert hint.endswith(f"Alone, industry Fisheries matches 1, theme DAO matches {shown}.")


def test_words_without_a_match_are_answered_in_a_line(reader):
    page = reader.companies(companies_by(q="zzyzx"))
    assert (page.closest, page.hint) == ((), 'No company matches "zzyzx". Use fewer or other words.')


def test_all_names_of_a_value_are_counted_as_one(reader, tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(company(4, type="Nonprofit"), company(5, type="not-for-profit"))
    publisher.close()
    reader.refresh()
    counted = reader.facets("company", companies_by(), ("type",)).by_name["type"].values
    assert [(each.value, each.n) for each in counted] == [("Nonprofit", 3), ("DAO", 2)]
    assert reader.companies(companies_by(type="non-profit")).total == 3


def test_a_country_that_exists_but_has_no_company_is_not_answered_with_others(reader):
    for name in ("UK", "United Kingdom", "gb", "GBR", "Great Britain"):
        assert reader.companies(companies_by(country=name)).hint == 'No company has the country "GB".'


def test_a_hint_is_short_whatever_was_asked(reader):
    hint = reader.companies(
        companies_by(q="x " * 90, type=["y" * 199, "z" * 190], theme=["w" * 150], city="v" * 199)
    ).hint
    assert len(hint) <= 500


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DAOs", "dao"),
        ("Non-Profits", "non profit"),
        ("cities", "city"),
        ("glass", "glass"),
        ("boxes", "box"),
        ("", ""),
    ],
)
def test_the_singular(text, expected):
    assert singular(text) == expected


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("https://www.a-b.example/x?y", "a-b.example"),
        ("A.example", "a.example"),
        ("www.a.example/about", "a.example"),
        ("https://www.www.example/", "www.example"),
        ("https://www.example", ""),
        ("https://me@a.example:8080/x", "a.example"),
        ("https://a.example?x", "a.example"),
        ("https://münster.example/", "münster.example"),
        ("no address", ""),
        ("http://[", ""),
        ("1.5", ""),
    ],
)
def test_the_host_of_an_address(text, host):
    assert host_of(text) == host


def test_handles_and_keys():
    assert [handle_of(text) for text in ("https://x.example/some_one/", "@some_one", "http://[")] == [
        "some_one",
        "some_one",
        "",
    ]
    assert squeeze("North-Haven, Mutual") == "northhavenmutual"
