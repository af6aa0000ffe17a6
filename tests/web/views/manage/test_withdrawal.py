"""The questions before owners and people take something back, and the history of a profile."""

import re

import html5lib
import pytest
from django.test import Client

from make import registry as make
from make.accounts import account, sign_in, signed_in
from make.registry import document
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Company, HistoryEntry, Invitation, Ownership
from muniment.registry.people import profiles
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.review import invitations, workflow

pytestmark = pytest.mark.django_db
FACTS = {"name": "Tidal Works", "type": "cooperative", "website": "https://tidal.example", "description": "Tides."}
BASE = "/manage/companies/tidal-works"


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def browser(owner):
    return signed_in(owner)


@pytest.fixture
def judge():
    return account("reviewer@harbour.example", "reviewer").actor("web")


@pytest.fixture
def listing(owner):
    return listings.create_company(owner.actor("web"), CompanyChange(FACTS)).slug


@pytest.fixture
def published(listing, owner, judge):
    workflow.submit_company(owner.actor("web"), listing)
    workflow.approve_company(judge, listing)
    return listing


def page_of(answer, status=200):
    assert answer.status_code == status, answer.content.decode()[:3000]
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    parser.parse(answer.content)
    assert list(parser.errors) == []
    return answer.content.decode()


def hidden(page):
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


def where(answer):
    assert answer.status_code == 302, answer.content.decode()[:3000]
    return answer["Location"]


def follow(browser, question, step):
    """Open the page of a listing, follow its link to the question, and answer it with the page's own form."""
    overview = page_of(browser.get(BASE))
    assert f'href="{BASE}/{step}"' in overview
    page = page_of(browser.get(f"{BASE}/{step}"))
    assert question in page
    return where(browser.post(f"{BASE}/{step}", hidden(page)))


def test_each_step_is_asked_for_and_taken(browser, listing, owner, judge):
    workflow.submit_company(owner.actor("web"), listing)
    assert follow(browser, "Withdraw the submission of Tidal Works?", "withdraw") == BASE
    workflow.submit_company(owner.actor("web"), listing)
    workflow.approve_company(judge, listing)
    assert follow(browser, "Unlist Tidal Works?", "unlist") == BASE
    assert document("company", listing) is None
    assert "An owner unlisted this listing" in page_of(browser.get(BASE))
    assert follow(browser, "Publish Tidal Works again?", "relist") == BASE
    assert document("company", listing)
    workflow.unlist_company(judge, listing, "Not an organization.")
    taken_down = page_of(browser.get(BASE))
    assert "A reviewer unlisted this listing" in taken_down
    assert f"{BASE}/relist" not in taken_down
    assert where(browser.post(f"{BASE}/relist")) == BASE
    assert "its owners cannot publish it again" in page_of(browser.get(BASE))
    assert Company.objects.get().state == "unlisted"


def test_a_question_alone_changes_nothing(browser, published):
    for step in ("delete", "withdraw", "unlist", "relist", "leave"):
        page_of(browser.get(f"{BASE}/{step}"))
    assert (Company.objects.get().state, Company.objects.get().owners.count()) == ("published", 1)


def test_a_deleted_draft_is_gone(browser, listing):
    assert follow(browser, "Delete the draft of Tidal Works?", "delete") == "/manage"
    assert "Draft deleted." in page_of(browser.get("/manage"))
    assert browser.get(BASE).status_code == 404


def test_the_last_owner_is_told_what_leaving_means(browser, published, owner):
    page = page_of(browser.get(f"{BASE}/leave"))
    assert "You are the last owner. The listing stays public, and anyone can ask to claim it." in page
    partner = account("partner@harbour.example")
    listings.add_owner(owner.actor("web"), published, partner.pk)
    assert "You are the last owner" not in page_of(browser.get(f"{BASE}/leave"))
    listings.leave_company(partner.actor("web"), published)
    Company.objects.update(published=False, state="draft")
    assert "only reviewers can open it" in page_of(browser.get(f"{BASE}/leave"))
    assert where(browser.post(f"{BASE}/leave", hidden(page))) == "/manage"
    assert browser.get(BASE).status_code == 404


def test_a_reviewer_sees_who_unlisted_a_listing_and_can_take_it_down(browser, published):
    where(browser.post(f"{BASE}/unlist"))
    reviewer = Client()
    sign_in(reviewer, account("second@harbour.example", "reviewer"))
    page = page_of(reviewer.get(f"/review/companies/{published}"))
    assert "An owner unlisted this listing and can publish it again." in page
    where(reviewer.post(f"/review/companies/{published}/decide", {"do": "unlist", "note": "Not an organization."}))
    assert "An owner unlisted" not in page_of(reviewer.get(f"/review/companies/{published}"))
    where(browser.post(f"{BASE}/relist"))
    assert document("company", published) is None


def test_reverting_asks_before_it_replaces_later_changes(browser, published, owner):
    for industry in ("Land", "Health"):
        listings.update_company(owner.actor("web"), published, CompanyChange(industry=industry))
    entry = HistoryEntry.objects.filter(action="updated").earliest("pk").pk
    address = f"{BASE}/history/{entry}/revert"
    page = page_of(browser.post(address), 409)
    assert "Later changes touched the same fields: industry." in page
    assert "Health" in page
    assert document("company", published)["company"]["industry"] == "Health"
    assert where(browser.post(address, hidden(page))) == f"{BASE}/history"
    assert "industry" not in document("company", published)["company"]


def test_a_form_keeps_a_pending_rename_and_says_when_it_withdraws_one(browser, published, owner):
    listings.update_company(owner.actor("web"), published, CompanyChange(name="Tidal Union"))
    page = page_of(browser.get(f"{BASE}/edit/basics"))
    assert 'value="Tidal Union"' in page
    basics = {**FACTS, "name": "Tidal Union", "industry": "Land", "status": "", "version": "3"}
    where(browser.post(f"{BASE}/edit/basics", basics))
    assert listings.get_company(owner.actor("web"), published).pending_changes == {"name": "Tidal Union"}
    assert HistoryEntry.objects.filter(action="asked").count() == 1
    assert "was replaced" not in page_of(browser.get(BASE))
    where(browser.post(f"{BASE}/edit/basics", {**basics, "name": "Tidal League", "version": ""}))
    page = page_of(browser.get(BASE))
    assert "Your earlier request to change name was replaced." in page
    assert "was withdrawn" not in page
    where(browser.post(f"{BASE}/edit/basics", {**basics, "name": "Tidal Works", "version": ""}))
    assert "Your request to change name was withdrawn." in page_of(browser.get(BASE))


# ---------------------------------------------------------------------- profiles


@pytest.fixture
def company():
    return make.published(make.owner(), positions=[{"person": {"name": "Ada Moss"}}]).slug


@pytest.fixture
def ada(owner, company, judge):
    return profiles.join_person(judge, "ada-moss", owner.pk).slug


def test_a_person_unlists_their_profile_and_publishes_it_again(browser, ada, company):
    assert 'href="/manage/profile/unlist"' in page_of(browser.get("/manage/profile"))
    page = page_of(browser.get("/manage/profile/unlist"))
    assert "Unlist your profile?" in page
    assert document("person", ada)
    assert where(browser.post("/manage/profile/unlist", hidden(page))) == "/manage/profile"
    assert document("person", ada) is None
    assert document("company", company)["positions"][0]["person"] == {"name": "Ada Moss"}
    page = page_of(browser.get("/manage/profile"))
    assert "You unlisted your profile. It is not public." in page
    where(browser.post("/manage/profile/publish", hidden(page_of(browser.get("/manage/profile/publish")))))
    assert document("person", ada)


def test_a_person_reads_the_history_of_their_profile_and_reverts_a_change(browser, ada, owner):
    for bio in ("Sails.", "Sails and rows."):
        profiles.update_profile(owner.actor("token", "laptop"), ProfileChange(bio=bio))
    page = page_of(browser.get("/manage/profile/history"))
    assert page.count("by you") == 2
    assert "by the registry" in page
    assert "reviewer@" not in page
    assert "laptop" in page
    entries = HistoryEntry.objects.filter(person__slug=ada, action="updated").order_by("pk")
    addresses = [f"/manage/profile/history/{entry.pk}/revert" for entry in entries]
    assert [address for address in addresses if address in page] == addresses
    question = page_of(browser.post(addresses[0]), 409)
    assert "Later changes touched the same fields" in question
    assert document("person", ada)["bio"] == "Sails and rows."
    where(browser.post(addresses[0], hidden(question)))
    assert document("person", ada)["bio"] is None


def test_a_stranger_reaches_no_other_profile(ada, owner):
    profiles.update_profile(owner.actor("web"), ProfileChange(bio="Sails."))
    entry = HistoryEntry.objects.get(action="updated", person__slug=ada).pk
    stranger = signed_in(account("stranger@harbour.example"))
    assert "Sails." not in page_of(stranger.get("/manage/profile/history"))
    assert stranger.post(f"/manage/profile/history/{entry}/revert").status_code == 400
    assert stranger.post("/manage/profile/unlist").status_code == 302
    assert document("person", ada)["bio"] == "Sails."


@pytest.mark.parametrize("path", ["history/1/revert", "unlist", "publish"])
def test_a_visitor_signs_in_first(path):
    for method in ("get", "post"):
        answer = getattr(Client(), method)(f"/manage/profile/{path}")
        if answer.status_code != 405:
            assert where(answer).startswith("/accounts/login/?next=")
    assert where(Client().get("/manage/profile/history")).startswith("/accounts/login/?next=")


def test_a_change_that_waits_is_withdrawn_by_its_owner_alone(browser, owner, published):
    listings.update_company(owner.actor("web"), published, CompanyChange(name="Tidal Power"))
    html = page_of(browser.get(BASE))
    assert f'href="{BASE}/withdraw-change"' in html
    stranger = signed_in(account("stranger@reef.example"))
    assert stranger.post(f"{BASE}/withdraw-change").status_code == 404
    question = page_of(browser.get(f"{BASE}/withdraw-change"))
    assert "Withdraw the pending change of Tidal Works?" in question
    assert browser.post(f"{BASE}/withdraw-change", hidden(question)).status_code == 302
    mine = listings.get_company(owner.actor("web"), published)
    assert (mine.name, mine.pending_changes) == ("Tidal Works", {})
    assert HistoryEntry.objects.filter(action="request withdrawn").count() == 1
    html = page_of(browser.get(BASE))
    assert "Change withdrawn." in html
    assert "withdraw-change" not in html
    browser.post(f"{BASE}/withdraw-change", {"once": "again"})
    assert "No change of this listing is waiting" in page_of(browser.get(BASE))


def test_a_reviewer_who_owns_a_listing_decides_on_its_change_instead(browser, owner, published):
    listings.update_company(owner.actor("web"), published, CompanyChange(name="Tidal Power"))
    other = account("other@harbour.example", "reviewer")
    Ownership.objects.create(company=Company.objects.get(slug=published), account=other)
    desk = signed_in(other)
    assert "withdraw-change" not in page_of(desk.get(BASE))
    desk.post(f"{BASE}/withdraw-change", {"once": "first"})
    assert "Reviewers decide on changes." in page_of(desk.get(BASE))
    assert listings.get_company(owner.actor("web"), published).pending_changes == {"name": "Tidal Power"}


def test_an_open_invitation_is_shown_and_revoked_by_an_owner_alone(browser, owner, published):
    sent = invitations.invite_owner(owner.actor("web"), published, "crew@reef.example", base_url="https://reef.example")
    html = page_of(browser.get(BASE))
    assert "crew@reef.example" in html
    address = f"{BASE}/invitations/{sent.pk}/revoke"
    assert f'action="{address}"' in html
    assert signed_in(account("stranger@reef.example")).post(address).status_code == 404
    assert Invitation.objects.count() == 1
    assert browser.post(address, {"once": "first"}).status_code == 302
    html = page_of(browser.get(BASE))
    assert "Invitation of crew@reef.example revoked." in html
    assert "Open invitations" not in html
    assert Invitation.objects.count() == 0
    history = page_of(browser.get(f"{BASE}/history"))
    assert "Invitation revoked" in history
    assert "Email: <bdi>crew@reef.example</bdi>" in history.replace("\n", " ")
    assert browser.post(address, {"once": "second"}).status_code == 404


def test_the_question_before_a_step_names_the_listing(browser, published):
    for step, words in (("unlist", "Unlist Tidal Works?"), ("leave", "Leave the listing of Tidal Works?")):
        assert words in page_of(browser.get(f"{BASE}/{step}")), step


def test_without_a_profile_there_is_none_to_unlist(browser):
    answer = browser.get("/manage/profile/unlist")
    assert (answer.status_code, answer["Location"]) == (302, "/manage/profile")
    assert "You don&#x27;t have a profile yet." in page_of(browser.get("/manage/profile"))


@pytest.mark.parametrize(
    ("path", "title"), [("claim", "Claim Tidal Works"), ("suggest", "Suggest an edit to Tidal Works")]
)
def test_a_request_names_the_organization(browser, published, path, title):
    assert f"<h1>{title}</h1>" in page_of(browser.get(f"/companies/{published}/{path}"))
