"""Compare a change of a listing's team with the stored positions, and write it with the requests to people."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from django.conf import settings

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry.company.changes import BadFields, Difference, ListGuard, StoredRow, write_rows
from muniment.registry.company.parts import PositionRow
from muniment.registry.exchange.batch import merged_slugs
from muniment.registry.models import Company, Person, Position
from muniment.registry.people import consent
from muniment.registry.publishing.publisher import AffectedRows
from muniment.schema.item_lists import ItemChange
from muniment.schema.validation import ChoiceFault, Fault

_SHOWN_CANDIDATES: Final = 5
HINT: Final = (
    "GET /api/v1/people lists the slugs of people. Give person.slug for an existing person; for a different person of "
    "the same name, add isNew true to the person."
)


class Place(NamedTuple):
    """
    A position and whom it names.

    Args:
        row: with the slug of the person, also of one who has not confirmed it.
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
        return (self.row if self.is_linked else self.row._replace(slug="")).to_document()

    def columns(self, person: int | None) -> JSONObject:
        row, linked = self.row, person if self.is_linked else None
        named = {"person_id": linked, "name": "" if linked else row.name}
        return {**named, "title": row.title, "extra": row.extra, "item_id": row.item_id}


@dataclass(slots=True)
class _Team:
    """The stored positions of a listing, by what a change may say of them."""

    company: Company
    places: list[Place] = field(default_factory=list)
    stored: list[StoredRow] = field(default_factory=list)
    people: dict[str, Person] = field(default_factory=dict)

    @classmethod
    def read(cls, company: Company) -> "_Team":
        team, requests = cls(company), consent.open_requests(company)
        for each in Position.objects.filter(company=company).select_related("person").order_by("rank"):
            request = requests.get(each.item_id) if each.person is None else None
            person = request.person if request else each.person
            name = each.person.name if each.person else each.name
            row = PositionRow(person.slug if person else "", name, each.title, each.extra, each.item_id)
            place = Place(row, each.person is not None, request.pk if request else None)
            if person:
                team.people[person.slug] = person
            team.places.append(place)
            team.stored.append(StoredRow(each.pk, each.rank, each.item_id, place.columns(each.person_id)))
        return team


def compare_positions(change: Any, found: Difference, guard: ListGuard) -> None:
    """
    Compare the team.

    Raises:
        BadFields: a position names an unknown person, one who declined recently, or by a name that others have.
        TooMany: the account asks too many people.
    """
    team = _Team.read(guard.company)
    kind: Any = settings.SCHEMA.bundle.by_name["positions"].kind
    given = guard.resolve(kind, ("positions",), change, [place.row.to_document() for place in team.places])
    added = len(change.add) if isinstance(change, ItemChange) else 0
    naming = _Naming(guard, team, added=added)
    after = naming.resolve(given)
    found.profiles = naming.profiles
    if after == team.places:
        return
    found.before["positions"] = [place.to_document() for place in team.places]
    found.after["positions"] = [place.to_document() for place in after]
    asked = [place.row for place in after if place.is_asked and place.request is None]
    consent.check_rate(guard.actor, len(asked))
    found.asked += list(dict.fromkeys(row.slug for row in asked))

    def write(affected: AffectedRows) -> None:
        keys = {slug: person.pk for slug, person in team.people.items()}
        columns = [(place.row.item_id, place.columns(keys.get(place.row.slug))) for place in after]
        write_rows(Position, team.company, team.stored, columns)
        kept = {place.request for place in after}
        consent.withdraw_requests(each.request for each in team.places if each.request and each.request not in kept)
        consent.request_positions(
            guard.actor, team.company, [(row.item_id, row.title, team.people[row.slug]) for row in asked]
        )
        consent.tell_people(team.company)
        former = {row.id: (row.columns, rank) for rank, row in enumerate(team.stored)}
        current = {each: (its, rank) for rank, (each, its) in enumerate(columns)}
        changed = [each for each in {**former, **current} if former.get(each) != current.get(each)]
        people = [rows_of[each][0]["person_id"] for each in changed for rows_of in (former, current) if each in rows_of]
        affected.person(*(key for key in people if key is not None))

    found.steps.append(write)


class _Naming:
    """
    Find out whom the given positions name.

    Args:
        added: how many of them, the last ones, a call adds to the stored ones.
    """

    def __init__(self, guard: ListGuard, team: _Team, *, added: int = 0) -> None:
        self.added = added
        self.actor, self.team, self.reverts = guard.actor, team, guard.reverts
        self.by_id = {place.row.item_id: place for place in reversed(team.places)}
        self.by_name = {place.row.name: place.row.slug for place in reversed(team.places)}
        """A name that the listing has means that person."""
        self.refusals = consent.recent_refusals(team.company) if self.actor else []
        self.faults: list[Fault] = []
        self.profiles: dict[str, list[str]] = {}
        """The slugs of the people with each name that the change adds without a profile."""

    def resolve(self, given: Sequence[JSONObject]) -> list[Place]:
        """
        Return the positions with their people.

        Raises:
            BadFields: an unknown person, one who declined recently, or a name that other people have.
        """
        rows = [PositionRow.from_document(each) for each in given]
        self.stored = len(rows) - self.added
        new = [each["person"].get("isNew") is True for each in given]
        named = [self._named(row, is_new=is_new) for row, is_new in zip(rows, new, strict=True)]
        unknown = {slug for slug in named if slug} - self.team.people.keys()
        if merged := merged_slugs(unknown):
            named = [merged.get(slug, slug) for slug in named]
            unknown = {slug for slug in named if slug} - self.team.people.keys()
        for person in Person.objects.filter(slug__in=unknown):
            if consent.can_name(person, self.actor) or (self.reverts and person.account_id is None):
                self.team.people[person.slug] = person
        places = [self._place(n, row, slug) for n, (row, slug) in enumerate(zip(rows, named, strict=True))]
        self._check_names([(n, place.row.name) for n, place in enumerate(places) if not place.row.slug], new)
        if self.faults:
            raise BadFields(self.faults, HINT)
        return places

    def _named(self, row: PositionRow, *, is_new: bool) -> str:
        same = self.by_id.get(row.item_id)
        if row.slug or is_new:
            return row.slug
        return same.row.slug if same and same.row.name == row.name else self.by_name.get(row.name, "")

    def _place(self, index: int, row: PositionRow, slug: str) -> Place:
        same = self.by_id.get(row.item_id)
        if not slug:
            return Place(row, is_linked=False)
        person = self.team.people.get(slug)
        if person is None:
            named = consent.people_named([slug], self.actor).values() if self.actor else ()
            known = ", ".join(each for slugs in named for each in slugs[:_SHOWN_CANDIDATES])
            meant = (
                Phrase("; people of that name: {known}", known=known)
                if known
                else Phrase("; give only a name for a new person")
            )
            reason = Phrase("is unknown: no person has the slug {slug!r}{meant}", slug=slug, meant=meant)
            self.faults.append(Fault(self._path(index, "slug"), reason))
            return Place(row._replace(slug=slug), is_linked=False)
        is_same = same is not None and same.row.slug == slug
        row = row._replace(slug=slug, name=same.row.name if same and is_same else person.name)
        if same and row == same.row:
            return same
        if not consent.needs_consent(person, self.actor):
            return Place(row, is_linked=True)
        for refusal in self.refusals:
            if refusal.slug == slug:
                self._refuse(index, "slug", refusal)
        return Place(row, is_linked=False)

    def _check_names(self, names: Sequence[tuple[int, str]], is_new: Sequence[bool]) -> None:
        """Check names without a profile that the listing does not have yet."""
        new = [(index, name) for index, name in names if self.by_name.get(name) != ""]
        if self.actor is None or not new:
            return
        people = {} if self.reverts else consent.people_named((name for _, name in new), self.actor)
        refusals = {consent.name_key(each.name): each for each in self.refusals}
        for index, name in new:
            key = consent.name_key(name)
            self.profiles[name] = people.get(key, [])[:_SHOWN_CANDIDATES]
            if is_new[index]:
                continue
            if refusal := refusals.get(key):
                self._refuse(index, "name", refusal)
            elif slugs := people.get(key):
                more = (
                    Phrase(" and {more} more", more=len(slugs) - _SHOWN_CANDIDATES)
                    if len(slugs) > _SHOWN_CANDIDATES
                    else ""
                )
                reason = Phrase(
                    "is the name of {slugs}{more}: choose one, or add a new person",
                    slugs=", ".join(slugs[:_SHOWN_CANDIDATES]),
                    more=more,
                )
                fault = ChoiceFault(self._path(index, "name"), reason)
                fault.choices = tuple(slugs[:_SHOWN_CANDIDATES])
                self.faults.append(fault)

    def _refuse(self, index: int, member: str, refusal: consent.Refusal) -> None:
        reason = Phrase(
            "is {slug}, who declined a position here; you can ask again on {day}",
            slug=refusal.slug,
            day=f"{refusal.until:%Y-%m-%d}",
        )
        self.faults.append(Fault(self._path(index, member), reason))

    def _path(self, index: int, member: str) -> str:
        """Return the path of a member in what was given: the whole list, or rows to add."""
        at = f".add[{index - self.stored}]" if self.added and index >= self.stored else f"[{index}]"
        return f"positions{at}.person.{member}"
