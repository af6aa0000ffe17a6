"""Limits of an account on the pages: nothing is done beyond them, nothing typed is lost, no other account notices."""

import re

import pytest
from django.contrib.messages import get_messages
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParser
from django.test import Client
from django.utils.http import urlencode

from make.accounts import account, sign_in, signed_in
from make.pages import fields_of, valid
from muniment.accounts.models import PersonalToken
from muniment.kernel import fairness
from muniment.kernel.fairness import MAX_DRAFTS, Fairness
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.review import workflow
from muniment.web.requests.kept_forms import MAX_KEPT_BYTES
from muniment.web.requests.limits import MAX_VISITOR_FORM_BYTES

pytestmark = pytest.mark.django_db
TOKEN = {"name": "laptop of Ada, “home”", "lifetime": "30", "access": "read"}
BURST, CPU_BURST_MS = 120, 10_000


@pytest.fixture(autouse=True)
def limits():
    before = fairness.current()
    yield fairness.use(Fairness(writes=60, page_cpu_ms=2_000))
    fairness.use(before)


def submit(browser, path, fields):
    """Submit a form without files."""
    return browser.post(path, urlencode(fields), content_type="application/x-www-form-urlencoded")


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def browser(owner):
    return signed_in(owner)


@pytest.fixture
def stranger():
    return signed_in(account("stranger@reef.example"))


@pytest.fixture
def written(limits, owner):
    """Let the owner have made all changes of the burst."""
    limits.writes.charge(str(owner.pk), BURST)


@pytest.fixture
def exhausted(limits, owner):
    """Let the owner's pages have used all their CPU time, and 3 s more; no time passes meanwhile."""
    limits.page_cpu._clock = lambda: 0.0
    limits.page_cpu.charge(str(owner.pk), CPU_BURST_MS + 3_000)


def test_every_form_of_an_account_is_a_change(browser, owner, limits):
    browser.get("/manage/tokens")
    assert limits.writes.peek(str(owner.pk)).remaining == BURST
    browser.post("/manage/tokens", TOKEN)
    browser.post("/manage/tokens", {})
    browser.post("/manage/nothing", {})
    assert limits.writes.peek(str(owner.pk)).remaining == BURST - 3


@pytest.mark.usefixtures("written")
def test_over_the_limit_nothing_is_changed_and_the_form_can_be_submitted_again(browser, owner, limits):
    sent = {**TOKEN, "note": "one\r\ntwo <b>&amp;", "empty": ""}
    answer = submit(browser, "/manage/tokens?from=here", sent)
    assert (answer.status_code, answer["Retry-After"], answer["Cache-Control"]) == (429, "1", "no-store")
    assert not PersonalToken.objects.exists()
    page = answer.content.decode()
    valid(page)
    assert "Too many changes by this account. Nothing was changed." in page
    assert "Wait 1 s" in page
    assert 'action="/manage/tokens?from=here"' in page
    assert [(name, value) for name, value in fields_of(page).items() if name in TOKEN] == list(TOKEN.items())
    assert "one\r\ntwo &lt;b&gt;&amp;amp;" in page
    limits.writes.charge(str(owner.pk), -1)
    assert browser.post("/manage/tokens", fields_of(page)).status_code == 200
    assert PersonalToken.objects.get().name == TOKEN["name"]


def test_a_limit_is_said_before_a_form_is_filled_in_and_keeps_what_was_typed(browser, owner):
    for number in range(MAX_DRAFTS):
        listings.create_company(owner.actor("web"), CompanyChange(name=f"Reef {number}"))
        assert (browser.get("/manage/companies/new").status_code == 200) is (number < MAX_DRAFTS - 1)
    said = browser.get("/manage/companies/new").content.decode()
    assert "Limit reached" in said
    assert "20 listings that are not published yet" in said
    assert 'href="/manage"' in said

    answer = submit(browser, "/manage/companies/new", {"name": "Quay & Sons", "once": "1"})
    assert answer.status_code == 409
    page = answer.content.decode()
    valid(page)
    assert "changed by someone else" not in page
    workflow.delete_draft(owner.actor("web"), "reef-0")
    assert browser.post("/manage/companies/new", fields_of(page)).status_code == 302
    assert listings.get_company(owner.actor("web"), "quay-sons").name == "Quay & Sons"


def test_a_stale_form_is_not_offered_again(browser, owner):
    made = listings.create_company(owner.actor("web"), CompanyChange(name="Reef"))
    answer = submit(browser, f"/manage/companies/{made.slug}/submit", {"version": made.version + 1})
    assert answer.status_code in {400, 409}
    assert "Submit again" not in answer.content.decode()


def test_a_password_is_never_put_into_a_page(browser, owner):
    for number in range(MAX_DRAFTS):
        listings.create_company(owner.actor("web"), CompanyChange(name=f"Reef {number}"))
    answer = submit(browser, "/manage/companies/new", {"name": "Quay", "password": "harbour lights"})
    assert answer.status_code == 409
    assert "harbour lights" not in answer.content.decode()


@pytest.mark.usefixtures("written")
def test_only_the_account_itself_waits(browser, stranger, owner):
    assert browser.post("/manage/tokens", TOKEN).status_code == 429
    assert browser.get("/manage/tokens").status_code == 200
    assert signed_in(owner).post("/manage/tokens", TOKEN).status_code == 429, "another session of the account"
    assert stranger.post("/manage/tokens", TOKEN).status_code == 200
    visitor = Client()
    sign_in(visitor, owner)
    assert visitor.post("/accounts/logout/").status_code == 302


@pytest.mark.usefixtures("written")
def test_a_form_is_refused_before_its_files_are_read(browser, monkeypatch):
    monkeypatch.setattr(MultiPartParser, "parse", lambda _: pytest.fail("the form was read"))
    answer = browser.post("/manage/documents", {"company": "x", "files": b"%PDF"}, headers={"Accept": "text/html"})
    assert answer.status_code == 429
    assert "reload this page to submit the form again" in answer.content.decode()


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    "body", ["a=" + "x" * MAX_KEPT_BYTES, "&".join("a=1" for _ in range(1_001)), b"a=\xff"], ids=["long", "many", "odd"]
)
def test_a_form_that_a_page_cannot_hold_is_submitted_again_by_a_reload(browser, body):
    answer = browser.post("/manage/tokens", body, content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 429
    assert len(answer.content) < 10_000
    assert "reload this page" in answer.content.decode()


@pytest.mark.usefixtures("written")
def test_a_page_repeats_no_password(browser):
    page = submit(browser, "/accounts/password/change/", {"oldpassword": "four harbours"}).content.decode()
    assert "four harbours" not in page
    assert "reload this page" in page


@pytest.mark.usefixtures("written")
def test_a_form_of_another_site_gets_no_valid_csrf_token(owner):
    client = signed_in(owner, enforce_csrf_checks=True)
    page = submit(client, "/manage/tokens", {**TOKEN, "csrfmiddlewaretoken": "theirs"}).content.decode()
    assert re.findall(r'name="csrfmiddlewaretoken" value="([^"]*)"', page) == ["theirs"]


@pytest.mark.usefixtures("written")
def test_a_script_gets_json(browser):
    answer = browser.post("/manage/documents/begin", {}, headers={"Accept": "application/json"})
    assert (answer.status_code, answer["Retry-After"]) == (429, "1")
    assert set(answer.json()["error"]) == {"code", "message", "hint"}


@pytest.mark.usefixtures("written")
def test_a_specification_is_checked_while_it_is_typed(limits):
    reviewer = account("reviewer@reef.example", "reviewer")
    limits.writes.charge(str(reviewer.pk), BURST)
    answer = signed_in(reviewer).post("/review/frameworks/none/validate", {"specification": "{"})
    assert answer.status_code != 429


@pytest.mark.usefixtures("exhausted")
def test_an_account_over_its_cpu_time_waits_and_its_pages_do_nothing(browser, django_assert_max_num_queries):
    for path in ("/manage", "/manage/tokens", "/accounts/email/", "/review", "/operate"):
        with django_assert_max_num_queries(2):  # the session and its account
            answer = browser.get(path)
        assert (answer.status_code, answer["Retry-After"]) == (429, "90"), path
        assert "Wait 90 s" in answer.content.decode()
        valid(answer.content.decode())
    answer = submit(browser, "/manage/tokens", TOKEN)
    assert answer.status_code == 429
    assert fields_of(answer.content.decode())["name"] == TOKEN["name"]
    assert not PersonalToken.objects.exists()


@pytest.mark.sqlite  # a public page is read from the database file
@pytest.mark.usefixtures("exhausted")
def test_an_account_over_its_cpu_time_can_sign_out_and_read_public_pages(browser, stranger):
    assert stranger.get("/manage").status_code == 200
    assert Client().get("/accounts/login/").status_code == 200
    assert browser.get("/").status_code == 200
    assert browser.get("/accounts/logout/").status_code == 200
    assert browser.post("/accounts/logout/").status_code == 302
    assert browser.get("/manage").status_code == 302


@pytest.mark.sqlite  # a public page is read from the database file
def test_the_server_is_told_whose_cpu_time_a_page_uses(browser, owner, limits):
    answer = browser.get("/manage")
    assert answer.wsgi_request.META[fairness.ACCOUNT] == str(owner.pk)
    for path in ("/", "/companies", "/connect"):
        assert fairness.ACCOUNT not in browser.get(path).wsgi_request.META, path
    assert fairness.ACCOUNT not in Client().get("/manage").wsgi_request.META
    limits.page_cpu.charge(str(owner.pk), CPU_BURST_MS + 1)
    refused = browser.get("/manage")
    assert fairness.ACCOUNT not in refused.wsgi_request.META, "a refusal is not charged, so that the wait is as told"


def test_a_notice_is_kept_for_the_page_after_the_refusal(browser, limits, owner):
    browser.post("/manage/documents", {})
    limits.page_cpu.charge(str(owner.pk), CPU_BURST_MS + 1_000)
    assert isinstance(get_messages(HttpRequest()), list)
    refused = browser.get("/manage/documents")
    assert refused.status_code == 429
    assert b"Choose at least one file." in refused.content


def large_form(size_bytes: int) -> str:
    return "login=" + "a" * (size_bytes - len("login="))


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("path", ["/accounts/login/", "/manage/companies/new"])
@pytest.mark.parametrize("kind", [FORM, "multipart/form-data; boundary=x"])
def test_a_large_form_of_a_visitor_is_refused_before_it_is_read(path, kind, monkeypatch):
    visitor = Client(enforce_csrf_checks=True, headers={"Cookie": "csrftoken=" + "a" * 32})
    most = visitor.post(path, large_form(MAX_VISITOR_FORM_BYTES), content_type=kind)
    assert most.status_code in {400, 403}, "it is read, is none or lacks its token"
    monkeypatch.setattr(HttpRequest, "_load_post_and_files", None)
    refused = visitor.post(path, large_form(MAX_VISITOR_FORM_BYTES + 1), content_type=kind)
    assert refused.status_code == 413
    assert b"Sign in first" in refused.content
    valid(refused.content.decode())


def test_the_account_of_a_browser_that_was_signed_out_pays_for_its_large_form(browser, limits, owner):
    browser.get("/manage")
    del browser.cookies["sessionid"]
    form = large_form(MAX_VISITOR_FORM_BYTES + 1)
    kept = browser.post("/manage/companies/new", form, content_type=FORM)
    assert (kept.status_code, kept.wsgi_request.META[fairness.ACCOUNT]) == (302, str(owner.pk))
    limits.page_cpu.charge(str(owner.pk), CPU_BURST_MS + 90_000)
    assert browser.post("/manage/companies/new", form, content_type=FORM).status_code == 429
