"""
Edit listings: compare a change with the stored rows, write it with history and publish it.

Used by the operations of owners and reviewers, each of which is one transaction.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.registry import history
from muniment.registry.company.company_change import BadFields, Edit
from muniment.registry.company.parts import PositionRow
from muniment.registry.exchange.batch import reserve_slug
from muniment.registry.models import CapTableEntry, Company, Framework, FundingRound, Person, Position, Proposal, State
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.registry.publishing.rendering import CompanyView
from muniment.schema.record import Field, Record
from muniment.schema.validation import Fault

_REFERENCED: Final = {"name", "symbol", "icon", "state", "listedAt"}


@dataclass(slots=True)
class Difference:
    """The effect of an edit, in wire form, and how to write it."""

    before: JSONObject = field(default_factory=dict)
    after: JSONObject = field(default_factory=dict)
    columns: JSONObject = field(default_factory=dict)
    steps: list[Callable[[AffectedRows], None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.after)

    def write_columns(self, row: Company | Person) -> None:
        for name, value in self.columns.items():
            setattr(row, name, value)

    def to_wire(self) -> dict[str, JSONObject]:
        """Return the values before and after for each field."""
        return {key: {"before": self.before[key], "after": value} for key, value in self.after.items()}


def compare(company: Company, edit: Edit, *, replace: bool = False) -> Difference:
    """
    Compare *edit* with the stored listing.

    Args:
        replace: replace stored objects instead of merging with them.

    Raises:
        BadFields: a position names an unknown person; a funding round closes before it opens.
    """
    found = Difference()
    for name, value in edit.items():
        match name:
            case "positions":
                _compare_positions(company, [PositionRow.from_document(each) for each in value or ()], found)
            case "proposals":
                _compare_documents(company, name, Proposal, value or [], found)
            case "capTable":
                _compare_documents(company, name, CapTableEntry, value or [], found)
            case "fundingRound":
                _compare_round(company, value, found)
            case _:
                compare_field(company, settings.SCHEMA.company_field(name), value, found, replace=replace)
    return found


def compare_field(row: Company | Person, field: Field, value: Any, found: Difference, *, replace: bool = False) -> None:
    kind = field.kind
    if field.column:
        stored = getattr(row, field.column)
        if isinstance(kind, Record):
            value = kind.merge(None if replace else stored, value)
        value = kind.empty if value is None else value
        if value != stored:
            found.columns[field.column] = value
            found.before[field.name], found.after[field.name] = kind.wire(stored), kind.wire(value)
        return
    extra = dict(found.columns.get("extra") or row.extra or {})
    before, after = extra.pop(field.name, None), kind.wire(value)
    if after != before:
        found.columns["extra"] = extra if after is None else {**extra, field.name: after}
        found.before[field.name], found.after[field.name] = before, after


def _compare_documents(
    company: Company, key: str, model: type[Proposal | CapTableEntry], given: list[JSONObject], found: Difference
) -> None:
    stored = list(model.objects.filter(company=company).order_by("rank").values_list("document", flat=True))
    if stored == given:
        return
    found.before[key], found.after[key] = stored, given

    def write(_: AffectedRows) -> None:
        rows: Any = [model(company=company, rank=n, document=each) for n, each in enumerate(given)]
        model.objects.filter(company=company).delete()
        model.objects.bulk_create(rows)

    found.steps.append(write)


def _compare_positions(company: Company, given: list[PositionRow], found: Difference) -> None:
    stored = list(
        Position.objects.filter(company=company)
        .order_by("rank")
        .values_list("person__slug", "person__name", "title", "extra", "person_id")
    )
    people = {person.slug: person for person in Person.objects.filter(slug__in=[place.slug for place in given])}
    named = {name: slug for slug, name, *_ in reversed(stored)}
    unknown = {index: place.slug for index, place in enumerate(given) if place.slug and place.slug not in people}
    if unknown:
        reason = "is unknown: no person has the slug {!r}; give only a name for a new person"
        faults = [Fault(f"positions[{index}].person.slug", reason.format(slug)) for index, slug in unknown.items()]
        raise BadFields(faults, "GET /api/v1/people lists the slugs of people.")
    wanted = [(place.slug or named.get(place.name, ""), place.name, place.title, place.extra) for place in given]
    if [(slug, title, extra) for slug, _, title, extra in wanted] == [
        (slug, title, extra) for slug, _, title, extra, _ in stored
    ]:
        return
    names = {**{slug: name for slug, name, *_ in stored}, **{slug: person.name for slug, person in people.items()}}
    found.before["positions"] = [PositionRow(*place[:4]).to_document() for place in stored]
    found.after["positions"] = [
        PositionRow(slug, names.get(slug, name), title, extra).to_document() for slug, name, title, extra in wanted
    ]

    def write(affected: AffectedRows) -> None:
        slugs = [slug for slug, *_ in wanted if slug]
        keys = dict(Person.objects.filter(slug__in=slugs).values_list("slug", "pk"))
        created: dict[str, int] = {}
        Position.objects.filter(company=company).delete()
        rows = []
        for rank, (slug, name, title, extra) in enumerate(wanted):
            if slug:
                key = keys[slug]
            else:
                key = created[name] = created.get(name) or _make_person(name).pk
            rows.append(Position(company=company, person_id=key, rank=rank, title=title, extra=extra))
        Position.objects.bulk_create(rows)
        affected.person(*(row.person_id for row in rows), *(place[4] for place in stored))

    found.steps.append(write)


def _make_person(name: str) -> Person:
    """Create a person named in a position; public while a published listing names them."""
    return Person.objects.create(slug=reserve_slug("person", name), name=name.strip())


def _compare_round(company: Company, given: JSONObject, found: Difference) -> None:
    rounds = list(FundingRound.objects.filter(company=company).order_by("rank"))
    current = next((each for each in rounds if each.closed_on is None), None)
    rank = rounds[-1].rank + 1 if rounds else 0
    opened = current or FundingRound(company=company, rank=rank, opened_on=now().date())
    if current is None and given.get("closed") and "opened" not in given:
        fault = Fault("fundingRound.closed", "is given, but no round is open")
        raise BadFields([fault], "Open a round first: name, target, opened.")
    record = settings.SCHEMA.funding_round
    stored = record.exact(vars(opened)) if current else None
    for name, value in given.items():
        part = record.by_name[name]
        setattr(opened, part.column, part.kind.empty if value is None else value)
    if opened.closed_on and opened.opened_on and opened.closed_on < opened.opened_on:
        fault = Fault("fundingRound.closed", "is before opened")
        raise BadFields([fault], "Give a closing date after the opening date.")
    changed = record.exact(vars(opened))
    if stored == changed:
        return
    found.before["fundingRound"], found.after["fundingRound"] = stored, changed
    found.steps.append(lambda _: opened.save())


def write(actor: Actor, company: Company, difference: Difference, action: str, *, note: str = "") -> CompanyView | None:
    """
    Write *difference* with its history and publish it. The last step of an operation.

    Returns:
        The published view of the company, or None if it is not public.
    """
    loaded: dict[int, CompanyView] = {}
    affected = AffectedRows(loaded=loaded)
    difference.write_columns(company)
    company.version += 1
    company.updated_at = now()
    company.save(update_fields=["version", "updated_at", *difference.columns])
    for step in difference.steps:
        step(affected)
    history.entry(actor, action, before=difference.before, after=difference.after, company=company, note=note).save()
    publish_company(company, affected, changed=set(difference.after))
    return loaded.get(company.pk)


def publish_company(company: Company, affected: AffectedRows, *, changed: set[str]) -> None:
    """Publish *company* and what refers to it; *changed* are the changed fields, by wire name."""
    if company.state != State.PUBLISHED and not company.published:
        return
    affected.company(company.pk)
    if changed & _REFERENCED:
        affected.company_with_dependents(company.pk)
    if "description" in changed:
        affected.frameworks_of(company.pk)
    if affected.people:
        Person.objects.filter(pk__in=list(affected.people)).update(updated_at=company.updated_at)
    if affected.frameworks:
        Framework.objects.filter(pk__in=list(affected.frameworks)).update(updated_at=company.updated_at)
    publish(affected)
