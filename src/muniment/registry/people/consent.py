"""
Rules about naming people in listings: who may be named, who must confirm, and what a refusal means.

A position that names a claimed profile is requested: until the person or a reviewer confirms it, the listing shows the
name alone. A person without a profile is a name on the listing until a reviewer adds them to the public people.

Source: decisions, section 5: a claimed profile must confirm, may decline or end a position, and is told by mail.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now, slug_from_name
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import TooMany
from muniment.registry import provenance
from muniment.registry.company.access import decides
from muniment.registry.exchange.batch import reserve_slug
from muniment.registry.models import Company, Person, Position, PositionRequest, State
from muniment.registry.review import notifications

REMEMBERED: Final = timedelta(days=90)
"""How long a listing cannot ask a person who declined or ended a position in it."""
REQUESTS_PER_DAY: Final = 10
"""Positions that an account can request in 24 hours."""
REFUSED: Final = (PositionRequest.Decision.DECLINED, PositionRequest.Decision.ENDED)


class Refusal(NamedTuple):
    """A person who declined or ended a position in a listing, and when the listing can ask again."""

    slug: str
    name: str
    until: datetime


def name_key(name: str) -> str:
    """Return what two spellings of one name have in common."""
    return slug_from_name(name) or name.strip().casefold()


def needs_consent(person: Person, actor: Actor | None) -> bool:
    """Return whether a position that *actor* gives to *person* waits for the person: others' claimed profiles do."""
    return person.account_id is not None and (actor is None or person.account_id != actor.account_id)


def can_name(person: Person, actor: Actor | None) -> bool:
    """Return whether *actor* may name a person by slug; others' private profiles are treated as unknown."""
    if actor is None or person.published or decides(actor):
        return True
    return person.account_id is not None and person.account_id == actor.account_id


def open_requests(company: Company) -> dict[str, PositionRequest]:
    """Return the undecided requests of a listing, by the id of the position."""
    found = PositionRequest.objects.filter(company=company, decision="").select_related("person")
    return {request.item: request for request in found}


def positions_of(person: Person) -> QuerySet[Position]:
    """Return the positions that name *person*, also those that the person has not confirmed."""
    asked = PositionRequest.objects.filter(
        person=person, decision="", company=OuterRef("company"), item=OuterRef("item_id")
    )
    return Position.objects.filter(Q(person=person) | Q(Exists(asked), person=None))


def recent_refusals(company: Company) -> list[Refusal]:
    """Return the people whom the listing cannot ask at present."""
    since = now() - REMEMBERED
    found = PositionRequest.objects.filter(company=company, decision__in=REFUSED, decided_at__gt=since)
    rows = found.order_by("decided_at").values_list("person__slug", "person__name", "decided_at")
    return [Refusal(slug, name, at + REMEMBERED) for slug, name, at in rows if at]


def people_named(names: Iterable[str], actor: Actor) -> dict[str, list[str]]:
    """Return the slugs of public people, and of the actor's own profile, by :func:`name_key` of each of *names*."""
    wanted = {name_key(name): name for name in names}
    found: dict[str, list[str]] = defaultdict(list)
    if wanted:
        named = Person.objects.filter(Q(slug__in=list(wanted)) | Q(name__in=list(wanted.values())))
        visible = Q(published=True)
        if actor.account_id is not None:
            visible |= Q(account_id=actor.account_id)
        for slug, name in named.filter(visible).order_by("pk").values_list("slug", "name"):
            if (key := name_key(name)) in wanted:
                found[key].append(slug)
    return found


def request_positions(actor: Actor | None, company: Company, asked: Sequence[tuple[str, str | None, Person]]) -> None:
    """Record requests, each by the id and title of the position and its person; :func:`tell_people` sends the mail."""
    account_id = actor.account_id if actor else None
    PositionRequest.objects.bulk_create(
        [
            PositionRequest(company=company, person=person, item=item, title=title, account_id=account_id)
            for item, title, person in asked
        ]
    )


def check_rate(actor: Actor | None, requests: int) -> None:
    """Raise TooMany if the account may not request as many positions today."""
    if actor is None or actor.account_id is None:
        return
    mine = PositionRequest.objects.filter(account_id=actor.account_id, asked_at__gt=now() - timedelta(days=1))
    if requests and mine.count() + requests > REQUESTS_PER_DAY:
        raise TooMany(
            Phrase("An account can ask people to confirm {limit} positions in 24 hours.", limit=REQUESTS_PER_DAY),
            "Try again tomorrow, or leave out some of the positions that name claimed profiles.",
            retry_after_s=86_400,
        )


def withdraw_requests(keys: Iterable[int]) -> None:
    """Withdraw undecided requests, because their positions were removed or changed."""
    undecided = PositionRequest.objects.filter(pk__in=list(keys), decision="")
    undecided.update(decision=PositionRequest.Decision.WITHDRAWN, decided_at=now())


def tell_people(company: Company) -> None:
    """Mail the people whom a published listing asks, once for each request."""
    if company.state != State.PUBLISHED:
        return
    waiting = PositionRequest.objects.filter(company=company, decision="", told_at=None).select_related("person")
    by_person: dict[int, list[PositionRequest]] = defaultdict(list)
    for request in waiting.filter(person__account__isnull=False).order_by("pk"):
        by_person[request.person_id].append(request)
    for requests in by_person.values():
        PositionRequest.objects.filter(pk__in=[each.pk for each in requests]).update(told_at=now())
        person, titles = requests[0].person, [each.title or "" for each in requests]
        notifications.notify_of_request(person, company, titles)


def add_named_people(actor: Actor, company: Company) -> None:
    """
    Make public people of the names on a listing, when a reviewer approves it.

    Names of public people stay names: a reviewer chooses on the review page whether it is the same person.
    """
    asked = PositionRequest.objects.filter(company=company, decision="").values("item")
    places = list(Position.objects.filter(company=company, person=None).exclude(item_id__in=asked).order_by("rank"))
    known = people_named({place.name for place in places}, actor)
    refused = {name_key(each.name) for each in recent_refusals(company)}
    made: dict[str, Person] = {}
    for place in places:
        key = name_key(place.name)
        if key not in known and key not in refused:
            made[key] = made.get(key) or make_person(place.name)
            place.person, place.name = made[key], ""
            place.save(update_fields=["person", "name"])


def make_person(name: str) -> Person:
    """Create a person without an account, who is public while a published listing names them."""
    person = Person(slug=reserve_slug("person", name), name=name.strip())
    provenance.reviewed(person)
    person.save()
    return person
