"""
Naming people in listings: who may be named, who must confirm, what a refusal means, and how a changed team is written.

A position that names a claimed profile is requested: until the person or a reviewer confirms it, the listing shows the
name alone. A person without a profile is a name on the listing until a reviewer adds them to the public people.

Source: decisions, section 5: a claimed profile must confirm, may decline or end a position, and is told by mail.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now, slug_from_name
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import TooMany
from muniment.registry import provenance
from muniment.registry.company.changes import BadFields, Difference, ListGuard, StoredRow, write_rows
from muniment.registry.company.parts import PositionRow
from muniment.registry.exchange.batch import merged_slugs, reserve_slug
from muniment.registry.models import Company, Person, Position, PositionRequest, State
from muniment.registry.publishing.publisher import AffectedRows
from muniment.registry.review import notifications
from muniment.schema.item_lists import ItemChange
from muniment.schema.validation import ChoiceFault, Fault

_SHOWN_CANDIDATES: Final = 5
HINT: Final = (
    "GET /api/v1/people lists the slugs of people. Give person.slug for an existing person; for a different person of "
    "the same name, add isNew true to the person."
)


REMEMBERED: Final = timedelta(days=90)
"""The time for which a listing cannot ask a person again who declined or ended a position in it."""
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
    if actor is None or person.published or actor.decides:
        return True
    return person.account_id is not None and person.account_id == actor.account_id


def open_requests(company: Company) -> dict[str, PositionRequest]:
    """Return the undecided requests of a listing, by the id of the position."""
    requests = PositionRequest.objects.filter(company=company, decision="").select_related("person")
    return {request.item: request for request in requests}


def positions_of(person: Person) -> QuerySet[Position]:
    """Return the positions that name *person*, also those that the person has not confirmed."""
    asked = PositionRequest.objects.filter(
        person=person, decision="", company=OuterRef("company"), item=OuterRef("item_id")
    )
    return Position.objects.filter(Q(person=person) | Q(Exists(asked), person=None))


def recent_refusals(company: Company) -> list[Refusal]:
    """Return the people whom the listing cannot ask at present."""
    since = now() - REMEMBERED
    refused = PositionRequest.objects.filter(company=company, decision__in=REFUSED, decided_at__gt=since)
    rows = refused.order_by("decided_at").values_list("person__slug", "person__name", "decided_at")
    return [Refusal(slug, name, at + REMEMBERED) for slug, name, at in rows if at]


def people_named(names: Iterable[str], actor: Actor) -> dict[str, list[str]]:
    """Return the slugs of public people, and of the actor's own profile, by :func:`name_key` of each of *names*."""
    names_by_key = {name_key(name): name for name in names}
    slugs_by_key: dict[str, list[str]] = defaultdict(list)
    if not names_by_key:
        return slugs_by_key
    # A key has the form of a slug: so people are found whose name is spelled otherwise, by an index.
    named = Person.objects.filter(Q(slug__in=list(names_by_key)) | Q(name__in=list(names_by_key.values())))
    visible = Q(published=True)
    if actor.account_id is not None:
        visible |= Q(account_id=actor.account_id)
    for slug, name in named.filter(visible).order_by("pk").values_list("slug", "name"):
        key = name_key(name)
        if key in names_by_key:  # a person may have the slug and another name
            slugs_by_key[key].append(slug)
    return slugs_by_key


def request_positions(actor: Actor | None, company: Company, asked: Sequence[tuple[str, str | None, Person]]) -> None:
    """Record requests, each by the id and title of the position and its person; :func:`tell_people` sends the mail."""
    account_id = actor.account_id if actor else None
    requests = []
    for item, title, person in asked:
        requests.append(PositionRequest(company=company, person=person, item=item, title=title, account_id=account_id))
    PositionRequest.objects.bulk_create(requests)


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
        PositionRequest.objects.filter(pk__in=[request.pk for request in requests]).update(told_at=now())
        titles = [request.title or "" for request in requests]
        notifications.notify_of_request(requests[0].person, company, titles)


def add_named_people(actor: Actor, company: Company) -> None:
    """
    Make public people of the names on a listing, when a reviewer approves it.

    Names of public people stay names: a reviewer chooses on the review page whether it is the same person.
    """
    asked = PositionRequest.objects.filter(company=company, decision="").values("item")
    places = list(Position.objects.filter(company=company, person=None).exclude(item_id__in=asked).order_by("rank"))
    slugs_by_key = people_named({place.name for place in places}, actor)
    refused = {name_key(refusal.name) for refusal in recent_refusals(company)}
    made: dict[str, Person] = {}
    for place in places:
        key = name_key(place.name)
        if key in slugs_by_key or key in refused:
            continue
        if key not in made:  # a name in two positions of a listing is one person
            made[key] = make_person(place.name)
        place.person, place.name = made[key], ""
        place.save(update_fields=["person", "name"])


def make_person(name: str) -> Person:
    """Create a person without an account, who is public while a published listing names them."""
    person = Person(slug=reserve_slug("person", name), name=name.strip())
    provenance.reviewed(person)
    person.save()
    return person


class Place(NamedTuple):
    """
    A position and whom it names.

    Args:
        row: the position with the slug of the person, also of one who has not confirmed it.
        is_linked: the person has confirmed it, or need not.
        request: the undecided request to the person, if there is one.
    """

    row: PositionRow
    is_linked: bool
    request: int | None = None

    @property
    def is_asked(self) -> bool:
        return bool(self.row.slug) and not self.is_linked

    def to_document(self) -> JSONObject:
        """Return the position as published: of a person who has not confirmed it, the name alone."""
        row = self.row if self.is_linked else self.row._replace(slug="")
        return row.to_document()

    def columns(self, person: int | None) -> JSONObject:
        row = self.row
        linked = person if self.is_linked else None
        name = "" if linked else row.name  # a linked position shows the name of the profile
        return {"person_id": linked, "name": name, "title": row.title, "extra": row.extra, "item_id": row.item_id}


@dataclass(slots=True)
class _Team:
    """The stored positions of a listing, by what a change may say of them."""

    company: Company
    places: list[Place] = field(default_factory=list)
    stored: list[StoredRow] = field(default_factory=list)
    people: dict[str, Person] = field(default_factory=dict)

    @classmethod
    def read(cls, company: Company) -> "_Team":
        team = cls(company)
        requests = open_requests(company)
        for position in Position.objects.filter(company=company).select_related("person").order_by("rank"):
            request = None
            person: Person | None = position.person
            name = person.name if person else position.name
            if person is None:
                # The person is asked; until then, the listing shows the name that its owner gave.
                request = requests.get(position.item_id)
                person = request.person if request else None
            slug = person.slug if person else ""
            row = PositionRow(slug, name, position.title, position.extra, position.item_id)
            place = Place(row, is_linked=position.person is not None, request=request.pk if request else None)
            if person:
                team.people[person.slug] = person
            team.places.append(place)
            columns = place.columns(position.person_id)
            team.stored.append(StoredRow(position.pk, position.rank, position.item_id, columns))
        return team


def compare_positions(change: Any, difference: Difference, guard: ListGuard) -> None:
    """
    Compare the team.

    Raises:
        BadFields: a position names an unknown person, one who declined recently, or by a name that others have.
        TooMany: the account asks too many people.
    """
    team = _Team.read(guard.company)
    kind: Any = settings.SCHEMA.bundle.by_name["positions"].kind
    rows = guard.resolve(kind, ("positions",), change, [place.row.to_document() for place in team.places])
    added = len(change.add) if isinstance(change, ItemChange) else 0
    naming = _Naming(guard, team, added=added)
    after = naming.resolve(rows)
    difference.profiles = naming.profiles
    if after == team.places:
        return
    difference.before["positions"] = [place.to_document() for place in team.places]
    difference.after["positions"] = [place.to_document() for place in after]
    asked = [place.row for place in after if place.is_asked and place.request is None]
    check_rate(guard.actor, len(asked))
    difference.asked += list(dict.fromkeys(row.slug for row in asked))

    def write(affected: AffectedRows) -> None:
        columns = []
        for place in after:
            person = team.people.get(place.row.slug)
            person_key = person.pk if person else None
            columns.append((place.row.item_id, place.columns(person_key)))
        write_rows(Position, team.company, team.stored, columns)
        requests = {place.request for place in team.places if place.request}
        kept_requests = {place.request for place in after}
        withdraw_requests(requests - kept_requests)
        request_positions(guard.actor, team.company, [(row.item_id, row.title, team.people[row.slug]) for row in asked])
        tell_people(team.company)
        affected.person(*_people_of_changed_rows(team.stored, columns))

    difference.steps.append(write)


def _people_of_changed_rows(stored: Sequence[StoredRow], given: Sequence[tuple[str, JSONObject]]) -> list[int]:
    """Return the people whom rows named or name that were added, changed, moved or removed."""
    former = {row.id: (row.columns, rank) for rank, row in enumerate(stored)}
    current = {row_id: (columns, rank) for rank, (row_id, columns) in enumerate(given)}
    people: list[int] = []
    for row_id in {**former, **current}:
        if former.get(row_id) == current.get(row_id):
            continue
        for rows_by_id in (former, current):
            if row_id in rows_by_id:
                columns, _ = rows_by_id[row_id]
                if columns["person_id"] is not None:
                    people.append(columns["person_id"])
    return people


class _Naming:
    """
    Find out whom the given positions name.

    Args:
        added: how many of them, the last ones, a call adds to the stored ones.
    """

    def __init__(self, guard: ListGuard, team: _Team, *, added: int = 0) -> None:
        self.added = added
        self.actor, self.team, self.reverts = guard.actor, team, guard.reverts
        # Backwards, so that of equal ids or names the first position counts.
        self.by_id = {place.row.item_id: place for place in reversed(team.places)}
        self.by_name = {place.row.name: place.row.slug for place in reversed(team.places)}
        """A name that the listing has means that person."""
        self.refusals = recent_refusals(team.company) if self.actor else []
        self.faults: list[Fault] = []
        self.profiles: dict[str, list[str]] = {}
        """The slugs of the people with each name that the change adds without a profile."""

    def resolve(self, given: Sequence[JSONObject]) -> list[Place]:
        """
        Return the positions with their people.

        Raises:
            BadFields: an unknown person, one who declined recently, or a name that other people have.
        """
        rows = [PositionRow.from_document(position) for position in given]
        self.stored = len(rows) - self.added
        is_new = [position["person"].get("isNew") is True for position in given]
        given_slugs = [self._named(row, is_new=of_new) for row, of_new in zip(rows, is_new, strict=True)]
        # A slug of before a merge means the person who remained.
        merged = merged_slugs(self._unknown(given_slugs))
        slugs = [merged.get(slug, slug) for slug in given_slugs]
        self._add_people(self._unknown(slugs))
        places = []
        names_alone = []
        for index, (row, slug) in enumerate(zip(rows, slugs, strict=True)):
            place = self._place(index, row, slug)
            places.append(place)
            if not place.row.slug:
                names_alone.append((index, place.row.name))
        self._check_names(names_alone, is_new)
        if self.faults:
            raise BadFields(self.faults, HINT)
        return places

    def _unknown(self, slugs: Iterable[str]) -> set[str]:
        """Return those of *slugs* that name no person of the team."""
        return {slug for slug in slugs if slug} - self.team.people.keys()

    def _add_people(self, slugs: Collection[str]) -> None:
        """Add the people of *slugs* whom the change may name to those of the team."""
        for person in Person.objects.filter(slug__in=slugs):
            # A revert may name people who were public then, but no private profile of an account.
            if can_name(person, self.actor) or (self.reverts and person.account_id is None):
                self.team.people[person.slug] = person

    def _named(self, row: PositionRow, *, is_new: bool) -> str:
        """Return the slug that a position means: the given one, or that of the person whom the listing calls so."""
        if row.slug or is_new:
            return row.slug
        same = self.by_id.get(row.item_id)
        if same and same.row.name == row.name:
            return same.row.slug
        return self.by_name.get(row.name, "")

    def _place(self, index: int, row: PositionRow, slug: str) -> Place:
        if not slug:
            return Place(row, is_linked=False)
        person = self.team.people.get(slug)
        if person is None:
            self._refuse_unknown(index, slug)
            return Place(row._replace(slug=slug), is_linked=False)
        same = self.by_id.get(row.item_id)
        if same is not None and same.row.slug != slug:
            same = None  # the row has another person now
        row = row._replace(slug=slug, name=person.name if same is None else same.row.name)
        if same is not None and row == same.row:
            return same
        if not needs_consent(person, self.actor):
            return Place(row, is_linked=True)
        for refusal in self.refusals:
            if refusal.slug == slug:
                self._refuse(index, "slug", refusal)
        return Place(row, is_linked=False)

    def _refuse_unknown(self, index: int, slug: str) -> None:
        candidates: list[str] = []
        if self.actor:
            for slugs in people_named([slug], self.actor).values():
                candidates += slugs[:_SHOWN_CANDIDATES]
        if candidates:
            meant = Phrase("; people of that name: {known}", known=", ".join(candidates))
        else:
            meant = Phrase("; give only a name for a new person")
        reason = Phrase("is unknown: no person has the slug {slug!r}{meant}", slug=slug, meant=meant)
        self.faults.append(Fault(self._path(index, "slug"), reason))

    def _check_names(self, names: Sequence[tuple[int, str]], is_new: Sequence[bool]) -> None:
        """Check names without a profile that the listing does not have yet."""
        new = [(index, name) for index, name in names if self.by_name.get(name) != ""]
        if self.actor is None or not new:
            return
        people: dict[str, list[str]] = {}
        if not self.reverts:
            people = people_named((name for _, name in new), self.actor)
        refusals = {name_key(refusal.name): refusal for refusal in self.refusals}
        for index, name in new:
            key = name_key(name)
            slugs = people.get(key, [])
            self.profiles[name] = slugs[:_SHOWN_CANDIDATES]
            if is_new[index]:  # the owner has said that it is another person
                continue
            if key in refusals:
                self._refuse(index, "name", refusals[key])
            elif slugs:
                self._ask_to_choose(index, slugs)

    def _ask_to_choose(self, index: int, slugs: Sequence[str]) -> None:
        shown, hidden = slugs[:_SHOWN_CANDIDATES], len(slugs) - _SHOWN_CANDIDATES
        more = Phrase(" and {more} more", more=hidden) if hidden > 0 else ""
        reason = Phrase(
            "is the name of {slugs}{more}: choose one, or add a new person", slugs=", ".join(shown), more=more
        )
        fault = ChoiceFault(self._path(index, "name"), reason)
        fault.choices = tuple(shown)
        self.faults.append(fault)

    def _refuse(self, index: int, member: str, refusal: Refusal) -> None:
        reason = Phrase(
            "is {slug}, who declined a position here; you can ask again on {day}",
            slug=refusal.slug,
            day=f"{refusal.until:%Y-%m-%d}",
        )
        self.faults.append(Fault(self._path(index, member), reason))

    def _path(self, index: int, member: str) -> str:
        """Return the path of a member in what was given: the whole list, or rows to add."""
        if self.added and index >= self.stored:
            return f"positions.add[{index - self.stored}].person.{member}"
        return f"positions[{index}].person.{member}"
