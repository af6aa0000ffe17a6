"""The pages of a domain proof: the owner's and claimant's, the reviewer's, and what visitors see."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.core.cache import cache

from make.accounts import Letters, account, signed_in
from muniment.kernel.actor import COMMAND
from muniment.kernel.ids import now
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import DomainProof, Petition
from muniment.registry.review import workflow
from muniment.registry.verification import checks
from muniment.web.presenters.company import company_facts

pytestmark = pytest.mark.django_db
HOST = "harbour.example"
PAGE = "/companies/harbour/domain"


@pytest.fixture(autouse=True)
def _clean():
    cache.clear()


@pytest.fixture
def owner():
    me = account("ida@kelp.example")
    change = CompanyChange(name="Harbour", website=f"https://{HOST}/", type="DAO", description="Tides.")
    listings.create_company(me.actor("web"), change, slug="harbour")
    workflow.submit_company(me.actor("web"), "harbour")
    workflow.approve_company(COMMAND, "harbour")
    return me


def text(answer):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def test_an_owner_is_given_the_exact_record_and_file_and_checks_them(owner, monkeypatch):
    me = signed_in(owner)
    assert PAGE in me.get("/manage/companies/harbour").content.decode()
    first = text(me.get(PAGE))
    assert "muniment-verification=" not in first
    for method in ("dns", "file"):
        assert me.post(PAGE, {"do": "start", "method": method})["Location"] == PAGE
    shown = text(me.get(PAGE))
    record, file = DomainProof.objects.order_by("method").values_list("value", flat=True)
    assert f"_muniment-challenge.{HOST}" in shown
    assert f"https://{HOST}/.well-known/muniment-verification.txt" in shown
    assert record in shown
    assert file in shown
    monkeypatch.setattr(checks, "look", lambda *_: "There is no record.")
    assert "There is no record." in text(me.post(PAGE, {"do": "check", "method": "dns"}, follow=True))
    monkeypatch.setattr(checks, "look", lambda *_: "")
    done = text(me.post(PAGE, {"do": "check", "method": "dns"}, follow=True))
    assert f"{HOST} is verified." in done
    assert f"{HOST} is verified, last checked on {now():%-d %B %Y}" in done
    assert "Domain verification" in text(me.get("/manage/companies/harbour"))
    judge = signed_in(account("judge@registry.example", "reviewer"))
    assert f"{HOST} is verified" in text(judge.get("/review/companies/harbour"))


def test_a_code_is_sent_and_entered_on_the_page(owner, settings, django_capture_on_commit_callbacks):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    me, letters = signed_in(owner), Letters()
    assert 'name="code"' not in me.get(PAGE).content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        me.post(PAGE, {"do": "send", "address": f"info@{HOST}"})
    html = me.get(PAGE).content.decode()
    assert 'name="code"' in html
    assert f"Code sent to info@{HOST}." in unescape(html)
    assert "The code is wrong." in text(me.post(PAGE, {"do": "confirm", "code": "AAAA-AAAA"}, follow=True))
    code = letters.code(f"info@{HOST}")
    assert f"{HOST} is verified." in text(me.post(PAGE, {"do": "confirm", "code": code}, follow=True))


def test_a_refusal_is_a_notice_on_the_page(owner):
    me = signed_in(owner)
    told = text(me.post(PAGE, {"do": "send", "address": "ida@evil.example"}, follow=True))
    assert "does not belong to this domain" in told


def test_a_claimant_comes_from_the_claim_to_the_proof_and_the_reviewer_sees_it(owner, monkeypatch):
    claimant = account("bo@harbour.example")
    me = signed_in(claimant)
    sent = me.post("/companies/harbour/claim", {"text": "I chair it."})
    assert sent["Location"] == PAGE
    assert "The reviewer sees it beside your claim." in text(me.get(PAGE))
    judge = signed_in(account("judge@registry.example", "reviewer"))
    review = f"/review/requests/{Petition.objects.get().pk}"
    before = text(judge.get(review))
    assert f"The requester has not verified {HOST}" in before
    assert "email address is at the website's domain" in before
    assert "No public listing" in before
    assert "domain verified" not in text(judge.get("/review"))
    me.post(PAGE, {"do": "start", "method": "dns"})
    monkeypatch.setattr(checks, "look", lambda *_: "")
    me.post(PAGE, {"do": "check", "method": "dns"})
    assert "Listing claim, domain verified" in text(judge.get("/review"))
    after = text(judge.get(review))
    assert re.search(rf"{re.escape(HOST)} DNS record Verified {now():%-d %B %Y}", after)
    judge.post(f"{review}/decide", {"do": "approve"})
    company = listings.get_company(COMMAND, "harbour").bundle["company"]
    assert company["verifiedDomain"]["domain"] == HOST


def test_a_claim_of_a_listing_that_cannot_be_proven_leads_home(owner):
    listings.update_company(owner.actor("web"), "harbour", CompanyChange(website="https://github.com/"))
    sent = signed_in(account("bo@kelp.example")).post("/companies/harbour/claim", {"text": "I chair it."})
    assert sent["Location"] == "/manage"
    assert "can't be verified" in text(signed_in(owner).get(PAGE))
    listings.update_company(owner.actor("web"), "harbour", CompanyChange(website=""))
    assert "has no website" in text(signed_in(owner).get(PAGE))


def test_a_stranger_finds_no_page_and_a_visitor_is_asked_to_sign_in(owner, client):
    stranger = signed_in(account("stranger@kelp.example"))
    assert stranger.get(PAGE).status_code == 404
    for form in ({"do": "start", "method": "dns"}, {"do": "check", "method": "dns"}, {"do": "confirm", "code": "x"}):
        assert stranger.post(PAGE, form).status_code == 404
    assert client.get(PAGE)["Location"].startswith("/accounts/login/")
    assert not DomainProof.objects.exists()


def test_a_hidden_proof_says_so(owner, monkeypatch):
    me = signed_in(owner)
    me.post(PAGE, {"do": "start", "method": "dns"})
    DomainProof.objects.update(state="failed", finding="There is no record.", verified_at=now() - timedelta(days=120))
    assert "No longer verified. There is no record." in text(me.get(PAGE))


def test_an_address_is_shown_without_its_id():
    company = {
        "name": "Harbour",
        "address": [{"id": "76anz346", "city": "Tarnwick", "zip": None}, {"id": "x", "city": ""}],
    }
    assert [fact["value"] for fact in company_facts(company, "2026-11-18T10:00:00Z")][1:] == ["Tarnwick"]


def test_visitors_see_the_review_the_owner_and_the_verified_domain():
    at = "2026-11-18T10:00:00.000000Z"
    proof = {"domain": HOST, "method": "dns", "verifiedAt": at}
    shown = {"name": "Harbour", "reviewedAt": at, "maintainedByOwner": True, "verifiedDomain": proof}
    facts = {fact["label"]: fact["value"] for fact in company_facts(shown, at)}
    assert facts["Reviewed"] == "18 November 2026"
    assert facts["Maintained by"] == "Its owner"
    assert facts["Verified domain"] == f"{HOST} (DNS record, 18 November 2026)"
    bare = {fact["label"] for fact in company_facts({"name": "Harbour", "maintainedByOwner": False}, at)}
    assert bare == {"Updated"}
