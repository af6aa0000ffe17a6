"""Pages that ask for a mailed code send another one: after half a minute, three times, and say when."""

import re
import time

import pytest
from django.test import Client

from make.accounts import PASSWORD, Letters, account
from make.pages import valid

pytestmark = pytest.mark.django_db
AGAIN = {"action": "resend"}


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"


@pytest.fixture
def clock(monkeypatch):
    """Let time pass for the codes: ``clock(31)`` half a minute."""
    passed = 0.0
    real = time.time

    def wait(seconds):
        nonlocal passed
        passed += seconds

    monkeypatch.setattr(time, "time", lambda: real() + passed)
    return wait


def sign_up(client):
    form = {"email": "new@harbour.example", "password1": PASSWORD, "password2": PASSWORD}
    client.post("/accounts/signup/", form)
    return "/accounts/confirm-email/", form["email"]


def sign_in_by_code(client):
    client.post("/accounts/login/code/", {"email": account("old@harbour.example").email})
    return "/accounts/login/code/confirm/", "old@harbour.example"


def forget_password(client):
    client.post("/accounts/password/reset/", {"email": account("old@harbour.example", password=PASSWORD).email})
    return "/accounts/password/reset/confirm/", "old@harbour.example"


@pytest.mark.parametrize("begin", [sign_up, sign_in_by_code, forget_password])
def test_a_code_is_sent_again_after_half_a_minute_and_only_the_new_one_works(begin, clock):
    client, letters = Client(), Letters()
    page, email = begin(client)
    html = client.get(page).content.decode()
    valid(html)
    assert "Send again" in html
    assert re.search(r"You can do that in \d+ seconds", html)
    first = letters.code(email)
    said = client.post(page, AGAIN, follow=True).content.decode()
    assert re.search(r"You can request another code in \d+ second", said)
    assert len(letters.to(email)) == 1
    clock(31)
    assert "You can do that in" not in client.get(page).content.decode()
    assert "We sent a new code." in client.post(page, AGAIN, follow=True).content.decode()
    second = letters.code(email)
    assert (len(letters.to(email)), first == second) == (2, False)
    clock(170)
    assert client.post(page, {"code": first}).status_code == 200
    assert client.post(page, {"code": second}).status_code == 302, "a new code lasts as long as the first one"


@pytest.mark.parametrize("begin", [sign_up, sign_in_by_code, forget_password])
def test_four_codes_are_sent_at_most(begin, clock):
    client, letters = Client(), Letters()
    page, email = begin(client)
    for _ in range(4):
        clock(31)
        client.post(page, AGAIN)
    assert len(letters.to(email)) == 4
    html = client.get(page).content.decode()
    assert "No more codes can be sent now" in html
    assert "Send again" not in html


def test_an_address_without_an_account_gets_no_further_mail(clock):
    client, letters = Client(), Letters()
    client.post("/accounts/password/reset/", {"email": "unknown@reef.example"})
    clock(31)
    assert (
        "We sent a new code." in client.post("/accounts/password/reset/confirm/", AGAIN, follow=True).content.decode()
    )
    assert len(letters.to("unknown@reef.example")) == 1


def test_mails_with_codes_say_what_they_are_for():
    client, letters = Client(), Letters()
    _, email = sign_up(client)
    ((subject, text),) = letters.to(email)
    assert "Confirm your email address" in subject
    assert "has given your email address" not in text
