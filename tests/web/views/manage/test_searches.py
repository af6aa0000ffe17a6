"""Saved searches on the pages: a link of a public page leads to a form, and each search has its feed."""

import re
import xml.etree.ElementTree as ET

import pytest
from django.test import Client

from make.accounts import account, signed_in
from make.pages import fields_of, valid
from muniment.searches.models import SavedSearch
from muniment.searches.saved_searches import save_search

pytestmark = pytest.mark.django_db
NEW = "/manage/searches/new?list=companies&q=tide&type=DAO"


@pytest.fixture
def owner():
    return account()


def test_a_public_page_leads_to_a_form_that_saves_its_search_and_then_to_its_feed(owner):
    client = signed_in(owner)
    html = client.get("/companies?q=tide&type=DAO").text
    link = re.search(r'href="(/manage/searches/new[^"]*)"', html)[1].replace("&amp;", "&")
    assert link == NEW
    page = client.get(link)
    valid(page.text)
    fields = fields_of(page.text)
    assert fields["name"] == "“tide”, Type: DAO"
    done = client.post(link, {**fields, "name": "Tidal DAOs"})
    assert done["Location"] == "/manage/searches"
    listed = client.get("/manage/searches").text
    valid(listed)
    assert "Saved as “Tidal DAOs”." in listed
    assert 'href="/companies?q=tide&amp;type=DAO"' in listed
    feed = re.search(r'href="(/companies\.atom[^"]*)"', listed)[1].replace("&amp;", "&")
    ET.fromstring(Client().get(feed).content)


def test_a_visitor_is_led_back_to_the_search_after_signing_in():
    went = Client().get(NEW)["Location"]
    assert "next=%2Fmanage%2Fsearches%2Fnew%3Flist%3Dcompanies%26q%3Dtide%26type%3DDAO" in went


def test_what_cannot_be_saved_is_said_beside_the_form(owner):
    client = signed_in(owner)
    assert client.post(NEW, {"name": "x" * 81}).status_code == 422
    assert client.post(NEW, {"name": "Tides"}).status_code == 302
    again = client.post(NEW.replace("q=tide&type=DAO", "type=DAO&q=++tide"), {"name": "Again"})
    assert again.status_code == 409
    assert "You saved this search as “Tides”." in again.text
    long = "&".join(f"q={'é' * 200}" for _ in range(1))
    assert client.post(f"/manage/searches/new?list=companies&{long}", {"name": "Long"}).status_code == 400
    for bad in ("list=holders", "list=companies&status=gone", ""):
        assert client.get(f"/manage/searches/new?{bad}").status_code == 400


def test_a_search_is_renamed_and_deleted_and_can_be_saved_again(owner):
    client, saved = signed_in(owner), save_search(owner.actor("web"), "companies", "type=DAO", "DAOs")
    client.post(f"/manage/searches/{saved.pk}/rename", {"name": "<b>Both</b>"})
    assert "Renamed to “&lt;b&gt;Both&lt;/b&gt;”." in client.get("/manage/searches").text
    client.post(f"/manage/searches/{saved.pk}/rename", {"name": " "})
    assert "must be one line" in client.get("/manage/searches").text
    client.post(f"/manage/searches/{saved.pk}/delete")
    html = client.get("/manage/searches").text
    assert "“&lt;b&gt;Both&lt;/b&gt;” deleted." in html
    assert 'href="/manage/searches/new?list=companies&amp;type=DAO"' in html
    assert "No saved searches" in html


def test_a_stranger_neither_sees_renames_nor_deletes_a_search(owner):
    saved = save_search(owner.actor("web"), "companies", "type=DAO", "Mine alone")
    stranger = signed_in(account("stranger@harbour.example"))
    assert "Mine alone" not in stranger.get("/manage/searches").text
    for step in ("rename", "delete"):
        for number in (saved.pk, 0, 1 << 70):
            assert stranger.post(f"/manage/searches/{number}/{step}", {"name": "Theirs"}).status_code == 404
    assert list(SavedSearch.objects.values_list("name", flat=True)) == ["Mine alone"]
    assert Client().post(f"/manage/searches/{saved.pk}/delete").status_code == 302
    assert SavedSearch.objects.count() == 1


def test_a_search_that_this_version_cannot_read_is_listed_and_can_be_deleted(owner):
    save_search(owner.actor("web"), "companies", "status=gone", "Old")
    client = signed_in(owner)
    html = client.get("/manage/searches").text
    assert "This version no longer has this search." in html
    assert "companies.atom" not in html
