"""Questions in plain words on the search page and above the lists."""

from datetime import UTC, datetime
from unittest.mock import Mock

import pytest
from django.test import Client

from make.published import Publisher, company
from muniment.store.reader import Reader
from muniment.store.search.questions import asking
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
        ("/companies?q=water&amp;type=DAO&amp;raising=true&amp;sort=name", "Theme: <bdi>energy</bdi>"),
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
    assert "Read as a question, nothing matches; the results below are those of the words · Companies:" in html
    assert "Search for the words instead" not in html
    assert "/companies/company-31" in html


def test_a_question_without_any_matches_offers_to_remove_a_filter(visitor):
    html = text(visitor, "/search", q="which cooperatives on energy are raising")
    assert "Read as a question, nothing matches; remove a filter · Companies:" in html
    assert '<a class="chip chosen" href="/companies?type=cooperative&amp;theme=energy">' in html


@pytest.mark.requirement("search.questions")
def test_a_list_names_the_filters_that_its_search_words_mean(visitor):
    html = text(visitor, "/companies", q="DAOs that are not raising")
    meant = '<a href="/companies?type=DAO&amp;raising=false"><bdi>Type: DAO, Fundraising: Not raising</bdi></a>'
    assert f"Read as a question · Companies: {meant}" in html
    assert "Read as a question" not in text(visitor, "/companies", q="DAOs that are not raising", type="DAO")
    assert "Read as a question" not in text(visitor, "/companies", q="Sunhold")
    assert "Read as a question · Companies" in text(visitor, "/people", q="newest DAOs")


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
