"""Confirming an identity: what needs it, which ways there are, and that no way leads around it."""

import re
import time
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value, yield_hotp_counters_from_time
from allauth.usersessions.models import UserSession
from django.conf import settings as django_settings
from django.core.cache import cache
from django.test import Client

from make.accounts import PASSWORD, Letters, account, age, sign_in, signed_in
from make.apps import App, sent_back
from muniment.accounts import tokens
from muniment.accounts.models import Account, PersonalToken
from muniment.accounts.security.models import SecurityEvent
from muniment.accounts.sessions import Key, SessionStore
from muniment.kernel.problems import Forbidden
from muniment.oauth.models import AuthorizationCode
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Invitation, Ownership

pytestmark = pytest.mark.django_db
EMAIL, BARE = "owner@harbour.example", "bare@harbour.example"
CONFIRM = "/accounts/reauthenticate/"
BY_EMAIL = "/accounts/reauthenticate/email/"
BASICS = {"name": "Tidal Works", "type": "cooperative", "website": "https://tidal.example", "description": "Tides."}
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
TOKEN = {"name": "laptop of Ada", "lifetime": "30", "access": "read"}


@pytest.fixture(autouse=True)
def _clean(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    cache.clear()


@pytest.fixture
def owner():
    return account(EMAIL, password=PASSWORD)


@pytest.fixture
def browser(owner):
    """Return a browser whose sign-in is 16 minutes old."""
    client = signed_in(owner)
    age(client)
    return client


@pytest.fixture
def listing(owner):
    return listings.create_company(owner.actor("web"), CompanyChange(BASICS)).slug


def totp(secret=SECRET):
    return format_hotp_value(hotp_value(secret, next(iter(yield_hotp_counters_from_time()))))


def asked(answer):
    """Return the page that a request is sent to for a confirmation, and where that leads back to."""
    assert answer.status_code == 302, answer.content.decode()[:500]
    where = urlsplit(answer["Location"])
    assert where.path.startswith(("/accounts/reauthenticate/", "/accounts/2fa/")), answer["Location"]
    assert where.netloc == ""
    return where.path, parse_qs(where.query)["next"][0]


def confirm(browser, answer):
    """Enter the password where *answer* leads; return the page after it."""
    return browser.post(answer["Location"], {"password": PASSWORD})


# ---------------------------------------------------------------------- what needs it


def sensitive(slug):
    """Return the forms that open or give away an account, and where the person is afterwards."""
    return [
        ("/manage/tokens", TOKEN, "/manage/tokens"),
        ("/manage/tokens/1/regenerate", {}, "/manage/tokens"),
        (f"/manage/companies/{slug}/invite", {"email": "friend@harbour.example"}, f"/manage/companies/{slug}"),
        (f"/manage/companies/{slug}/leave", {}, f"/manage/companies/{slug}/leave"),
        ("/accounts/data/", {"do": "delete", "confirm": EMAIL}, "/accounts/data/"),
        ("/accounts/data/archive", {}, "/accounts/data/"),
        ("/accounts/email/", {"action_add": "", "email": "new@harbour.example"}, "/accounts/email/"),
        ("/accounts/email/", {"action_primary": "", "email": EMAIL}, "/accounts/email/"),
        ("/accounts/email/", {"action_remove": "", "email": EMAIL}, "/accounts/email/"),
        ("/accounts/2fa/totp/activate/", {"code": "123456"}, "/accounts/2fa/totp/activate/"),
        ("/accounts/2fa/webauthn/add/", {"name": "key"}, "/accounts/2fa/webauthn/add/"),
        ("/accounts/2fa/recovery-codes/generate/", {}, "/accounts/2fa/recovery-codes/generate/"),
    ]


def state_of(owner):
    owner.refresh_from_db()
    return (
        PersonalToken.objects.count(),
        [row.digest for row in PersonalToken.objects.order_by("pk")],
        Invitation.objects.count(),
        Ownership.objects.count(),
        owner.delete_at,
        list(EmailAddress.objects.order_by("pk").values_list("email", "primary")),
        Authenticator.objects.count(),
        AuthorizationCode.objects.count(),
    )


@pytest.mark.parametrize("number", range(12))
def test_what_opens_or_gives_away_an_account_needs_a_confirmed_identity(browser, owner, listing, number):
    tokens.create_token(owner.actor("web"), "old", permitted=["companies:read"])
    path, form, back = sensitive(listing)[number]
    before = state_of(owner)
    assert asked(browser.post(path, form)) == (CONFIRM, back)
    assert state_of(owner) == before
    shown = browser.get(f"{CONFIRM}?{urlencode({'next': back})}")
    assert "Confirm it's you" in shown.content.decode()
    done = confirm(browser, browser.post(path, form))
    assert done.status_code in {200, 302}
    assert urlsplit(done.get("Location", back)).path in {back, "/accounts/confirm-email/", "/accounts/2fa/"}


@pytest.mark.parametrize(
    "path",
    ["/accounts/2fa/totp/activate/", "/accounts/2fa/webauthn/add/", "/accounts/2fa/recovery-codes/generate/"],
)
def test_pages_that_show_or_take_a_secret_need_it_to_be_opened(browser, path):
    assert asked(browser.get(path)) == (CONFIRM, path)


def test_factors_are_removed_and_shown_only_after_a_confirmation(browser, owner):
    TOTP.activate(owner, SECRET)
    RecoveryCodes.activate(owner)
    for path in ("totp/deactivate/", "recovery-codes/", "recovery-codes/download/"):
        asked(browser.get(f"/accounts/2fa/{path}"))
    asked(browser.post("/accounts/2fa/totp/deactivate/"))
    assert Authenticator.objects.filter(type="totp").exists()


def test_an_account_without_a_password_sets_one_only_after_a_confirmation():
    owner = account()
    client = signed_in(owner)
    age(client)
    form = {"password1": PASSWORD, "password2": PASSWORD}
    for answer in (client.get("/accounts/password/set/"), client.post("/accounts/password/set/", form)):
        assert asked(answer) == (BY_EMAIL, "/accounts/password/set/")
    owner.refresh_from_db()
    assert not owner.has_usable_password()


def test_a_sign_in_counts_for_fifteen_minutes(owner):
    client = Client()
    client.post("/accounts/login/", {"login": EMAIL, "password": PASSWORD})
    age(client, 14.8)
    assert b"mun_pat_" in client.post("/manage/tokens", TOKEN).content
    age(client, 0.4)
    asked(client.post("/manage/tokens", TOKEN))


def test_a_confirmation_counts_for_fifteen_minutes(browser):
    done = confirm(browser, browser.post("/manage/tokens", TOKEN))
    assert done["Location"] == "/manage/tokens"
    assert b"mun_pat_" in browser.post("/manage/tokens", TOKEN).content
    age(browser, 14.8)
    assert b"mun_pat_" in browser.post("/manage/tokens", TOKEN).content
    age(browser, 0.4)
    asked(browser.post("/manage/tokens", TOKEN))


def test_everything_else_needs_none(browser, owner, listing):
    held = tokens.create_token(owner.actor("web"), "old", permitted=["companies:read"]).row
    for path in ("/manage", "/manage/tokens", "/accounts/email/", "/accounts/2fa/", "/accounts/data/"):
        assert browser.get(path).status_code == 200, path
    assert browser.post(f"/manage/tokens/{held.pk}/revoke")["Location"] == "/manage/tokens"
    owner.delete_at = held.created_at
    owner.save()
    assert browser.post("/accounts/data/", {"do": "keep"})["Location"] == "/accounts/data/"
    edited = browser.post(f"/manage/companies/{listing}/edit/basics", {**BASICS, "name": "Tidal Works 2"})
    assert "/reauthenticate/" not in edited.get("Location", "")


def test_the_rules_refuse_an_unconfirmed_session_whatever_page_asks(owner):
    from dataclasses import replace

    actor = replace(owner.actor("web"), confirmed=False)
    with pytest.raises(Forbidden, match="Confirm that it's you first"):
        tokens.create_token(actor, "laptop", permitted=["companies:read"])
    assert not PersonalToken.objects.exists()


# ---------------------------------------------------------------------- nothing typed is lost


def test_the_input_for_a_token_is_there_after_the_confirmation(browser):
    sent = browser.post("/manage/tokens", TOKEN)
    assert b"We kept what you entered." in browser.get(sent["Location"]).content
    page = browser.get(confirm(browser, sent)["Location"]).content.decode()
    assert 'value="laptop of Ada"' in page
    assert "Nothing was changed yet" in page
    assert not PersonalToken.objects.exists()
    assert 'value="laptop of Ada"' not in browser.get("/manage/tokens").content.decode()


def test_two_tabs_lose_nothing(browser, listing):
    invitation = browser.post(f"/manage/companies/{listing}/invite", {"email": "friend@harbour.example"})
    token = browser.post("/manage/tokens", TOKEN)
    assert confirm(browser, token)["Location"] == "/manage/tokens"
    assert 'value="laptop of Ada"' in browser.get("/manage/tokens").content.decode()
    assert confirm(browser, invitation)["Location"] == f"/manage/companies/{listing}"
    assert 'value="friend@harbour.example"' in browser.get(f"/manage/companies/{listing}").content.decode()


def test_a_new_address_is_added_once_the_password_is_entered(browser):
    letters = Letters()
    done = confirm(browser, browser.post("/accounts/email/", {"action_add": "", "email": "new@harbour.example"}))
    assert done["Location"] == "/accounts/confirm-email/"
    assert browser.post("/accounts/confirm-email/", {"code": letters.code("new@harbour.example")}).status_code == 302
    assert Account.objects.get().email == "new@harbour.example"


def test_a_form_that_was_left_behind_is_not_submitted_by_a_later_confirmation(browser, owner):
    """A form that another person left in the session is not submitted by the owner's next confirmation."""
    TOTP.activate(owner, SECRET)
    browser.post("/accounts/2fa/totp/deactivate/")
    done = confirm(browser, browser.get("/accounts/2fa/totp/deactivate/"))
    assert done["Location"] == "/accounts/2fa/totp/deactivate/"
    assert Authenticator.objects.filter(type="totp").exists()


def test_kept_input_is_never_shown_to_another_account(browser, owner):
    browser.post("/manage/tokens", TOKEN)
    sign_in(browser, account("other@harbour.example"))
    assert "laptop of Ada" not in browser.get("/manage/tokens").content.decode()


# ---------------------------------------------------------------------- connecting an app


def test_an_agents_first_connection_asks_once(owner):
    app, client = App(), Client()
    sent = client.get(app.address())
    assert urlsplit(sent["Location"]).path == "/accounts/login/"
    where = client.post(sent["Location"], {"login": EMAIL, "password": PASSWORD})["Location"]
    assert where == app.address()
    assert client.post(where, {"answer": "allow", "access": "all"}).status_code == 303


def test_consent_to_write_needs_a_confirmed_identity_and_the_request_continues_unchanged(browser):
    app = App()
    address = app.address(state="a b&c=é", scope="companies:read companies:write")
    assert "For full access, we ask you to confirm" in browser.get(address).content.decode()
    sent = browser.post(address, {"answer": "allow", "access": "all"})
    assert asked(sent) == (CONFIRM, address)
    assert not AuthorizationCode.objects.exists()
    where = confirm(browser, sent)["Location"]
    assert where == address
    assert "Nothing was changed yet" in browser.get(where).content.decode()
    back = sent_back(browser.post(where, {"answer": "allow", "access": "all"}))
    assert back["state"] == "a b&c=é"
    assert app.redeem(back["code"]).json()["scope"] == "companies:read companies:write"


@pytest.mark.parametrize(("scope", "access"), [("companies:read profile:read", "all"), (None, "read")])
def test_consent_to_read_needs_none(browser, scope, access):
    answer = browser.post(App().address(scope=scope), {"answer": "allow", "access": access})
    assert "code" in sent_back(answer)


def test_declining_needs_none(browser):
    assert sent_back(browser.post(App().address(), {"answer": "deny"}))["error"] == "access_denied"


# ---------------------------------------------------------------------- the ways


def test_an_account_with_factors_uses_any_of_them(browser, owner):
    TOTP.activate(owner, SECRET)
    codes = RecoveryCodes.activate(owner).get_unused_codes()
    page = browser.get(f"{CONFIRM}?next=/manage/tokens").content.decode()
    assert '/accounts/2fa/reauthenticate/?next=%2Fmanage%2Ftokens"' in page
    assert "Email me a code" not in page
    for code in (totp(), codes[0]):
        asked(browser.post("/manage/tokens", TOKEN))
        done = browser.post("/accounts/2fa/reauthenticate/?next=/manage/tokens", {"code": code})
        assert done["Location"] == "/manage/tokens"
        assert b"mun_pat_" in browser.post("/manage/tokens", TOKEN).content
        age(browser)
    wrong = browser.post("/accounts/2fa/reauthenticate/?next=/manage/tokens", {"code": codes[0]})
    assert wrong.status_code == 200
    assert 'class="fault"' in wrong.content.decode()


@pytest.fixture
def bare():
    """Return a browser of an account that has neither a password nor a factor, after 16 minutes."""
    client = signed_in(account(BARE))
    age(client)
    return client


def test_an_account_with_nothing_else_is_mailed_a_code(bare):
    letters = Letters()
    sent = bare.post("/manage/tokens", TOKEN)
    first = bare.get(sent["Location"])
    assert asked(first) == (BY_EMAIL, "/manage/tokens")
    assert not letters.to(BARE)
    page = bare.post(first["Location"], {"do": "send"})
    assert page["Location"] == f"{BY_EMAIL}?next=%2Fmanage%2Ftokens"
    assert BARE in bare.get(page["Location"]).content.decode()
    code = letters.code(BARE)
    assert "confirmation code" in letters.to(BARE)[-1][0]
    assert bare.post(page["Location"], {"code": code})["Location"] == "/manage/tokens"
    assert b"mun_pat_" in bare.post("/manage/tokens", TOKEN).content


def test_a_mailed_code_works_once_and_three_wrong_ones_end_it(bare):
    letters = Letters()
    bare.post(BY_EMAIL, {"do": "send"})
    code = letters.code(BARE)
    for _ in range(3):
        bare.post(BY_EMAIL, {"code": "WRONG"})
    assert bare.post(BY_EMAIL, {"code": code})["Location"] == BY_EMAIL
    assert SecurityEvent.objects.filter(event="sign_in_failed", account__email=BARE).count() == 3
    asked(bare.post("/manage/tokens", TOKEN))
    newer = letters.code(BARE)
    assert bare.post(BY_EMAIL, {"code": newer})["Location"] == "/manage"
    age(bare)
    cache.clear()
    bare.post(BY_EMAIL, {"code": newer})
    asked(bare.post("/manage/tokens", TOKEN))


def test_a_mailed_code_expires(bare):
    letters = Letters()
    bare.post(BY_EMAIL, {"do": "send"})
    session = session_of(bare)
    session["step_up_code"] = {**session["step_up_code"], "at": time.time() - 181}
    session.save()
    bare.post(BY_EMAIL, {"code": letters.code(BARE)})
    asked(bare.post("/manage/tokens", TOKEN))


def test_a_mailed_code_of_another_account_is_worth_nothing(bare):
    letters = Letters()
    bare.post(BY_EMAIL, {"do": "send"})
    planted = session_of(bare)["step_up_code"]
    other = signed_in(account("other@harbour.example"))
    age(other)
    session = session_of(other)
    session["step_up_code"] = planted
    session.save()
    other.post(BY_EMAIL, {"code": letters.code(BARE)})
    asked(other.post("/manage/tokens", TOKEN))


def test_an_account_with_a_password_cannot_have_a_code_mailed(browser):
    letters = Letters()
    assert urlsplit(browser.post(BY_EMAIL, {"do": "send"})["Location"]).path == CONFIRM
    assert not letters.to(EMAIL)
    assert urlsplit(browser.get("/accounts/reauthenticate/provider/")["Location"]).path == CONFIRM


# ---------------------------------------------------------------------- attacks


def session_of(client):
    return SessionStore(Key.of(client.cookies[django_settings.SESSION_COOKIE_NAME].value))


def test_guessing_is_limited(browser, bare):
    for client, path, form in ((browser, CONFIRM, {"password": "wrong"}), (bare, BY_EMAIL, {"do": "send"})):
        answers = [client.post(path, form) for _ in range(12)]
        assert answers[-1].status_code == 429
    late = browser.post(CONFIRM, {"password": PASSWORD})
    assert late.status_code == 429
    asked(browser.post("/manage/tokens", TOKEN))


def test_mails_with_codes_are_limited(bare):
    letters = Letters()
    for _ in range(8):
        bare.post(BY_EMAIL, {"do": "send"})
    assert len(letters.to(BARE)) == 3


def test_a_copied_cookie_is_not_confirmed_with_its_owner(browser, owner):
    """The owner's confirmation gives the session another secret; the copy is signed out."""
    UserSession.objects.create(user=owner, session_key=session_of(browser).session_key, ip="192.0.2.1")
    copy = Client()
    copy.cookies["sessionid"] = browser.cookies["sessionid"].value
    assert copy.get("/manage").status_code == 200
    confirm(browser, browser.post("/manage/tokens", TOKEN))
    assert browser.cookies["sessionid"].value != copy.cookies["sessionid"].value
    assert browser.get("/manage").status_code == 200
    assert copy.get("/manage").status_code == 302
    assert UserSession.objects.get().session_key == session_of(browser).session_key


def test_a_request_on_its_way_with_the_former_cookie_does_not_remove_the_new_one(browser):
    late = Client()
    late.cookies["sessionid"] = browser.cookies["sessionid"].value
    confirm(browser, browser.post("/manage/tokens", TOKEN))
    answer = late.get("/manage")
    assert answer.status_code == 302
    assert "sessionid" not in answer.cookies


def test_another_session_of_the_account_is_not_confirmed_with_it(browser, owner):
    elsewhere = signed_in(owner)
    age(elsewhere)
    confirm(browser, browser.post("/manage/tokens", TOKEN))
    asked(elsewhere.post("/manage/tokens", TOKEN))


def test_a_confirmation_of_another_account_is_worth_nothing(browser, owner):
    """Another account that signs in to the same browser does not inherit it, and neither does a planted record."""
    confirm(browser, browser.post("/manage/tokens", TOKEN))
    records = session_of(browser)["account_authentication_methods"]
    other = signed_in(account("other@harbour.example"))
    age(other)
    session = session_of(other)
    session["account_authentication_methods"] = records
    session["account_authentication_methods_user"] = str(owner.pk)
    session.save()
    asked(other.post("/manage/tokens", TOKEN))


def test_the_password_of_another_account_confirms_nothing(browser):
    account("other@harbour.example", password=PASSWORD + " of another")
    answer = browser.post(CONFIRM, {"password": PASSWORD + " of another"})
    assert answer.status_code == 200
    asked(browser.post("/manage/tokens", TOKEN))


def test_a_session_of_an_earlier_version_confirms_and_goes_on(browser):
    session = session_of(browser)
    for name in ("account_authentication_methods", "account_authentication_methods_user"):
        del session[name]
    session.save()
    assert browser.get("/manage").status_code == 200
    assert confirm(browser, browser.post("/manage/tokens", TOKEN))["Location"] == "/manage/tokens"
    assert b"mun_pat_" in browser.post("/manage/tokens", TOKEN).content


@pytest.mark.parametrize("at", [None, "now", True, [], float("nan"), -3_600, 3_600])
def test_a_record_of_no_time_or_of_the_future_is_worth_nothing(browser, at):
    session = session_of(browser)
    moment = time.time() + at if type(at) is int else at
    session["account_authentication_methods"] = [{"method": "password", "at": moment}]
    session.save()
    asked(browser.post("/manage/tokens", TOKEN))


@pytest.mark.parametrize(
    "where", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "http:evil.example"]
)
def test_no_way_leads_to_another_site(browser, bare, where):
    letters = Letters()
    query = urlencode({"next": where})
    assert browser.post(f"{CONFIRM}?{query}", {"password": PASSWORD, "next": where})["Location"] == "/manage"
    page = bare.post(f"{BY_EMAIL}?{query}", {"do": "send", "next": where})["Location"]
    assert page == BY_EMAIL
    done = bare.post(f"{BY_EMAIL}?{query}", {"code": letters.code(BARE), "next": where})
    assert done["Location"] == "/manage"


def test_no_other_site_can_confirm(owner):
    client = signed_in(owner, enforce_csrf_checks=True)
    age(client)
    for path in (CONFIRM, BY_EMAIL, "/accounts/2fa/reauthenticate/", "/accounts/reauthenticate/provider/"):
        assert client.post(path, {"password": PASSWORD, "do": "send"}).status_code == 403


def test_a_visitor_is_sent_to_sign_in():
    for path in (CONFIRM, BY_EMAIL, "/accounts/reauthenticate/provider/"):
        assert urlsplit(Client().post(path, {"password": PASSWORD})["Location"]).path == "/accounts/login/"


def test_a_confirmation_is_in_the_security_log(browser, owner):
    confirm(browser, browser.post("/manage/tokens", TOKEN))
    [entry] = SecurityEvent.objects.filter(event="reauthenticated")
    assert (entry.account_id, entry.detail) == (owner.pk, {"method": "password"})


@pytest.mark.parametrize("path", [CONFIRM, BY_EMAIL])
def test_the_pages_are_plain_forms(browser, bare, path):
    client = browser if path == CONFIRM else bare
    html = client.get(f"{path}?next=/manage/tokens").content.decode()
    assert re.search(r'<form method="post" action="[^"]+"', html)
    assert '<input type="hidden" name="next" value="/manage/tokens">' in html
