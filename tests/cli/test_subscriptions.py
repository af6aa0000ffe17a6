"""`muniment subscriptions`: count, list, end."""

import pytest
from click.testing import CliRunner

from muniment.accounts.security.models import SecurityEvent
from muniment.cli.command import main
from muniment.kernel.ids import now
from muniment.searches.models import Subscriber, Subscription

pytestmark = pytest.mark.django_db
EMAIL = "reader@moss.example"


def run(*arguments, stdin=None):
    return CliRunner().invoke(main, ["subscriptions", *arguments], input=stdin).output


@pytest.fixture
def subscriber():
    made = Subscriber.objects.create(email=EMAIL)
    Subscription.objects.create(subscriber=made, topic="company", key="harbour", confirmed_at=now())
    Subscription.objects.create(subscriber=made, topic="people", key="title=x", pace="weekly")
    return made


def test_subscriptions_are_counted_and_listed(subscriber):
    assert run("count") == "company\t1\naddresses\t1\nnot confirmed\t1\n"
    assert run("list", "Reader@moss.example") == (
        f"company\tharbour\tdaily\tsince {now():%Y-%m-%d}\npeople\ttitle=x\tweekly\tnot confirmed\n"
    )
    assert run("list", "other@moss.example") == ""


def test_an_address_is_deleted_after_a_question_and_the_log_does_not_have_it(subscriber):
    run("end", EMAIL, stdin="n\n")
    assert Subscriber.objects.exists()
    assert "2 subscriptions ended; the address is deleted." in run("end", EMAIL, stdin="y\n")
    assert run("end", EMAIL, "--yes") == "0 subscriptions ended; the address is deleted.\n"
    assert not Subscriber.objects.exists()
    assert all(EMAIL not in str(event.detail) for event in SecurityEvent.objects.all())
