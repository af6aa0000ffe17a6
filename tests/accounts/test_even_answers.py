"""Whether an address has an account is told neither by an answer nor by the hashes that it costs."""

import re

import pytest
from django.contrib.auth import hashers
from django.core.cache import cache
from django.test import Client

from make.accounts import PASSWORD, account
from muniment.accounts.models import Account
from muniment.jobs.models import Job
from muniment.web.views import mailed_codes

pytestmark = pytest.mark.django_db
KNOWN, UNKNOWN, WITHOUT_PASSWORD, DISABLED = (
    f"{name}@harbour.example" for name in ("known", "unknown", "without", "disabled")
)


@pytest.fixture
def hashes(monkeypatch):
    """How often a password was hashed."""
    counted = []
    hasher = type(hashers.get_hasher("default"))
    for name in ("encode", "verify"):
        original = getattr(hasher, name)

        def count(self, *arguments, name=name, original=original):
            counted.append(name)
            return original(self, *arguments)

        monkeypatch.setattr(hasher, name, count)
    return counted


@pytest.fixture(autouse=True)
def _accounts(settings, monkeypatch):
    monkeypatch.setattr(mailed_codes._SendsAgain, "_wait_s", lambda _: 30)  # the page says when, to the second
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    cache.clear()
    account(KNOWN, password=PASSWORD)
    account(WITHOUT_PASSWORD)
    account(DISABLED, password=PASSWORD)
    Account.objects.filter(email=DISABLED).update(is_active=False)


def answer(path, fields, email):
    browser = Client()
    sent = browser.post(path, fields)
    shown = browser.get(sent["Location"]).content.decode() if sent.status_code == 302 else sent.content.decode()
    plain = re.sub(r'(?<=name="csrfmiddlewaretoken" value=")\w+', "", shown).replace(email, "EMAIL")
    return sent.status_code, sent.get("Location"), plain


@pytest.mark.parametrize(
    ("path", "fields", "addresses", "costs"),
    [
        ("/accounts/signup/", {"password1": PASSWORD, "password2": PASSWORD}, (KNOWN, UNKNOWN, WITHOUT_PASSWORD), 1),
        ("/accounts/login/", {"password": "wrong harbours"}, (KNOWN, UNKNOWN, WITHOUT_PASSWORD, DISABLED), 1),
        ("/accounts/password/reset/", {}, (KNOWN, UNKNOWN, WITHOUT_PASSWORD, DISABLED), 0),
        ("/accounts/login/code/", {}, (KNOWN, UNKNOWN, WITHOUT_PASSWORD, DISABLED), 0),
    ],
    ids=["sign-up", "sign-in", "reset", "code"],
)
def test_a_known_and_an_unknown_address_get_the_same_answer_for_the_same_hashes(hashes, path, fields, addresses, costs):
    told = {}
    for email in addresses:
        del hashes[:]
        before = Job.objects.count()
        answered = answer(path, {**fields, "email": email, "login": email}, email)
        told[email] = (answered, len(hashes), Job.objects.count() - before)
        cache.clear()
    assert len(set(told.values())) == 1, {email: (each[0][:2], *each[1:]) for email, each in told.items()}
    assert told[UNKNOWN][1] == costs
