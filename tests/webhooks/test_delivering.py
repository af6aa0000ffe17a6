"""Webhooks are sorted, signed, sent in order, tried again, given up, and told only to who may read."""

import hmac
import time
from base64 import b64decode, b64encode
from concurrent.futures import Future
from datetime import timedelta

import pytest

from make.registry import draft, owner, published, reviewer
from muniment.accounts.models import Account
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.registry.company.listings import CompanyChange, update_company
from muniment.registry.people.erasing import erase_person
from muniment.registry.review.workflow import approve_company, submit_company, unlist_company
from muniment.webhooks import delivering, endpoints, events
from muniment.webhooks.endpoints import Wanted, create_endpoint
from muniment.webhooks.events import LISTING_KINDS, OWNER_KINDS, REGISTRY_KINDS
from muniment.webhooks.models import Delivery, Endpoint, Event, Place
from services.receivers import receivers

pytestmark = pytest.mark.django_db
URL = "https://a.hooks.example/in"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with receivers(tmp_path_factory.mktemp("receivers")) as made:
        yield made


@pytest.fixture
def site(running, monkeypatch):
    """The receivers, to which nothing was sent yet."""
    running.answers, running.received, running.at_once = {}, [], {}
    monkeypatch.setattr(delivering, "CONNECTION", running.connection)
    return running


def operator():
    return Account.objects.create_user("operator@example.org", role="operator").actor("web", "pages")


def of_owner(actor, url=URL, kinds=OWNER_KINDS, listings=()):
    return create_endpoint(actor, Wanted(url, kinds, listings))


def of_registry(url=URL, kinds=REGISTRY_KINDS, listings=()):
    return create_endpoint(operator(), Wanted(url, kinds, listings), of_registry=True)


def deliver():
    """Send what is due, as the job does."""
    queue.enqueue(events.JOB)
    run = queue.claim("tests", "webhooks")
    result = delivering.deliver(run)
    run.finish(result)
    Job.objects.all().delete()
    return result["attempts"]


def kinds_sent(site, name="a.hooks.example"):
    return [each["type"] for each in site.events(name)]


def recorded(endpoint, count=1, subject="company:x", **fields):
    """Create deliveries that wait: the first of its subject is due."""
    made = [
        Delivery(
            endpoint=endpoint,
            event_id=f"evt_{subject}_{number}",
            kind="listing.updated",
            subject=subject,
            body=f'{{"number":{number}}}',
            next_at=None if number else now(),
            **fields,
        )
        for number in range(count)
    ]
    return Delivery.objects.bulk_create(made)


def set_due(endpoint):
    """Let the pauses pass."""
    Delivery.objects.filter(endpoint=endpoint, next_at__isnull=False).update(next_at=now())
    Endpoint.objects.filter(pk=endpoint.pk).update(paused_until=None)


# ---------------------------------------------------------------- what is told to whom


def test_an_owner_is_told_of_the_own_listings_from_then_on_and_of_no_others(site):
    me, other = owner(), owner()
    before = published(me)
    of_owner(me)
    published(other)
    update_company(me, before.slug, CompanyChange(description="A new one"))
    deliver()
    public = [each for each in site.events() if each["type"].startswith("listing.")]
    assert [(each["type"], each["data"]["kind"], each["data"]["slug"]) for each in public] == [
        ("listing.updated", "company", before.slug)
    ]
    data = public[0]["data"]
    assert data["url"].endswith(f"/api/v1/companies/{before.slug}")
    assert data["version"] == Place.objects.get().sequence
    assert all(each["data"].get("company", before.slug) == before.slug for each in site.events())


def test_a_named_listing_of_somebody_else_is_told_as_far_as_it_is_public(site):
    theirs = owner()
    listing = published(theirs)
    of_owner(owner(), listings=[listing.slug])
    update_company(theirs, listing.slug, CompanyChange(description="A new one"))
    unlist_company(reviewer(), listing.slug, note="No longer in the scope of the registry.")
    published(theirs)
    deliver()
    assert kinds_sent(site) == ["listing.updated", "listing.unlisted"]


def test_the_registry_is_told_of_everything_public_and_of_reviews_and_of_nothing_else(site):
    of_registry()
    me = owner()
    events.record("report.succeeded", {"run": "1"}, accounts=[me.account_id])
    listing = published(me)
    deliver()
    assert sorted(kinds_sent(site)) == ["listing.published", "review.asked", "review.decided"]
    assert {each["data"].get("company", listing.slug) for each in site.events()} == {listing.slug}


def test_an_endpoint_is_told_of_the_kinds_that_it_chose_only(site):
    me = owner()
    of_owner(me, kinds=["review.decided"])
    published(me)
    deliver()
    assert kinds_sent(site) == ["review.decided"]


@pytest.mark.parametrize(
    ("listing", "accounts", "told"),
    [("named", "mine", True), ("other", "mine", False), ("", "mine", True), ("", "others", False)],
)
def test_an_endpoint_that_names_listings_is_told_of_them_and_of_what_is_of_none(site, listing, accounts, told):
    me, other = owner(), owner()
    of_owner(me, listings=["named"])
    of_registry("https://b.hooks.example/in", listings=["named"])
    concerned = me if accounts == "mine" else other
    events.record("review.decided", {}, accounts=[concerned.account_id], for_registry=True, listing=listing)
    deliver()
    assert kinds_sent(site) == ["review.decided"] * told
    assert kinds_sent(site, "b.hooks.example") == ["review.decided"] * (listing == "named")


def test_private_events_reach_the_endpoints_of_their_accounts_alone(site):
    me, other = owner(), owner()
    of_owner(me)
    of_owner(other, "https://b.hooks.example/in")
    of_registry("https://c.hooks.example/in")
    events.record("document.ready", {"document": "7"}, accounts=[me.account_id])
    deliver()
    assert (kinds_sent(site), kinds_sent(site, "b.hooks.example"), kinds_sent(site, "c.hooks.example")) == (
        ["document.ready"],
        [],
        [],
    )


def test_who_has_lost_a_listing_is_told_no_more_of_it(site):
    me = owner()
    listing = published(me)
    of_owner(me, kinds=["listing.updated"])
    update_company(me, listing.slug, CompanyChange(description="A new one"))
    Account.objects.get(pk=me.account_id).ownerships.all().delete()
    deliver()
    assert kinds_sent(site) == []


def test_drafts_are_told_to_nobody(site):
    of_registry()
    draft(owner())
    deliver()
    assert site.received == []


def test_without_endpoints_nothing_is_recorded_and_later_ones_are_not_told(site):
    me = owner()
    submitted = draft(me)
    submit_company(me, submitted.slug)
    approve_company(reviewer(), submitted.slug)
    assert not Event.objects.exists()
    of_registry()
    deliver()
    assert site.received == []


def test_events_are_sorted_once_and_again_from_the_end_of_another_feed(site):
    of_registry(kinds=["listing.published"])
    published(owner())
    assert delivering.sort_events() > 0
    assert delivering.sort_events() == 0
    Place.objects.update(feed_id="another", sequence=0)
    assert delivering.sort_events() == 0
    Place.objects.update(sequence=10_000_000)
    assert delivering.sort_events() == 0
    assert Place.objects.get().sequence == events.feed.head()[0]
    assert Delivery.objects.count() == 1


def test_a_batch_is_continued_by_the_next_one(site, monkeypatch):
    monkeypatch.setattr(delivering, "BATCH", 2)
    of_registry(kinds=["listing.published"])
    listed = [published(owner()).slug for _ in range(5)]
    deliver()
    assert [each["data"]["slug"] for each in site.events()] == listed


def test_who_is_erased_is_in_no_delivery_and_receivers_learn_of_it(site):
    endpoint = of_registry()
    published(owner(), positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    deliver()
    recorded(endpoint, subject="person:ada-moss")
    recorded(endpoint, subject="person:ada-mossy")
    erase_person(reviewer(), "ada-moss")
    assert {each.subject for each in endpoint.deliveries.all()} >= {"person:ada-mossy"}
    assert not endpoint.deliveries.filter(subject="person:ada-moss").exists()
    site.received.clear()
    deliver()
    of_ada = [each for each in site.events() if each.get("data", {}).get("kind") == "person"]
    assert [(each["type"], each["data"]["slug"]) for each in of_ada] == [("listing.unlisted", "ada-moss")]
    assert "erased" not in str(site.received)


@pytest.mark.parametrize(("kind", "left"), [("listing.unlisted", 1), ("listing.updated", 0)])
def test_that_an_erased_subject_was_unlisted_is_still_sent(site, kind, left):
    endpoint = of_registry()
    recorded(endpoint, 2, subject="person:x")
    Delivery.objects.filter(next_at=None).update(kind=kind)
    events.forget("person:x")
    assert deliver() == left


# ---------------------------------------------------------------- signatures


def verified(secret, headers, body):
    """Verify by the words of the specification, with code of this test's own."""
    signed = b".".join([headers["Webhook-Id"].encode(), headers["Webhook-Timestamp"].encode(), body])
    expected = b64encode(hmac.digest(b64decode(secret.removeprefix("whsec_")), signed, "sha256")).decode()
    return [each == f"v1,{expected}" for each in headers["Webhook-Signature"].split(" ")]


def test_each_attempt_is_signed_with_its_time_and_names_its_event(site):
    me = owner()
    endpoint = of_owner(me)
    endpoints.send_test(me, endpoint.pk)
    deliver()
    ((_, headers, body),) = site.received
    assert verified(endpoints.shown_secret(me, endpoint.pk), headers, body) == [True]
    assert abs(int(headers["Webhook-Timestamp"]) - time.time()) < 60
    assert headers["Webhook-Id"] == site.events()[0]["id"] == Delivery.objects.get().event_id
    assert headers["Content-Type"] == "application/json"


def test_after_a_rotation_both_secrets_sign_for_a_day(site):
    me = owner()
    endpoint = of_owner(me)
    former = endpoints.shown_secret(me, endpoint.pk)
    current = endpoints.shown_secret(me, endpoints.rotate_secret(me, endpoint.pk).pk)
    endpoints.send_test(me, endpoint.pk)
    deliver()
    Endpoint.objects.update(former_until=now())
    Delivery.objects.update(created_at=now() - endpoints.TESTED_EVERY)
    endpoints.send_test(me, endpoint.pk)
    deliver()
    (_, during, first), (_, after, second) = site.received
    assert [verified(each, during, first) for each in (current, former)] == [[True, False], [False, True]]
    assert [verified(each, after, second) for each in (current, former)] == [[True], [False]]


def test_nothing_is_sent_unsigned_when_the_key_of_the_secret_is_gone(site, settings):
    recorded(of_registry())
    settings.SECRET_KEY = "another key " * 5
    deliver()
    (tried,) = Delivery.objects.get().attempts
    assert (tried["status"], tried["said"]) == (None, "the secret cannot be read: rotate it")
    assert site.received == []


# ---------------------------------------------------------------- attempts


def attempts(endpoint):
    return [(each.state, [tried["status"] for tried in each.attempts]) for each in endpoint.deliveries.order_by("id")]


@pytest.mark.parametrize(
    ("status", "state"),
    [(200, "delivered"), (204, "delivered"), (299, "delivered"), (302, "waiting"), (400, "waiting"), (503, "waiting")],
)
def test_only_a_response_in_the_two_hundreds_is_a_delivery(site, status, state):
    endpoint = of_registry()
    recorded(endpoint)
    site.answers["a.hooks.example"] = status
    assert deliver() == 1
    assert attempts(endpoint) == [(state, [status])]
    tried = Delivery.objects.get().attempts[0]
    assert tried["said"] == ("" if status == 204 else "as the test says")
    assert len(site.received) == 1


@pytest.mark.parametrize("failed", [1, 2, len(delivering.PAUSES_S)])
def test_the_pause_after_a_failure_grows_until_the_event_is_given_up(site, failed):
    endpoint = of_registry()
    (waiting,) = recorded(endpoint, attempts=[{"status": 500}] * (failed - 1))
    site.answers["a.hooks.example"] = 500
    began = now()
    deliver()
    waiting.refresh_from_db()
    pause = (waiting.next_at - began).total_seconds()
    assert delivering.PAUSES_S[failed - 1] <= pause < delivering.PAUSES_S[failed - 1] + 30
    assert waiting.state == "waiting"


def test_an_event_is_given_up_after_the_last_pause_or_three_days(site):
    endpoint = of_registry()
    recorded(endpoint, subject="company:x", attempts=[{"status": 500}] * len(delivering.PAUSES_S))
    recorded(endpoint, subject="company:y", created_at=now() - delivering.TRIED - timedelta(seconds=1))
    recorded(endpoint, subject="company:z", created_at=now() - delivering.TRIED + timedelta(minutes=5))
    site.answers["a.hooks.example"] = 500
    deliver()
    assert [each.state for each in endpoint.deliveries.order_by("id")] == ["failed", "failed", "waiting"]
    assert sum(delivering.PAUSES_S) < delivering.TRIED.total_seconds()


def test_events_of_a_subject_wait_for_the_one_before_and_others_do_not(site):
    endpoint = of_registry()
    recorded(endpoint, 3, subject="company:x")
    recorded(endpoint, 2, subject="company:y")
    site.answers["a.hooks.example"] = lambda request: request.send_error(500) if not site.received[1:] else ok(request)
    deliver()
    assert [each.event_id for each in endpoint.deliveries.filter(state="delivered").order_by("finished_at")] == [
        "evt_company:y_0",
        "evt_company:y_1",
    ]
    assert endpoint.deliveries.filter(state="waiting", next_at=None).count() == 2
    set_due(endpoint)
    deliver()
    sent = [body for _, headers, body in site.received if headers["Webhook-Id"].startswith("evt_company:x")]
    assert sent == [b'{"number":0}', b'{"number":0}', b'{"number":1}', b'{"number":2}']


def ok(request):
    request.send_response(204)
    request.end_headers()


def test_what_follows_an_event_that_is_given_up_is_sent(site):
    endpoint = of_registry()
    first, _ = recorded(endpoint, 2)
    Delivery.objects.filter(pk=first.pk).update(attempts=[{"status": 500}] * len(delivering.PAUSES_S))
    site.answers["a.hooks.example"] = lambda request: request.send_error(500) if not site.received[1:] else ok(request)
    deliver()
    assert [each.state for each in endpoint.deliveries.order_by("id")] == ["failed", "delivered"]


def test_new_events_of_a_subject_that_waits_are_not_due(site):
    endpoint = of_registry(kinds=["listing.updated", "listing.published"])
    site.answers["a.hooks.example"] = 500
    me = owner()
    listing = published(me)
    deliver()
    update_company(me, listing.slug, CompanyChange(description="A new one"))
    deliver()
    assert [(each.kind, each.next_at is None) for each in endpoint.deliveries.order_by("id")] == [
        ("listing.published", False),
        ("listing.updated", True),
    ]


def test_an_endpoint_that_fails_is_paused_and_works_again_after_one_success(site):
    endpoint = of_registry()
    for number in range(delivering.ENDPOINT_FAILURES + 3):
        recorded(endpoint, subject=f"company:{number}")
    site.answers["a.hooks.example"] = 500
    assert deliver() == delivering.ENDPOINT_FAILURES
    endpoint.refresh_from_db()
    assert endpoint.failures == delivering.ENDPOINT_FAILURES
    assert now() < endpoint.paused_until <= now() + timedelta(seconds=delivering.PAUSES_S[0])
    set_due(endpoint)
    assert deliver() == 1
    assert Endpoint.objects.get().paused_until > now() + timedelta(seconds=delivering.PAUSES_S[0])
    site.answers["a.hooks.example"] = 204
    set_due(endpoint)
    deliver()
    endpoint.refresh_from_db()
    assert (endpoint.failures, endpoint.failing_since, endpoint.paused_until) == (0, None, None)
    assert {each.state for each in endpoint.deliveries.all()} == {"delivered"}


def test_the_pause_of_an_endpoint_is_an_hour_at_most(site):
    endpoint = of_registry()
    Endpoint.objects.update(failures=500, failing_since=now())
    recorded(endpoint)
    site.answers["a.hooks.example"] = 500
    deliver()
    assert Endpoint.objects.get().paused_until <= now() + delivering.LONGEST_PAUSE


@pytest.mark.parametrize(("ago", "ended"), [(timedelta(days=6, hours=23), ""), (timedelta(days=7), "failing")])
def test_an_endpoint_that_has_failed_for_a_week_is_ended_with_a_mail(site, ago, ended):
    endpoint = of_registry()
    Endpoint.objects.update(failures=9, failing_since=now() - ago)
    recorded(endpoint, 2)
    site.answers["a.hooks.example"] = 500
    assert deliver_keeping_mail() == bool(ended)
    endpoint.refresh_from_db()
    assert endpoint.ended == ended
    set_due(endpoint)
    assert deliver() == (0 if ended else 1)


def deliver_keeping_mail():
    """Send what is due, and return how many mails that enqueued."""
    Job.objects.all().delete()  # of a new webhook, the account is told too
    queue.enqueue(events.JOB)
    run = queue.claim("tests", "webhooks")
    delivering.deliver(run)
    return Job.objects.filter(kind="mail.requested").count()


def test_an_endpoint_that_is_gone_is_ended_at_once_and_its_owner_is_told(site):
    me = owner()
    endpoint = of_owner(me)
    recorded(endpoint, 2)
    site.answers["a.hooks.example"] = 410
    assert deliver_keeping_mail() == 1
    payload = Job.objects.get(kind="mail.requested").payload
    assert payload["to"] == [Account.objects.get(pk=me.account_id).email]
    endpoint.refresh_from_db()
    assert endpoint.ended == "gone"
    assert attempts(endpoint) == [("waiting", [410]), ("waiting", [])]
    endpoints.resume_endpoint(me, endpoint.pk)
    site.answers["a.hooks.example"] = 204
    set_due(endpoint)
    assert deliver() == 2


# ---------------------------------------------------------------- hostile receivers


def test_one_that_hangs_delays_its_own_events_alone(site, monkeypatch):
    monkeypatch.setitem(site.connection, "deadline_s", 1.0)
    hanging = of_registry("https://slow.hooks.example/in")
    working = of_owner(owner())
    site.answers["slow.hooks.example"] = lambda _: time.sleep(3)
    recorded(hanging, subject="company:x")
    for number in range(20):
        recorded(working, subject=f"company:{number}")
    began = time.monotonic()
    deliver()
    assert time.monotonic() - began < 3
    assert working.deliveries.filter(state="delivered").count() == 20
    assert hanging.deliveries.get().attempts[0]["said"] == "no answer in time"


def test_one_that_answers_and_never_ends_counts_as_it_answered(site):
    def endless(request):
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 10)
        time.sleep(5)

    site.answers["a.hooks.example"] = endless
    endpoint = of_registry()
    recorded(endpoint)
    deliver()
    assert attempts(endpoint) == [("delivered", [200])]
    assert Delivery.objects.get().attempts[0]["said"] == "x" * 10
    assert Delivery.objects.get().attempts[0]["milliseconds"] < 5000


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200", b"not HTTP at all\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 4000, b"\0" * 10_000],
)
def test_one_that_speaks_no_http_fails_with_what_was_wrong(site, answer):
    site.answers["a.hooks.example"] = lambda request: request.wfile.write(answer)
    endpoint = of_registry()
    recorded(endpoint)
    deliver()
    (tried,) = Delivery.objects.get().attempts
    assert tried["status"] is None
    assert tried["said"]


def test_what_a_receiver_says_is_cut_and_stored_whatever_it_is(site):
    def loud(request):
        request.wfile.write(b"HTTP/1.1 500 No\r\n\r\n" + b"\0\xff<script>" * 1000)

    site.answers["a.hooks.example"] = loud
    recorded(of_registry())
    deliver()
    said = Delivery.objects.get().attempts[0]["said"]
    assert said.startswith("\ufffd\ufffd<script>")
    assert len(said) <= 500


def test_a_private_address_is_never_asked(site, monkeypatch):
    monkeypatch.setattr(
        delivering, "CONNECTION", {"resolve": lambda *_: ["10.0.0.7"], "port": site.connection["port"], "deadline_s": 3}
    )
    recorded(of_registry())
    deliver()
    (tried,) = Delivery.objects.get().attempts
    assert (tried["status"], tried["said"]) == (None, "the name resolves to an address that is not public")
    assert site.received == []


def test_redirects_are_not_followed(site):
    def elsewhere(request):
        request.send_response(307)
        request.send_header("Location", "https://b.hooks.example/in")
        request.end_headers()

    site.answers["a.hooks.example"] = elsewhere
    endpoint = of_registry()
    recorded(endpoint)
    deliver()
    assert attempts(endpoint) == [("waiting", [307])]
    assert site.events("b.hooks.example") == []


def test_an_endpoint_has_one_request_at_a_time_and_an_account_a_few(site):
    me = owner()
    hosts = [f"h{number}.hooks.example" for number in range(delivering.AT_ONCE_OF_ACCOUNT + 2)]
    now_running, most = [], []

    def slow(request):
        now_running.append(1)
        most.append(len(now_running))
        time.sleep(0.2)
        now_running.pop()
        ok(request)

    for host in hosts:
        site.answers[host] = slow
        endpoint = of_owner(me, f"https://{host}/in")
        for number in range(3):
            recorded(endpoint, subject=f"company:{number}")
    deliver()
    assert {site.at_once[host] for host in hosts} == {1}
    assert max(most) == delivering.AT_ONCE_OF_ACCOUNT
    assert not Delivery.objects.exclude(state="delivered").exists()


def test_what_was_sent_and_not_noted_is_sent_again_with_the_same_id(site, monkeypatch):
    recorded(of_registry())

    def killed(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(delivering, "_note", killed)
        with pytest.raises(KeyboardInterrupt):
            deliver()
    Job.objects.all().delete()
    deliver()
    assert [headers["Webhook-Id"] for _, headers, _ in site.received] == ["evt_company:x_0"] * 2
    assert Delivery.objects.get().state == "delivered"


# ---------------------------------------------------------------- what is kept


@pytest.mark.parametrize(
    ("state", "ago", "kept"),
    [
        ("delivered", events.KEPT - timedelta(minutes=5), 1),
        ("delivered", events.KEPT + timedelta(minutes=5), 0),
        ("failed", events.FAILED_KEPT - timedelta(minutes=5), 1),
        ("failed", events.FAILED_KEPT + timedelta(minutes=5), 0),
        ("waiting", events.FAILED_KEPT + timedelta(minutes=5), 0),
    ],
)
def test_deliveries_are_kept_for_a_while(site, state, ago, kept):
    then = now() - ago
    recorded(of_registry(), state=state, created_at=then, finished_at=None if state == "waiting" else then)
    assert events.prune() == {"deliveries": 1 - kept}
    assert Delivery.objects.count() == kept


def test_the_job_comes_only_while_there_is_an_endpoint_that_works(monkeypatch):
    monkeypatch.setattr(events, "KNOWN_S", 0.0)
    monkeypatch.setattr(events, "_known", (0.0, False))
    assert events.interval_s() == 0
    of_registry()
    assert events.interval_s() == 10
    Endpoint.objects.update(ended="gone")
    assert events.interval_s() == 0


# ---------------------------------------------------------------- fairness, and what is stored


def turns(flying=(), slow=()):
    made = delivering._Turns(slow=set(slow))
    for endpoint, account in flying:
        made.begin(Endpoint(pk=endpoint, account_id=account), Future())
    return made


def test_slow_endpoints_have_half_of_all_requests_and_others_the_rest():
    slow = [f"slow-{number:02}" for number in range(delivering.AT_ONCE)]
    fast = [f"work-{number:02}" for number in range(delivering.AT_ONCE)]
    candidates = [(endpoint, None, 0) for endpoint in (*slow, *fast)]
    chosen = turns(slow=slow).ordered(candidates)
    assert chosen == slow[: delivering.SLOW_AT_ONCE] + fast[: delivering.AT_ONCE - delivering.SLOW_AT_ONCE]
    half = [(endpoint, None) for endpoint in slow[: delivering.SLOW_AT_ONCE]]
    assert not set(turns(half, slow).ordered(candidates)) & set(slow)


def test_endpoints_take_turns_and_those_that_fail_come_last():
    made = turns()
    for endpoint in ("a", "b", "c"):
        made.begin(Endpoint(pk=endpoint), Future())
    made.flying.clear()
    assert made.ordered([("c", None, 0), ("a", None, 0), ("new", None, 0), ("b", None, 1)]) == ["new", "a", "c", "b"]


@pytest.mark.parametrize(("milliseconds", "is_slow"), [(delivering.SLOW_MS - 1, False), (delivering.SLOW_MS, True)])
def test_an_endpoint_is_slow_by_its_latest_response(milliseconds, is_slow):
    made = turns(slow=["a"])
    delivery = Delivery(endpoint_id="a")
    made.note([(delivery, delivering.Outcome(200, "", 9_999)), (delivery, delivering.Outcome(200, "", milliseconds))])
    assert ("a" in made.slow) is is_slow


def test_a_row_is_sent_by_one_connection_and_ends_at_a_failure_or_when_its_time_is_over(site, monkeypatch):
    endpoint = of_registry()
    for number in range(5):
        recorded(endpoint, subject=f"company:{number}")
    deliveries = list(Delivery.objects.order_by("pk"))
    ports = []

    def answer(request):
        ports.append(request.client_address[1])
        if len(ports) == 3:
            request.send_error(500)
        else:
            ok(request)

    site.answers["a.hooks.example"] = answer
    monkeypatch.setattr(site._server.RequestHandlerClass, "protocol_version", "HTTP/1.1")  # it keeps connections

    def send():
        outcomes = delivering.Outcomes()
        delivering.send_in_a_row(endpoint.url, delivering.secrets_of(endpoint), deliveries, outcomes)
        return [outcomes.get()[1].is_success for _ in range(outcomes.qsize())]

    assert send() == [True, True, False], "the two after the failure are left to a later turn"
    assert len({*ports}) == 1
    assert send() == [True] * 5
    monkeypatch.setattr(delivering, "IN_A_ROW_S", -1.0)
    assert send() == [True]


def test_after_a_failure_in_a_row_the_others_are_sent_and_it_waits(site):
    endpoint = of_registry()
    for number in range(5):
        recorded(endpoint, subject=f"company:{number}")
    site.answers["a.hooks.example"] = lambda request: (
        request.send_error(500) if len(site.received) == 3 else ok(request)
    )
    deliver()
    assert sorted(state for state, _ in attempts(endpoint)) == ["delivered"] * 4 + ["waiting"]
    assert [len(tried) for _, tried in attempts(endpoint)] == [1] * 5


def test_an_endpoint_for_which_too_many_events_wait_continues_in_the_feed(site, monkeypatch):
    monkeypatch.setattr(delivering, "MAX_WAITING", 4)
    site.answers["dead.hooks.example"] = 500
    dead, working = of_registry("https://dead.hooks.example/in", LISTING_KINDS), of_owner(owner())
    me = owner()
    listings = [published(me) for _ in range(3)]
    deliver()
    assert (waiting(dead), behind(dead)) == (3, None)
    update_company(me, listings[0].slug, CompanyChange(description="The fourth event is stored."))
    deliver()
    assert (waiting(dead), behind(dead)) == (4, None)
    place = Place.objects.get().sequence
    for number in range(6):
        update_company(me, listings[number % 3].slug, CompanyChange(description=f"Kept in the feed: {number}."))
        deliver()
    assert (waiting(dead), behind(dead), behind(working)) == (4, place, None)
    events.record("review.asked", {"number": 1}, for_registry=True)
    Endpoint.objects.filter(pk=dead.pk).update(kinds=[*LISTING_KINDS, "review.asked"])
    deliver()
    assert (waiting(dead), behind(dead)) == (5, place)  # what is in no feed is stored
    site.answers["dead.hooks.example"] = 204
    for _ in range(20):
        set_due(dead)
        deliver()
    assert (waiting(dead), behind(dead)) == (0, None)
    versions = {}
    for event in site.events("dead.hooks.example"):
        if event["type"] in LISTING_KINDS:
            versions.setdefault(event["data"]["slug"], []).append(event["data"]["version"])
    assert all(list(dict.fromkeys(found)) == sorted(set(found)) for found in versions.values())
    assert len({version for found in versions.values() for version in found}) == 10


def waiting(endpoint):
    return endpoint.deliveries.filter(state="waiting").count()


def behind(endpoint):
    return Endpoint.objects.get(pk=endpoint.pk).behind


def test_events_that_the_feed_no_longer_has_are_named_in_the_log(site, caplog):
    endpoint, me = of_registry(), owner()
    published(me)
    delivering.sort_events()
    published(me)
    delivering.sort_events()
    Endpoint.objects.update(behind=-1)
    assert delivering.sort_events() > 0
    assert f"the webhook {endpoint.pk} was not told of changes that the feed no longer has" in caplog.text


def test_the_place_of_one_that_is_behind_is_forgotten_with_the_feed(site):
    endpoint = of_registry()
    delivering.sort_events()
    Endpoint.objects.update(behind=1)
    Place.objects.update(feed_id="another")
    delivering.sort_events()
    assert behind(endpoint) is None


def test_of_what_was_delivered_the_latest_are_kept(site, monkeypatch):
    monkeypatch.setattr(events, "DELIVERED_KEPT", 3)
    monkeypatch.setattr(events, "PRUNED_AT_ONCE", 2)
    endpoint, other = of_registry(), of_owner(owner())
    for number in range(8):
        recorded(endpoint, subject=f"company:{number}")
    recorded(other)
    recorded(endpoint, subject="failed", state="failed")
    deliver()
    kept = endpoint.deliveries.order_by("id").values_list("state", flat=True)
    assert list(kept) == ["delivered"] * 3 + ["failed"]
    assert other.deliveries.count() == 1


def test_a_job_whose_time_is_over_lets_the_next_one_continue(site, monkeypatch):
    monkeypatch.setattr(delivering, "LONGEST_RUN_S", -1.0)
    recorded(of_registry())
    queue.enqueue(events.JOB)
    run = queue.claim("tests", "webhooks")
    assert delivering.deliver(run) == {"attempts": 0}
    assert Job.objects.filter(kind=events.JOB, state="queued").count() == 1
    assert site.received == []


def test_what_was_deleted_while_it_was_sent_is_not_stored_again(site):
    recorded(of_registry())
    (delivery,) = Delivery.objects.all()
    Delivery.objects.all().delete()
    delivering._note([(delivery, delivering.Outcome(200, "", 1))])
    assert not Delivery.objects.exists()
