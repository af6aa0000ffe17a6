"""Endpoints belong to one account, or to the registry; what they may be is checked, and secrets are kept sealed."""

import io
import json
import zipfile
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction

from make.events import audited, events_of
from make.registry import agent_of, owner, published, reviewer
from muniment.accounts import personal_data
from muniment.accounts.keys import sealed
from muniment.accounts.models import Account, SecurityEvent
from muniment.jobs.models import Job
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, LimitReached, NotFound
from muniment.webhooks import delivering, endpoints, events
from muniment.webhooks.endpoints import Wanted, create_endpoint
from muniment.webhooks.models import Delivery, Endpoint, Event, Place

pytestmark = pytest.mark.django_db
WANTED = Wanted("https://hooks.example/in", ["listing.updated"])


def operator():
    return Account.objects.create_user("operator@example.org", role="operator").actor("web", "pages")


@pytest.fixture
def mine():
    me = owner()
    return me, create_endpoint(me, WANTED)


ACTIONS = {
    "get": endpoints.get_endpoint,
    "change": lambda actor, pk, **how: endpoints.change_endpoint(actor, pk, WANTED, **how),
    "rotate": endpoints.rotate_secret,
    "secret": endpoints.shown_secret,
    "delete": endpoints.delete_endpoint,
    "resume": endpoints.resume_endpoint,
    "test": endpoints.send_test,
    "deliveries": endpoints.list_deliveries,
    "replay": lambda actor, pk, **how: endpoints.replay(actor, pk, 1, **how),
    "replay failed": endpoints.replay_failed,
}


@pytest.mark.parametrize("action", ACTIONS)
def test_an_endpoint_is_unknown_to_strangers(mine, action):
    _, endpoint = mine
    for stranger in (owner(), reviewer(), operator()):
        with pytest.raises(NotFound):
            ACTIONS[action](stranger, endpoint.pk)
        assert endpoints.list_endpoints(stranger) == []
    assert Endpoint.objects.get(pk=endpoint.pk).secret == endpoint.secret


@pytest.mark.parametrize("action", ACTIONS)
def test_the_endpoints_of_the_registry_are_for_operators(action):
    own = create_endpoint(operator(), WANTED, of_registry=True)
    for stranger in (owner(), reviewer(), VISITOR):
        with pytest.raises(Forbidden):
            ACTIONS[action](stranger, own.pk, of_registry=True)
        with pytest.raises(Forbidden):
            endpoints.list_endpoints(stranger, of_registry=True)
        with pytest.raises(Forbidden):
            create_endpoint(stranger, WANTED, of_registry=True)
    assert endpoints.list_endpoints(COMMAND, of_registry=True) == [own]


def test_an_operator_finds_no_endpoint_of_an_owner_among_those_of_the_registry(mine):
    _, endpoint = mine
    with pytest.raises(NotFound):
        endpoints.get_endpoint(operator(), endpoint.pk, of_registry=True)


def test_tokens_and_apps_manage_no_webhooks(mine):
    me, endpoint = mine
    for agent in (agent_of(me), replace(me, via="app")):
        with pytest.raises(Forbidden, match="on the website"):
            endpoints.list_endpoints(agent)
        with pytest.raises(Forbidden, match="on the website"):
            endpoints.shown_secret(agent, endpoint.pk)
        with pytest.raises(Forbidden, match="on the website"):
            create_endpoint(agent, WANTED)


def test_what_opens_the_account_to_others_needs_a_confirmed_identity(mine):
    me, endpoint = mine
    unsure = replace(me, confirmed=False)
    for act in (
        lambda: create_endpoint(unsure, WANTED),
        lambda: endpoints.change_endpoint(unsure, endpoint.pk, WANTED),
        lambda: endpoints.rotate_secret(unsure, endpoint.pk),
        lambda: endpoints.shown_secret(unsure, endpoint.pk),
    ):
        with pytest.raises(Forbidden, match="Confirm that it's you"):
            act()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://hooks.example/in",
        "https://",
        "https://hooks.example:8443/",
        "https://me:secret@hooks.example/",
        "ftp://hooks.example/",
        "javascript:alert(1)",
        "https://" + "x" * 2_000,
    ],
)
def test_a_url_that_nothing_can_be_sent_to_is_refused(url):
    with pytest.raises(BadRequest, match="https://"):
        create_endpoint(owner(), WANTED._replace(url=url))


@pytest.mark.parametrize(
    ("kinds", "of_registry"), [([], False), (["listing.deleted"], False), (["report.succeeded"], True)]
)
def test_events_that_there_are_not_are_refused(kinds, of_registry):
    with pytest.raises(BadRequest, match="event"):
        create_endpoint(operator(), WANTED._replace(kinds=kinds), of_registry=of_registry)


@pytest.mark.parametrize("listings", [["a/b"], [str(number) for number in range(endpoints.MAX_LISTINGS + 1)]])
def test_listings_that_cannot_be_are_refused(listings):
    with pytest.raises(BadRequest):
        create_endpoint(owner(), WANTED._replace(listings=listings))


def test_what_is_stored_is_in_order_and_once():
    wanted = Wanted(" https://häfen.example/in#part ", ["review.decided", "listing.updated"], ["a", " a ", "", "b"])
    made = create_endpoint(owner(), wanted)
    assert made.url == "https://xn--hfen-loa.example/in"
    assert made.kinds == ["listing.updated", "review.decided"]
    assert made.listings == ["a", "b"]
    assert len(create_endpoint(owner(), WANTED._replace(listings=list(map(str, range(200))))).listings) == 200


def test_there_are_ten_endpoints_at_most(mine):
    me, _ = mine
    for _ in range(endpoints.MAX_ENDPOINTS - 1):
        create_endpoint(me, WANTED)
    with pytest.raises(LimitReached, match="10 webhooks"):
        create_endpoint(me, WANTED)
    create_endpoint(owner(), WANTED)
    endpoints.delete_endpoint(me, endpoints.list_endpoints(me)[0].pk)
    create_endpoint(me, WANTED)


def test_a_test_event_is_sent_every_ten_seconds_at_most(mine):
    me, endpoint = mine
    endpoints.send_test(me, endpoint.pk)
    with pytest.raises(Conflict, match="seconds ago"):
        endpoints.send_test(me, endpoint.pk)
    Delivery.objects.update(created_at=now() - endpoints.TESTED_EVERY)
    endpoints.send_test(me, endpoint.pk)
    assert [each.kind for each in endpoints.list_deliveries(me, endpoint.pk)] == ["test", "test"]


def made(endpoint, state, **fields):
    number = Delivery.objects.count()
    values = {"subject": f"company:no-{number}", "kind": "test", "body": "{}", "finished_at": now(), **fields}
    return Delivery.objects.create(endpoint=endpoint, event_id=f"evt_{number}", state=state, **values)


def test_what_was_delivered_or_given_up_is_sent_again_and_what_waits_is_not(mine):
    me, endpoint = mine
    for state in ("delivered", "failed"):
        again = endpoints.replay(me, endpoint.pk, made(endpoint, state, attempts=[{"status": 500}]).pk)
        assert (again.state, again.attempts, again.finished_at) == ("waiting", [], None)
        assert again.next_at <= now()
        with pytest.raises(Conflict, match="waiting"):
            endpoints.replay(me, endpoint.pk, again.pk)
    with pytest.raises(NotFound, match="not kept"):
        endpoints.replay(me, endpoint.pk, 10_000)
    other = create_endpoint(owner(), WANTED)
    with pytest.raises(NotFound):
        endpoints.replay(me, endpoint.pk, made(other, "failed").pk)


def test_all_that_was_given_up_is_sent_again(mine):
    me, endpoint = mine
    for state in ("delivered", "failed", "failed"):
        made(endpoint, state)
    made(create_endpoint(owner(), WANTED), "failed")
    assert endpoints.replay_failed(me, endpoint.pk) == 2
    assert sorted(Delivery.objects.values_list("state", flat=True)) == ["delivered", "failed", "waiting", "waiting"]


def test_what_is_sent_again_keeps_the_order_of_its_listing_also_before_what_waits(mine):
    me, endpoint = mine
    quay, mole = {"subject": "company:quay"}, {"subject": "company:mole"}
    first, second = made(endpoint, "failed", **quay), made(endpoint, "failed", **quay)
    newer = made(endpoint, "waiting", next_at=now(), **quay)
    other = made(endpoint, "failed", **mole)
    elsewhere = made(create_endpoint(owner(), WANTED), "waiting", next_at=now(), **quay)
    endpoints.replay_failed(me, endpoint.pk)
    due = Delivery.objects.filter(next_at__isnull=False).order_by("pk").values_list("pk", flat=True)
    assert list(due) == [first.pk, other.pk, elsewhere.pk]
    assert {second.pk, newer.pk} == set(Delivery.objects.filter(next_at=None).values_list("pk", flat=True))


def test_an_ended_endpoint_is_sent_nothing_until_it_is_started_again(mine):
    me, endpoint = mine
    failed = made(endpoint, "failed")
    Endpoint.objects.update(ended="gone", ended_at=now(), failures=9, failing_since=now(), paused_until=now())
    for act in (
        lambda: endpoints.send_test(me, endpoint.pk),
        lambda: endpoints.replay(me, endpoint.pk, failed.pk),
        lambda: endpoints.replay_failed(me, endpoint.pk),
    ):
        with pytest.raises(Conflict, match="is ended"):
            act()
    Place.objects.update(sequence=0)
    again = endpoints.resume_endpoint(me, endpoint.pk)
    assert (again.ended, again.failures, again.failing_since, again.paused_until) == ("", 0, None, None)
    assert Place.objects.get().sequence == events.feed.head()[0]


def test_secrets_are_sealed_and_rotated_with_the_key(mine, settings):
    me, endpoint = mine
    secret = endpoints.shown_secret(me, endpoint.pk)
    assert secret.startswith("whsec_")
    assert len(delivering.secret_key(secret)) == endpoints.SECRET_BYTES
    assert secret not in str(Endpoint.objects.filter(pk=endpoint.pk).values().get())
    endpoints.rotate_secret(me, endpoint.pk)
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another key " * 5
    assert endpoints.shown_secret(me, endpoint.pk) == ""
    keys = [settings.SECRET_KEY, former]
    for kind in sealed.KINDS:
        if "webhooks" in kind.words:
            assert list(kind.keys_of(keys)) == [former]
            assert kind.reseal(keys) == 1
    both = delivering.secrets_of(Endpoint.objects.get(pk=endpoint.pk))
    assert both[1] == secret
    assert both[0] != secret


def test_what_is_done_to_an_endpoint_is_in_the_logs_without_what_may_be_secret():
    me, master = owner(), operator()
    for actor, of_registry in ((me, False), (master, True)):
        made_one = create_endpoint(actor, WANTED._replace(url="https://hooks.example/T0KEN"), of_registry=of_registry)
        endpoints.change_endpoint(actor, made_one.pk, WANTED, of_registry=of_registry)
        endpoints.rotate_secret(actor, made_one.pk, of_registry=of_registry)
        endpoints.delete_endpoint(actor, made_one.pk, of_registry=of_registry)
    done = ["webhook_added", "webhook_changed", "webhook_secret_rotated", "webhook_removed"]
    assert events_of(me.account_id) == done
    assert [(each.event, each.account_id, each.actor_id) for each in audited()] == [
        (event, None, master.account_id) for event in done
    ]
    assert {str(each.detail) for each in SecurityEvent.objects.filter(event__startswith="webhook")} == {
        "{'server': 'hooks.example'}"
    }


def test_an_account_takes_its_endpoints_along(mine, tmp_path):
    me, endpoint = mine
    account = Account.objects.get(pk=me.account_id)
    personal_data.write_archive(account, out := io.BytesIO())
    with zipfile.ZipFile(out) as files:
        (exported,) = json.loads(files.read("webhooks.json"))
    assert (exported["url"], exported["events"], exported["ended"]) == (WANTED.url, WANTED.kinds, None)
    assert "secret" not in exported
    made(endpoint, "failed")
    create_endpoint(owner(), WANTED)
    personal_data.delete(account)
    assert Endpoint.objects.exclude(account=me.account_id).count() == Endpoint.objects.count() == 1
    assert not Delivery.objects.exists()


# ---------------------------------------------------------------- recording


def waiting_jobs():
    return Job.objects.filter(kind=events.JOB).count()


def test_what_is_new_enqueues_the_job_once_within_a_second(monkeypatch):
    monkeypatch.setattr(events, "_known", (0.0, False))
    events.look()
    published(owner())
    events.look()
    assert waiting_jobs() == 0  # there is no webhook yet
    monkeypatch.setattr(events, "_known", (0.0, False))
    me = operator()
    create_endpoint(me, Wanted(WANTED.url, ["listing.published"]), of_registry=True)
    events.look()
    assert waiting_jobs() == 0  # nothing has happened since
    published(owner())
    for _ in range(2):
        events.look()
    assert waiting_jobs() == 1
    Job.objects.all().delete()
    delivering.sort_events()
    events.look()
    assert waiting_jobs() == 0
    events.record("review.asked", {}, for_registry=True)
    events.look()
    assert waiting_jobs() == 1


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_is_no_event():
    me = owner()
    create_endpoint(me, Wanted(WANTED.url, ["document.ready"]))

    with transaction.atomic():
        events.record("document.ready", {}, accounts=[me.account_id])
        transaction.set_rollback(True)
    assert not Event.objects.exists()
    events.record("document.ready", {})
    assert not Event.objects.exists()


def test_the_status_counts_webhooks_by_owner_and_state_and_events_that_can_still_be_delivered(mine):
    _, working = mine
    of_registry = create_endpoint(operator(), WANTED, of_registry=True)
    ended = create_endpoint(owner(), WANTED)
    Endpoint.objects.filter(pk=of_registry.pk).update(failing_since=now())
    Endpoint.objects.filter(pk=ended.pk).update(ended="gone")
    for number, (endpoint, state) in enumerate([(working, "waiting"), (working, "delivered"), (ended, "waiting")]):
        Delivery.objects.create(endpoint=endpoint, event_id=f"evt_{number}", kind="test", body="{}", state=state)
    counts = {("accounts", "works"): 1, ("registry", "failing"): 1, ("accounts", "ended"): 1}
    assert endpoints.webhook_status() == (counts, 1)
    Endpoint.objects.filter(pk=of_registry.pk).update(paused_until=now() + timedelta(minutes=1))
    assert endpoints.webhook_status().endpoints["registry", "paused"] == 1
    head, _ = events.feed.head()
    Endpoint.objects.filter(pk=working.pk).update(behind=head - 7)
    Endpoint.objects.filter(pk=ended.pk).update(behind=head - 7)
    assert endpoints.webhook_status().waiting == 8  # what is stored, and what is in the feed
