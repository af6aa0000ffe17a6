"""Owners hide former names on the page of a listing; reviewers remove them after a question."""

import re

import pytest
from django.test import Client

from make import registry as make
from make.accounts import account, signed_in
from make.registry import document, reviewer
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange

pytestmark = pytest.mark.django_db
NAME = "Tidal <Works>"


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def page(owner):
    """Return the address of a listing that had another name."""
    slug = make.published(owner.actor("web"), name=NAME).slug
    listings.update_company(reviewer(), slug, CompanyChange(name="Quillmere"))
    return f"/manage/companies/{slug}"


def former(page):
    found = document("company", page.rpartition("/")[2])["company"].get("formerNames", ())
    return [each["name"] for each in found]


def form_of(browser, page):
    """Return the hidden values of the form of the former name."""
    shown = browser.get(page).content.decode()
    form = re.search(r'<section id="former">.*?(<form.*?)</form>', shown, re.DOTALL)
    assert form, shown
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form[1]))
    return {**fields, "name": NAME}, form[1]


def test_an_owner_hides_a_former_name_and_shows_it_again(owner, page):
    browser = signed_in(owner)
    fields, form = form_of(browser, page)
    assert "Tidal &lt;Works&gt;" in form
    assert "/names/remove" not in form
    assert browser.post(f"{page}/names", {**fields, "do": "hide"}).status_code == 302
    assert former(page) == []
    fields, _ = form_of(browser, page)
    browser.post(f"{page}/names", {**fields, "do": "show"})
    assert former(page) == [NAME]


def test_a_reviewer_removes_a_former_name_after_a_question(owner, page):
    judge = signed_in(account("judge@harbour.example", "reviewer"))
    link = re.search(r'href="([^"]*/names/remove[^"]*)"', form_of(judge, page)[1])[1]
    question = judge.get(link.replace("&amp;", "&"))
    assert "Tidal &lt;Works&gt;" in question.content.decode()
    assert former(page) == [NAME]
    judge.post(f"{page}/names/remove", {"name": NAME})
    assert former(page) == []
    assert 'id="former"' not in judge.get(page).content.decode()


@pytest.mark.parametrize("path", ["names", "names/remove"])
def test_strangers_reach_neither(page, path):
    for browser in (signed_in(account("stranger@harbour.example")), Client()):
        answer = browser.post(f"{page}/{path}", {"name": NAME, "do": "hide"})
        assert answer.status_code in {302, 404}
    assert former(page) == [NAME]
