"""
Sort events into deliveries, and send those that are due.

One job does both, one at a time for all processes that run jobs. What waits for a server runs in threads; the job alone
writes, so a process that is killed loses no more than the answers that it has not written: those events are sent again,
by another process once the lease of the job is over.

An event is delivered at least once, and those of one subject in order: the next one is not due before the one before it
is delivered or given up. An endpoint has one request at a time, so a slow one delays its own events only. Slow ones
share half of the requests, and all take turns, so none keeps another waiting.

Source: Standard Webhooks, standardwebhooks.com.
"""

import base64
import hashlib
import hmac
import http.client
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from queue import SimpleQueue
from typing import Final, NamedTuple

import msgspec
from cryptography.fernet import InvalidToken
from django.db import connection, transaction
from django.db.models import Exists, Min, OuterRef
from django.utils.translation import gettext

from muniment.accounts.models import Account
from muniment.encryption import unseal
from muniment.jobs.handlers import Handler
from muniment.jobs.queue import JobRun
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import timestamp
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of
from muniment.outbound.fetching import Channel, Connection
from muniment.store.database.erasure import ERASED_KEY_PREFIX
from muniment.webhooks import events
from muniment.webhooks.events import JOB
from muniment.webhooks.models import Delivery, Endpoint, Event, Place

log = logging.getLogger(__name__)
PURPOSE: Final = "webhook"
"""What secrets of endpoints are sealed for."""
CONNECTION: Final[Connection] = {"deadline_s": 10.0}
AT_ONCE: Final = 16
"""Requests to endpoints at once in the process that sends."""
AT_ONCE_OF_ACCOUNT: Final = 4
SLOW_MS: Final = 1_000
SLOW_AT_ONCE: Final = 8
"""Of these, the endpoints whose latest response took a second or longer."""
IN_A_ROW: Final = 100
"""Events that an endpoint is sent by one connection before others have their turn."""
IN_A_ROW_S: Final = 1.0
"""After that, no further one is sent in this row."""
NOTED_EVERY_S: Final = 0.1
"""Outcomes are stored together this often; a process that is killed sends again what it has sent since."""
SORTED_EVERY_S: Final = 0.2
"""While requests are on their way, new events are looked for this often."""
BATCH: Final = 500
"""Entries of the feed, or events, that are sorted in one transaction."""
BATCH_ROWS: Final = 1_000
"""Deliveries that one transaction makes of them, about: owners' changes wait for it, some 100 ms on SQLite."""
MAX_WAITING: Final = 5_000
"""Events that wait and are stored for an endpoint, about 3 MB. Further ones stay in the change feed until then."""
PAUSES_S: Final = (5, 30, 120, 600, 1800, 3600, *[3 * 3600] * 3, *[6 * 3600] * 9)
"""Pauses after each failed attempt; together nearly three days."""
TRIED: Final = timedelta(days=3)
"""An event that is older is given up when an attempt fails."""
ENDPOINT_FAILURES: Final = 5
"""Failures without a success, after which an endpoint is paused: then one attempt shows whether it works again."""
LONGEST_PAUSE: Final = timedelta(hours=1)
FAILING: Final = timedelta(days=7)
"""An endpoint that has failed for so long is ended."""
LONGEST_RUN_S: Final = 60.0
"""After that, nothing more is begun: the next job continues, maybe in another process."""


# ---------------------------------------------------------------- sorting


class Happening(NamedTuple):
    """An event, from the feed or recorded, before it is known who gets it; ``accounts`` is None for public ones."""

    event_id: str
    kind: str
    subject: str
    listing: str
    data: JSONObject
    at: datetime | str
    accounts: frozenset[int] | None
    for_registry: bool


def sort_events() -> int:
    """Make deliveries of the next events, and return how many entries and events were read."""
    head = events.feed.head()
    with transaction.atomic():
        place = _place(head)
        endpoints = list(Endpoint.objects.filter(ended=""))
        batch = max(1, min(BATCH, BATCH_ROWS // max(1, len(endpoints))))
        entries = _entries_after(place.sequence, head[0], batch)
        recorded = list(Event.objects.select_for_update().order_by("id")[:batch])
        if entries:
            _leave_behind(endpoints, place.sequence)
        public, private = _all_published(entries, place.feed_id), [_recorded(event) for event in recorded]
        _make_deliveries([each for each in endpoints if each.behind is None], [*public, *private])
        _make_deliveries([each for each in endpoints if each.behind is not None], private)
        Event.objects.filter(pk__in=[each.pk for each in recorded]).delete()
        if entries:
            place.sequence = entries[-1].sequence
            place.save()
    caught_up = sum(_catch_up(endpoint, place) for endpoint in endpoints if endpoint.behind is not None)
    return len(entries) + len(recorded) + caught_up


def _leave_behind(endpoints: Iterable[Endpoint], sequence: int) -> None:
    """Let the endpoints for which too many events wait continue later at this place of the feed."""
    for endpoint in endpoints:
        if endpoint.behind is None and _waiting(endpoint) >= MAX_WAITING:
            endpoint.behind = sequence
            endpoint.save(update_fields=["behind"])


def _catch_up(endpoint: Endpoint, place: Place) -> int:
    """Make deliveries of the next entries for an endpoint that is behind, if half of those that waited are sent."""
    room = MAX_WAITING - _waiting(endpoint)
    if endpoint.behind is None or room < MAX_WAITING // 2:
        return 0
    with transaction.atomic():
        entries = _entries_after(endpoint.behind, place.sequence, min(room, BATCH))
        if entries and entries[0].sequence > endpoint.behind + 1:
            log.warning("the webhook %s was not told of changes that the feed no longer has", endpoint.pk)
        _make_deliveries([endpoint], _all_published(entries, place.feed_id))
        endpoint.behind = entries[-1].sequence if entries else place.sequence
        if endpoint.behind >= place.sequence:
            endpoint.behind = None
        endpoint.save(update_fields=["behind"])
    return len(entries)


def _waiting(endpoint: Endpoint) -> int:
    return Delivery.objects.filter(endpoint=endpoint, state=Delivery.State.WAITING).count()


def _place(head: tuple[int, str]) -> Place:
    """Return the place in the feed, locked; at its end if there was none, or if the feed is another one now."""
    place = Place.objects.select_for_update().first()
    if place is None:
        return Place.objects.create(pk=1, sequence=head[0], feed_id=head[1])
    if place.feed_id != head[1] or place.sequence > head[0]:
        place.sequence, place.feed_id = head
        place.save()
        Endpoint.objects.update(behind=None)
    return place


class Entry(NamedTuple):
    """An entry of the change feed."""

    sequence: int
    kind: str
    key: str
    change: str
    at: str


def _entries_after(sequence: int, until: int, limit: int) -> list[Entry]:
    """Return the next entries of the change feed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sequence, kind, key, change, at FROM published_change WHERE sequence > %s AND sequence <= %s"
            " ORDER BY sequence LIMIT %s",
            [sequence, until, limit],
        )
        return [Entry(*row) for row in cursor.fetchall()]


def _all_published(entries: Iterable[Entry], feed_id: str) -> list[Happening]:
    """Return the events of entries, without those about erased people, which only make followers copy others again."""
    return [_published(entry, feed_id) for entry in entries if not entry.key.startswith(ERASED_KEY_PREFIX)]


def _published(entry: Entry, feed_id: str) -> Happening:
    address = f"{places.base_url()}/api/v1/{_LISTS[entry.kind]}/{entry.key}"
    return Happening(
        event_id=f"{feed_id[:26]}_{entry.sequence}",
        kind=f"listing.{entry.change}",
        subject=f"{entry.kind}:{entry.key}",
        listing=entry.key if entry.kind == "company" else "",
        data={"kind": entry.kind, "slug": entry.key, "version": entry.sequence, "url": address},
        at=entry.at,
        accounts=None,
        for_registry=True,
    )


_LISTS: Final = {"company": "companies", "person": "people", "framework": "frameworks"}


def _recorded(event: Event) -> Happening:
    return Happening(
        event_id=event.event_id,
        kind=event.kind,
        subject=f"company:{event.listing}" if event.listing else event.kind.partition(".")[0],
        listing=event.listing,
        data=event.data,
        at=event.at,
        accounts=frozenset(event.accounts),
        for_registry=event.for_registry,
    )


def _make_deliveries(endpoints: Sequence[Endpoint], happenings: Sequence[Happening]) -> None:
    if not endpoints or not happenings:
        return
    public = {each.listing for each in happenings if each.accounts is None and each.listing}
    owners: dict[str, set[int]] = {}
    if any(endpoint.account_id for endpoint in endpoints):
        owners = events.feed.owners_of(sorted(public))
    moment = now()
    for endpoint in endpoints:
        wanted = [each for each in happenings if _wants(endpoint, each, owners)]
        subjects = {each.subject for each in wanted}
        waiting = Delivery.objects.filter(endpoint=endpoint, state=Delivery.State.WAITING, subject__in=subjects)
        blocked = set(waiting.values_list("subject", flat=True).distinct())
        made = []
        for each in wanted:
            next_at = None if each.subject in blocked else moment
            blocked.add(each.subject)
            made.append(_delivery(endpoint, each, next_at))
        Delivery.objects.bulk_create(made, ignore_conflicts=True, batch_size=BATCH)


def _wants(endpoint: Endpoint, event: Happening, owners: dict[str, set[int]]) -> bool:
    """Return whether an endpoint is told of an event. Who may read what is decided here."""
    if event.kind not in endpoint.kinds:
        return False
    # Credits and claims of an account are of no listing, so naming listings does not exclude them.
    is_of_account_alone = endpoint.account_id is not None and event.accounts is not None and not event.listing
    if endpoint.listings and not is_of_account_alone and event.listing not in endpoint.listings:
        return False
    if endpoint.account_id is None:
        return event.for_registry
    if event.accounts is not None:
        return endpoint.account_id in event.accounts
    # What is public may be told to anyone; an owner who named no listings wants to hear of the own ones.
    return bool(endpoint.listings) or endpoint.account_id in owners.get(event.listing, ())


def _delivery(endpoint: Endpoint, event: Happening, next_at: datetime | None) -> Delivery:
    at = event.at if isinstance(event.at, str) else timestamp(event.at)
    body = {"id": f"evt_{event.event_id}", "type": event.kind, "timestamp": at, "data": event.data}
    return Delivery(
        endpoint=endpoint,
        event_id=f"evt_{event.event_id}",
        kind=event.kind,
        subject=event.subject,
        body=msgspec.json.encode(body).decode(),
        next_at=next_at,
    )


# ---------------------------------------------------------------- sending


def secret_key(secret: str) -> bytes:
    """Return the bytes of a secret as it is shown: ``whsec_`` and base64."""
    return base64.b64decode(secret.removeprefix("whsec_"))


def signature(secret: str, event_id: str, at: int, body: str) -> str:
    """Sign by Standard Webhooks, version 1: HMAC-SHA256 of id, time and body."""
    signed = hmac.digest(secret_key(secret), f"{event_id}.{at}.{body}".encode(), hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


def secrets_of(endpoint: Endpoint) -> list[str]:
    """Return the secrets that sign now, the current one first; none if the key that sealed them is lost."""
    sealed = [endpoint.secret]
    if endpoint.former_until is not None and endpoint.former_until > now():
        sealed.append(endpoint.former_secret)
    try:
        return [unseal(each, PURPOSE).decode() for each in sealed]
    except InvalidToken:
        return []


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt: a status or a fault, the beginning of the response, and how long it took."""

    status: int | None
    said: str
    milliseconds: int

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def attempt(channel: Channel, secrets: Sequence[str], event_id: str, body: str) -> Outcome:
    """Send an event once. It reads no database, so it may run in any thread. Nothing is sent without a signature."""
    if not secrets:
        return Outcome(None, "the secret cannot be read: rotate it", 0)
    at = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "Webhook-Id": event_id,
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": " ".join(signature(secret, event_id, at, body) for secret in secrets),
    }
    began = time.monotonic()
    status, said = None, ""
    try:
        answer = channel.post(body.encode(), headers)
        status, said = answer.status, answer.excerpt
    except TimeoutError:
        said = "no answer in time"
    except (OSError, ValueError, http.client.HTTPException) as error:
        said = str(error) or type(error).__name__
    # PostgreSQL stores no NUL.
    return Outcome(status, said.replace("\0", "\ufffd")[:500], round((time.monotonic() - began) * 1000))


Outcomes = SimpleQueue[tuple[Delivery, Outcome]]


def send_in_a_row(url: str, secrets: Sequence[str], deliveries: Sequence[Delivery], outcomes: Outcomes) -> None:
    """Send *deliveries* to their endpoint one after another until one fails or the time is over; in any thread."""
    until = time.monotonic() + IN_A_ROW_S
    with Channel(url, **CONNECTION) as channel:
        for delivery in deliveries:
            outcome = attempt(channel, secrets, delivery.event_id, delivery.body)
            outcomes.put((delivery, outcome))
            if not outcome.is_success or time.monotonic() > until:
                break


@dataclass
class _Turns:
    """
    Which endpoints are being sent to, and whose turn is next.

    Args:
        flying: what is on its way, with the account of the endpoint, by its id.
        slow: endpoints whose latest response was slow.
        served: the number of the latest turn of each endpoint.
    """

    flying: dict[str, tuple[int | None, Future[None]]] = field(default_factory=dict)
    slow: set[str] = field(default_factory=set)
    served: dict[str, int] = field(default_factory=dict)
    number: int = 0

    def ordered(self, candidates: Iterable[tuple[str, int | None, int]]) -> list[str]:
        """
        Return which of the endpoints that have events due are sent to now.

        Those that work come before those that fail, and then those whose turn was longest ago. No account has more than
        a few requests on their way, and slow endpoints no more than half of all.

        Args:
            candidates: the endpoints with nothing on its way: id, account and failures.
        """
        of_accounts = Counter(account for account, _ in self.flying.values())
        slow = len(self.slow & self.flying.keys())
        chosen: list[str] = []
        for endpoint, account, _ in sorted(candidates, key=lambda each: (each[2], self.served.get(each[0], 0))):
            if len(self.flying) + len(chosen) == AT_ONCE:
                break
            if account is not None and of_accounts[account] >= AT_ONCE_OF_ACCOUNT:
                continue
            if endpoint in self.slow:
                if slow >= SLOW_AT_ONCE:
                    continue
                slow += 1
            of_accounts[account] += 1
            chosen.append(endpoint)
        return chosen

    def begin(self, endpoint: Endpoint, work: Future[None]) -> None:
        self.number += 1
        self.served[endpoint.pk] = self.number
        self.flying[endpoint.pk] = endpoint.account_id, work

    def wait(self, seconds: float) -> list[str]:
        """Wait until the turn of an endpoint has ended, or for some time; return those that have ended."""
        wait([work for _, work in self.flying.values()], seconds, return_when=FIRST_COMPLETED)
        return [endpoint for endpoint, (_, work) in self.flying.items() if work.done()]

    def end(self, endpoints: Iterable[str]) -> None:
        for endpoint in endpoints:
            _, work = self.flying.pop(endpoint)
            work.result()

    def note(self, outcomes: Iterable[tuple[Delivery, Outcome]]) -> None:
        """Remember which endpoints are slow."""
        for delivery, outcome in outcomes:
            if outcome.milliseconds >= SLOW_MS:
                self.slow.add(delivery.endpoint_id)
            else:
                self.slow.discard(delivery.endpoint_id)


def deliver(run: JobRun) -> dict[str, int]:
    """Sort and send until nothing is due, or for a minute; the next job continues at once."""
    until = time.monotonic() + LONGEST_RUN_S
    sent, sort_at, are_more = 0, 0.0, False
    turns, outcomes = _Turns(), Outcomes()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook") as pool:
        try:
            while True:
                run.check()
                moment = time.monotonic()
                is_over = moment >= until
                if moment >= sort_at and not is_over:
                    are_more = sort_events() > 0
                    sort_at = moment + (0 if are_more and not turns.flying else SORTED_EVERY_S)
                if not is_over:
                    for endpoint, deliveries in _due(turns):
                        given = endpoint.url, secrets_of(endpoint), deliveries, outcomes
                        turns.begin(endpoint, pool.submit(send_in_a_row, *given))
                if not turns.flying and (is_over or not are_more):
                    break
                ended = turns.wait(NOTED_EVERY_S)
                sent += _note_all(outcomes, turns)
                turns.end(ended)
        finally:
            # What is on its way is answered within its deadline; its outcome counts.
            pool.shutdown()
            sent += _note_all(outcomes, turns)
    events.prune_delivered(turns.served)
    if is_over:
        events.send_soon()
    return {"attempts": sent}


def _note_all(outcomes: Outcomes, turns: _Turns) -> int:
    """Store all outcomes so far, and return how many."""
    found = []
    while not outcomes.empty():
        found.append(outcomes.get())
    if found:
        _note(found)
        turns.note(found)
    return len(found)


def _due(turns: _Turns) -> list[tuple[Endpoint, list[Delivery]]]:
    """Return the endpoints whose turn it is, each with what is due."""
    if len(turns.flying) == AT_ONCE:
        return []
    moment = now()
    due = Delivery.objects.filter(state=Delivery.State.WAITING, next_at__lte=moment)
    working = Endpoint.objects.filter(ended="").exclude(pk__in=turns.flying).exclude(paused_until__gt=moment)
    candidates = working.filter(Exists(due.filter(endpoint=OuterRef("pk")))).order_by("id")
    chosen = turns.ordered(candidates.values_list("pk", "account_id", "failures"))
    endpoints = Endpoint.objects.in_bulk(chosen)
    return [
        (endpoint, list(due.filter(endpoint=endpoint).order_by("next_at", "id")[:IN_A_ROW]))
        for endpoint in endpoints.values()
    ]


def _note(outcomes: Sequence[tuple[Delivery, Outcome]]) -> None:
    """Store what came of attempts, in one transaction."""
    with transaction.atomic():
        rows = Endpoint.objects.select_for_update().filter(pk__in={delivery.endpoint_id for delivery, _ in outcomes})
        endpoints = {row.pk: row for row in rows.order_by("pk")}
        noted = [(delivery, outcome) for delivery, outcome in outcomes if delivery.endpoint_id in endpoints]
        for delivery, outcome in noted:
            _note_attempt(delivery, outcome)
            _note_endpoint(endpoints[delivery.endpoint_id], outcome)
        deliveries = [delivery for delivery, _ in noted]
        _save(deliveries)
        _release_next([delivery for delivery in deliveries if delivery.state != Delivery.State.WAITING])


def _save(deliveries: Iterable[Delivery]) -> None:
    """Store what an attempt changes. The ORM's bulk_update takes 0.5 ms for each: more than all else of a delivery."""
    adapted, as_time = connection.ops.adapt_json_value, connection.ops.adapt_datetimefield_value
    rows = [
        (adapted(each.attempts, None), each.state, as_time(each.next_at), as_time(each.finished_at), each.pk)
        for each in deliveries
    ]
    with connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE webhooks_delivery SET attempts = %s, state = %s, next_at = %s, finished_at = %s WHERE id = %s", rows
        )


def _note_attempt(delivery: Delivery, outcome: Outcome) -> None:
    moment = now()
    tried = {
        "at": timestamp(moment),
        "status": outcome.status,
        "said": outcome.said,
        "milliseconds": outcome.milliseconds,
    }
    delivery.attempts = [*delivery.attempts, tried]
    pauses_left = PAUSES_S[len(delivery.attempts) - 1 :]
    if outcome.is_success:
        delivery.state, delivery.next_at, delivery.finished_at = Delivery.State.DELIVERED, None, moment
    elif not pauses_left or moment - delivery.created_at > TRIED:
        delivery.state, delivery.next_at, delivery.finished_at = Delivery.State.FAILED, None, moment
    else:
        delivery.next_at = moment + timedelta(seconds=pauses_left[0])


def _release_next(finished: Iterable[Delivery]) -> None:
    """Make the next events of the same subjects due."""
    subjects: dict[str, set[str]] = defaultdict(set)
    for delivery in finished:
        subjects[delivery.endpoint_id].add(delivery.subject)
    for endpoint, of_endpoint in subjects.items():
        behind = Delivery.objects.filter(endpoint=endpoint, subject__in=of_endpoint, state=Delivery.State.WAITING)
        following = behind.values("subject").annotate(first=Min("id")).values_list("first", flat=True)
        Delivery.objects.filter(pk__in=list(following), next_at__isnull=True).update(next_at=now())


def _note_endpoint(endpoint: Endpoint, outcome: Outcome) -> None:
    moment = now()
    if outcome.is_success:
        if endpoint.failures:
            endpoint.failures, endpoint.failing_since, endpoint.paused_until = 0, None, None
            endpoint.save(update_fields=["failures", "failing_since", "paused_until"])
        return
    endpoint.failures += 1
    endpoint.failing_since = endpoint.failing_since or moment
    beyond = endpoint.failures - ENDPOINT_FAILURES
    if beyond >= 0:
        pause = timedelta(seconds=PAUSES_S[0] * 2 ** min(beyond, 16))
        endpoint.paused_until = moment + min(pause, LONGEST_PAUSE)
    endpoint.save(update_fields=["failures", "failing_since", "paused_until"])
    if outcome.status == http.client.GONE:
        end(endpoint, "gone")
    elif moment - endpoint.failing_since >= FAILING:
        end(endpoint, "failing")


def end(endpoint: Endpoint, why: str) -> None:
    """
    End an endpoint and mail those who manage it, in the caller's transaction. What waits for it stays.

    Args:
        why: ``gone`` (it answered 410) or ``failing`` (for a week).
    """
    endpoint.ended, endpoint.ended_at = why, now()
    endpoint.save(update_fields=["ended", "ended_at"])
    active = Account.objects.filter(is_active=True)
    managers = active.filter(role="operator") if endpoint.account_id is None else active.filter(pk=endpoint.account_id)
    page = "/operate/webhooks" if endpoint.account_id is None else "/manage/webhooks"
    for manager in managers:
        with in_language_of(manager):
            reason = gettext("It answered 410 Gone.") if why == "gone" else gettext("It has failed for a week.")
            text = gettext("The webhook %(url)s was ended. %(reason)s Events that wait for it are kept for 30 days.")
            link = places.link(gettext("Open the webhook"), f"{page}/{endpoint.pk}")
            words = text % {"url": outgoing.without_links(endpoint.url, 200), "reason": reason}
            outgoing.send(manager.email, gettext("A webhook was ended"), f"{words}\n\n{link}\n")


HANDLER: Final = Handler(
    kind=JOB, work=deliver, lease_s=15, max_kills=5, lane="webhooks", per_group=1, successes_kept=timedelta(minutes=10)
)
