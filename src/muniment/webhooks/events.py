"""
The events that endpoints are told of, and recording those that are in no feed.

What the public sees change is in the change feed already, written by the transaction that publishes it. Everything else
is recorded here, in the transaction that causes it. Both are sorted into deliveries later, so an operation pays for one
short statement.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from django.db import connection

from muniment.jobs.models import Job, State
from muniment.jobs.queue import enqueue
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.webhooks.models import Delivery, Event, Place

JOB: Final = "webhooks.due"
LISTING_KINDS: Final = ("listing.published", "listing.updated", "listing.unlisted")
"""From the change feed: of companies, people and frameworks."""
OWNER_KINDS: Final = (
    *LISTING_KINDS,
    *("position.asked", "position.confirmed", "position.declined", "position.ended"),
    *("document.ready", "report.succeeded", "report.failed", "credits.changed"),
    *("review.asked", "review.decided"),
)
REGISTRY_KINDS: Final = (*LISTING_KINDS, "review.asked", "review.decided")
TEST: Final = "test"
KNOWN_S: Final = 5.0
"""Seconds for which a process remembers whether there are endpoints."""
_known: tuple[float, bool] = (0.0, False)


class Feed(NamedTuple):
    """
    What the registry tells of its change feed and its listings.

    Args:
        head: returns the latest sequence of the feed, and its identity.
        owners_of: returns the accounts that own companies, by slug.
    """

    head: Callable[[], tuple[int, str]]
    owners_of: Callable[[Sequence[str]], dict[str, set[int]]]


feed = Feed(lambda: (0, ""), lambda _: {})
"""Replaced by the registry when it is loaded."""


def use(given: Feed) -> None:
    global feed  # noqa: PLW0603 - one registry
    feed = given


def begin_now() -> None:
    """Begin at the end of the feed if nothing is told to anyone yet: what was published before is no event."""
    if not is_watched():
        sequence, feed_id = feed.head()
        Place.objects.update_or_create(pk=1, defaults={"sequence": sequence, "feed_id": feed_id})


def is_watched() -> bool:
    """Return whether any endpoint works."""
    return _is_found("SELECT 1 FROM webhooks_endpoint WHERE ended = '' LIMIT 1")


def _is_found(statement: str) -> bool:
    """Return whether a statement finds a row; the ORM takes 0.3 ms to compose one."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone() is not None


def record(
    kind: str, data: JSONObject, *, accounts: Iterable[int] = (), for_registry: bool = False, listing: str = ""
) -> None:
    """
    Record an event, in the caller's transaction.

    Args:
        kind: one of :data:`OWNER_KINDS`.
        data: what the event is about: ids, slugs and paths, nothing that its receivers may not read anyway.
        accounts: whose endpoints are told of it.
        for_registry: tell the registry's own endpoints.
        listing: the slug of its company, by which endpoints choose.
    """
    if not is_watched():
        return
    told = sorted(set(accounts))
    if told or for_registry:
        Event.objects.create(kind=kind, data=data, accounts=told, for_registry=for_registry, listing=listing)


def look() -> None:
    """
    Enqueue the job that sends, if there is something to sort. Each process that runs jobs asks every second.

    Nothing of this is on the way of the operations that cause events.
    """
    if _was_watched() and are_new():
        send_soon()


def _was_watched() -> bool:
    """Return whether an endpoint worked a few seconds ago."""
    global _known  # noqa: PLW0603 - one memory for the process
    until, watched = _known
    if time.monotonic() >= until:
        watched = is_watched()
        _known = time.monotonic() + KNOWN_S, watched
    return watched


def are_new() -> bool:
    """Return whether there are events that are not sorted into deliveries yet."""
    if _is_found("SELECT 1 FROM webhooks_event LIMIT 1"):
        return True
    place = Place.objects.first()
    return place is None or (place.sequence, place.feed_id) != feed.head()


def send_soon() -> None:
    """Enqueue the job that sends, in the caller's transaction, unless one waits."""
    if not Job.objects.filter(kind=JOB, state=State.QUEUED).exists():
        enqueue(JOB, group=JOB)


def interval_s() -> int:
    """Return how often the job must look for what is due: never, while there is nothing to send to anyone."""
    return 10 if _was_watched() else 0


def forget(subject: str) -> None:
    """
    Delete the deliveries about an erased subject, in the caller's transaction.

    That it is not listed any more is still sent: receivers must learn of it.
    """
    about = Delivery.objects.filter(subject=subject)
    untold = about.filter(state=Delivery.State.WAITING, kind="listing.unlisted")
    about.exclude(pk__in=untold.values("pk")).delete()
    untold.filter(next_at=None).update(next_at=now())


KEPT: Final = timedelta(days=7)
"""For how long deliveries are kept after they arrived."""
DELIVERED_KEPT: Final = 10_000
"""Of each endpoint, about: 7 MB, however many events there are."""
PRUNED_AT_ONCE: Final = 1_000
FAILED_KEPT: Final = timedelta(days=30)
"""For how long those are kept that were given up, so that they can be sent again."""


def prune() -> dict[str, int]:
    """Delete deliveries that arrived a week ago, and those given up, or waiting at an ended endpoint, for a month."""
    moment = now()
    made, _ = Delivery.objects.filter(state=Delivery.State.DELIVERED, finished_at__lt=moment - KEPT).delete()
    old = Delivery.objects.exclude(state=Delivery.State.DELIVERED).filter(created_at__lt=moment - FAILED_KEPT)
    given_up, _ = old.delete()
    return {"deliveries": made + given_up}


def prune_delivered(endpoints: Iterable[str]) -> None:
    """Delete what was delivered to each of these endpoints, except for the latest."""
    for endpoint in endpoints:
        delivered = Delivery.objects.filter(endpoint=endpoint, state=Delivery.State.DELIVERED).order_by("-id")
        too_many = delivered.values_list("pk", flat=True)[DELIVERED_KEPT : DELIVERED_KEPT + PRUNED_AT_ONCE]
        while ids := list(too_many.all()):  # asks again each time
            Delivery.objects.filter(pk__in=ids).delete()
