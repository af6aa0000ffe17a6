"""
The positions of imported companies: the people whom they name, and what people answered about their positions.

An import speaks for the operator: it confirms what a claimed profile was asked for. It publishes no private profile.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from muniment.kernel.ids import now, slug_from_name
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry.company.parts import PositionRow
from muniment.registry.exchange.batch import BatchRun, free_slug, given_slugs, merged_slugs
from muniment.registry.exchange.rows import CompanyRow
from muniment.registry.models import Company, Person, PositionRequest
from muniment.registry.people.suppression import Suppressions
from muniment.schema.company_parts import POSITIONS
from muniment.schema.validation import Fault

StoredPositions = list[tuple[PositionRow, int | None]]
"""Stored positions, each with the person's key, None where only a name is shown."""
Rows = list[tuple[int, CompanyRow]]
"""Rows with their line numbers."""
_Answered = tuple[str, str, str, str | None]
"""The person's slug and name, the id of the position and its title."""
NO_ONE: Final[Mapping[str, str]] = MappingProxyType({})


class KnownPerson(NamedTuple):
    """The facts about a stored person that a batch needs."""

    pk: int
    slug: str
    name: str
    account_id: int | None
    published: bool


@dataclass(slots=True)
class NamedPeople:
    """The people named in the positions of a batch, existing or to be created."""

    run: BatchRun
    known: dict[str, KnownPerson | Person]
    made: dict[str, Person] = field(default_factory=dict)

    @classmethod
    def read(cls, run: BatchRun, slugs: Iterable[str]) -> "NamedPeople":
        people = Person.objects.filter(slug__in=set(slugs)).values_list(*KnownPerson._fields)
        return cls(run, {person.slug: person for person in map(KnownPerson._make, people)})

    def unknown(self, place: PositionRow) -> bool:
        """Return whether the person does not exist and has no name to create them with."""
        slug = place.slug
        if not slug or place.name.strip():
            return False
        return slug not in self.known and slug not in self.made and slug not in self.run.names["person"]

    def name_of(self, place: PositionRow) -> str:
        person = self.known.get(place.slug) or self.made.get(place.slug)
        return person.name if person else place.name

    def resolved(
        self, places: Iterable[PositionRow], stored: StoredPositions, former: Mapping[str, str] = NO_ONE
    ) -> list[PositionRow]:
        """
        Return *places* with the slugs of their people, who are created if needed.

        Args:
            stored: the present positions of the listing.
            former: slugs of people whose positions were removed since an import brought them, by their names.
        """
        slugs_by_id: dict[tuple[str, str], str] = {}
        slugs_by_name: dict[str, str] = {}
        for place, _ in stored:
            # Of several positions under one name, the first one tells who it is.
            slugs_by_id.setdefault((place.item_id, place.name), place.slug)
            slugs_by_name.setdefault(place.name, place.slug)
        slugs_by_name |= former
        return [place._replace(slug=self._resolve(place, slugs_by_id, slugs_by_name)) for place in places]

    def _resolve(
        self, place: PositionRow, slugs_by_id: Mapping[tuple[str, str], str], slugs_by_name: dict[str, str]
    ) -> str:
        """
        Return the slug of the person in *place*; create the person if needed.

        A row with an id and without a slug comes from an export, which writes a person without a public profile so.
        """
        slug = place.slug
        if not slug and place.item_id:
            return slugs_by_id.get((place.item_id, place.name), "")
        if not slug:
            slug = slugs_by_name.get(place.name) or free_slug("person", place.name, self.known, self.made)
            slugs_by_name[place.name] = slug  # the same name in another position of the company is the same person
        if slug not in self.known and slug not in self.made:
            self.made[slug] = Person(slug=slug, name=place.name)
        return slug


def ignore_erased_people(run: BatchRun, rows: Rows) -> None:
    suppressed = Suppressions()
    if not suppressed:
        return
    for line, row in rows:
        if row.positions is None:
            continue
        kept = []
        left_out = []
        for index, place in enumerate(row.positions):
            if suppressed.has_place(row.slug, place.slug, place.name):
                place_in_file = row.place_in_file(index)
                run.warn(line, Fault(f"positions[{place_in_file}].person", "was erased; the position is ignored"))
                left_out.append(place_in_file)
            else:
                kept.append(place)
        row.positions = kept
        row.left_out_places += left_out


def follow_merges(rows: Rows) -> None:
    named: set[str] = set()
    for _, row in rows:
        named.update(place.slug for place in row.positions or ())
    merged = merged_slugs(named)
    if not merged:
        return
    for _, row in rows:
        if row.positions:
            row.positions = [place._replace(slug=merged.get(place.slug, place.slug)) for place in row.positions]


def keep_private(
    run: BatchRun,
    rows: Rows,
    people: NamedPeople,
    positions: Mapping[int, StoredPositions],
    companies: Mapping[str, Company],
) -> None:
    """Replace private profiles by the names that the rows give, except where a stored listing links to them."""
    private = {slug for slug, person in people.known.items() if person.account_id and not person.published}
    if not private:
        return
    for line, row in rows:
        if row.positions is not None:
            company = companies.get(row.slug)
            stored_positions = positions[company.pk] if company else ()
            linked = {place.slug for place, person_key in stored_positions if person_key}
            _show_names_alone(run, line, row, private - linked)


def _show_names_alone(run: BatchRun, line: int, row: CompanyRow, hidden: set[str]) -> None:
    """Replace the profiles *hidden* of a row by their names, and leave out the positions that give no name."""
    kept = []
    left_out = []
    for index, place in enumerate(row.positions or ()):
        place_in_file = row.place_in_file(index)
        path = f"positions[{place_in_file}].person.slug"
        if place.slug not in hidden:
            kept.append(place)
        elif place.name.strip():
            run.warn(line, Fault(path, "is a private profile; the position shows its name alone"))
            (document,) = POSITIONS.with_ids([place.to_document()])
            kept.append(place._replace(slug="", item_id=document["id"]))
        else:
            run.warn(line, Fault(path, "is a private profile; it is ignored"))
            left_out.append(place_in_file)
    row.positions = kept
    row.left_out_places += left_out


def without_unknown_people(run: BatchRun, rows: Rows, people: NamedPeople) -> Rows:
    """Return the rows whose people are known or can be created; report the others."""
    named: set[str] = set()
    for _, row in rows:
        named.update(place.slug for place in row.positions or ())
    gone = given_slugs("person", named - people.known.keys() - {""})
    kept = []
    for line, row in rows:
        is_valid = True
        for index, place in enumerate(row.positions or ()):
            if place.slug in gone:
                reason = Phrase("{slug!r} was used by a deleted person and cannot be reused", slug=place.slug)
            elif people.unknown(place):
                reason = Phrase("is unknown: no person has the slug {slug!r}", slug=place.slug)
            else:
                continue
            run.tell(line, Fault(f"positions[{row.place_in_file(index)}].person.slug", reason))
            is_valid = False
        if is_valid:
            kept.append((line, row))
    return kept


@dataclass(slots=True)
class PositionAnswers:
    """The requests of the companies of a batch: refused ones, and the undecided ones by the id of the position."""

    refused: dict[int, list[_Answered]] = field(default_factory=lambda: defaultdict(list))
    waiting: dict[int, dict[str, tuple[int, str]]] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def read(cls, companies: Iterable[Company]) -> "PositionAnswers":
        answers, decisions = cls(), PositionRequest.Decision
        requests = PositionRequest.objects.filter(
            company__in=[company.pk for company in companies],
            decision__in=["", decisions.DECLINED, decisions.ENDED],
        )
        columns = ("pk", "company_id", "decision", "item", "title", "person__slug", "person__name")
        for key, company, decision, item, title, slug, name in requests.values_list(*columns):
            if decision:
                answers.refused[company].append((slug, name, item, title))
            else:
                answers.waiting[company][item] = (key, slug)
        return answers

    def leave_out_refused(self, company: Company, row: CompanyRow, run: BatchRun, line: int) -> None:
        """Leave out the positions of a row that their person declined or ended, and report them."""
        refused = self.refused.get(company.pk)
        if not refused or not row.positions:
            return
        kept = []
        left_out = []
        for index, place in enumerate(row.positions):
            if any(_is_same(place, answered) for answered in refused):
                place_in_file = row.place_in_file(index)
                reason = "was declined or ended by the person and is left out"
                run.warn(line, Fault(f"positions[{place_in_file}]", reason))
                left_out.append(place_in_file)
            else:
                kept.append(place)
        row.positions = kept
        row.left_out_places += left_out

    def settle(self, written: Iterable[tuple[Company, list[PositionRow]]]) -> None:
        """Record that the operator confirmed a requested position; withdraw requests whose position is gone."""
        decisions: dict[str, list[int]] = defaultdict(list)
        for company, places in written:
            slugs = {place.item_id: place.slug for place in places}
            for item, (request, slug) in self.waiting.get(company.pk, {}).items():
                if slugs.get(item) == slug:
                    decisions[PositionRequest.Decision.CONFIRMED].append(request)
                elif slugs.get(item) != "":
                    decisions[PositionRequest.Decision.WITHDRAWN].append(request)
        for decision, keys in decisions.items():
            PositionRequest.objects.filter(pk__in=keys).update(decision=decision, decided_at=now())


def _is_same(place: PositionRow, answered: _Answered) -> bool:
    slug, name, item, title = answered
    if place.slug:
        is_person = place.slug == slug
    else:
        is_person = slug_from_name(place.name) == slug_from_name(name)
    is_item = bool(place.item_id) and place.item_id == item
    # By its title too, because a file need not have ids.
    return is_person and (is_item or place.title == title)
