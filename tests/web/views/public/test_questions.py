"""Questions in plain words on the search page and in the lists."""

import re
from datetime import UTC, datetime
from html import escape, unescape
from unittest.mock import Mock

import pytest
from django.test import Client

from make.published import Publisher, company
from muniment.store.reader import Reader
from muniment.store.search.questions import asking
from muniment.store.search.questions.reading import Chip, Reading
from muniment.web.lists import questions
from muniment.web.requests import page_cache

HOSTILE = '<script>alert("x")</script>'


@pytest.fixture
def visitor(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(
        *(
            company(number, type="DAO", themes=["energy"], raising=number % 2 == 0, description="Wind and water.")
            for number in range(1, 31)
        ),
        company(31, type="cooperative", name="Sunhold", description="Which cooperatives are raising?"),
        company(32, name="Moorgate", description="Ask who directs it."),
    )
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    yield Client()
    page_cache.pages.clear()
    page_cache._reader = None
    reader.close()
    publisher.close()


def text(visitor, path, **query):
    answer = visitor.get(path, query)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.requirement("search.questions")
def test_a_question_shows_its_filters_as_chips_that_can_be_removed(visitor):
    html = text(visitor, "/search", q="which DAOs on energy are raising with water, by name")
    assert "Read as a question · Companies:" in html
    for address, label in (
        ("/companies?type=DAO&amp;theme=energy&amp;raising=true&amp;sort=name", "<bdi>“water”</bdi>"),
        ("/companies?q=water&amp;theme=energy&amp;raising=true&amp;sort=name", "Type: <bdi>DAO</bdi>"),
        ("/companies?q=water&amp;type=DAO&amp;raising=true&amp;sort=name", "Theme: <bdi>Energy</bdi>"),
        ("/companies?q=water&amp;type=DAO&amp;theme=energy&amp;sort=name", "Fundraising: <bdi>Raising now</bdi>"),
        ("/companies?q=water&amp;type=DAO&amp;theme=energy&amp;raising=true", "Sorted by: <bdi>Name</bdi>"),
    ):
        assert f'<a class="chip chosen" href="{address}"><span class="unseen">Remove </span>{label}' in html
    assert html.count('class="listing"') == 8
    whole = "/companies?q=water&amp;type=DAO&amp;theme=energy&amp;raising=true&amp;sort=name"
    assert f'<a href="{whole}">All 15 companies</a>' in html
    assert f'<a href="{whole}">Show the whole list with filters</a>' in html


@pytest.mark.requirement("search.questions")
def test_the_words_of_a_question_can_be_searched_for(visitor):
    html = text(visitor, "/search", q="which DAOs are raising")
    assert '<a href="/search?q=%22which+DAOs+are+raising%22">Search for the words instead</a>' in html
    assert "Read as a question" not in text(visitor, "/search", q='"which DAOs are raising"')


@pytest.mark.requirement("search.questions")
def test_a_question_without_matches_says_so_and_shows_what_its_words_find(visitor):
    html = text(visitor, "/search", q="which cooperatives are raising")
    assert "Nothing matches this question, so the results below match its words · Companies:" in html
    assert "Search for the words instead" not in html
    assert "/companies/company-31" in html


def test_a_question_without_any_matches_offers_to_remove_a_filter(visitor):
    html = text(visitor, "/search", q="which cooperatives on energy are raising")
    assert "Read as a question, nothing matches; remove a filter · Companies:" in html
    assert '<a class="chip chosen" href="/companies?type=cooperative&amp;theme=energy">' in html


@pytest.mark.requirement("search.questions")
def test_a_question_that_nothing_matches_leads_to_the_company_that_it_names(visitor):
    html = text(visitor, "/search", q="who founded Sunhold")
    assert "Read as a question, nothing matches; remove a filter · People:" in html
    lead = 'Closest: <a href="/companies/company-31" dir="auto">Sunhold</a>'
    assert html.count(lead) == 1
    assert lead not in text(visitor, "/search", q="who founded Sunhold", kind="person")
    found = text(visitor, "/search", q="who directs Moorgate")
    assert "Nothing matches this question" in found
    assert found.count('href="/companies/company-32"') == 1, "it is among the results"


def chips(html):
    """Return the chips of a page: the address that each leads to, and its text."""
    found = re.findall(r'<a class="chip chosen" href="([^"]+)"><span class="unseen">Remove </span>(.*?)<svg', html)
    return {re.sub("<[^>]*>", "", shown): unescape(address) for address, shown in found}


@pytest.mark.requirement("search.questions")
def test_a_question_in_the_box_of_a_list_becomes_its_filters_there(visitor):
    q = "which DAOs on energy are raising with water, by name"
    html = text(visitor, "/companies", q=q)
    assert "15 companies" in html
    assert chips(html) == {
        "“water”": "/companies?type=DAO&theme=energy&raising=true&sort=name",
        "Type: DAO": "/companies?q=water&theme=energy&raising=true&sort=name",
        "Theme: Energy": "/companies?q=water&type=DAO&raising=true&sort=name",
        "Fundraising: Raising now": "/companies?q=water&type=DAO&theme=energy&sort=name",
    }
    assert f'name="q" value="{q}"' in html, "the question can be changed"
    assert 'type="hidden"' not in html, "its filters are read from the question again"
    whole = "?q=water&amp;type=DAO&amp;theme=energy&amp;raising=true"
    for address in (f"/companies.atom{whole}", f"/api/v1/companies{whole}&amp;sort=name", f"/companies{whole}"):
        assert f'"{address}"' in html
    assert "Not understood: <bdi>water</bdi>" in html
    words = re.search('Read as a question · <a href="([^"]+)"[^>]*>Search for the words instead', html)[1]
    assert chips(visitor.get(unescape(words)).content.decode()) == {f"“{escape(chr(34) + q + chr(34))}”": "/companies"}


@pytest.mark.requirement("search.questions")
def test_a_question_adds_to_what_is_chosen_and_says_more_of_the_same_filter(visitor):
    html = text(visitor, "/companies", q="DAOs that are raising", type="cooperative", theme="energy", page=2)
    assert chips(html) == {
        "Type: DAO": "/companies?theme=energy&raising=true",
        "Theme: Energy": "/companies?type=DAO&raising=true",
        "Fundraising: Raising now": "/companies?type=DAO&theme=energy",
    }
    assert '<input type="hidden" name="type" value="cooperative" form="search">' in html, "until the words change"
    assert chips(text(visitor, "/companies", q="Sunhold", type="cooperative")).keys() == {
        "“Sunhold”",
        "Type: Cooperative",
    }


@pytest.mark.requirement("search.questions")
def test_a_question_that_no_company_answers_gives_way_to_its_words(visitor):
    html = text(visitor, "/companies", q="which cooperatives are raising")
    meant = '<a href="/companies?type=cooperative&amp;raising=true"><bdi>Type: Cooperative, Fundraising: Raising now'
    said = "Nothing matches this question, so the results below match its words · Companies: "
    assert said + meant in html
    assert "/companies/company-31" in html
    nothing = text(visitor, "/companies", q="which cooperatives on energy are raising")
    assert "Remove one filter" in nothing
    assert chips(nothing).keys() == {"Type: Cooperative", "Theme: Energy", "Fundraising: Raising now"}


@pytest.mark.requirement("search.questions")
def test_a_list_names_the_other_list_that_its_search_words_mean(visitor):
    html = text(visitor, "/people", q="newest DAOs")
    assert 'Read as a question · Companies: <a href="/companies?type=DAO">' in html
    assert "Read as a question" not in text(visitor, "/people", q="newest DAOs", minCompanies=1)
    assert "Read as a question" not in text(visitor, "/companies", q="Sunhold")


def test_the_words_that_a_question_leaves_are_not_read_again(visitor, monkeypatch):
    reading = Reading("company", (Chip("raising", "true", "raising"),), "newest DAOs", "en")
    monkeypatch.setattr(questions, "question", lambda reader, _, text: reading if text[0] != '"' else None)
    html = text(visitor, "/companies", q="anything")
    assert set(chips(html).values()) == {"/companies?raising=true", "/companies?q=%22newest+DAOs%22"}


def test_a_question_about_the_last_days_is_read_again_on_the_next_day(visitor, monkeypatch):
    for day in (3, 4):
        moment = datetime(2026, 3, day, tzinfo=UTC)
        monkeypatch.setattr(page_cache, "now", lambda moment=moment: moment)
        monkeypatch.setattr(asking, "datetime", Mock(now=lambda _, moment=moment: moment))
        html = text(visitor, "/search", q="DAOs listed in the last 2 days")
        assert f"Listed from: <bdi>2026-03-0{day - 2}</bdi>" in html


def test_hostile_questions_are_shown_as_text(visitor):
    html = text(visitor, "/search", q=f"which DAOs on {HOSTILE} are raising")
    assert "Read as a question" in html
    assert HOSTILE not in html
