"""Check and submit: every value, what is missing or unfinished, and what happens next."""

import pytest

from make.accounts import account, signed_in
from make.pages import fields_of, valid
from muniment.kernel.problems import NotFound
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.inbox.checks import list_dead_links
from muniment.registry.models import Company, ItemChecks
from muniment.registry.review import workflow
from muniment.web.presenters.company_lists import counted_team

pytestmark = pytest.mark.django_db
FACTS = {"name": "Tidal Works", "type": "cooperative", "website": "https://tidal.example", "description": "Tides."}


@pytest.fixture
def owner():
    return account()


def listing(owner, **facts):
    return listings.create_company(owner.actor("web"), CompanyChange({**FACTS, **facts})).slug


def checked(who, slug):
    html = signed_in(who).get(f"/manage/companies/{slug}/check").content.decode()
    valid(html)
    return html


def test_a_listing_that_lacks_a_field_says_which_and_leads_there(owner):
    slug = listings.create_company(owner.actor("web"), CompanyChange(name="Tidal Works")).slug
    html = checked(owner, slug)
    for field, place in (("type", "basics#id_type"), ("website", "basics#id_website")):
        assert f"Missing: {field}." in html
        assert f"/manage/companies/{slug}/edit/{place}" in html
    assert "about#id_description" in html
    assert "Submit for review" not in html


def test_every_value_is_shown_and_the_listing_is_submitted_from_there(owner):
    slug = listing(owner, symbol="TIDE", themes=["energy", "tidal, small"], body="Under **the** quay.")
    parts = {
        "positions": [{"title": "Chair", "person": {"name": "Ada Reef"}}],
        "capTable": [{"name": f"Holder {n}", "percentage": 5.01} for n in range(20)],
        "distribution": {"method": "vote", "pools": [{"name": "Members", "percentage": 100}]},
        "fundingRounds": [{"name": "Seed", "target": "$2.5M", "opened": "2026-01-31"}],
        "address": [{"city": "Port Ansel", "country": "FR"}],
        "socials": {"email": "office@tidal.example"},
    }
    listings.update_company(owner.actor("web"), slug, CompanyChange(parts))
    html = checked(owner, slug)
    shown = ("TIDE", "energy", "Ada Reef, Chair", "Holder 9", "and 10 more", "Members", "Seed", "Port Ansel, France")
    assert "add up" not in html, "rounded shares are the whole"
    for words in (*shown, "office@tidal.example", "<strong>the</strong>"):
        assert words in html, words
    client = signed_in(owner)
    assert client.post(f"/manage/companies/{slug}/submit", fields_of(html)).status_code == 302
    assert Company.objects.get().state == "submitted"
    assert "A reviewer is looking" in checked(owner, slug)


def test_what_looks_unfinished_is_named(owner):
    slug = listing(owner)
    parts = {
        "positions": [{"person": {"name": "Ada Reef"}}, {"person": {"name": "Ada Reef"}}],
        "capTable": [{"name": "Treasury", "percentage": 60}, {"name": "Fund"}],
        "distribution": {"pools": [{"name": "Members", "percentage": 40}, {"percentage": 1}]},
        "proposals": [{"title": "Dredge", "status": "active", "endDate": "2020-01-31"}],
        "fundingRounds": [{"opened": "2026-01-31"}],
    }
    listings.update_company(owner.actor("web"), slug, CompanyChange(parts))
    html = checked(owner, slug)
    for words in (
        "Cap table: the shares add up to 60%.",
        "Pools: the shares add up to 41%.",
        "Pools without a name or percentage",
        "Holders without tokens or percentage: Fund.",
        "Check and submit",
        "Before you submit, check these:",
        "People without a title: Ada Reef, Ada Reef.",
        "although their end date has passed: Dredge.",
        "Funding rounds without a name or target",
        "Duplicate rows (Team): Ada Reef.",
        "Full description: what the organization does",
    ):
        assert words in html, words
    assert "Submit for review" in html, "a warning prevents nothing"


def test_a_likely_duplicate_is_named(owner):
    first = listing(owner)
    workflow.submit_company(owner.actor("web"), first)
    workflow.approve_company(account("reviewer@harbour.example", "reviewer").actor("web"), first)
    other = account("other@reef.example")
    html = checked(other, listing(other, name="Tidal works"))
    assert "may already be listed" in html
    assert f'href="/companies/{first}"' in html


def test_shares_above_the_whole_that_were_stored_before_the_rule_are_named(owner):
    slug = listing(owner)
    Company.objects.update(distribution={"pools": [{"id": "a", "name": "A", "percentage": 80}] * 2})
    assert "more than 100%" in checked(owner, slug)


def test_of_a_published_listing_what_waits_for_a_reviewer_is_shown(owner):
    slug = listing(owner)
    workflow.submit_company(owner.actor("web"), slug)
    workflow.approve_company(account("reviewer@harbour.example", "reviewer").actor("web"), slug)
    listings.update_company(owner.actor("web"), slug, CompanyChange(name="Tidal Power"))
    html = checked(owner, slug)
    assert "Changes to name, token symbol or type need review" in html
    assert "Pending review" in html
    assert "Tidal Power" in html
    assert "Submit for review" not in html
    assert html.count("Change pending") == 1, "of the reviewed fields, the one that was changed"
    assert "nothing to submit" not in html


def published(owner, **facts):
    slug = listing(owner, **facts)
    workflow.submit_company(owner.actor("web"), slug)
    workflow.approve_company(account("reviewer@harbour.example", "reviewer").actor("web"), slug)
    return slug


def test_a_published_listing_has_nothing_to_submit_and_is_not_taken_for_a_duplicate(owner):
    slug = published(owner)
    second = listing(owner, name="Tidal works")
    assert "may already be listed" in checked(owner, second)
    workflow.submit_company(owner.actor("web"), second)
    workflow.approve_company(account("other@harbour.example", "reviewer").actor("web"), second)
    html = checked(owner, slug)
    assert "Your listing is published, and there is nothing to submit." in html
    assert "may already be listed" not in html
    assert "Change pending" not in html


def test_what_a_published_listing_lacks_is_named_without_a_demand_to_submit(owner):
    slug = published(owner)
    Company.objects.update(description="")
    html = checked(owner, slug)
    assert "Missing: summary." in html
    assert "Check these:" in html
    assert "Complete these fields" not in html


def test_the_team_is_counted_by_people_and_positions(owner):
    slug = listing(owner)
    ada = {"name": "Ada Reef", "isNew": True}
    parts = {"positions": [{"title": "Chair", "person": ada}, {"title": "Clerk", "person": {"name": "Bo Reef"}}]}
    listings.update_company(owner.actor("web"), slug, CompanyChange(parts))
    assert "2 people" in checked(owner, slug)
    for step, words in (("about", "Counted from the team"), ("basics", "(needed to publish)")):
        assert words in signed_in(owner).get(f"/manage/companies/{slug}/edit/{step}").content.decode()


@pytest.mark.parametrize(
    ("slugs", "words"),
    [
        ((), ""),
        (("ada",), "1 person"),
        (("ada", "bo", "", ""), "3 people, 4 positions"),
        (("ada", "bo", "ada"), "2 people, 3 positions"),
    ],
)
def test_a_team_is_counted_in_people_and_in_positions_where_they_differ(slugs, words):
    assert counted_team([{"person": {"slug": slug, "name": "Reef"}} for slug in slugs]) == words


def test_a_name_that_a_profile_has_is_offered_for_choice(owner):
    slug = listing(owner)
    new = {"add": [{"title": "Chair", "person": {"name": "Ada Reef", "isNew": True}}]}
    listings.update_company(owner.actor("web"), slug, CompanyChange(positions=new))
    workflow.submit_company(owner.actor("web"), slug)
    workflow.approve_company(account("reviewer@harbour.example", "reviewer").actor("web"), slug)
    other = account("other@reef.example")
    second = listings.create_company(other.actor("web"), CompanyChange(name="Reef Works")).slug
    listings.update_company(other.actor("web"), second, CompanyChange(positions=new))
    html = checked(other, second)
    assert "A profile with this name exists" in html or "Ada Reef" in html


def test_the_form_says_what_waits_for_a_reviewer_and_what_is_public_until_then(owner):
    slug = listing(owner)
    reviewer = account("reviewer@harbour.example", "reviewer")
    workflow.submit_company(owner.actor("web"), slug)
    workflow.approve_company(reviewer.actor("web"), slug)
    client = signed_in(owner)
    form = fields_of(client.get(f"/manage/companies/{slug}/edit/basics").content.decode())
    client.post(f"/manage/companies/{slug}/edit/basics", {**form, "name": "Tidal Power", "website": "tidal.example/en"})
    assert Company.objects.get().website == "https://tidal.example/en"
    mine = client.get(f"/manage/companies/{slug}/edit/basics").content.decode()
    valid(mine)
    assert 'value="Tidal Power"' in mine
    assert "Pending review. Until then the public page shows: Tidal Works" in mine
    assert 'aria-describedby="id_name_note"' in mine
    theirs = signed_in(reviewer).get(f"/manage/companies/{slug}/edit/basics").content.decode()
    assert "Requested: Tidal Power. Pending review." in theirs


def test_links_that_did_not_respond_for_the_reviewers_are_shown_to_the_owner_alone(owner):
    slug = listing(owner)
    dead = {"url": FACTS["website"], "fault": "answered 404", "is_checked": True}
    gone = {**dead, "url": "https://former.example"}
    ItemChecks.objects.create(subject=f"company:{slug}", stamp="1", links=[dead, gone])
    html = checked(owner, slug)
    assert "This link did not respond when we checked it: https://tidal.example answered 404" in html
    assert "former.example" not in html
    with pytest.raises(NotFound):
        list_dead_links(account("ida@other.example").actor("web"), slug)
