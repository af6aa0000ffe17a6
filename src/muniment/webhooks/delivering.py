"""
Sort events into deliveries, and send those that are due.

One job does both, one at a time for all processes. What waits for a server runs in threads; the job alone writes, so a
process that is killed loses no more than the answers that it has not written: those events are sent again.

An event is delivered at least once, and those of one subject in order: the next one is not due before the one before it
is delivered or given up. An endpoint has one request at a time, so a slow one delays its own events only.

Source: Standard Webhooks, standardwebhooks.com.
"""

import base64
import hashlib
import hmac
import http.client
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from cryptography.fernet import InvalidToken
from django.db import connection, transaction
from django.db.models import OuterRef, Subquery
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
from muniment.outbound.fetching import Connection, post
from muniment.store.database.erasure import ERASED_KEY_PREFIX
from muniment.webhooks import events
from muniment.webhooks.events import JOB
from muniment.webhooks.models import Delivery, Endpoint, Event, Place

PURPOSE: Final = "webhook"
"""What secrets of endpoints are sealed for."""
CONNECTION: Final[Connection] = {"deadline_s": 10.0}
AT_ONCE: Final = 16
"""Requests to endpoints at once in the process that sends."""
AT_ONCE_OF_ACCOUNT: Final = 4
SORTED_EVERY_S: Final = 0.2
"""While requests are on their way, new events are looked for this often."""
BATCH: Final = 500
"""Entries of the feed, or events, that are sorted in one transaction."""
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
    """Make deliveries of the next events, in one transaction, and return how many entries and events it read."""
    head = events.feed.head()
    with transaction.atomic():
        endpoints = list(Endpoint.objects.filter(ended=""))
        place = _place(head)
        entries = _entries_after(place.sequence, head[0])
        recorded = list(Event.objects.select_for_update().order_by("id")[:BATCH])
        # Skip entries about erased people: they only make followers copy other entries again.
        public = [_published(entry, place.feed_id) for entry in entries if not entry.key.startswith(ERASED_KEY_PREFIX)]
        happenings = [*public, *map(_recorded, recorded)]
        if happenings and endpoints:
            _make_deliveries(endpoints, happenings)
        Event.objects.filter(pk__in=[each.pk for each in recorded]).delete()
        if entries:
            place.sequence = entries[-1].sequence
            place.save()
    return len(entries) + len(recorded)


def _place(head: tuple[int, str]) -> Place:
    """Return the place in the feed, locked; at its end if there was none, or if the feed is another one now."""
    place = Place.objects.select_for_update().first()
    if place is None:
        return Place.objects.create(pk=1, sequence=head[0], feed_id=head[1])
    if place.feed_id != head[1] or place.sequence > head[0]:
        place.sequence, place.feed_id = head
        place.save()
    return place


class Entry(NamedTuple):
    """An entry of the change feed."""

    sequence: int
    kind: str
    key: str
    change: str
    at: str


def _entries_after(sequence: int, until: int) -> list[Entry]:
    """Return the next entries of the change feed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sequence, kind, key, change, at FROM published_change WHERE sequence > %s AND sequence <= %s"
            f" ORDER BY sequence LIMIT {BATCH}",
            [sequence, until],
        )
        return [Entry(*row) for row in cursor.fetchall()]


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


def attempt(url: str, secrets: Sequence[str], event_id: str, body: str) -> Outcome:
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
        answer = post(url, body.encode(), headers, **CONNECTION)
        status, said = answer.status, answer.excerpt
    except TimeoutError:
        said = "no answer in time"
    except (OSError, ValueError, http.client.HTTPException) as error:
        said = str(error) or type(error).__name__
    # PostgreSQL stores no NUL.
    return Outcome(status, said.replace("\0", "\ufffd")[:500], round((time.monotonic() - began) * 1000))


def deliver(run: JobRun) -> dict[str, int]:
    """Sort and send until nothing is due, or for a minute."""
    until = time.monotonic() + LONGEST_RUN_S
    sent, sort_at, are_more = 0, 0.0, False
    flying: dict[Future[Outcome], Delivery] = {}
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook") as pool:
        try:
            while True:
                run.check()
                moment = time.monotonic()
                if moment >= sort_at:
                    are_more = sort_events() > 0
                    sort_at = moment + (0 if are_more and len(flying) < AT_ONCE else SORTED_EVERY_S)
                if moment < until and len(flying) < AT_ONCE:
                    for delivery in _due(flying.values(), AT_ONCE - len(flying)):
                        endpoint = delivery.endpoint
                        given = endpoint.url, secrets_of(endpoint), delivery.event_id, delivery.body
                        flying[pool.submit(attempt, *given)] = delivery
                if not flying and not are_more:
                    break
                done, _ = wait(flying, timeout=1.0, return_when=FIRST_COMPLETED)
                if done:
                    sent += len(done)
                    _note([(flying[each], each.result()) for each in done])
                    for each in done:
                        del flying[each]
        finally:
            # What is on its way is answered within its deadline; its outcome counts.
            _note([(delivery, each.result()) for each, delivery in flying.items()])
    return {"attempts": sent}


def _due(flying: Iterable[Delivery], room: int) -> list[Delivery]:
    """
    Return what is due, at most *room*: one for each endpoint that has nothing on its way.

    Endpoints that work come before those that fail, and no account has more than a few requests on their way.
    """
    moment = now()
    busy = {each.endpoint_id for each in flying}
    of_accounts = Counter(each.endpoint.account_id for each in flying)
    waiting = Delivery.objects.filter(endpoint=OuterRef("pk"), state=Delivery.State.WAITING, next_at__lte=moment)
    first = Subquery(waiting.order_by("next_at", "id").values("pk")[:1])
    working = Endpoint.objects.filter(ended="").exclude(pk__in=busy).exclude(paused_until__gt=moment)
    chosen: list[int] = []
    for account, delivery in (
        working.annotate(first=first)
        .filter(first__isnull=False)
        .order_by("failures", "id")
        .values_list("account_id", "first")
    ):
        if len(chosen) == room:
            break
        if account is None or of_accounts[account] < AT_ONCE_OF_ACCOUNT:
            of_accounts[account] += 1
            chosen.append(delivery)
    return list(Delivery.objects.filter(pk__in=chosen).select_related("endpoint"))


def _note(outcomes: Iterable[tuple[Delivery, Outcome]]) -> None:
    """Store what came of attempts, in one transaction."""
    found = list(outcomes)
    if not found:
        return
    with transaction.atomic():
        for delivery, outcome in found:
            endpoint = Endpoint.objects.select_for_update().filter(pk=delivery.endpoint_id).first()
            if endpoint is None:
                continue  # deleted meanwhile
            _note_attempt(delivery, outcome)
            _note_endpoint(endpoint, outcome)


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
    delivery.save(update_fields=["attempts", "state", "next_at", "finished_at"])
    if delivery.state != Delivery.State.WAITING:
        _release_next(delivery, moment)


def _release_next(delivery: Delivery, moment: datetime) -> None:
    """Make the next event of the same subject due."""
    behind = Delivery.objects.filter(
        endpoint_id=delivery.endpoint_id, subject=delivery.subject, state=Delivery.State.WAITING
    )
    following = behind.order_by("id").values_list("pk", flat=True).first()
    if following is not None:
        Delivery.objects.filter(pk=following, next_at__isnull=True).update(next_at=moment)


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
    kind=JOB, work=deliver, lease_s=60, max_kills=5, lane="webhooks", per_group=1, successes_kept=timedelta(minutes=10)
)
