"""What every room of the pages does alike: nothing is kept of it, odd values are refused, no form leads nowhere."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import caches
from django.db import connection
from django.test import Client

from make.accounts import PASSWORD, Letters, account, sign_in, signed_in
from muniment.accounts import tokens
from muniment.kernel.ids import now
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.review import invitations, workflow
from muniment.web.requests import kept_forms
from muniment.web.requests.kept_forms import MAX_KEPT_BYTES, MAX_KEPT_FORMS

pytestmark = pytest.mark.django_db
BASICS = {"name": "Tidal Works", "type": "cooperative", "website": "https://tidal.example", "description": "Tides."}


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def browser(owner):
    return signed_in(owner)


@pytest.fixture
def draft(owner):
    return listings.create_company(owner.actor("web"), CompanyChange(BASICS)).slug


@pytest.fixture
def reviewer():
    return account("reviewer@harbour.example", "reviewer")


def test_no_browser_keeps_a_page_that_was_made_for_one_person(browser):
    rooms = ("/manage", "/manage/tokens", "/manage/credits", "/manage/companies/new", "/manage/nothing")
    theirs = ("email/", "2fa/", "2fa/totp/activate/", "sessions/", "password/set/", "logout/")
    for path in (*rooms, *(f"/accounts/{each}" for each in theirs)):
        assert "no-store" in browser.get(path)["Cache-Control"], path
    for path in ("/manage", "/accounts/password/reset/", "/accounts/login/"):
        assert "no-store" in Client().get(path)["Cache-Control"], path


@pytest.mark.parametrize("page", ["0", "-1", "²", "9" * 5_000, "000000001" + "9" * 25])
def test_a_page_number_out_of_range_is_refused_on_every_list(browser, page):
    for room in ("/manage", "/manage/documents", "/manage/applications"):
        answer = browser.get(room, {"page": page})
        assert answer.status_code == 400
        assert b"Page numbers start at 1." in answer.content


@pytest.mark.parametrize("path", ["/manage/companies/none", "/review/companies/none"])
def test_a_listing_that_does_not_exist_is_not_said_to_be_in_another_account_to_a_reviewer(browser, reviewer, path):
    said = signed_in(reviewer).get(path).content.decode()
    assert "No listing has the slug" in said
    assert "another account" not in said
    owned = browser.get(path)
    assert owned.status_code == 404
    assert "another account" in owned.content.decode()


def test_numbers_that_are_none_are_refused_beside_their_field(browser, draft, owner):
    room = f"/manage/companies/{draft}/edit/token"
    for odd in ("nan", "inf", "-Infinity", "1e999"):
        sent = {"pools-0-name": "A", "pools-0-percentage": odd, "proposals-0-title": "P", "proposals-0-for": odd}
        answer = browser.post(room, {**sent, "capTable-0-name": "Ada", "capTable-0-percentage": odd})
        assert answer.status_code == 422
        assert answer.content.count(b'class="fault"') == 3
        assert f'value="{odd}"' in answer.content.decode()
    assert listings.get_company(owner.actor("web"), draft).bundle["capTable"] == []


def test_tampered_hidden_fields_cause_no_error(browser, draft, reviewer):
    room = f"/manage/companies/{draft}/edit/team"
    for odd in ("²", " ", "0123456789ab none-such", "none-such"):
        sent = {
            "positions-0-name": "Ada Reef",
            "positions-0-row": odd,
            "positions-²-name": "Bo",
            "go": "//evil.example",
        }
        answer = browser.post(f"{room}?positions-page=²", sent)
        assert answer.status_code in {302, 422}
        assert answer.get("Location", room).startswith(room)
    decision = {"do": "unlist", "version": "9" * 5_000}
    assert signed_in(reviewer).post(f"/review/companies/{draft}/decide", decision).status_code == 302


def test_the_twin_of_a_form_under_way_is_led_to_the_page_that_it_stood_on(browser, draft, owner):
    page = f"/manage/companies/{draft}"
    seen = []

    def twin(*_args, **_options):
        seen.append(browser.post(f"{page}/submit", {"once": "same"}, headers={"Referer": f"http://testserver{page}"}))
        return original(*_args, **_options)

    original, workflow.submit_company = workflow.submit_company, twin
    try:
        browser.post(f"{page}/submit", {"once": "same"}, headers={"Referer": f"http://testserver{page}"})
    finally:
        workflow.submit_company = original
    assert [each["Location"] for each in seen] == [page]
    assert browser.get(page).status_code == 200
    assert caches["forms"].get(f"once:{owner.pk}:same") == page


@pytest.mark.parametrize("come_from", ["http://testserver{page}?new=1", "https://elsewhere.example/manage", ""])
def test_signing_in_again_returns_to_a_page_and_never_to_a_form_handler(owner, draft, come_from):
    page = f"/manage/companies/{draft}"
    referer = come_from.format(page=page)
    for action in (f"{page}/submit", "/manage/tokens/1/revoke", "/manage/documents/x/delete", "/review/take"):
        client = Client()
        sent = client.post(action, {"note": "typed"}, headers={"Referer": referer} if referer else {})
        wanted = f"{page}?new=1" if "new" in come_from else "/manage"
        assert sent["Location"].startswith("/accounts/login/?next="), action
        shown = client.get(sent["Location"])
        assert f'name="next" value="{wanted}"' in shown.content.decode()
        assert b"so nothing was changed" in shown.content


def test_nothing_is_kept_of_the_form_of_a_stranger(owner):
    client = Client()
    sent = client.post("/manage/tokens", {"name": "laptop of Ada", "lifetime": "30", "access": "read"})
    assert b"You were signed out, so nothing was changed." in client.get(sent["Location"]).content
    assert not _kept_forms()
    sign_in(client, owner)
    assert "laptop of Ada" not in client.get("/manage/tokens").content.decode()
    assert not tokens.list_tokens(owner.actor("web"))


def _kept_forms():
    with connection.cursor() as cursor:
        cursor.execute("SELECT cache_key FROM web_kept_forms")
        return [key for (key,) in cursor.fetchall()]


def _typed_as_the_session_ended(who):
    """Type a token's name into *who*'s page, whose session has ended; give the browser."""
    client = signed_in(who)
    client.get("/manage/tokens")
    Session.objects.all().delete()
    sent = client.post("/manage/tokens", {"name": "laptop of Ada", "lifetime": "30", "access": "read"})
    assert b"We kept what you entered." in client.get(sent["Location"]).content
    return client


def test_input_of_an_expired_session_is_shown_to_its_account_again(owner):
    client = _typed_as_the_session_ended(owner)
    sign_in(client, owner)
    assert 'value="laptop of Ada"' in client.get("/manage/tokens").content.decode()


def test_kept_input_is_never_shown_to_another_account(owner):
    client = _typed_as_the_session_ended(owner)
    sign_in(client, account("other@harbour.example"))
    assert "laptop of Ada" not in client.get("/manage").content.decode()
    assert "laptop of Ada" not in client.get("/manage/tokens").content.decode()


def test_kept_forms_of_an_account_are_few_and_small_however_often_it_sends_one(owner):
    client = _typed_as_the_session_ended(owner)
    for number in range(MAX_KEPT_FORMS + 2):
        client.post(f"/manage/invitations/{number}", {"note": "x" * (MAX_KEPT_BYTES // 4)})
    client.post("/manage/tokens", {"name": "x" * MAX_KEPT_BYTES})
    assert _kept_forms() == [f":1:kept:{owner.pk}"]
    kept = kept_forms._kept(str(owner.pk))
    assert sum(len(form["typed"]) for form in kept.values()) <= MAX_KEPT_BYTES
    assert "/manage/tokens" not in kept


def test_a_kept_form_is_gone_after_an_hour(owner):
    client = _typed_as_the_session_ended(owner)
    with connection.cursor() as cursor:
        past = connection.ops.adapt_datetimefield_value(now())
        cursor.execute("UPDATE web_kept_forms SET expires = %s WHERE expires <= %s", [past, _in_an_hour()])
        assert cursor.rowcount == 1
    sign_in(client, owner)
    assert "laptop of Ada" not in client.get("/manage/tokens").content.decode()


def _in_an_hour():
    return connection.ops.adapt_datetimefield_value(now() + timedelta(seconds=3_601))


def _sign_in_by_the_form(client, who):
    """Sign in as a browser does, with the CSRF secret that a sign-in changes."""
    page = client.get("/accounts/login/").content.decode()
    sent = {"login": who.email, "password": PASSWORD, "csrfmiddlewaretoken": _csrf(page)}
    assert client.post("/accounts/login/", sent)["Location"] == "/manage"


def _csrf(page):
    return page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]


def test_a_page_that_an_account_left_open_takes_nothing_once_another_has_signed_in():
    one, other = (account(f"{name}@harbour.example", password=PASSWORD) for name in ("one", "other"))
    client = Client(enforce_csrf_checks=True)
    _sign_in_by_the_form(client, one)
    left_open = _csrf(client.get("/manage/tokens").content.decode())
    Session.objects.all().delete()
    _sign_in_by_the_form(client, other)
    Session.objects.all().delete()
    sent = client.post("/manage/tokens", {"name": "laptop of Ada", "csrfmiddlewaretoken": left_open})
    assert sent.status_code == 403


def test_a_browser_cannot_say_of_itself_that_a_form_was_an_accounts(owner):
    client = Client()
    client.cookies["author"] = f"{owner.pk}:forged"
    client.post("/manage/tokens", {"name": "laptop of Ada", "lifetime": "30", "access": "read"})
    assert not _kept_forms()


def test_likely_duplicates_reveal_no_unpublished_listing_of_others(browser, draft, owner, reviewer):
    room, stranger = "/manage/companies/suggest", signed_in(account("stranger@harbour.example"))
    for asked in ({"name": "tidal works"}, {"website": "https://www.tidal.example/about"}):
        assert b"already be listed" not in stranger.get(room, asked).content
        assert b"not public" in browser.get(room, asked).content
    made = {"name": "Tidal Works", "website": "https://tidal.example", "type": "cooperative"}
    assert stranger.post("/manage/companies/new", made).status_code == 302
    twins = signed_in(reviewer).get("/review/companies/tidal-works-2").content
    assert f'href="/review/companies/{draft}"' in twins.decode()
    workflow.submit_company(owner.actor("web"), draft)
    workflow.approve_company(reviewer.actor("web"), draft)
    assert f"/companies/{draft}/claim" in stranger.get(room, {"name": "tidal works"}).content.decode()


def test_invitations_are_limited(browser, draft, monkeypatch, django_capture_on_commit_callbacks):
    moment = now()
    monkeypatch.setattr(invitations, "now", lambda: moment)  # the hour does not turn meanwhile
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(25):
            browser.post(f"/manage/companies/{draft}/invite", {"email": "friend@harbour.example"})
    assert len(letters.to("friend@harbour.example")) == 10
    assert b"10 invitations to unpublished listings today" in browser.get("/manage").content


def test_a_name_of_two_lines_stops_no_mail(browser, draft, owner, reviewer, django_capture_on_commit_callbacks):
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        browser.post(f"/manage/companies/{draft}/edit/basics", {**BASICS, "name": "Tidal\nWorks"})
        workflow.submit_company(owner.actor("web"), draft)
        answer = signed_in(reviewer).post(f"/review/companies/{draft}/decide", {"do": "approve"})
    assert answer.status_code == 302
    assert "[Muniment] Tidal Works: approved" in [subject for subject, _ in letters.to(owner.email)]
