"""Sign-ups that nobody confirms are few, and end."""

import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from allauth.account.models import EmailAddress
from allauth.core.internal import ratelimit
from django.core.cache import cache
from django.test import Client

from make.accounts import PASSWORD, account
from muniment.accounts import adapters, sign_up
from muniment.accounts.models import Account
from muniment.accounts.security.models import SecurityEvent
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.mail.outgoing import KIND

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_counts(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    cache.clear()


def signed_up(email, address="192.0.2.7"):
    fields = {"email": email, "password1": PASSWORD, "password2": PASSWORD}
    return Client(REMOTE_ADDR=address).post("/accounts/signup/", fields)


def test_an_address_signs_up_sixty_times_an_hour(monkeypatch):
    clock = SimpleNamespace(time=lambda: moment, monotonic=time.monotonic, sleep=time.sleep)
    monkeypatch.setattr(ratelimit, "time", clock)
    statuses = []
    for number in range(61):
        moment = 1_800_000_000 + number * 4  # within the limit of a minute
        statuses.append(signed_up(f"drift{number}@harbour.example").status_code)
    assert statuses == [302] * 60 + [429]
    assert signed_up("other@harbour.example", "192.0.2.8").status_code == 302


def test_nobody_signs_up_while_too_many_have_not_confirmed(monkeypatch):
    monkeypatch.setattr(sign_up, "MAX_UNCONFIRMED", 2)
    account("confirmed@harbour.example")
    for number in range(2):
        assert signed_up(f"drift{number}@harbour.example").status_code == 302
    refused = signed_up("late@harbour.example")
    assert "Too many people are signing up now." in refused.content.decode()
    assert not Account.objects.filter(email="late@harbour.example").exists()
    EmailAddress.objects.filter(email="drift0@harbour.example").update(verified=True)
    assert signed_up("late@harbour.example").status_code == 302


def test_a_sign_up_that_is_not_confirmed_ends_after_three_hours():
    signed_up("drift@harbour.example")
    signed_up("fresh@harbour.example")
    old = Account.objects.get(email="drift@harbour.example")
    Account.objects.filter(pk=old.pk).update(joined_at=now() - timedelta(hours=3, seconds=1))
    Account.objects.exclude(pk=old.pk).update(joined_at=now() - timedelta(hours=2, minutes=59))
    assert SecurityEvent.objects.filter(account=old).exists()
    assert sign_up.forget_unconfirmed() == 1
    assert list(Account.objects.values_list("email", flat=True)) == ["fresh@harbour.example"]
    assert list(EmailAddress.objects.values_list("email", flat=True)) == ["fresh@harbour.example"]
    assert SecurityEvent.objects.count() == 1
    cache.clear()  # a code is sent to an address every ten seconds
    assert signed_up("drift@harbour.example").status_code == 302  # as if for the first time


def test_all_sign_ups_that_end_at_once_are_counted(monkeypatch):
    monkeypatch.setattr(sign_up, "_BATCH", 2)
    for number in range(3):
        account(f"drift{number}@harbour.example")
    EmailAddress.objects.all().delete()
    Account.objects.update(joined_at=now() - timedelta(days=1))
    assert sign_up.forget_unconfirmed() == 3
    assert not Account.objects.exists()


def test_an_account_that_was_confirmed_used_or_made_by_an_operator_stays():
    confirmed, used, owner = (account(f"{name}@harbour.example") for name in ("confirmed", "used", "owner"))
    EmailAddress.objects.exclude(user=confirmed).delete()
    Account.objects.filter(pk=used.pk).update(last_login=now())
    reviewer = account("reviewer@harbour.example", "reviewer")
    EmailAddress.objects.filter(user=reviewer).delete()
    owner.tokens.create(name="laptop", digest="x", scopes="")
    Account.objects.update(joined_at=now() - timedelta(days=9))
    assert sign_up.forget_unconfirmed() == 0
    owner.tokens.all().delete()
    assert sign_up.forget_unconfirmed() == 1
    assert not Account.objects.filter(pk=owner.pk).exists()


def test_visitors_cause_a_bounded_number_of_mails(monkeypatch):
    moment = now()
    monkeypatch.setattr(adapters, "now", lambda: moment)  # the hour does not turn meanwhile
    monkeypatch.setattr(adapters, "VISITORS_MAILS_AN_HOUR", 3)
    for number in range(3):
        assert signed_up(f"drift{number}@harbour.example", f"192.0.2.{number}").status_code == 302
    refused = signed_up("late@harbour.example", "192.0.2.9")
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) <= 3_600
    asked = Client(REMOTE_ADDR="192.0.2.10").post("/accounts/password/reset/", {"email": "drift0@harbour.example"})
    assert asked.status_code == 429
    assert Job.objects.filter(kind=KIND).count() == 3
