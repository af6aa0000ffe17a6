"""Saved searches: saved once, named, bounded, and of one account alone."""

import io
import json
import zipfile

import pytest

from make.accounts import account
from muniment.accounts import personal_data
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.searches import saved_searches
from muniment.searches.models import SavedSearch
from muniment.searches.saved_searches import delete_search, list_searches, rename_search, save_search

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return account().actor("web")


def test_searches_are_listed_newest_first_renamed_and_deleted(owner):
    first = save_search(owner, "companies", "q=tide&type=DAO", "  DAOs \n of the tide ")
    second = save_search(owner, "people", "", "Everyone")
    assert first.name == "DAOs of the tide"
    assert list_searches(owner) == [second, first]
    rename_search(owner, first.pk, "Tides")
    assert [each.name for each in list_searches(owner)] == ["Everyone", "Tides"]
    assert delete_search(owner, second.pk).name == "Everyone"
    assert [each.name for each in list_searches(owner)] == ["Tides"]


def test_a_search_is_saved_once_and_names_what_it_is_saved_as(owner):
    save_search(owner, "companies", "type=DAO", "DAOs")
    with pytest.raises(Conflict, match="“DAOs”"):
        save_search(owner, "companies", "type=DAO", "The same")
    save_search(owner, "people", "type=DAO", "Another list")
    save_search(account("other@harbour.example").actor("web"), "companies", "type=DAO", "Another account")


def test_an_account_saves_a_bounded_number_of_searches(owner, monkeypatch):
    monkeypatch.setattr(saved_searches, "MAX_SEARCHES", 2)
    for number in (1, 2):
        save_search(owner, "companies", f"q={number}", "A search")
    with pytest.raises(Conflict, match="2 saved searches"):
        save_search(owner, "companies", "q=3", "One more")
    delete_search(owner, list_searches(owner)[0].pk)
    save_search(owner, "companies", "q=3", "One more")


@pytest.mark.parametrize(
    ("list_name", "query", "name"),
    [
        ("companies", "", " \n "),
        ("companies", "", "x" * 81),
        ("companies", "", "a\u202eb"),
        ("companies", "", "a\0b"),
        ("companies", "", "\ud800"),
        ("companies", "q=" + "x" * 999, "Long"),
        ("companies", "q=é", "Not encoded"),
        ("companies", "q=a\nb", "Two lines"),
        ("holders", "", "Unknown"),
    ],
)
def test_what_cannot_be_saved_is_refused(owner, list_name, query, name):
    with pytest.raises(BadRequest):
        save_search(owner, list_name, query, name)
    assert not list_searches(owner)


def test_a_name_that_cannot_be_stored_renames_nothing(owner):
    saved = save_search(owner, "companies", "", "All")
    with pytest.raises(BadRequest):
        rename_search(owner, saved.pk, "")
    assert list_searches(owner)[0].name == "All"


def test_a_stranger_finds_renames_and_deletes_nothing(owner):
    saved = save_search(owner, "companies", "", "Mine")
    stranger = account("stranger@harbour.example").actor("web")
    assert list_searches(stranger) == []
    for number in (saved.pk, saved.pk + 1, 0, -1, 1 << 70):
        with pytest.raises(NotFound):
            rename_search(stranger, number, "Theirs")
        with pytest.raises(NotFound):
            delete_search(stranger, number)
    for act in (list_searches, lambda actor: save_search(actor, "companies", "", "x")):
        with pytest.raises(Forbidden):
            act(VISITOR)
    with pytest.raises(Forbidden):
        delete_search(VISITOR, saved.pk)
    assert [each.name for each in list_searches(owner)] == ["Mine"]


def test_saved_searches_are_in_the_archive_of_their_account_and_go_with_it(owner):
    mine, other = account("mine@harbour.example"), account("other@harbour.example")
    save_search(mine.actor("web"), "companies", "theme=tides", "Tides")
    save_search(other.actor("web"), "companies", "theme=moons", "Moons")
    personal_data.write_archive(mine, out := io.BytesIO())
    with zipfile.ZipFile(out) as opened:
        (found,) = json.loads(opened.read("saved-searches.json"))
    assert found.pop("savedAt")
    assert found == {"name": "Tides", "list": "companies", "query": "theme=tides"}
    personal_data.delete(mine)
    assert [each.name for each in SavedSearch.objects.all()] == ["Moons"]
