"""What people do with their account on the pages is in its security log, and the important events are mailed."""

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.test import Client, TestCase

from make.accounts import PASSWORD, Letters, account
from make.apps import App
from make.declared import declared
from make.events import events_of
from muniment.accounts import tokens
from muniment.accounts.models import Account, SecurityEvent
from muniment.accounts.security import mailing, origin, signals
from muniment.accounts.security.events import Event, facts_of
from muniment.accounts.security.log import record
from muniment.kernel.actor import COMMAND, SCOPES

ME = "owner@harbour.example"
NEXT = "other@harbour.example"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"


@pytest.fixture
def owner():
    return account(ME, password=PASSWORD)


def sign_in(client=None, password=PASSWORD, email=ME):
    client = client or Client(headers={"user-agent": FIREFOX})
    client.post("/accounts/login/", {"login": email, "password": password})
    return client


def totp(secret):
    counter = next(iter(yield_hotp_counters_from_time()))
    return format_hotp_value(hotp_value(secret, counter))


def test_a_sign_in_says_how_and_from_where(owner):
    sign_in()
    event = SecurityEvent.objects.get(account=owner, event=Event.SIGNED_IN)
    assert (event.detail, event.address, event.agent) == ({"method": ["password"]}, "127.0.0.1", FIREFOX)
    assert not event.is_audited


def test_only_a_sign_in_from_a_new_browser_is_mailed(owner):
    letters, known = Letters(), Client(headers={"user-agent": FIREFOX})
    sign_in(known)
    known.get("/manage")  # the browser gets the cookie that outlives the session
    assert letters.to(ME) == [], "the first sign-in of all tells nothing new"
    known.post("/accounts/logout/")
    sign_in(known)
    assert letters.to(ME) == []
    sign_in()
    [(subject, text)] = letters.to(ME)
    assert subject == "[Muniment] New sign-in to your account"
    assert "Firefox on Linux" in text
    assert "IP address: 127.0.0.1" in text
    assert "/accounts/password/change/" in text
    assert "/manage/security" in text


def test_failed_sign_ins_are_bounded_however_often_a_stranger_tries(owner):
    for _ in range(100):
        signals._refused(owner, ME, "password")
        signals._refused(None, "unknown@harbour.example", "password")
    rows = SecurityEvent.objects.filter(event=Event.SIGN_IN_FAILED)
    attempts = [each.detail["attempts"] for each in rows.order_by("pk")]
    assert attempts == [*range(1, 11), 20, 40, 80]
    assert {(each.account_id, each.actor_id) for each in rows} == {(owner.pk, None)}


def test_wrong_passwords_codes_and_factors_are_failures_of_the_account(owner):
    sign_in(password="wrong")
    sign_in(password="wrong", email="unknown@harbour.example")
    client, letters = Client(), Letters()
    client.post("/accounts/login/code/", {"email": ME})
    assert letters.to(ME)
    client.post("/accounts/login/code/confirm/", {"code": "WRONGCODE"})
    client = Client()
    client.post("/accounts/password/reset/", {"email": ME})
    client.post("/accounts/password/reset/confirm/", {"code": "WRONGCODE"})
    rows = SecurityEvent.objects.filter(event=Event.SIGN_IN_FAILED).order_by("pk")
    assert [each.detail["method"] for each in rows] == ["password", "code", "reset code"]


def test_a_second_factor_is_recorded_from_its_addition_to_its_end(owner):
    client, letters = sign_in(), Letters()
    secret = client.get("/accounts/2fa/totp/activate/").context["form"].secret
    with_commit(lambda: client.post("/accounts/2fa/totp/activate/", {"code": totp(secret)}))
    other = sign_in()
    other.post("/accounts/2fa/authenticate/", {"code": "000000"})
    recovery = client.get("/accounts/2fa/recovery-codes/").content.decode()
    code = recovery.partition('id="recovery_codes">')[2].split()[0]
    other.post("/accounts/2fa/authenticate/", {"code": code})
    client.post("/accounts/2fa/totp/deactivate/")
    seen = events_of(owner)
    assert SecurityEvent.objects.get(account=owner, event=Event.FACTOR_ADDED).detail == {"factor": "totp"}
    assert [each for each in seen if each not in {"signed_in", "reauthenticated"}] == [
        "factor_added",
        "recovery_codes_created",
        "sign_in_failed",
        "recovery_code_used",
        "factor_removed",
        "factor_removed",
    ]
    last = SecurityEvent.objects.filter(account=owner, event=Event.SIGNED_IN).order_by("-pk").first()
    assert last.detail == {"method": ["password", "second factor"]}
    told = [subject for subject, _ in letters.to(ME)]
    assert "[Muniment] A second factor was added to your account" in told
    assert "[Muniment] A second factor was removed from your account" in told
    assert secret not in str(letters.to(ME)) + str(list(SecurityEvent.objects.values_list("detail", flat=True)))
    assert code not in str(letters.to(ME))


def with_commit(act):
    """Run *act* with its callbacks after the commit, which the transaction around a test would hold back."""
    with TestCase.captureOnCommitCallbacks(execute=True):
        act()


def test_a_changed_password_is_recorded_and_mailed(owner):
    client, letters = sign_in(), Letters()
    new = PASSWORD + "!"
    client.post("/accounts/password/change/", {"oldpassword": PASSWORD, "password1": new, "password2": new})
    assert events_of(owner) == ["signed_in", "password_changed"]
    [(subject, text)] = letters.to(ME)
    assert subject == "[Muniment] Your password was changed"
    assert new not in text


def test_a_changed_password_says_which_tokens_and_apps_still_work(owner):
    client, letters = sign_in(), Letters()
    App().connect(client)
    tokens.create_token(owner.actor("web"), "laptop of Ada", permitted=SCOPES)
    gone = tokens.create_token(owner.actor("web"), "lost phone", permitted=SCOPES)
    tokens.revoke_token(owner.actor("web"), gone.row.pk)
    new = PASSWORD + "!"
    sent = client.post("/accounts/password/change/", {"oldpassword": PASSWORD, "password1": new, "password2": new})
    text = next(text for subject, text in letters.to(ME) if "password was changed" in subject)
    assert "These still work, because a new password doesn't end them:" in text
    assert "- laptop of Ada" in text
    assert "- Harbour Agent" in text
    assert "lost phone" not in text
    assert "/manage/tokens" in text
    page = client.get(sent["Location"]).content.decode()
    assert "2 tokens and apps still work with your account" in page
    assert '<a href="/manage/tokens">Review your tokens and apps</a>' in page


def test_a_password_set_by_a_mailed_code_says_it_too_and_without_any_nothing_is_said(owner):
    def reset(new):
        client = Client()
        client.post("/accounts/password/reset/", {"email": ME})
        client.post("/accounts/password/reset/confirm/", {"code": letters.code(ME)})
        client.post("/accounts/password/reset/complete/", {"password1": new, "password2": new})
        return next(text for subject, text in reversed(letters.to(ME)) if "was reset" in subject)

    letters = Letters()
    assert "These still work" not in reset(PASSWORD + "!")
    tokens.create_token(owner.actor("web"), "laptop of Ada", permitted=SCOPES)
    assert "- laptop of Ada" in reset(PASSWORD + "?")


def test_a_changed_address_is_mailed_to_the_former_and_the_new_one(owner):
    client, letters = sign_in(), Letters()
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    client.post("/accounts/email/", {"action_add": "", "email": NEXT})
    client.post("/accounts/confirm-email/", {"code": letters.code(NEXT)})
    owner.refresh_from_db()
    assert owner.email == NEXT
    event = SecurityEvent.objects.get(account=owner, event=Event.EMAIL_CHANGED)
    assert event.detail == {"from": ME, "to": NEXT}
    for address in (ME, NEXT):
        subject, text = letters.to(address)[-1]
        assert subject == "[Muniment] Your email address was changed"
        assert ME in text
        assert "contact the operator" in text


def test_ended_sessions_are_recorded(owner):
    sign_in()
    client = sign_in()
    client.post("/accounts/sessions/")
    event = SecurityEvent.objects.get(account=owner, event=Event.SESSIONS_ENDED)
    assert event.detail == {"sessions": 1}


def test_a_new_account_has_its_first_events():
    letters, client = Letters(), Client()
    client.post("/accounts/signup/", {"email": NEXT, "password1": PASSWORD, "password2": PASSWORD})
    client.post("/accounts/confirm-email/", {"code": letters.code(NEXT)})
    assert events_of(Account.objects.get(email=NEXT)) == ["account_created", "signed_in"]
    assert letters.to(NEXT)[1:] == [], "only the code"


def test_an_account_gets_few_mails_about_one_kind_of_event(owner):
    letters = Letters()
    for _ in range(8):
        record(Event.OWNER_INVITED, account=owner)
    record(Event.PASSWORD_CHANGED, account=owner)
    subjects = [subject for subject, _ in letters.to(ME)]
    assert subjects.count("[Muniment] Owner invited") == mailing.SENT_A_DAY
    assert subjects.count("[Muniment] Your password was changed") == 1, "another kind has a bound of its own"
    last = [text for subject, text in letters.to(ME) if subject == "[Muniment] Owner invited"]
    assert ["further events" in text for text in last] == [False] * 4 + [True]
    assert events_of(owner).count("owner_invited") == 8, "the log has all of them"


def test_a_mail_names_nothing_of_another_account(owner):
    letters, other = Letters(), account("operator@harbour.example", role="operator")
    with origin.at("203.0.113.9", FIREFOX):
        record(Event.ROLE_CHANGED, account=owner, actor=other.actor("web"), detail={"was": "owner", "role": "reviewer"})
    [(_, text)] = letters.to(ME)
    assert "203.0.113.9" not in text
    assert other.email not in text
    assert "By: An operator or reviewer" in text


def test_a_mail_about_a_listing_names_it_and_leads_to_it(owner, settings):
    settings.BASE_URL = "https://registry.example"
    letters = Letters()
    subject = "companies/harbour"
    record(Event.OWNERSHIP_GAINED, account=owner, actor=COMMAND, subject=subject, name="Harbour Commons")
    detail = {"email": NEXT}
    record(Event.OWNER_INVITED, account=owner, subject=subject, name="Harbour Commons", detail=detail)
    (gained, text), (invited, reaction) = letters.to(ME)
    assert gained == "[Muniment] You're now an owner of Harbour Commons"
    assert invited == f"[Muniment] You invited {NEXT} to co-own Harbour Commons"
    assert "Listing: Harbour Commons\n" in text
    assert f"Account: {ME}\n" in text
    assert "By: the operator, on the command line\n" in text
    assert "Open the listing: https://registry.example/manage/companies/harbour\n" in text
    assert "1. See who owns the listing: https://registry.example/manage/companies/harbour\n" in reaction
    assert "Open your security log: https://registry.example/manage/security\n" in text


def test_a_mail_about_no_invitation_begins_its_steps_with_the_password(owner):
    letters = Letters()
    record(Event.PASSWORD_CHANGED, account=owner)
    ((_, text),) = letters.to(ME)
    assert "1. Change your password: " in text


def test_only_a_mail_about_the_password_names_what_still_works(owner):
    letters = Letters()
    tokens.create_token(owner.actor("web"), "laptop of Ada", permitted=SCOPES)
    record(Event.OWNER_INVITED, account=owner)
    record(Event.PASSWORD_CHANGED, account=owner)
    named = {subject: "- laptop of Ada" in text for subject, text in letters.to(ME)}
    assert named["[Muniment] Owner invited"] is False
    assert named["[Muniment] Your password was changed"] is True


def test_the_detail_after_an_empty_one_is_told(owner):
    detail = {"email": "", "options": [], "reason": None, "was": "owner"}
    event = record(Event.ROLE_CHANGED, account=owner, detail=detail)
    assert facts_of(event) == [("Former role", "Owner")]


def test_a_mail_says_whom_to_contact(owner):
    letters = Letters()
    with declared(registry={"contact": "desk@harbour.example"}):
        record(Event.PASSWORD_CHANGED, account=owner)
    ((_, text),) = letters.to(ME)
    assert "contact the operator of this registry (desk@harbour.example)." in text
