"""Searches that match very much: what comes first, where lists end, and what totals say."""

import pytest

from make.published import company, ids, person
from make.queries import companies_by, people_by
from muniment.store.search import beginnings, forgiving, ranking


@pytest.fixture(params=[50_000, 10], ids=["small", "large"])
def wide(publisher, reader, monkeypatch, request):
    """Thirty companies, of which more match than are weighed or listed, as in a registry of a size."""
    monkeypatch.setattr(beginnings, "LARGE", request.param)
    monkeypatch.setattr(ranking, "MAX_WEIGHED", 8)
    monkeypatch.setattr(ranking, "MAX_COUNTED", 8)
    monkeypatch.setattr(ranking, "MAX_LISTED", 20)
    monkeypatch.setattr(ranking, "LISTED_OF_LARGE", 20)
    told = [company(number, name=f"Mill {number}", description="Keeps the harbour") for number in range(10, 40)]
    publisher.publish(
        company(1, "harbour", name="Harbour"),
        company(2, "old-harbour", name="Old Harbour", type="DAO"),
        company(3, "weir", name="Weir", themes=["harbour"], type="DAO"),
        *told,
    )
    reader.refresh()
    return reader


def test_names_come_before_facts_before_the_newest_texts(wide):
    page = wide.companies(companies_by(q="harbour"))
    newest = [f"company-{number}" for number in range(39, 22, -1)]
    assert ids(page) == ["harbour", "old-harbour", "weir", *newest]


def test_facts_follow_their_documents(wide, publisher):
    publisher.publish(company(3, "weir", name="Weir", themes=["rivers"], description="Near the harbour"))
    publisher.publish(company(20, name="Mill of the harbour"))
    publisher.unlist("company", "old-harbour")
    wide.refresh()
    assert ids(wide.companies(companies_by(q="harbour")))[:3] == ["harbour", "company-20", "company-39"]


def test_a_total_that_is_no_whole_one_says_so_and_the_list_ends_there(wide):
    page = wide.companies(companies_by(q="harbour", page_size=6))
    found = ids(page)
    assert page.to_wire() == {"page": 1, "pageSize": 6, "pageCount": 4, "total": 20, "totalIsMinimum": True}
    while page.next_cursor is not None:
        page = wide.companies(companies_by(q="harbour", page_size=6, cursor=page.next_cursor))
        found += ids(page)
    assert len(found) == len(set(found)) == 20
    assert found == ids(wide.companies(companies_by(q="harbour", page_size=100)))


def test_other_orders_and_filters_have_everything(wide):
    page = wide.companies(companies_by(q="harbour", sort="name", page_size=100))
    assert (page.total, page.is_cut) == (33, False)
    page = wide.companies(companies_by(q="harbour", type="DAO"))
    assert (ids(page), page.to_wire()["total"]) == (["old-harbour", "weir"], 2)
    assert "totalIsMinimum" not in page.to_wire()
    page = wide.companies(companies_by(q="harbour", ids=("company-12", "weir", "harbour")))
    assert ids(page) == ["harbour", "weir", "company-12"]


def test_old_documents_that_come_first_pass_the_filters(wide):
    page = wide.companies(companies_by(q="harbour", type="corporation", page_size=100))
    assert ids(page)[0] == "harbour"
    assert "weir" not in ids(page)
    assert page.is_cut


def test_the_newest_are_listed_in_the_order_of_newest(wide):
    page = wide.companies(companies_by(q="harbour", sort="newest", page_size=100))
    assert ids(page) == [f"company-{number}" for number in range(39, 19, -1)]
    assert page.is_cut


@pytest.mark.parametrize("sort", ["relevance", "newest", "name", "treasury"])
def test_a_name_without_its_spaces_is_found_besides_the_texts_in_every_order(wide, publisher, sort):
    publisher.publish(company(41, "har-bour", name="Har Bour", type="DAO"))
    wide.refresh()
    assert ids(wide.companies(companies_by(q="harbour", sort=sort, page_size=100))).count("har-bour") == 1
    for chosen in ({"type": "DAO"}, {"ids": ("har-bour", "old-harbour", "weir")}):
        found = ids(wide.companies(companies_by(q="harbour", sort=sort, **chosen)))
        assert sorted(found) == ["har-bour", "old-harbour", "weir"]
    assert "har-bour" not in ids(wide.companies(companies_by(q="harbour", sort=sort, type="corporation")))


@pytest.mark.parametrize(("q", "found"), [("harb", "old-harbour"), ("old harb", "old-harbour"), ("ha", "harbour")])
def test_beginnings_are_found(wide, q, found):
    assert found in ids(wide.companies(companies_by(q=q, page_size=100)))


def test_of_matches_that_are_too_many_to_weigh_in_a_large_registry_names_come_first(reader, publisher, monkeypatch):
    monkeypatch.setattr(beginnings, "LARGE", 3)
    monkeypatch.setattr(ranking, "WEIGHED_OF_LARGE", 2)
    told = [company(number, name=f"Mill {number}", description="Keeps the weir") for number in range(10, 14)]
    publisher.publish(company(1, "old-weir", name="Old Weir"), *told)
    reader.refresh()
    page = reader.companies(companies_by(q="weir"))
    assert ids(page) == ["old-weir", "company-13", "company-12", "company-11", "company-10"]
    assert (page.total, page.is_cut) == (5, False)


def test_of_many_documents_of_one_name_the_newest_is_first(reader, publisher, monkeypatch):
    monkeypatch.setattr(ranking, "MAX_COMPARED", 2)
    publisher.publish(*(company(number, name="Weir", description="Full " * (9 - number)) for number in range(1, 4)))
    reader.refresh()
    assert ids(reader.companies(companies_by(q="weir"))) == ["company-3", "company-2", "company-1"]


def test_of_very_many_candidates_those_that_share_more_parts_are_compared(reader, publisher, monkeypatch):
    monkeypatch.setattr(beginnings, "LARGE", 3)
    monkeypatch.setattr(forgiving, "CANDIDATES_OF_LARGE", 2)
    others = [company(number, name=f"Wers{ends}", themes=[]) for number, ends in enumerate(("ab", "ac", "ad", "af"), 2)]
    publisher.publish(*others, company(9, "weirs", name="Weirs", themes=[]))
    reader.refresh()
    assert reader.companies(companies_by(q="weris")).closest[0].id == "weirs"


@pytest.mark.parametrize(("q", "first"), [("harbuor", "harbour"), ("old harbor", "old-harbour"), ("wier", "weir")])
def test_slips_are_forgiven(wide, q, first):
    page = wide.companies(companies_by(q=q))
    assert (page.total, page.closest[0].id) == (0, first)


def test_a_script_without_spaces_is_found(wide, publisher):
    publisher.publish(*(company(number, name=f"東京湾岸 {number}") for number in range(50, 62)))
    publisher.publish(*(person(number, name="東京花子") for number in range(1, 14)))
    wide.refresh()
    assert wide.companies(companies_by(q="東京")).total == 12
    assert wide.people(people_by(q="東京花")).total == 13


def test_of_very_many_words_the_first_are_searched_for(reader, publisher, monkeypatch):
    monkeypatch.setattr(ranking, "MAX_TERMS", 3)
    publisher.publish(company(1, "weir", name="Weir", description="Keeps the old harbour"))
    reader.refresh()
    assert ids(reader.companies(companies_by(q="keeps old harbour zzz zzz"))) == ["weir"]
