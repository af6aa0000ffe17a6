"""The reviewers' rooms: a queue, decisions that are taken once, frameworks; closed to everybody else."""

import json
import re
from datetime import timedelta
from html import unescape

import html5lib
import pytest
from django.test import Client

from make.accounts import Letters, account, signed_in
from make.pages import valid
from make.reports import finished
from muniment.assessments import scores
from muniment.kernel.ids import now
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.frameworks.authoring import author_framework
from muniment.registry.frameworks.authoring import create_framework as make_framework
from muniment.registry.models import (
    Company,
    Framework,
    FrameworkSpecification,
    Ownership,
    PendingChange,
    Petition,
    Taking,
)
from muniment.registry.review import workflow
from muniment.web.views.review.frameworks import STARTER

pytestmark = pytest.mark.django_db
FIELDS = {"name": "Tidal Works", "type": "cooperative", "website": "https://tidal.example", "description": "Tides."}


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def first():
    return account("first@harbour.example", "reviewer")


@pytest.fixture
def second():
    return account("second@harbour.example", "reviewer")


@pytest.fixture
def submitted(owner):
    slug = listings.create_company(owner.actor("web"), CompanyChange(FIELDS)).slug
    workflow.submit_company(owner.actor("web"), slug)
    return slug


def test_the_queue_shows_what_waits_and_the_assignee(submitted, first, second):
    one, two = signed_in(first), signed_in(second)
    assert "Tidal Works" in one.get("/review").content.decode()
    one.post("/review/take", {"subject": f"company:{submitted}", "do": "take"})
    assert first.email in two.get("/review").content.decode()
    assert f"Assigned to <bdi>{first.email}</bdi>" in two.get(f"/review/companies/{submitted}").content.decode()
    one.post("/review/take", {"subject": f"company:{submitted}", "do": "leave"})
    assert "Unassigned" in two.get("/review").content.decode()


def test_the_oldest_waits_first(owner, first):
    for name in ("Zeta", "Alpha"):
        slug = listings.create_company(owner.actor("web"), CompanyChange(name=name)).slug
        workflow.submit_company(owner.actor("web"), slug)
    html = signed_in(first).get("/review").content.decode()
    assert html.index("Zeta") < html.index("Alpha")


def test_a_long_queue_comes_in_pages_oldest_first_whatever_waits(owner, first):
    since = now() - timedelta(days=3)
    made = Company.objects.bulk_create(
        Company(slug=f"w{n}", name=f"Waits {n:02}", state="submitted", submitted_at=since + timedelta(hours=n))
        for n in range(60)
    )
    Company.objects.filter(slug="w0").update(state="published")
    PendingChange.objects.create(company=made[0], via="web", changes={"name": "Other"}, asked_at=since)
    Petition.objects.create(kind="claim", account=owner, company=made[0], asked_at=since + timedelta(hours=30.5))
    page = signed_in(first)
    shown = [page.get(f"/review?page={n}").content.decode() for n in (1, 2, 3)]
    assert "61 items, oldest first" in shown[0]
    assert "Page 1 of 3" in shown[0]
    waiting = [re.findall(r'class="serif" href="(/review/[^"]+)"', each) for each in shown]
    assert [len(each) for each in waiting] == [25, 25, 11]
    petition = f"/review/requests/{Petition.objects.get().pk}"
    rest = [f"/review/companies/w{n}" for n in range(1, 60)]
    expected = [f"/review/changes/{PendingChange.objects.get().pk}", *rest[:30], petition, *rest[30:]]
    assert [address for each in waiting for address in each] == expected
    taken = page.post("/review/take", {"subject": "company:w59", "do": "take", "page": "3"})
    assert taken["Location"] == "/review?page=3"
    assert first.email in page.get("/review?page=3").content.decode()
    assert "This page doesn't exist" in page.get("/review?page=9").content.decode()
    assert page.get("/review?page=0").status_code == 400


@pytest.mark.parametrize(
    "subject", ["", "company", "company:missing", "change:1", "petition:1", "petition:x", f"change:{'9' * 30}"]
)
def test_only_what_waits_can_be_taken(submitted, first, subject):
    told = signed_in(first).post("/review/take", {"subject": subject, "do": "take"}, follow=True).content.decode()
    assert "This is no longer in the review queue. Choose another item." in told
    assert not Taking.objects.exists()


def test_a_decided_item_can_no_longer_be_assigned(submitted, owner, first):
    page = signed_in(first)
    found = Company.objects.get()
    change = PendingChange.objects.create(company=found, via="web", changes={"name": "Other"}, asked_at=now())
    petition = Petition.objects.create(kind="claim", account=owner, company=found, asked_at=now())
    subjects = {f"company:{submitted}", f"change:{change.pk}", f"petition:{petition.pk}"}
    for subject in subjects:
        page.post("/review/take", {"subject": subject, "do": "take"})
    assert {taking.subject for taking in Taking.objects.all()} == subjects
    Taking.objects.all().delete()
    Company.objects.update(state="published")
    PendingChange.objects.update(decision="rejected")
    Petition.objects.update(decision="refused")
    for subject in subjects:
        assert (
            b"no longer in the review queue"
            in page.post("/review/take", {"subject": subject, "do": "take"}, follow=True).content
        )
    assert not Taking.objects.exists()
    assert "Assign to me" not in page.get(f"/review/companies/{submitted}").content.decode()


def test_two_reviewers_cannot_decide_the_same_twice(submitted, first, second):
    signed_in(first).post(f"/review/companies/{submitted}/decide", {"do": "approve"})
    late = signed_in(second).post(f"/review/companies/{submitted}/decide", {"do": "reject", "note": "No."}, follow=True)
    assert b"someone else may have decided" in late.content
    assert Company.objects.get().state == "published"


def test_a_listing_that_the_owner_changed_meanwhile_is_not_approved(submitted, first, owner):
    page = signed_in(first).get(f"/review/companies/{submitted}").content.decode()
    version = page.partition('name="version" value="')[2].partition('"')[0]
    listings.update_company(owner.actor("web"), submitted, CompanyChange(description="Something else."))
    late = signed_in(first).post(
        f"/review/companies/{submitted}/decide", {"do": "approve", "version": version}, follow=True
    )
    assert b"it has changed since" in late.content
    assert Company.objects.get().state == "submitted"


def test_a_published_listing_is_marked_as_reviewed_on_its_page(submitted, first):
    browser = signed_in(first)
    workflow.approve_company(first.actor("web"), submitted)
    Company.objects.update(reviewed_at=None)
    page = f"/review/companies/{submitted}"
    assert "Mark as reviewed" in browser.get(page).content.decode()
    done = browser.post(f"{page}/decide", {"do": "confirm"}, follow=True).content.decode()
    assert "Marked as reviewed today." in done
    assert Company.objects.get().reviewed_at is not None


def test_a_note_stays_typed_when_the_decision_is_refused(submitted, first):
    form = {"do": "reject", "note": "Name your board.", "version": "99"}
    late = signed_in(first).post(f"/review/companies/{submitted}/decide", form, follow=True)
    assert b"it has changed since" in late.content
    assert "Name your board.</textarea>" in late.content.decode()


@pytest.mark.parametrize("decision", ["request_changes", "reject"])
def test_a_refusal_needs_a_note_which_the_owner_reads_and_is_mailed(
    submitted, first, owner, decision, django_capture_on_commit_callbacks
):
    letters, client = Letters(), signed_in(first)
    without = client.post(f"/review/companies/{submitted}/decide", {"do": decision, "note": " "}, follow=True)
    assert b"Write a note first." in without.content
    note = next(each for each in valid(without.content.decode()).iter("textarea") if each.get("name") == "note")
    assert note.get("aria-invalid") == "true"
    assert "autofocus" in note.attrib, "the reader is where something is missing"
    assert without.redirect_chain[-1][0].endswith("#note")
    assert "aria-invalid" not in client.get(f"/review/companies/{submitted}").content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        client.post(f"/review/companies/{submitted}/decide", {"do": decision, "note": "Name your board."})
    assert "Name your board." in signed_in(owner).get(f"/manage/companies/{submitted}").content.decode()
    assert "Name your board." in letters.to(owner.email)[-1][1]


def test_a_listing_that_changes_were_requested_on_is_submitted_again(submitted, first, owner):
    signed_in(first).post(f"/review/companies/{submitted}/decide", {"do": "request_changes", "note": "More."})
    signed_in(owner).post(f"/manage/companies/{submitted}/submit")
    assert Company.objects.get().state == "submitted"


def test_a_change_that_waits_is_shown_side_by_side_and_decided(submitted, first, owner):
    client = signed_in(first)
    client.post(f"/review/companies/{submitted}/decide", {"do": "approve"})
    listings.update_company(owner.actor("web"), submitted, CompanyChange(name="Tidal Works United"))
    pending = PendingChange.objects.get()
    html = client.get(f"/review/changes/{pending.pk}").content.decode()
    assert "<ins> United</ins>" in html
    client.post(f"/review/changes/{pending.pk}/decide", {"do": "approve"})
    assert Company.objects.get().name == "Tidal Works United"
    late = client.post(f"/review/changes/{pending.pk}/decide", {"do": "refuse", "note": "x"}, follow=True)
    assert b"already approved" in late.content


def test_a_listing_names_the_change_of_it_that_waits_and_who_gets_the_note(submitted, first, owner):
    client = signed_in(first)
    client.post(f"/review/companies/{submitted}/decide", {"do": "approve"})
    listings.update_company(owner.actor("web"), submitted, CompanyChange(name="Tidal Works United"))
    html = client.get(f"/review/companies/{submitted}").content.decode()
    assert f'href="/review/changes/{PendingChange.objects.get().pk}"' in html
    assert "change to Name." in html
    assert "This listing has no owner:" not in html
    Ownership.objects.all().delete()
    assert "This listing has no owner:" in client.get(f"/review/companies/{submitted}").content.decode()


def test_the_next_item_is_offered_only_while_one_waits(submitted, first, owner):
    client = signed_in(first)
    assert 'data-key="j"' not in client.get(f"/review/companies/{submitted}").content.decode()
    other = listings.create_company(owner.actor("web"), CompanyChange(FIELDS, name="Ebb Works")).slug
    workflow.submit_company(owner.actor("web"), other)
    assert 'data-key="j"' in client.get(f"/review/companies/{submitted}").content.decode()


def test_unlisting_and_listing_again(submitted, first):
    client = signed_in(first)
    client.post(f"/review/companies/{submitted}/decide", {"do": "approve"})
    client.post(f"/review/companies/{submitted}/decide", {"do": "unlist", "note": "It has closed."})
    assert Company.objects.get().state == "unlisted"
    client.post(f"/review/companies/{submitted}/decide", {"do": "relist"})
    assert Company.objects.get().state == "published"


def test_a_review_shows_checks_beside_the_listing(submitted, first, owner):
    twin = listings.create_company(owner.actor("web"), CompanyChange(name="Tidal works")).slug
    workflow.submit_company(owner.actor("web"), twin)
    html = signed_in(first).get(f"/review/companies/{twin}").content.decode()
    assert f'href="/review/companies/{submitted}"' in html
    assert "(same name)" in html
    assert "description" in html.partition("Missing fields")[2][:200]


def test_a_review_shows_the_description_as_it_will_look_long_lists_folded_and_the_team_once(submitted, first, owner):
    positions = [{"title": "Chair", "person": {"name": "Ada Moss"}}]
    themes = [f"tide-{n}" for n in range(30)]
    change = CompanyChange(body="## The marsh\n\nTides.", positions=positions, themes=themes)
    listings.update_company(owner.actor("web"), submitted, change)
    page = signed_in(first)

    html = page.get(f"/review/companies/{submitted}").content.decode()

    content = html.partition("Team as it will appear")[0]
    assert "The marsh</h" in content
    assert "## The marsh" in content.partition("Show the Markdown source")[2]
    assert "Show 25 more lines" in content
    assert "Ada Moss" not in content
    many = [{"title": "Member", "person": {"name": f"Member {n}"}} for n in range(30)]
    listings.update_company(owner.actor("web"), submitted, CompanyChange(positions=many))
    html = page.get(f"/review/companies/{submitted}").content.decode()
    assert "Member 29, Member" in html.partition("Team as it will appear")[0]


def test_a_review_says_what_the_check_of_the_owner_says(submitted, first, owner):
    proposals = [{"title": "Lease the dyke", "status": "active", "endDate": "2020-01-01"}]
    listings.update_company(owner.actor("web"), submitted, CompanyChange(proposals=proposals))
    html = unescape(signed_in(first).get(f"/review/companies/{submitted}").content.decode())
    warned = "Proposals that are still active or pending although their end date has passed: Lease the dyke."
    assert f"the owner's check says: {warned}" in html


def test_a_published_listing_can_only_be_unlisted_and_the_form_says_so(submitted, first):
    client = signed_in(first)
    assert "Required unless you approve." in client.get(f"/review/companies/{submitted}").content.decode()
    client.post(f"/review/companies/{submitted}/decide", {"do": "approve"})
    html = client.get(f"/review/companies/{submitted}").content.decode()
    assert "Unlist this listing" in html
    assert "unless you approve" not in html


def test_a_review_lists_the_values_that_break_a_rule(submitted, first):
    html = signed_in(first).get(f"/review/companies/{submitted}").content.decode()
    assert "<strong>Values</strong>: <bdi>valid</bdi>" in html
    Company.objects.filter(slug=submitted).update(website="javascript:alert(1)", themes=["a", "a"])
    html = unescape(signed_in(first).get(f"/review/companies/{submitted}").content.decode())
    assert "themes[1] is there twice: 'a'; website must be a web address" in html


def test_a_framework_is_made_authored_closed_and_opened(first):
    client = signed_in(first)
    made = client.post(
        "/review/frameworks/new", {"name": "Tide test", "kind": "score", "description": "", "runCost": "4"}
    )
    assert made["Location"] == "/review/frameworks/tide-test"
    client.post("/review/frameworks/tide-test/author", {"specification": json.dumps(STARTER)})
    better = {**STARTER, "scale": {"min": 0, "max": 5}}
    client.post("/review/frameworks/tide-test/author", {"specification": json.dumps(better)})
    framework = Framework.objects.get()
    assert (framework.run_cost, FrameworkSpecification.objects.count()) == (4, 2)
    client.post("/review/frameworks/tide-test", {"do": "close"})
    framework.refresh_from_db()
    assert framework.closed
    client.post("/review/frameworks/tide-test", {"do": "open"})
    client.post("/review/frameworks/tide-test", {"name": "Tide test two", "description": "New.", "runCost": ""})
    framework.refresh_from_db()
    assert (framework.closed, framework.name, framework.run_cost) == (False, "Tide test two", None)


def test_frameworks_come_in_pages_by_name(first, second):
    for number in range(30):
        make_framework(first.actor("web"), name=f"Tide {number:02}", kind="score")
    author_framework(first.actor("web"), "tide-26", STARTER)
    client = signed_in(second)
    shown = [client.get("/review/frameworks", {"page": page}).content.decode() for page in (1, 2, 3)]
    assert [len(re.findall(r"/review/frameworks/tide-\d\d", page)) for page in shown] == [25, 5, 0]
    assert 'href="/review/frameworks?page=2"' in shown[0]
    assert (shown[1].count("Open<"), shown[1].count("No specification<")) == (1, 4)
    assert "This page doesn't exist" in shown[2]


def test_each_fault_of_a_specification_is_shown_with_its_path_and_the_input_is_kept(first):
    client = signed_in(first)
    client.post("/review/frameworks/new", {"name": "Tide test", "kind": "score"})
    broken = {**STARTER, "sections": [{**STARTER["sections"][0], "weight": 0}]}
    live = client.post("/review/frameworks/tide-test/validate", {"specification": json.dumps(broken)}).content.decode()
    assert "sections[0].weight" in live
    answer = client.post("/review/frameworks/tide-test/author", {"specification": json.dumps(broken)})
    assert answer.status_code == 422
    assert "sections[0].weight" in answer.content.decode()
    assert "line 1" in client.post("/review/frameworks/tide-test/validate", {"specification": "{"}).content.decode()
    deep = client.post("/review/frameworks/tide-test/validate", {"specification": "[" * 200_000})
    assert b"is not valid JSON" in deep.content
    for loose in (
        json.dumps(STARTER).replace("{", '{"x": NaN, ', 1),
        json.dumps(STARTER).replace("{", '{"version": 1, "version": 2, ', 1),
    ):
        shown = client.post("/review/frameworks/tide-test/author", {"specification": loose})
        assert (shown.status_code, b"is not valid JSON" in shown.content) == (422, True)
    assert not FrameworkSpecification.objects.exists()


def test_a_program_needs_its_company(first):
    answer = signed_in(first).post("/review/frameworks/new", {"name": "P", "kind": "program"})
    assert answer.status_code == 422
    assert b"a program needs the company that runs it" in answer.content


def rooms(slug):
    return [
        ("get", "/review"),
        ("post", "/review/take"),
        ("get", f"/review/companies/{slug}"),
        ("post", f"/review/companies/{slug}/decide"),
        ("get", "/review/changes/1"),
        ("post", "/review/changes/1/decide"),
        ("get", "/review/requests/1"),
        ("post", "/review/requests/1/decide"),
        ("get", "/review/frameworks"),
        ("get", "/review/frameworks/new"),
        ("post", "/review/frameworks/new"),
        ("get", "/review/frameworks/x"),
        ("post", "/review/frameworks/x"),
        ("post", "/review/frameworks/x/validate"),
        ("post", "/review/frameworks/x/author"),
    ]


def test_review_pages_are_not_found_for_owners_and_visitors(submitted, owner):
    client = signed_in(owner)
    for method, path in rooms(submitted):
        assert getattr(client, method)(path, {"do": "approve", "subject": f"company:{submitted}"}).status_code == 404, (
            path
        )
        sent = getattr(Client(), method)(path)
        assert (sent.status_code, sent["Location"].startswith("/accounts/login/")) == (302, True), path
    assert Company.objects.get().state == "submitted"


def test_every_form_without_its_token_is_refused(submitted, first):
    client = signed_in(first, enforce_csrf_checks=True)
    for method, path in rooms(submitted):
        if method == "post":
            assert client.post(path, {"do": "approve"}).status_code == 403, path


def test_every_page_is_valid_html(submitted, first):
    client = signed_in(first)
    client.post("/review/frameworks/new", {"name": "Tide test", "kind": "score"})
    for path in (
        "/review",
        f"/review/companies/{submitted}",
        "/review/frameworks",
        "/review/frameworks/new",
        "/review/frameworks/tide-test",
    ):
        answer = client.get(path)
        assert answer.status_code == 200, path
        parser = html5lib.HTMLParser(namespaceHTMLElements=False)
        parser.parse(answer.content.decode())
        assert list(parser.errors) == [], path


def test_a_published_score_is_withdrawn_on_the_page_of_its_listing(owner, first, settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    report = finished(owner.actor("web"))
    scores.publish_score(owner.actor("web"), report.run_id)
    page = f"/review/companies/{report.run.company.slug}"
    desk = signed_in(first)
    assert "Withdraw score" in desk.get(page).content.decode()
    answer = desk.post(f"{page}/scores", {"framework": report.run.framework.slug}, follow=True)
    assert "Score withdrawn." in answer.content.decode()
    assert "Withdraw score" not in answer.content.decode()
    assert signed_in(owner).post(f"{page}/scores", {"framework": "x"}).status_code in {403, 404}
