"""Visitors ask for mail: nothing is sent before they confirm, everything has a bound, nothing tells what is known."""

import time
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from django.core.cache import cache

from make import registry
from make.accounts import account
from make.published import company
from make.subscriptions import EMAIL, asked, confirmed, send_as_due, token_in
from muniment import config
from muniment.accounts.keys import kept
from muniment.accounts.models import KeptSecret
from muniment.accounts.personal_data import delete
from muniment.accounts.security import origin
from muniment.jobs.models import Job
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Forbidden, LimitReached, NotFound, TooMany
from muniment.languages.speaking import speaking
from muniment.mail.outgoing import KIND
from muniment.registry.people.erasing import erase_person
from muniment.searches import subscriptions
from muniment.searches.models import Subscriber, Subscription
from muniment.searches.personal_data import PART
from muniment.searches.subscriptions import (
    confirm_updates,
    end_mine,
    end_path,
    end_updates,
    find_request,
    find_subscriber,
    find_to_end,
    list_mine,
    mine_path,
    note_outcome,
    prune,
    request_list,
)

pytestmark = pytest.mark.django_db
OTHER = "other@moss.example"


@pytest.fixture(autouse=True)
def _counts():
    cache.clear()


def token(path):
    return path.rpartition("/")[2]


def test_a_request_mails_a_link_and_nothing_else_until_it_is_confirmed(letters, publisher):
    asked()
    [(subject, text)] = letters.to(EMAIL)
    assert subject == "[Muniment] Confirm your updates: Harbour Commons"
    assert "https://registry.example/updates/confirm/" in text
    publisher.publish(company(1, "harbour", name="Harbour Commons", teamSize=9))
    send_as_due()
    assert len(letters.to(EMAIL)) == 1
    assert find_request(token_in(text)).confirmed_at is None  # looking at it confirms nothing
    row = confirm_updates(token_in(text))
    assert row.confirmed_at is not None
    assert row.next_at - row.confirmed_at == timedelta(days=1)
    assert confirm_updates(token_in(text)).confirmed_at == row.confirmed_at  # a second time changes nothing


def test_a_request_that_is_not_confirmed_is_forgotten_with_its_address_after_two_days(letters):
    asked()
    confirmed(letters, key="quay", email=OTHER)
    Subscription.objects.update(requested_at=now() - timedelta(hours=47, minutes=59))
    assert prune() == {"requests": 0, "addresses": 0}
    Subscription.objects.update(requested_at=now() - timedelta(hours=48, minutes=1))
    assert prune() == {"requests": 1, "addresses": 1}
    assert list(Subscriber.objects.values_list("email", flat=True)) == [OTHER]


@pytest.mark.parametrize("pause", [timedelta(hours=47, minutes=59), timedelta(hours=48, minutes=1)])
def test_a_link_confirms_for_48_hours(letters, monkeypatch, pause):
    asked()
    mailed = token_in(letters.to(EMAIL)[0][1])
    real = time.time()
    monkeypatch.setattr("time.time", lambda: real + pause.total_seconds())
    if pause < timedelta(hours=48):
        assert confirm_updates(mailed).confirmed_at
    else:
        with pytest.raises(NotFound):
            confirm_updates(mailed)


def test_no_other_token_confirms(letters):
    asked()
    mailed = token_in(letters.to(EMAIL)[0][1])
    row = Subscription.objects.get()
    altered = ("x" if mailed[0] != "x" else "y") + mailed[1:]
    for wrong in ("", "x", altered, mailed[:-1], token(end_path(row)), token(mine_path(row.subscriber)), "é" * 300):
        with pytest.raises(NotFound):
            confirm_updates(wrong)
    end_updates(token(end_path(row)))
    with pytest.raises(NotFound):
        confirm_updates(mailed)  # it has ended, and does not come back


def test_a_link_that_is_ended_while_it_is_confirmed_does_not_work(letters, monkeypatch):
    asked()
    mailed = token_in(letters.to(EMAIL)[0][1])
    row = find_request(mailed)
    row.delete()
    monkeypatch.setattr(subscriptions, "find_request", lambda _: row)
    with pytest.raises(NotFound):
        confirm_updates(mailed)


@pytest.mark.parametrize(
    "email",
    ["", "reader", "reader@", "a@b@c.example", "a b@moss.example", "reader@moss.example\nBcc: all@moss.example"]
    + ["reader@moss.example\r\n\r\nBuy", "x@former-1@accounts.invalid", "former-1@accounts.invalid"]
    + ["<reader@moss.example>", "a\u202eb@moss.example", "a@moss.example,b@moss.example", "x" * 250 + "@a.example"],
)
def test_what_is_no_address_is_refused_and_no_header_is_injected(letters, email):
    with pytest.raises(BadRequest):
        asked(email=email)
    assert not Job.objects.filter(kind=KIND).exists()


def test_addresses_differ_in_their_letters_not_in_their_case(letters):
    asked(email=" Reader@Moss.Example ")
    assert Subscriber.objects.get().email == EMAIL


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("topic", "key", "problem"),
    [
        ("company", "nowhere", NotFound),
        ("person", "harbour", NotFound),
        ("everything", "", BadRequest),
        ("companies", "type=DAO&teamMin=x", BadRequest),
        ("companies", "q=" + "x" * 1_001, BadRequest),
        ("companies", "q=é", BadRequest),
        ("companies", "q=\n", BadRequest),
    ],
)
def test_there_are_no_updates_of_what_does_not_exist(letters, topic, key, problem):
    with pytest.raises(problem):
        asked(topic, key)


def test_updates_are_daily_or_weekly(letters):
    row = confirmed(letters, pace="weekly")
    assert row.next_at - row.confirmed_at == timedelta(days=7)
    with pytest.raises(BadRequest):
        asked(pace="hourly")


def test_a_search_is_stored_in_the_canonical_order_and_only_once(letters):
    for query in ("type=DAO&q=tide", "q=tide&type=DAO&page=3&sort=name"):
        asked("companies", query)
    row = Subscription.objects.get()
    assert (row.key, row.title) == ("q=tide&type=DAO", "“tide”, Type: DAO")


def test_an_operator_turns_updates_off_and_what_exists_can_still_be_ended(letters, publisher, monkeypatch):
    asked(key="quay")
    waiting = token_in(letters.to(EMAIL)[-1][1])
    row = confirmed(letters)
    kept_settings = {each.name: getattr(config.current(), each.name) for each in config.SETTINGS}
    monkeypatch.setattr(config, "_current", config.Config({}, **{**kept_settings, "visitor_mail": False}))
    with pytest.raises(NotFound):
        asked(key="quay")
    with pytest.raises(NotFound):
        confirm_updates(waiting)
    publisher.publish(company(1, "harbour", name="Harbour Commons", teamSize=9))
    assert send_as_due() == {"subscriptions": 0, "messages": 0}
    end_updates(token(end_path(row)))
    assert find_to_end(token(end_path(row))) is None


# ---------------------------------------------------------------- bounds


def test_a_client_asks_twenty_times_an_hour(letters, monkeypatch):
    monkeypatch.setattr(subscriptions, "REQUESTS_OF_A_CLIENT", 2)
    asked(email="a@moss.example")
    asked(email="b@moss.example")
    with pytest.raises(TooMany):
        asked(email="c@moss.example")
    with pytest.raises(TooMany):
        request_list_from("192.0.2.1")
    asked(email="c@moss.example", address="192.0.2.2")
    assert Subscriber.objects.count() == 3


def request_list_from(address, email=EMAIL):
    with origin.at(address, ""):
        request_list(email)


def test_all_visitors_together_ask_five_hundred_times_an_hour(letters, monkeypatch):
    monkeypatch.setattr(subscriptions, "REQUESTS_IN_ALL", 3)
    for number in range(3):
        asked(email=f"a{number}@moss.example", address=f"192.0.2.{number}")
    with pytest.raises(TooMany):
        asked(email="b@moss.example", address="192.0.2.9")


def test_a_site_has_the_share_of_a_client(letters, monkeypatch):
    monkeypatch.setattr(subscriptions, "REQUESTS_OF_A_CLIENT", 3)
    monkeypatch.setattr(subscriptions, "MAX_UNCONFIRMED", 10)
    for number in range(3):
        asked(email=f"a{number}@moss.example", address=f"2001:db8:1:{number}::1")
    with pytest.raises(TooMany):
        asked(email="b@moss.example", address="2001:db8:1:9::1")
    asked(email="b@moss.example", address="2001:db8:2::1")


def test_nobody_is_flooded_an_address_gets_three_messages_a_day_whatever_visitors_ask(letters):
    for number in range(8):
        asked(key="harbour" if number % 2 else "quay", address=f"192.0.2.{number}")
    assert len(letters.to(EMAIL)) == 3
    asked(email=OTHER)
    assert len(letters.to(OTHER)) == 1


def test_a_thousand_requests_leave_few_rows_and_messages(letters, monkeypatch):
    monkeypatch.setattr(subscriptions, "REQUESTS_IN_ALL", 100)
    refused = 0
    for number in range(1_000):
        try:
            asked(email=f"a{number}@moss.example", address=f"192.0.2.{number % 40}")
        except TooMany:
            refused += 1
    assert refused == 900
    assert Subscription.objects.count() == 100
    assert Job.objects.filter(kind=KIND).count() == 100


def test_of_too_many_requests_the_oldest_make_room_and_confirmed_ones_never(letters, monkeypatch):
    monkeypatch.setattr(subscriptions, "MAX_UNCONFIRMED", 3)
    confirmed(letters, email="kept@moss.example")
    for number in range(5):
        asked(email=f"a{number}@moss.example", address=f"192.0.2.{number}")
    left = Subscription.objects.filter(confirmed_at=None).order_by("requested_at")
    assert [row.subscriber.email for row in left] == [f"a{number}@moss.example" for number in (2, 3, 4)]
    assert Subscription.objects.exclude(confirmed_at=None).count() == 1


def test_an_address_has_twenty_subscriptions_and_is_told_by_mail_alone(letters, monkeypatch):
    monkeypatch.setattr(subscriptions, "MAX_OF_AN_ADDRESS", 1)
    asked(key="quay")
    waiting = token_in(letters.to(EMAIL)[-1][1])
    confirmed(letters)
    with pytest.raises(LimitReached):
        confirm_updates(waiting)
    asked("companies", "type=DAO")
    assert "You have 1 subscriptions." in letters.to(EMAIL)[-1][1]
    assert Subscription.objects.filter(topic="companies").count() == 0


def test_a_request_for_what_an_address_gets_already_is_answered_by_mail_alone(letters):
    row = confirmed(letters)
    asked()
    subject, text = letters.to(EMAIL)[-1]
    assert subject == "[Muniment] Your updates: Harbour Commons"
    assert list_mine(token_in(text, "mine")) == [row]
    asked()
    asked()
    assert len(letters.to(EMAIL)) == 3


# ---------------------------------------------------------------- ending


def test_the_link_of_a_message_ends_one_subscription_also_twice_and_after_a_rotation(letters, settings):
    row, other = confirmed(letters), confirmed(letters, key="quay")
    mailed = token(end_path(row))
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another key that is long enough for everyone 1234"
    kept.keep(former, settings.SECRET_KEY)
    assert KeptSecret.objects.filter(name=subscriptions.SECRET).exists()
    assert find_to_end(mailed) == row
    end_updates(mailed)
    end_updates(mailed)
    assert find_to_end(mailed) is None
    assert list(Subscription.objects.all()) == [other]
    end_updates(token(end_path(other)))
    assert not Subscriber.objects.exists()


def test_no_other_token_ends(letters):
    row = confirmed(letters)
    mailed = token(end_path(row))
    for wrong in ("", mailed[:-1], "x" + mailed, token(mine_path(row.subscriber)), row.pk):
        with pytest.raises(NotFound):
            end_updates(wrong)
    assert Subscription.objects.exists()


def test_an_address_lists_and_ends_its_subscriptions_and_no_stranger_does(letters):
    mine, also = confirmed(letters), confirmed(letters, key="quay")
    other = confirmed(letters, email=OTHER)
    link, strangers = token(mine_path(mine.subscriber)), token(mine_path(other.subscriber))
    assert list_mine(link) == [mine, also]
    with pytest.raises(NotFound):
        end_mine(strangers, mine.pk)
    assert end_mine(link, mine.pk) == 1
    with pytest.raises(NotFound):
        end_mine(link, mine.pk)
    assert end_mine(link) == 1
    assert (end_mine(link), list_mine(link), find_subscriber(link)) == (0, [], None)
    assert list_mine(strangers) == [other]


def test_the_link_to_the_list_is_mailed_to_subscribers_alone_and_works_for_a_week(letters, monkeypatch):
    row = confirmed(letters)
    asked(email="waits@moss.example")
    for email in (EMAIL, "nobody@moss.example", "waits@moss.example"):
        request_list_from("192.0.2.7", email)
    assert letters.to("nobody@moss.example") == []
    assert len(letters.to("waits@moss.example")) == 1  # the request alone
    mailed = token_in(letters.to(EMAIL)[-1][1], "mine")
    assert list_mine(mailed) == [row]
    with pytest.raises(BadRequest):
        request_list_from("192.0.2.7", "x")
    real = time.time()
    monkeypatch.setattr("time.time", lambda: real + timedelta(days=7, minutes=1).total_seconds())
    with pytest.raises(NotFound):
        list_mine(mailed)


def test_an_address_that_is_refused_three_times_in_a_row_is_forgotten(letters):
    confirmed(letters)
    for is_accepted in (False, False, True, False, False):
        note_outcome(EMAIL, is_accepted)
    note_outcome("nobody@moss.example", False)
    assert Subscriber.objects.get().refusals == 2
    note_outcome(EMAIL, False)
    assert not Subscription.objects.exists()


def test_operators_count_and_end_subscriptions_and_no_one_else(letters):
    confirmed(letters), confirmed(letters, "companies", "type=DAO"), confirmed(letters, email=OTHER)
    asked(key="quay", email=OTHER)
    counts = subscriptions.count_subscriptions(COMMAND)
    assert (counts.by_topic, counts.unconfirmed, counts.addresses) == ({"companies": 1, "company": 2}, 1, 2)
    assert [row.topic for row in subscriptions.list_subscriptions(COMMAND, " Reader@moss.example")] == [
        "company",
        "companies",
    ]
    for call in (
        lambda: subscriptions.count_subscriptions(VISITOR),
        lambda: subscriptions.list_subscriptions(VISITOR, EMAIL),
        lambda: subscriptions.end_subscriptions(VISITOR, EMAIL),
    ):
        with pytest.raises(Forbidden):
            call()
    assert subscriptions.end_subscriptions(COMMAND, "READER@moss.example") == 2
    assert subscriptions.end_subscriptions(COMMAND, EMAIL) == 0
    assert all(EMAIL not in job.payload["to"] for job in Job.objects.filter(kind=KIND))
    assert Subscriber.objects.get().email == OTHER


def test_the_data_of_an_account_has_the_subscriptions_of_its_addresses_and_no_others(letters):
    mine = account("owner@harbour.example")
    EmailAddress.objects.create(user=mine, email="Second@harbour.example", verified=True)
    EmailAddress.objects.create(user=mine, email=OTHER, verified=False)
    for email in ("owner@harbour.example", "second@harbour.example", OTHER):
        confirmed(letters, email=email)
    entries = {entry.path: entry.content for entry in PART.export(mine)}
    found = entries["email-subscriptions.json"]
    assert [each["email"] for each in found] == ["owner@harbour.example", "second@harbour.example"]
    assert found[0] | {"requestedAt": "", "confirmedAt": ""} == {
        "email": "owner@harbour.example",
        "topic": "company",
        "key": "harbour",
        "title": "Harbour Commons",
        "pace": "daily",
        "language": "en",
        "requestedAt": "",
        "confirmedAt": "",
    }
    delete(mine)
    assert [row.email for row in Subscriber.objects.all()] == [OTHER]


def test_messages_are_in_the_language_in_which_they_were_asked_for(letters):
    with speaking("de"):
        row = confirmed(letters)
    assert row.subscriber.language == "de"
    asked()
    assert letters.to(EMAIL)[-1][0] == "[Muniment] Ihre Neuigkeiten: Harbour Commons"


def test_erasing_a_person_removes_them_from_subscriptions_and_names_the_others(letters):
    mine = registry.published(registry.owner(), positions=[{"title": "Chair", "person": {"name": "Ottoline Reed"}}])
    registry.link_names(mine.slug)
    subscriber = Subscriber.objects.create(email=EMAIL)
    of_person = {"subscriber": subscriber, "confirmed_at": now()}
    Subscription.objects.create(topic="person", key="ottoline-reed", title="Ottoline Reed", **of_person)
    Subscription.objects.create(topic="people", key="q=Ottoline+Reed", title="“Ottoline Reed”", **of_person)
    result = erase_person(registry.reviewer(), "ottoline-reed")
    row = Subscription.objects.get(topic="person")
    assert (row.key, row.title) == (f"erased:{row.pk}", "")
    # What a visitor typed into a search is listed for the operator, like every other text.
    assert [each.where for each in result.mentions if each.what == "subscription"] == [""]
