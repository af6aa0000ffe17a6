"""What rests of a browser's session opens nothing, and sessions cycle, end and are listed as before."""

from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.test import Client

from make.accounts import PASSWORD, Letters, account
from muniment.accounts import sessions
from muniment.accounts.sessions import Key, SessionStore, sweep_sessions
from muniment.encryption import seal, unseal
from muniment.kernel import fairness
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest

WHO = "sailor@harbour.example"
pytestmark = pytest.mark.django_db


@pytest.fixture
def browser():
    account(WHO, password=PASSWORD)
    return sign(Client())


def sign(client):
    assert client.post("/accounts/login/", {"login": WHO, "password": PASSWORD})["Location"] == "/manage"
    return client


def cookie(client):
    return client.cookies["sessionid"].value


def is_in(client):
    return client.get("/accounts/email/").status_code == 200


@pytest.mark.requirement("secrets.at-rest")
def test_the_stored_key_is_no_cookie(browser):
    stored = Session.objects.get().session_key
    assert (stored, len(cookie(browser))) == (Key.of(cookie(browser)), 43)
    assert UserSession.objects.get().session_key == stored
    thief = Client()
    thief.cookies["sessionid"] = stored
    assert not is_in(thief)
    thief.cookies["sessionid"] = cookie(browser)
    assert is_in(thief)


@pytest.mark.parametrize("sent", ["", "x", "\x00" * 20, "é" * 40, "a" * 5_000])
def test_a_cookie_without_a_session_signs_no_account_in(browser, sent):
    stranger = Client()
    stranger.cookies["sessionid"] = sent
    assert stranger.get("/accounts/email/").status_code == 302


def test_a_key_from_before_keys_were_digests_opens_nothing(browser):
    """After the upgrade everybody signs in once more; the old rows are of no use to whoever has them."""
    Session.objects.update(session_key="oldoldoldoldoldoldoldoldoldold12")
    old = Client()
    old.cookies["sessionid"] = "oldoldoldoldoldoldoldoldoldold12"
    assert not is_in(old)


def test_signing_in_and_out_each_leave_the_key_before_dead(browser):
    first = cookie(browser)
    browser.post("/accounts/logout/")
    assert not Session.objects.filter(session_key=Key.of(first)).exists()
    sign(browser)
    late = Client()
    late.cookies["sessionid"] = first
    assert not is_in(late)
    assert cookie(browser) != first
    changed = {"oldpassword": PASSWORD, "password1": PASSWORD + "!", "password2": PASSWORD + "!"}
    second = cookie(browser)
    assert browser.post("/accounts/password/change/", changed).status_code == 302
    late.cookies["sessionid"] = second
    assert not is_in(late)


@pytest.mark.requirement("secrets.at-rest")
def test_session_data_is_encrypted(browser, settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"  # the test runner puts another in its place
    waiting, letters = Client(), Letters()
    waiting.post("/accounts/login/code/", {"email": WHO})
    row = Session.objects.get(session_key=Key.of(cookie(waiting)))
    remembered = SessionStore(row.session_key).load()
    assert letters.code(WHO).replace("-", "") in str(remembered).replace("-", "")
    assert unseal(row.session_data, "session").startswith(b"{")
    assert "login" not in row.session_data
    Session.objects.filter(pk=row.pk).update(session_data=seal(b"{}", "another purpose"))
    assert SessionStore(row.session_key).load() == {}


def test_other_sessions_can_be_ended(browser):
    other = sign(Client())
    assert is_in(other)
    assert browser.post("/accounts/sessions/").status_code == 302
    assert (is_in(browser), is_in(other)) == (True, False)
    assert UserSession.objects.count() == 1


def test_a_session_ended_elsewhere_is_left_out_of_the_list(browser):
    other = sign(Client())
    SessionStore().delete(Key.of(cookie(other)))
    browser.get("/accounts/sessions/")
    assert UserSession.objects.get().session_key == Key.of(cookie(browser))


def test_ended_sessions_are_swept(browser):
    sign(Client())
    Session.objects.exclude(session_key=Key.of(cookie(browser))).update(expire_date=now() - timedelta(days=1))
    assert sweep_sessions() == 1
    assert Session.objects.get().session_key == UserSession.objects.get().session_key == Key.of(cookie(browser))


@pytest.fixture
def limits():
    """The limits of a server that limits requests."""
    before = fairness.current()
    yield fairness.use(fairness.Fairness(rate=600, burst=100))
    fairness.use(before)


def start_visit(address="192.0.2.7"):
    return Client(REMOTE_ADDR=address).post("/manage/tokens", {"name": "typed"})


def test_visitors_of_an_address_start_few_sessions_and_others_are_not_refused(limits):
    statuses = [start_visit().status_code for _ in range(62)]
    assert statuses == [302] * 60 + [429] * 2
    assert Session.objects.count() == 60
    refused = start_visit()
    assert b"Too many visits were started from your network." in refused.content
    assert int(refused["Retry-After"]) <= 30
    assert "sessionid" not in refused.cookies
    assert start_visit("192.0.2.8").status_code == 302


def test_a_sign_in_is_no_visit(limits):
    account(WHO, password=PASSWORD)
    for _ in range(60):
        limits.visitor_sessions.take("192.0.2.7")
    assert is_in(sign(Client(REMOTE_ADDR="192.0.2.7")))


def test_the_session_of_a_visitor_lasts_two_hours_and_that_of_an_account_thirty_days(browser):
    start_visit()
    visitors, accounts = Session.objects.order_by("expire_date")
    assert abs(visitors.expire_date - now() - timedelta(hours=2)) < timedelta(minutes=1)
    assert abs(accounts.expire_date - now() - timedelta(days=30)) < timedelta(minutes=1)


def test_of_too_many_sessions_of_visitors_those_that_end_first_are_removed_and_no_accounts(browser, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_VISITOR_SESSIONS", 20)
    monkeypatch.setattr(sessions, "_COUNTED_EVERY", 1)
    own = Session.objects.get()
    Session.objects.update(expire_date=now() + timedelta(minutes=1))
    for _ in range(30):
        start_visit()
    assert Session.objects.filter(pk=own.pk).exists()
    assert 18 <= Session.objects.exclude(pk=own.pk).count() <= 21
    assert is_in(browser)


def test_a_visitor_stores_little():
    store = SessionStore()
    store["state"] = "x" * 8_000
    with pytest.raises(BadRequest, match="too long"):
        store.save()
    assert not Session.objects.exists()
