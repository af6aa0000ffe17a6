"""Digests say what is new since the last one, at most once a day or a week, and nothing while nothing is new."""

import contextlib
from datetime import timedelta
from email import message_from_bytes, policy

import pytest
from django.core.cache import cache

from make.accounts import deliver_mail
from make.published import company, framework, person
from make.subscriptions import EMAIL, confirmed, send_as_due, token_in
from muniment.encryption import unseal
from muniment.jobs.models import Job, State
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest
from muniment.mail import delivery
from muniment.mail.outgoing import KIND, PURPOSE
from muniment.searches import digests, news, subscriptions
from muniment.searches.models import Subscriber, Subscription
from muniment.store.database.faults import DamagedDocument
from services.mail import Mailbox

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _counts():
    cache.clear()


def harbour(**fields):
    return company(1, "harbour", name="Harbour Commons", type="DAO", **fields)


def test_a_listing_that_changed_is_told_once_with_what_changed(letters, publisher):
    confirmed(letters)
    assert send_as_due() == {"subscriptions": 1, "messages": 0}  # nothing is new
    publisher.publish(harbour(teamSize=9), fields=("teamSize", "treasury"), at="2026-11-02T09:00:00.000000Z")
    publisher.publish(company(2, "quay", name="Quay Trust", teamSize=2))
    assert send_as_due() == {"subscriptions": 1, "messages": 1}
    subject, text = letters.to(EMAIL)[-1]
    assert subject == "[Muniment] Updates of Harbour Commons"
    assert "- 2 November 2026: updated: Team size, Treasury\n" in text
    assert "Open the listing: https://registry.example/companies/harbour\n" in text
    assert "at most once a day" in text
    assert send_as_due()["messages"] == 0


def test_a_profile_is_told_of_too_and_opened_as_one(letters, publisher):
    confirmed(letters, "person", "layla", "weekly")
    publisher.publish(person(1, "layla", name="Layla Haddad", bio="Builds."), fields=("bio",))
    send_as_due()
    text = letters.to(EMAIL)[-1][1]
    assert "Open the profile: https://registry.example/people/layla" in text
    assert "at most once a week" in text


def test_a_search_tells_what_is_new_and_what_changed_and_only_of_its_results(letters, publisher):
    confirmed(letters, "companies", "type=DAO")
    publisher.publish(
        harbour(teamSize=9),
        company(2, "quay", name="Quay Trust", type="collective", teamSize=2),
        company(3, "mole", name="Mole & Sons", type="DAO"),
        company(4, "pier", name="Pier", type="corporation"),
        fields=("teamSize",),
    )
    assert send_as_due()["messages"] == 1
    subject, text = letters.to(EMAIL)[-1]
    assert subject == "[Muniment] 2 updates: Type: DAO"
    assert "- Harbour Commons (updated: Team size): https://registry.example/companies/harbour\n" in text
    assert "- Mole & Sons (new): https://registry.example/companies/mole\n" in text
    assert "Quay" not in text
    assert "Pier" not in text
    assert "Open the search: https://registry.example/companies?type=DAO" in text


@pytest.mark.parametrize(
    ("topic", "key", "made"),
    [
        ("companies", "q=mole", company(9, "mole", name="Mole Works")),
        ("companies", "", company(9, "mole", name="Mole Works")),
        ("people", "", person(9, "bo", name="Bo Reed")),
        ("frameworks", "kind=score", framework(9, "tide-two", name="Tide two")),
        ("frameworks", "q=tide", framework(9, "tide-two", name="Tide two")),
    ],
)
def test_every_list_and_search_words_have_updates(letters, publisher, topic, key, made):
    confirmed(letters, topic, key)
    publisher.publish(made)
    assert send_as_due()["messages"] == 1
    path = news.path_of(made.kind, made.key) if made.kind != "framework" else f"/frameworks/{made.key}"
    assert f"- {made.name} (new): https://registry.example{path}\n" in letters.to(EMAIL)[-1][1]


def test_a_message_shows_twenty_results_and_says_how_many_more_there_are(letters, publisher):
    confirmed(letters, "companies", "type=DAO")
    publisher.publish(*(company(n, f"new-{n}", name=f"New {n}", type="DAO") for n in range(10, 31)))
    send_as_due()
    subject, text = letters.to(EMAIL)[-1]
    assert subject.startswith("[Muniment] 21 updates:")
    assert (text.count("(new)"), "- and 1 more\n" in text) == (20, True)


def test_a_result_that_many_other_changes_followed_is_told(letters, publisher):
    confirmed(letters, "companies", "q=harbour")
    publisher.publish(harbour(teamSize=9))
    publisher.publish(*(company(n, f"new-{n}", name=f"New {n}") for n in range(10, 1_200)))
    send_as_due()
    assert letters.to(EMAIL)[-1][0] == "[Muniment] 1 update: “harbour”"


def test_many_changes_of_a_listing_are_counted_and_many_fields_named_in_part(letters, publisher):
    confirmed(letters)
    names = ("name", "symbol", "type", "industry", "teamSize", "treasury", "website")
    for number in range(news.SHOWN + 1):
        publisher.publish(harbour(teamSize=number), fields=names)
    send_as_due()
    text = letters.to(EMAIL)[-1][1]
    assert text.count("and others\n") == news.SHOWN
    assert "- and 1 more\n" in text


def test_what_people_wrote_is_no_link_and_no_header(letters, publisher):
    confirmed(letters, "companies", "type=DAO")
    hostile = "Click https://evil.example/x now\r\nBcc: all@moss.example"
    publisher.publish(company(9, "mole", name=hostile, type="DAO"))
    send_as_due()
    [job] = Job.objects.filter(kind=KIND, state=State.QUEUED)
    message = message_from_bytes(unseal(job.payload["sealed"], PURPOSE), policy=policy.default)
    assert message["Bcc"] is None
    assert "evil.example" not in message.get_body(("plain",)).get_content()
    assert "evil.example" not in message.get_body(("html",)).get_content()


def test_mail_programs_can_unsubscribe_with_one_click(letters, publisher, settings):
    row = confirmed(letters)
    publisher.publish(harbour(teamSize=9))
    send_as_due()
    [job] = Job.objects.filter(kind=KIND, state=State.QUEUED)
    message = message_from_bytes(unseal(job.payload["sealed"], PURPOSE), policy=policy.default)
    end = f"https://registry.example{subscriptions.end_path(row)}"
    assert "".join(message["List-Unsubscribe"].split()) == f"<{end}>"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert message["Auto-Submitted"] == "auto-generated"
    text = message.get_body(("plain",)).get_content()
    assert f"Stop these emails: {end}" in text
    assert "See all your subscriptions: https://registry.example/updates/mine/" in text
    settings.BASE_URL = "http://127.0.0.1:8000"  # RFC 8058 requires https
    assert digests._headers("/x").keys() == {"Auto-Submitted", "List-Unsubscribe"}
    settings.BASE_URL = ""
    assert "List-Unsubscribe-Post" not in digests._headers("/x")


def test_a_digest_is_due_at_the_same_time_of_the_day_however_late_the_last_one_was(letters, publisher):
    row = confirmed(letters)
    due = now() - timedelta(hours=50)
    Subscription.objects.update(next_at=due)
    assert digests.send_due()["subscriptions"] == 1
    row.refresh_from_db()
    assert row.next_at == due + timedelta(days=3)
    assert digests.send_due() == {"subscriptions": 0, "messages": 0}


def test_a_digest_that_is_not_sent_is_seen_by_its_delay(letters, publisher, monkeypatch):
    assert digests.delay_s() == 0
    confirmed(letters)
    assert digests.delay_s() == 0
    Subscription.objects.update(next_at=now() - timedelta(hours=3))
    assert digests.delay_s() == pytest.approx(3 * 3600, abs=60)
    with monkeypatch.context() as off:
        off.setattr(digests, "is_offered", lambda: False)
        assert digests.delay_s() == 0
    Subscription.objects.update(confirmed_at=None)
    assert digests.delay_s() == 0


def test_codes_for_signing_in_come_before_digests(letters, publisher):
    confirmed(letters)
    publisher.publish(harbour(teamSize=9))
    send_as_due()
    assert Job.objects.get(kind=KIND, state=State.QUEUED).priority > 0


# ---------------------------------------------------------------- what is gone


def test_a_listing_that_is_unlisted_is_told_and_the_subscription_ends(letters, publisher):
    confirmed(letters)
    publisher.unlist("company", "harbour")
    assert send_as_due()["messages"] == 1
    subject, text = letters.to(EMAIL)[-1]
    assert subject == "[Muniment] Harbour Commons is no longer listed"
    assert "This subscription has ended." in text
    assert not Subscriber.objects.exists()


def test_of_a_profile_that_is_gone_the_name_is_not_told(letters, publisher):
    confirmed(letters, "person", "layla")
    publisher.unlist("person", "layla")
    assert send_as_due()["messages"] == 1
    subject, text = letters.to(EMAIL)[-1]
    assert subject == "[Muniment] A profile that you follow is no longer public"
    assert "layla" not in text.lower()


def test_an_erased_person_is_in_no_subscription_at_once(letters, publisher):
    confirmed(letters, "person", "layla"), confirmed(letters)
    subscriptions.forget_person("person", "layla")
    assert not Subscription.objects.filter(key__contains="layla").exists()
    assert not Subscription.objects.filter(title__contains="Layla").exists()
    assert digests.send_due()["messages"] == 1  # at once, although the digest was due tomorrow
    assert letters.to(EMAIL)[-1][0] == "[Muniment] A profile that you follow is no longer public"
    assert Subscription.objects.get().key == "harbour"


def test_a_search_by_a_field_that_is_no_longer_declared_is_told_and_ends(letters, publisher, monkeypatch):
    confirmed(letters, "companies", "type=DAO")

    def search_of(*_):
        raise BadRequest("unknown", "none")

    monkeypatch.setattr(news, "registry", news.registry._replace(search_of=search_of))
    assert send_as_due()["messages"] == 1
    assert letters.to(EMAIL)[-1][0] == "[Muniment] Your search no longer works: Type: DAO"
    assert not Subscription.objects.exists()


def test_another_feed_is_followed_from_its_end_and_a_node_that_is_behind_tells_nothing_twice(letters, publisher):
    row = confirmed(letters)
    publisher.publish(harbour(teamSize=9))
    Subscription.objects.update(epoch="that of a restored backup")
    assert send_as_due()["messages"] == 0
    row.refresh_from_db()
    sequence, epoch = news.registry.reader().place
    assert (row.sequence, row.epoch) == (sequence, epoch)
    Subscription.objects.update(sequence=sequence + 5)
    assert send_as_due()["messages"] == 0
    row.refresh_from_db()
    assert row.sequence == sequence + 5


# ---------------------------------------------------------------- trouble


def test_a_process_that_ends_between_sending_and_the_commit_has_done_neither(letters, publisher, monkeypatch):
    confirmed(letters)
    publisher.publish(harbour(teamSize=9))

    class Killed(BaseException):
        pass

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(digests, "_next", killed)
        with contextlib.suppress(Killed):
            send_as_due()
    assert not Job.objects.filter(kind=KIND, state=State.QUEUED).exists()
    assert send_as_due()["messages"] == 1
    assert send_as_due()["messages"] == 0
    assert len([subject for subject, _ in letters.to(EMAIL) if "Updates of" in subject]) == 1


def test_of_two_processes_that_read_the_same_subscription_one_sends(letters, publisher):
    confirmed(letters)
    publisher.publish(harbour(teamSize=9))
    Subscription.objects.update(next_at=now() - timedelta(minutes=1))
    stale = Subscription.objects.select_related("subscriber").get()
    assert digests._send(stale) is True
    assert digests._send(stale) is False


def test_a_damaged_document_delays_its_subscription_alone(letters, publisher, monkeypatch):
    broken = confirmed(letters)
    confirmed(letters, key="quay")
    publisher.publish(harbour(teamSize=9), company(2, "quay", name="Quay Trust", teamSize=2))
    read = news.name_of_listing

    def damaged(topic, key):
        if key == "harbour":
            raise DamagedDocument
        return read(topic, key)

    monkeypatch.setattr(news, "name_of_listing", damaged)
    assert send_as_due() == {"subscriptions": 2, "messages": 1}
    broken.refresh_from_db()
    assert now() + timedelta(minutes=59) < broken.next_at < now() + timedelta(minutes=61)


def test_a_receiver_that_does_not_exist_any_more_is_forgotten_after_three_refusals(letters, publisher, monkeypatch):
    confirmed(letters)
    with Refusing() as box:
        using_mail(monkeypatch, box.url)
        for number in range(3):
            assert Subscriber.objects.get().refusals == number
            publisher.publish(harbour(teamSize=number))
            send_as_due()
            deliver_failing()
    assert not Subscriber.objects.exists()


def test_a_server_that_takes_a_message_again_ends_the_count_of_refusals(letters, publisher, monkeypatch):
    confirmed(letters)
    Subscriber.objects.update(refusals=2)
    with Mailbox() as box:
        using_mail(monkeypatch, box.url)
        publisher.publish(harbour(teamSize=3))
        send_as_due()
        deliver_mail()
        message = box.wait_for(EMAIL)
    assert token_in(message.get_body(("plain",)).get_content(), "end")
    assert Subscriber.objects.get().refusals == 0


class Refusing(Mailbox):
    """A server that knows none of its receivers any more."""

    async def handle_RCPT(self, *_):  # noqa: N802 - aiosmtpd's name
        return "550 unknown"


def using_mail(monkeypatch, url):
    from muniment import config

    kept = {each.name: getattr(config.current(), each.name) for each in config.SETTINGS}
    monkeypatch.setattr(config, "_current", config.Config({}, **{**kept, "mail_url": url}))


def deliver_failing():
    from muniment.jobs import queue
    from muniment.jobs.handlers import Abandoned

    run = queue.claim("tests", delivery.HANDLER.lane)
    with pytest.raises(Abandoned):
        run.handler.work(run)
    run.failed("refused", for_good=True)


def test_what_a_search_is_for_is_told_in_the_language_of_its_receiver(letters, publisher):
    confirmed(letters, "companies", "type=DAO")
    Subscriber.objects.update(language="de")
    publisher.publish(harbour(teamSize=9))
    send_as_due()
    assert letters.to(EMAIL)[-1][0] == "[Muniment] 1 Neuigkeit: Typ: DAO"
