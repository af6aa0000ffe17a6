"""The preview of a listing: the page that it will have, for its owners and reviewers alone."""

import pytest
from django.test import Client

from make.accounts import account, signed_in
from make.pages import fields_of, valid
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Company
from muniment.registry.review import workflow

pytestmark = pytest.mark.django_db
FACTS = {
    "name": "Tidal Works",
    "type": "cooperative",
    "website": "https://tidal.example",
    "description": "Tidal power.",
    "body": "# Turbines\n\nUnder the quay.",
}
PARTS = {
    "positions": [{"title": "Chair", "person": {"name": f"Person {n}"}} for n in range(15)],
    "capTable": [{"name": "Treasury", "percentage": 60}],
    "fundingRounds": [{"name": "Seed", "target": "$2.5M", "opened": "2026-01-31"}],
}


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def draft(owner):
    slug = listings.create_company(owner.actor("web"), CompanyChange(FACTS)).slug
    listings.update_company(owner.actor("web"), slug, CompanyChange(PARTS))
    return slug


def page(who, path, status=200):
    answer = signed_in(who).get(path)
    assert answer.status_code == status, answer.content.decode()[:2000]
    return answer


def test_a_draft_is_shown_as_its_public_page_will_look(owner, draft):
    answer = page(owner, f"/manage/companies/{draft}/preview")
    html = answer.content.decode()
    valid(html)
    for words in ("Tidal Works", "Tidal power.", "Turbines", "Person 3", "Treasury", "Seed", "$2.5M", "Raising"):
        assert words in html
    assert "how the public page will look" in html
    assert '<meta name="robots" content="noindex">' in html
    for absent in ("application/ld+json", "Claim listing", 'rel="canonical"', f'"/companies/{draft}'):
        assert absent not in html
    team = page(owner, f"/manage/companies/{draft}/preview/team").content.decode()
    assert "Person 14" in team
    assert f'href="/manage/companies/{draft}/preview"' in team
    valid(team)


def test_a_preview_is_no_public_page_and_is_never_kept(owner, draft):
    answer = page(owner, f"/manage/companies/{draft}/preview")
    assert answer["Cache-Control"] == "private, no-store"
    assert Client().get(f"/companies/{draft}").status_code == 404


@pytest.mark.parametrize("path", ["preview", "preview/team", "check"])
def test_a_stranger_gets_no_preview_and_a_visitor_signs_in(draft, path):
    page(account("stranger@reef.example"), f"/manage/companies/{draft}/{path}", 404)
    answer = Client().get(f"/manage/companies/{draft}/{path}")
    assert answer["Location"].startswith("/accounts/login/?next=")
    page(account("reviewer@harbour.example", "reviewer"), f"/manage/companies/{draft}/{path}")


@pytest.mark.parametrize("path", ["preview?step=basics", "preview/live?step=basics"])
def test_a_stranger_sees_nothing_by_a_form_either(draft, path):
    answer = signed_in(account("stranger@reef.example")).post(f"/manage/companies/{draft}/{path}", {"name": "Mine"})
    assert answer.status_code == 404


def test_a_form_that_is_not_saved_shows_its_values(owner, draft):
    client = signed_in(owner)
    form = fields_of(client.get(f"/manage/companies/{draft}/edit/about").content.decode())
    typed = {**form, "description": "Power from tides", "treasury": "$1,249,000"}
    html = client.post(f"/manage/companies/{draft}/preview?step=about", typed).content.decode()
    assert "Power from tides" in html
    assert "$1.2M" in html
    assert "unsaved changes" in html
    assert Company.objects.get().description == "Tidal power."
    live = client.post(f"/manage/companies/{draft}/preview/live?step=about", typed).content.decode()
    assert "Power from tides" in live
    assert "<h1>Turbines</h1>" not in live
    team = fields_of(client.get(f"/manage/companies/{draft}/edit/team").content.decode())
    live = client.post(f"/manage/companies/{draft}/preview/live?step=team", {**team, "positions-0-name": "Ada Reef"})
    assert "Ada Reef" in live.content.decode()


def test_values_that_are_not_valid_yet_are_not_shown(owner, draft):
    client = signed_in(owner)
    form = fields_of(client.get(f"/manage/companies/{draft}/edit/basics").content.decode())
    typed = {**form, "website": "not an address at all"}
    html = client.post(f"/manage/companies/{draft}/preview?step=basics", typed).content.decode()
    assert "Your unsaved changes are not shown" in html
    assert "website must be a web address" in html
    assert client.post(f"/manage/companies/{draft}/preview/live?step=basics", typed).status_code == 204
    assert client.post(f"/manage/companies/{draft}/preview/live?step=basics", {"status": "dead"}).status_code == 204
    assert client.get(f"/manage/companies/{draft}/preview/elsewhere").status_code == 404


def test_a_change_that_waits_for_a_reviewer_is_in_the_preview(owner, draft):
    reviewer = account("reviewer@harbour.example", "reviewer").actor("web")
    workflow.submit_company(owner.actor("web"), draft)
    workflow.approve_company(reviewer, draft)
    listings.update_company(owner.actor("web"), draft, CompanyChange(name="Tidal Power"))
    assert "Tidal Power" in page(owner, f"/manage/companies/{draft}/preview").content.decode()


def test_a_round_that_is_not_public_is_not_named(owner, draft):
    mine = listings.get_company(owner.actor("web"), draft)
    (seed,) = mine.bundle["fundingRounds"]
    listings.update_company(
        owner.actor("web"), draft, CompanyChange(fundingRounds={"set": [{"id": seed["id"], "public": False}]})
    )
    html = page(owner, f"/manage/companies/{draft}/preview").content.decode()
    assert "Not public" in html
    assert "$2.5M" not in html
