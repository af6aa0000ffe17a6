"""Create, list, change, test and delete endpoints; show their deliveries and send them again."""

import base64
import secrets
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec
from django.db import transaction
from django.db.models import F, Min, QuerySet

from muniment.accounts.models import Account
from muniment.accounts.operations import account_of, require_operator
from muniment.accounts.personal_data import ArchiveEntry, Part
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.accounts.security.step_up import require_confirmed
from muniment.encryption import seal
from muniment.kernel.actor import Actor
from muniment.kernel.ids import new_id, now, slug_fault
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, LimitReached, NotFound
from muniment.kernel.wire import timestamp
from muniment.outbound.following import plain_address
from muniment.webhooks import events
from muniment.webhooks.delivering import PURPOSE, secrets_of
from muniment.webhooks.events import OWNER_KINDS, REGISTRY_KINDS
from muniment.webhooks.models import Delivery, Endpoint

MAX_ENDPOINTS: Final = 10
"""Of an account, and of the registry."""
MAX_LISTINGS: Final = 200
SECRET_BYTES: Final = 32
BOTH_SECRETS: Final = timedelta(days=1)
"""For how long the former secret signs too after a rotation."""
SHOWN: Final = 100
"""The latest deliveries that a page shows."""
TESTED_EVERY: Final = timedelta(seconds=10)


class Wanted(NamedTuple):
    """
    What an endpoint is to be told of.

    Args:
        kinds: of :data:`OWNER_KINDS`, or of :data:`REGISTRY_KINDS` for the registry's own endpoints.
        listings: slugs of companies; empty for all that are the owner's, or all of the registry.
    """

    url: str
    kinds: Sequence[str]
    listings: Sequence[str] = ()


State = Literal["works", "failing", "paused", "ended"]


def state_of(endpoint: Endpoint) -> State:
    """Return whether an endpoint works, fails and is tried again, waits for its next attempt, or is ended."""
    if endpoint.ended:
        return "ended"
    if endpoint.paused_until is not None and endpoint.paused_until > now():
        return "paused"
    return "failing" if endpoint.failing_since is not None else "works"


class WebhookStatus(NamedTuple):
    """
    How webhooks do.

    Args:
        endpoints: their number by whose they are, ``registry`` or ``accounts``, and by state.
        waiting: the events that are not delivered yet, to endpoints that have not ended.
    """

    endpoints: dict[tuple[str, State], int]
    waiting: int


def webhook_status() -> WebhookStatus:
    """Count the endpoints, and the events that wait for one that has not ended."""
    counts: dict[tuple[str, State], int] = {}
    for endpoint in Endpoint.objects.only("account_id", "ended", "paused_until", "failing_since"):
        whose = "registry" if endpoint.account_id is None else "accounts"
        state = state_of(endpoint)
        counts[whose, state] = counts.get((whose, state), 0) + 1
    waiting = Delivery.objects.filter(state=Delivery.State.WAITING, endpoint__ended="").count()
    return WebhookStatus(counts, waiting + _behind())


def _behind() -> int:
    """Return how many changes the endpoints that are behind have not reached."""
    places = list(Endpoint.objects.filter(ended="", behind__isnull=False).values_list("behind", flat=True))
    if not places:
        return 0
    head, _ = events.feed.head()
    return sum(max(0, head - place) for place in places if place is not None)


def list_endpoints(actor: Actor, *, of_registry: bool = False) -> list[Endpoint]:
    """Return the actor's endpoints, or the registry's; raise Forbidden without an account or without the role."""
    return list(_own(actor, of_registry=of_registry).order_by("created_at", "id"))


def list_all_endpoints(actor: Actor) -> list[Endpoint]:
    """Return the registry's endpoints, then those of all accounts; for the command line."""
    require_operator(actor)
    _require_person(actor)
    every = Endpoint.objects.select_related("account")
    return list(every.order_by(F("account").asc(nulls_first=True), "created_at", "id"))


def get_endpoint(actor: Actor, endpoint_id: str, *, of_registry: bool = False) -> Endpoint:
    """
    Return an endpoint.

    Raises:
        NotFound: it is not one of the actor's, or of the registry's for an operator. The command line, with which an
            operator ends what harms others, reaches those of accounts too.
    """
    reached = Endpoint.objects.all() if actor.via == "command" else _own(actor, of_registry=of_registry)
    found = reached.filter(pk=endpoint_id).first()
    if found is None:
        raise NotFound("Webhook not found.", "Your webhooks are at /manage/webhooks.")
    return found


def create_endpoint(actor: Actor, wanted: Wanted, *, of_registry: bool = False) -> Endpoint:
    """
    Create an endpoint, which is told of what happens from now on.

    Raises:
        Forbidden: no account, not an operator, or the identity must be confirmed first.
        BadRequest: a URL, kind or listing that cannot be.
        LimitReached: there are as many as there may be.
    """
    require_confirmed(actor)
    values = _checked(wanted, of_registry=of_registry)
    account = None if of_registry else account_of(actor)
    with transaction.atomic():
        mine = _own(actor, of_registry=of_registry)
        if account is not None:
            Account.objects.select_for_update().get(pk=account.pk)  # serializes concurrent counts
        if mine.count() >= MAX_ENDPOINTS:
            raise LimitReached(
                Phrase("There are {limit} webhooks already.", limit=MAX_ENDPOINTS), "Delete one that is not used."
            )
        events.begin_now()
        row = Endpoint.objects.create(account=account, secret=_new_secret(), **values)
        _log(Event.WEBHOOK_ADDED, actor, row)
        return row


def change_endpoint(actor: Actor, endpoint_id: str, wanted: Wanted, *, of_registry: bool = False) -> Endpoint:
    """Change what an endpoint is told of and where; raises as :func:`create_endpoint`, and NotFound."""
    require_confirmed(actor)
    values = _checked(wanted, of_registry=of_registry)
    with transaction.atomic():
        row = _locked(actor, endpoint_id, of_registry=of_registry)
        for name, value in values.items():
            setattr(row, name, value)
        row.save(update_fields=[*values])
        _log(Event.WEBHOOK_CHANGED, actor, row)
    return row


def rotate_secret(actor: Actor, endpoint_id: str, *, of_registry: bool = False) -> Endpoint:
    """Replace the secret of an endpoint; the former one signs too for a day."""
    require_confirmed(actor)
    with transaction.atomic():
        row = _locked(actor, endpoint_id, of_registry=of_registry)
        row.former_secret, row.former_until = row.secret, now() + BOTH_SECRETS
        row.secret = _new_secret()
        row.save(update_fields=["secret", "former_secret", "former_until"])
        _log(Event.WEBHOOK_SECRET_ROTATED, actor, row)
    return row


def shown_secret(actor: Actor, endpoint_id: str, *, of_registry: bool = False) -> str:
    """Return the current secret; empty if the key that sealed it is lost. Raises as :func:`rotate_secret`."""
    require_confirmed(actor)
    found = secrets_of(get_endpoint(actor, endpoint_id, of_registry=of_registry))
    return found[0] if found else ""


def delete_endpoint(actor: Actor, endpoint_id: str, *, of_registry: bool = False) -> Endpoint:
    """Delete an endpoint with its deliveries, and return it."""
    with transaction.atomic():
        row = _locked(actor, endpoint_id, of_registry=of_registry)
        _log(Event.WEBHOOK_REMOVED, actor, row)
        Endpoint.objects.filter(pk=row.pk).delete()
    return row


def resume_endpoint(actor: Actor, endpoint_id: str, *, of_registry: bool = False) -> Endpoint:
    """Start an endpoint that was ended, or is paused, again; what waits for it is sent."""
    with transaction.atomic():
        row = _locked(actor, endpoint_id, of_registry=of_registry)
        events.begin_now()
        row.ended, row.ended_at = "", None
        row.failures, row.failing_since, row.paused_until = 0, None, None
        row.save(update_fields=["ended", "ended_at", "failures", "failing_since", "paused_until"])
        events.send_soon()
    return row


def send_test(actor: Actor, endpoint_id: str, *, of_registry: bool = False) -> Delivery:
    """
    Send a test event to an endpoint.

    Raises:
        Conflict: one was sent seconds ago, or the endpoint is ended.
    """
    with transaction.atomic():
        row = _locked(actor, endpoint_id, of_registry=of_registry)
        if row.ended:
            raise Conflict("This webhook is ended.", "Start it again first.")
        if row.deliveries.filter(kind=events.TEST, created_at__gt=now() - TESTED_EVERY).exists():
            raise Conflict("A test event was sent seconds ago.", "Look at its attempt below, or wait ten seconds.")
        event_id, moment = f"evt_{new_id()}", now()
        body = {"id": event_id, "type": events.TEST, "timestamp": timestamp(moment), "data": {}}
        made = Delivery.objects.create(
            endpoint=row,
            event_id=event_id,
            kind=events.TEST,
            subject=event_id,
            body=msgspec.json.encode(body).decode(),
            next_at=moment,
        )
        events.send_soon()
    return made


def list_deliveries(actor: Actor, endpoint_id: str, *, of_registry: bool = False) -> list[Delivery]:
    """Return the latest deliveries of an endpoint, newest first."""
    endpoint = get_endpoint(actor, endpoint_id, of_registry=of_registry)
    return list(endpoint.deliveries.order_by("-id")[:SHOWN])


def find_delivery(actor: Actor, endpoint_id: str, event_id: str, *, of_registry: bool = False) -> Delivery:
    """Return the delivery of an event by the id that its receiver knows; raise NotFound if it is not kept."""
    endpoint = get_endpoint(actor, endpoint_id, of_registry=of_registry)
    row = endpoint.deliveries.filter(event_id=event_id).first()
    if row is None:
        raise _not_kept()
    return row


def _not_kept() -> NotFound:
    return NotFound("This event is not kept any more.", "Events are kept for a week, failed ones for 30 days.")


def replay(actor: Actor, endpoint_id: str, delivery_id: int, *, of_registry: bool = False) -> Delivery:
    """
    Send a delivered or given up event again, with the same id.

    Raises:
        NotFound: the endpoint has no such delivery any more.
        Conflict: it is waiting, or the endpoint is ended.
    """
    with transaction.atomic():
        endpoint = _locked(actor, endpoint_id, of_registry=of_registry)
        row = endpoint.deliveries.select_for_update().filter(pk=delivery_id).first()
        if row is None:
            raise _not_kept()
        if endpoint.ended:
            raise Conflict("This webhook is ended.", "Start it again first.")
        if row.state == Delivery.State.WAITING:
            raise Conflict("This event is waiting to be sent.", "Wait for its next attempt.")
        _send_again(endpoint, endpoint.deliveries.filter(pk=row.pk))
        row.refresh_from_db()
    return row


def replay_failed(actor: Actor, endpoint_id: str, *, of_registry: bool = False) -> int:
    """Send all events again that were given up, and return how many; raise Conflict if the endpoint is ended."""
    with transaction.atomic():
        endpoint = _locked(actor, endpoint_id, of_registry=of_registry)
        if endpoint.ended:
            raise Conflict("This webhook is ended.", "Start it again first.")
        return _send_again(endpoint, endpoint.deliveries.filter(state=Delivery.State.FAILED))


def _send_again(endpoint: Endpoint, deliveries: QuerySet[Delivery]) -> int:
    """Make final *deliveries* wait again, as if they were new, and return how many; their order is that of the ids."""
    moment = now()
    count = deliveries.update(
        state=Delivery.State.WAITING, next_at=None, attempts=[], created_at=moment, finished_at=None
    )
    # Of each subject only the first is due, also before newer ones that wait: its outcome releases the next.
    waiting = endpoint.deliveries.filter(state=Delivery.State.WAITING)
    first_ids = waiting.values("subject").annotate(first=Min("pk")).values("first")
    waiting.exclude(pk__in=first_ids).update(next_at=None)
    waiting.filter(pk__in=first_ids, next_at=None).update(next_at=moment)
    events.send_soon()
    return count


def kinds_for(*, of_registry: bool) -> tuple[str, ...]:
    return REGISTRY_KINDS if of_registry else OWNER_KINDS


def _own(actor: Actor, *, of_registry: bool) -> QuerySet[Endpoint]:
    if of_registry:
        require_operator(actor)
        _require_person(actor)
        return Endpoint.objects.filter(account=None)
    account = account_of(actor)
    _require_person(actor)
    return Endpoint.objects.filter(account=account)


def _require_person(actor: Actor) -> None:
    """Refuse tokens and apps: what they may read ends with them, and a webhook continues."""
    if actor.via in {"token", "app"}:
        raise Forbidden("Webhooks are managed on the website.", "Open /manage/webhooks.")


def _locked(actor: Actor, endpoint_id: str, *, of_registry: bool) -> Endpoint:
    get_endpoint(actor, endpoint_id, of_registry=of_registry)
    return Endpoint.objects.select_for_update().get(pk=endpoint_id)


def _log(event: Event, actor: Actor, row: Endpoint) -> None:
    """Record what was done to an endpoint. Of its URL, the log names the server: the rest may be a secret."""
    record(event, account=row.account_id, actor=actor, detail={"server": urlsplit(row.url).hostname or ""})


def _new_secret() -> str:
    shown = "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    return seal(shown.encode(), PURPOSE)


def rows_with_former_secret() -> QuerySet[Endpoint]:
    return Endpoint.objects.exclude(former_secret="")


class _Values(NamedTuple):
    url: str
    kinds: list[str]
    listings: list[str]


def _checked(wanted: Wanted, *, of_registry: bool) -> dict[str, object]:
    possible = kinds_for(of_registry=of_registry)
    kinds = [each for each in possible if each in wanted.kinds]
    unknown = sorted(set(wanted.kinds) - set(possible))
    if unknown:
        raise BadRequest(
            Phrase("Unknown event: {name}.", name=unknown[0][:40]),
            Phrase("Use one of: {kinds}.", kinds=", ".join(possible)),
        )
    if not kinds:
        raise BadRequest("Choose at least one event.", Phrase("Events: {kinds}.", kinds=", ".join(possible)))
    return _Values(checked_url(wanted.url), kinds, checked_listings(wanted.listings))._asdict()


def checked_listings(slugs: Sequence[str]) -> list[str]:
    """Return each slug once; raise BadRequest if there are too many, or one that cannot be."""
    listings = list(dict.fromkeys(each.strip() for each in slugs if each.strip()))
    if len(listings) > MAX_LISTINGS:
        raise BadRequest(
            Phrase("A webhook may name {limit} listings.", limit=MAX_LISTINGS), "Name none to be told of all."
        )
    for slug in listings:
        if fault := slug_fault(slug):
            raise BadRequest(
                Phrase("The listing {slug} {fault}.", slug=slug[:60], fault=fault),
                "Name listings as in the addresses of their pages.",
            )
    return listings


def checked_url(url: str) -> str:
    """Return a URL in its plain form; raise BadRequest if it is not that of a public server with HTTPS."""
    try:
        address = plain_address(url)
    except ValueError:
        address = ""
    if not address or urlsplit(address).scheme != "https":
        raise BadRequest(
            "The URL must begin with https:// and name a public server, without a port or user.",
            "Example: https://hooks.example.com/muniment",
        )
    return address


def _export(account: Account) -> Iterator[ArchiveEntry]:
    mine = Endpoint.objects.filter(account=account).order_by("pk")
    endpoints = [
        {
            "url": each.url,
            "events": each.kinds,
            "listings": each.listings,
            "createdAt": timestamp(each.created_at),
            "ended": each.ended or None,
        }
        for each in mine
    ]
    yield ArchiveEntry("webhooks.json", endpoints)


def _delete(account: Account) -> None:
    Endpoint.objects.filter(account=account).delete()


PART = Part(name="webhooks", export=_export, delete=_delete)
