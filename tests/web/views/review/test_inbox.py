"""The pages of the inbox: filters, the next item, decisions together, saved replies, settings; closed to strangers."""

import re
from datetime import timedelta
from html import unescape

import html5lib
import pytest
from django.test import Client

from make.accounts import account, signed_in
from muniment.kernel.ids import now
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.inbox import reviewers
from muniment.registry.models import Company, ItemChecks, PendingChange, Petition, SavedReply, Taking
from muniment.registry.review import claims, workflow

pytestmark = pytest.mark.django_db
FIELDS = {"type": "cooperative", "website": "https://tidal.example", "description": "Tides."}


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def first():
    return account("first@harbour.example", "reviewer")


@pytest.fixture
def second():
    return account("second@harbour.example", "reviewer")


def submit(owner, name, **fields):
    slug = listings.create_company(owner.actor("web"), CompanyChange({"name": name, **FIELDS, **fields})).slug
    return workflow.submit_company(owner.actor("web"), slug)


@pytest.fixture
def three(owner):
    return [submit(owner, name) for name in ("Alder Bank", "Birch Fund", "Cedar Trust")]


def text_of(response):
    assert response.status_code == 200, response.status_code
    html = response.content.decode()
    html5lib.HTMLParser(strict=True).parse(html)
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition("<main")[2].partition("</main")[0])))


def values(companies):
    return [f"company:{company.slug}@{company.version}" for company in companies]


def test_a_reviewer_signs_in_to_the_queue_and_an_owner_to_the_listings():
    for role, where in (("owner", "/manage"), ("reviewer", "/review"), ("operator", "/review")):
        account(f"{role}@works.example", role, "four harbours, one tide")
        given = {"login": f"{role}@works.example", "password": "four harbours, one tide"}
        assert Client().post("/accounts/login/", given)["Location"] == where


def test_the_queue_shows_kind_submitter_age_assignee_and_checks_in_words(three, first, owner):
    ItemChecks.objects.create(subject=f"company:{three[0].slug}", stamp="1", attention=" links duplicates ")
    ItemChecks.objects.create(subject=f"company:{three[1].slug}", stamp="1")
    told = text_of(signed_in(first).get("/review"))
    assert f"Alder Bank New listing {owner.email} Check Links, Duplicates" in told
    assert f"Birch Fund New listing {owner.email} Pass" in told
    assert f"Cedar Trust New listing {owner.email} Pending" in told
    assert told.count("Unassigned Assign to me") == 3


def test_filters_stay_in_the_addresses_of_items_and_pages(owner, first):
    since = now()
    Company.objects.bulk_create(
        Company(slug=f"alder-{n:02}", name="Alder", state="submitted", submitted_at=since + timedelta(seconds=n))
        for n in range(26)
    )
    submit(owner, "Birch Fund")
    page = signed_in(first)
    html = page.get("/review?kind=listing&q=alder&sort=newest").content.decode()
    assert "26 items, newest first" in html
    assert 'href="/review/companies/alder-25?kind=listing&amp;q=alder&amp;sort=newest"' in html
    assert 'href="/review?kind=listing&amp;q=alder&amp;sort=newest&amp;page=2"' in html
    assert "Birch" not in html
    assert "Nothing matches" in page.get("/review?q=nothing").content.decode()
    for wrong in ("kind=x", "state=x", "check=x", "sort=x", "assignee=x", "assignee=²"):
        assert page.get(f"/review?{wrong}").status_code == 400


def test_returned_and_decided_items_have_a_state(three, first):
    page, judge = signed_in(first), first.actor("web")
    workflow.request_changes(judge, three[0].slug, "More.")
    workflow.approve_company(judge, three[1].slug)
    assert "Alder Bank" in text_of(page.get("/review?state=returned"))
    told = text_of(page.get("/review?state=decided"))
    assert "Birch Fund" in told
    assert "Published" in told


def test_a_decision_leads_to_the_next_item_and_tells_how_many_are_left(three, first):
    page = signed_in(first)
    after = page.post(f"/review/companies/{three[0].slug}/decide?q=", {"do": "approve"})
    assert after["Location"] == f"/review/companies/{three[1].slug}"
    told = text_of(page.get(after["Location"]))
    assert "Listing published. 2 items left. Back to Alder Bank" in told
    assert "Undo" not in told
    assert "Listing published" not in text_of(page.get(after["Location"]))
    page.post(f"/review/companies/{three[1].slug}/decide", {"do": "approve"})
    last = page.post(f"/review/companies/{three[2].slug}/decide", {"do": "approve"})
    assert last["Location"] == "/review"
    assert "Nothing left to review." in text_of(page.get("/review"))


def test_the_next_item_is_of_the_same_filter(three, first):
    page = signed_in(first)
    after = page.post(f"/review/companies/{three[0].slug}/decide?q=cedar", {"do": "approve"})
    assert after["Location"] == f"/review/companies/{three[2].slug}?q=cedar"
    skipped = page.get(f"/review/next?after=company:{three[1].slug}")
    assert skipped["Location"] == f"/review/companies/{three[2].slug}"
    assert page.get("/review/next?q=none&after=x")["Location"] == "/review?q=none"


def test_a_declined_item_is_taken_back_from_the_next_page(three, first):
    page = signed_in(first)
    given = {"do": "reject", "note": "No."}
    after = page.post(f"/review/companies/{three[0].slug}/decide", given, follow=True)
    assert f'name="subject" value="company:{three[0].slug}"><button class="button slim" type="submit">Undo' in (
        after.content.decode()
    )
    back = page.post("/review/reopen", {"subject": f"company:{three[0].slug}"})
    assert back["Location"] == f"/review/companies/{three[0].slug}"
    assert "Decision undone." in text_of(page.get(back["Location"]))
    assert Company.objects.get(slug=three[0].slug).state == "submitted"
    again = page.post("/review/reopen", {"subject": f"company:{three[0].slug}"}, follow=True)
    assert "is submitted and cannot be reopened" in text_of(again)
    assert page.post("/review/reopen", {"subject": "x:1"}).status_code == 404


@pytest.mark.parametrize("kind", ["change", "claim"])
def test_declined_changes_and_requests_can_be_reopened_on_their_page(owner, first, kind):
    page, judge = signed_in(first), first.actor("web")
    listed = submit(owner, "Alder Bank")
    workflow.approve_company(judge, listed.slug)
    if kind == "change":
        listings.update_company(owner.actor("web"), listed.slug, CompanyChange(name="Alder Trust"))
        address = f"/review/changes/{PendingChange.objects.get().pk}"
    else:
        claims.claim_company(account("claimant@kelp.example").actor("web"), listed.slug, "I chair it.")
        address = f"/review/requests/{Petition.objects.get().pk}"
    page.post(f"{address}/decide", {"do": "decline", "note": "No."})
    html = page.get(address).content.decode()
    assert "Reopen" in html
    subject = re.search(r'name="subject" value="([^"]+)"><p class="small', html)[1]
    assert "Approve" in text_of(page.post("/review/reopen", {"subject": subject}, follow=True))


def test_several_items_are_decided_after_a_question(three, first, owner):
    page = signed_in(first)
    chosen = values(three)
    question = page.post("/review/several", {"item": chosen, "do": "decline"})
    assert "Decline 3 items" in text_of(question)
    assert Company.objects.filter(state="submitted").count() == 3
    listings.update_company(owner.actor("web"), three[1].slug, CompanyChange(description="Something else."))
    given = {"item": chosen, "do": "decline", "confirmed": "yes", "note": "Not ours.", "once": "a"}
    done = page.post("/review/several", given)
    assert done["Location"] == "/review/several/done"
    told = text_of(page.get(done["Location"]))
    assert "Declined: 2 of 3." in told
    assert re.search(r"Birch Fund\s+Not done .*it has changed since", told)
    assert dict(Company.objects.values_list("name", "state")) == {
        "Alder Bank": "rejected",
        "Birch Fund": "submitted",
        "Cedar Trust": "rejected",
    }
    page.post("/review/several", given)
    assert "Declined: 2 of 3." in text_of(page.get("/review/several/done"))


def test_several_items_need_a_selection_a_note_and_a_known_decision(three, first):
    page = signed_in(first)
    assert "No item is selected." in text_of(page.post("/review/several", {"do": "approve"}, follow=True))
    assert page.post("/review/several", {"do": "x", "item": values(three)}).status_code == 400
    given = {"item": values(three), "do": "decline", "confirmed": "yes", "note": " "}
    assert "Write a note first." in text_of(page.post("/review/several", given))
    gone = page.post("/review/several", {"item": [*values(three), "company:gone@1"], "do": "approve"})
    assert "1 selected item no longer waits. It will be left out." in text_of(gone)
    assert Company.objects.filter(state="submitted").count() == 3
    assert page.get("/review/several/done")["Location"] == "/review"


def test_several_items_are_assigned(three, first, second):
    page = signed_in(first)
    assert "second@harbour.example" in text_of(page.post("/review/several", {"item": values(three), "do": "assign"}))
    page.post("/review/several", {"item": values(three), "do": "assign", "confirmed": "yes", "to": second.pk})
    assert {each.account for each in Taking.objects.all()} == {second}
    assert "Assigned: 3 of 3." in text_of(page.get("/review/several/done"))
    for wrong in ("9" * 5_000, "no-number"):
        given = {"item": values(three), "do": "assign", "confirmed": "yes", "to": wrong}
        assert "This account is not a reviewer's." in text_of(page.post("/review/several", given))
    assert {each.account for each in Taking.objects.all()} == {second}
    page.post("/review/several", {"item": values(three), "do": "assign", "confirmed": "yes", "to": ""})
    assert not Taking.objects.exists()


def test_replies_are_made_changed_deleted_and_used_without_a_script(three, first):
    page = signed_in(first)
    page.post("/review/replies", {"title": "Website", "text": "Please add a website."})
    reply = SavedReply.objects.get()
    assert "Website" in text_of(page.get("/review/replies"))
    assert "s taken" in page.post("/review/replies", {"title": "Website", "text": "x"}).content.decode()
    assert page.post("/review/replies", {"title": "", "text": "x"}).status_code == 422
    page.post(f"/review/replies/{reply.pk}", {"title": "Website", "text": "Please add your <website>."})
    told = page.get(f"/review/replies/{reply.pk}/text")
    assert (told.content, told["Content-Type"]) == (b"Please add your <website>.", "text/plain; charset=utf-8")
    address = f"/review/companies/{three[0].slug}"
    assert f'<option value="{reply.pk}">Website</option>' in page.get(address).content.decode()
    page.post(f"{address}/decide", {"do": "request_changes", "reply": reply.pk, "note": "Thanks."})
    assert Company.objects.get(slug=three[0].slug).reviewer_note == "Please add your <website>.\n\nThanks."
    page.post(f"/review/replies/{reply.pk}", {"do": "delete"})
    assert not SavedReply.objects.exists()
    assert page.get(f"/review/replies/{reply.pk}").status_code == 404


def test_too_many_replies_are_told(first, monkeypatch):
    monkeypatch.setattr(reviewers, "MAX_REPLIES", 0)
    told = signed_in(first).post("/review/replies", {"title": "Website", "text": "x"}, follow=True)
    assert "Delete one first." in told.content.decode()


def test_shortcuts_are_turned_off_for_one_reviewer(three, first, second):
    page, script = signed_in(first), "web/review"
    assert script in page.get("/review").content.decode()
    page.post("/review/settings", {"digest": "on"})
    assert "checked" not in page.get("/review/settings").content.decode().partition('name="shortcuts"')[2][:60]
    for path in ("/review", f"/review/companies/{three[0].slug}"):
        assert script not in page.get(path).content.decode()
        assert script in signed_in(second).get(path).content.decode()


def test_a_listing_shows_its_values_links_and_team_as_they_will_appear(owner, first):
    team = [{"title": title, "person": {"name": "Ottoline <Brand>"}} for title in ("Chair",)]
    listed = submit(owner, "Alder Bank", positions=team, body="See https://alder.example/about, please.")
    html = signed_in(first).get(f"/review/companies/{listed.slug}").content.decode()
    assert '<a href="https://tidal.example" rel="nofollow ugc noopener">' in html
    assert '<a href="https://alder.example/about" rel="nofollow ugc noopener">' in html
    told = text_of(signed_in(first).get(f"/review/companies/{listed.slug}"))
    assert "Team as it will appear OB Ottoline <Brand> Chair" in told
    assert "Current" not in told
    assert "Empty" not in told


@pytest.mark.parametrize("role", ["visitor", "owner"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/review"),
        ("get", "/review/next"),
        ("post", "/review/take"),
        ("post", "/review/reopen"),
        ("post", "/review/several"),
        ("get", "/review/several/done"),
        ("get", "/review/replies"),
        ("post", "/review/replies"),
        ("get", "/review/replies/1"),
        ("post", "/review/replies/1"),
        ("get", "/review/replies/1/text"),
        ("get", "/review/settings"),
        ("post", "/review/settings"),
    ],
)
def test_the_inbox_is_closed_to_strangers(role, method, path):
    client = signed_in(account()) if role == "owner" else Client()
    answer = getattr(client, method)(path, {"title": "x", "text": "y", "subject": "company:x"})
    if role == "owner":
        assert answer.status_code == 404
    else:
        assert answer["Location"].startswith("/accounts/login/")
    assert not SavedReply.objects.exists()
