"""Accounts on the operator's pages: each action is that of the command, audited, and asks for a confirmed identity."""

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import settings

from make.accounts import account, age, signed_in
from muniment.accounts.models import Account, SecurityEvent
from muniment.accounts.operations import get_account, set_active
from muniment.accounts.operations import search_accounts as search
from muniment.accounts.sessions import Key
from muniment.kernel.problems import Forbidden, NotFound

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator():
    return account("operator@harbour.example", "operator")


@pytest.fixture
def browser(operator):
    return signed_in(operator)


@pytest.fixture
def other():
    return account("tidal@harbour.example")


def events():
    return list(SecurityEvent.objects.filter(is_audited=True).order_by("-pk").values_list("event", "actor__email"))


def test_accounts_are_found_by_words_role_and_state(browser, other, operator):
    set_active(operator.actor("web"), other.email, active=False)
    for query in ("q=TIDAL", "role=owner", "state=disabled", "q=tidal&role=owner&state=disabled"):
        page = browser.get(f"/operate/accounts?{query}").content.decode()
        assert f'href="/operate/accounts/{other.pk}"' in page, query
        assert f'href="/operate/accounts/{operator.pk}"' not in page, query
    assert "No account matches “nothing”" in browser.get("/operate/accounts?q=nothing").content.decode()
    assert b"No accounts found" in browser.get("/operate/accounts?role=reviewer").content
    assert browser.get("/operate/accounts?role=king").status_code == 400
    assert browser.get("/operate/accounts/987654321").status_code == 404


def test_an_account_is_created_for_a_role_and_a_taken_address_is_refused(browser):
    made = browser.post("/operate/accounts", {"email": "New@harbour.example", "role": "reviewer"})
    new = Account.objects.get(email="new@harbour.example")
    assert (made["Location"], new.role) == (f"/operate/accounts/{new.pk}", "reviewer")
    again = browser.post("/operate/accounts", {"email": "new@harbour.example", "role": "owner"})
    assert b"already has an account" in again.content
    assert b'value="new@harbour.example"' in again.content


def test_a_role_changes_and_is_audited(browser, other, operator):
    browser.post(f"/operate/accounts/{other.pk}/role", {"role": "reviewer"})
    other.refresh_from_db()
    assert other.role == "reviewer"
    assert events()[0] == ("role_changed", operator.email)
    browser.post(f"/operate/accounts/{other.pk}/role", {"role": "king"})
    assert b"Unknown role" in browser.get(f"/operate/accounts/{other.pk}").content


@pytest.mark.parametrize(
    ("action", "event"),
    [
        ("disable", "account_disabled"),
        ("enable", "account_enabled"),
        ("factors", "factor_removed"),
        ("sign-out", "sessions_ended"),
        ("delete", "account_deleted"),
    ],
)
def test_each_action_asks_first_and_is_audited(browser, other, operator, action, event):
    theirs = signed_in(other)
    assert theirs.get("/manage").status_code == 200
    secret = theirs.cookies[settings.SESSION_COOKIE_NAME].value
    UserSession.objects.create(user=other, ip="192.0.2.1", session_key=Key.of(secret), user_agent="")
    Authenticator.objects.create(user=other, type="totp", data={})
    if action == "enable":
        set_active(operator.actor("web"), other.email, active=False)
    before = events()
    asked = browser.get(f"/operate/accounts/{other.pk}/{action}")
    assert asked.status_code == 200
    assert other.email in asked.content.decode()
    assert events() == before
    browser.post(f"/operate/accounts/{other.pk}/{action}")
    assert events()[0] == (event, operator.email)
    other.refresh_from_db()
    assert other.is_active == (action not in {"disable", "delete"})
    assert (other.deleted_at is not None) == (action == "delete")
    assert Authenticator.objects.filter(user=other).exists() == (action not in {"factors", "delete"})
    assert UserSession.objects.filter(user=other).exists() == (action not in {"sign-out", "delete"})
    if action in {"disable", "sign-out", "delete"}:
        assert theirs.get("/manage").status_code == 302


def test_operators_neither_demote_nor_disable_themselves(browser, operator):
    page = browser.get(f"/operate/accounts/{operator.pk}").content.decode()
    assert f"/operate/accounts/{operator.pk}/disable" not in page
    browser.post(f"/operate/accounts/{operator.pk}/role", {"role": "owner"})
    browser.post(f"/operate/accounts/{operator.pk}/disable")
    operator.refresh_from_db()
    assert (operator.role, operator.is_active) == ("operator", True)
    assert b"This is your own account." in browser.get("/operate/accounts").content


def test_an_identity_that_is_not_confirmed_changes_nothing(browser, other):
    age(browser)
    for path, form in ((f"/operate/accounts/{other.pk}/role", {"role": "operator"}), ("/operate/accounts", {})):
        answer = browser.post(path, form)
        assert answer["Location"].startswith("/accounts/reauthenticate/"), path
    for method in (browser.get, browser.post):
        answer = method(f"/operate/accounts/{other.pk}/delete")
        assert answer["Location"].startswith("/accounts/reauthenticate/")
    other.refresh_from_db()
    assert (other.role, other.deleted_at) == ("owner", None)


def test_only_operators_list_and_read_accounts(other, operator):
    with pytest.raises(Forbidden):
        search(other.actor("web"))
    with pytest.raises(NotFound):
        get_account(operator.actor("web"), 987654321)
