"""The people picker: public profiles by name, with where they hold a position."""

import pytest
from django.test import Client

from make.accounts import account, signed_in
from make.pages import fields_of
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Position
from muniment.registry.people import profiles
from muniment.registry.review import workflow

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def published(owner):
    change = CompanyChange(name="Tidal <Works>", positions=[{"title": "Chair", "person": {"name": "Ada Reef"}}])
    slug = listings.create_company(owner.actor("web"), change).slug
    workflow.submit_company(owner.actor("web"), slug)
    workflow.approve_company(account("reviewer@harbour.example", "reviewer").actor("web"), slug)
    return slug


def test_a_public_profile_is_suggested_with_its_organization(owner, published):
    client = signed_in(owner)
    html = client.get("/manage/people/suggest?q=ada+re").content.decode()
    assert html.count('role="option"') == 1
    for words in ('data-slug="ada-reef"', 'data-name="Ada Reef"', "Chair, Tidal &lt;Works&gt;"):
        assert words in html
    for q in ("", "a", "no person of this name", "x" * 5_000):
        assert client.get("/manage/people/suggest", {"q": q}).content.strip() == b""


def test_a_private_profile_is_not_suggested_and_a_visitor_signs_in(owner):
    profiles.create_profile(owner.actor("web"), {"name": "Bo Marsh"})
    other = signed_in(account("other@reef.example"))
    assert b"Bo Marsh" not in other.get("/manage/people/suggest?q=bo+marsh").content
    assert Client().get("/manage/people/suggest?q=bo").status_code == 302


def test_without_a_script_a_name_that_exists_is_chosen_when_it_is_saved(owner, published):
    other = account("other@reef.example")
    client = signed_in(other)
    slug = listings.create_company(other.actor("web"), CompanyChange(name="Reef Works")).slug
    page = f"/manage/companies/{slug}/edit/team"
    form = fields_of(client.get(page).content.decode())
    refused = client.post(page, {**form, "positions-0-name": "Ada Reef"})
    assert refused.status_code == 422
    form = fields_of(refused.content.decode())
    assert client.post(page, {**form, "positions-0-choice": "ada-reef"}).status_code == 302
    assert Position.objects.get(company__slug=slug).person.slug == "ada-reef"
