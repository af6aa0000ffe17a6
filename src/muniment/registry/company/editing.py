"""
Edit listings: compare a change with the stored rows, write it with history and publish it.

Used by the operations of owners and reviewers, each of which is one transaction.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from django.conf import settings

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry import history, provenance
from muniment.registry.company.company_change import BadFields, Edit
from muniment.registry.company.difference import Difference, compare_field
from muniment.registry.company.funding import compare_round, compare_rounds, note_raising
from muniment.registry.company.part_changes import (
    ListGuard,
    compare_documents,
    retire,
)
from muniment.registry.models import CapTableEntry, Company, Framework, Person, Proposal, State
from muniment.registry.names import keeping
from muniment.registry.people.naming import compare_positions
from muniment.registry.publishing.documents import company_views
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.registry.publishing.rendering import CompanyView
from muniment.registry.verification.endings import end_proofs
from muniment.schema.company_parts import count_people
from muniment.schema.item_lists import ItemChange, ItemList
from muniment.schema.record import Field, Record
from muniment.schema.validation import Fault, Path

_REFERENCED: Final = {"name", "symbol", "icon", "state", "listedAt"}


def compare(
    company: Company, edit: Edit, *, actor: Actor | None = None, replace: bool = False, guard: ListGuard | None = None
) -> Difference:
    """
    Compare *edit* with the stored listing.

    Args:
        actor: who makes the change, if there is no *guard*; None only compares.
        replace: replace stored objects instead of merging with them.
        guard: what the caller knows of the lists that the edit replaces; None: they may get shorter.

    Raises:
        BadFields: a position names a person who is unknown or declined, or by a name that others have; a funding round
            closes before it opens; an id is unknown; a list or text is only the part of the stored one that an answer
            showed; a team size differs from the number of people in the positions.
    """
    found = Difference()
    guard = guard or ListGuard(company, actor, off=True, reverts=replace)
    for name, value in edit.items():
        found.operations |= _operations(name, value)
        match name:
            case "positions":
                compare_positions(value, found, guard)
            case "proposals":
                compare_documents(name, Proposal, value, found, guard)
            case "capTable":
                compare_documents(name, CapTableEntry, value, found, guard)
            case "fundingRounds":
                compare_rounds(value, found, guard)
            case "fundingRound":
                compare_round(company, value, found)
            case "teamSize" if not guard.off:
                pass  # once the positions are compared
            case _:
                _compare_column(
                    company, settings.SCHEMA.company_field(name), value, found, replace=replace, guard=guard
                )
    if "teamSize" in edit and not guard.off:
        _compare_team_size(company, edit["teamSize"], found)
        found.after = {**{name: found.after[name] for name in edit if name in found.after}, **found.after}
    return found


def _operations(name: str, value: Any) -> dict[Path, ItemChange]:
    members = {(name,): value} | ({(name, inner): each for inner, each in value.items()} if type(value) is dict else {})
    return {path: each for path, each in members.items() if isinstance(each, ItemChange)}


def _compare_team_size(company: Company, value: int | None, found: Difference) -> None:
    """
    Compare a team size: while positions are listed, it is the number of their people and cannot be set.

    Raises:
        BadFields: it is neither that number nor the one that answers show.
    """
    stored = company_views([company.pk])[company.pk].people
    listed = count_people(found.after["positions"]) if "positions" in found.after else stored
    if not listed:
        compare_field(company, settings.SCHEMA.company_field("teamSize"), value, found)
    elif value not in {listed, stored or company.team_size}:
        reason = Phrase("is {listed:,}, the number of people in the positions, and cannot be set", listed=listed)
        raise BadFields([Fault("teamSize", reason)], "Leave it out, or edit the positions.")


def _compare_column(
    company: Company, field: Field, value: Any, found: Difference, *, replace: bool, guard: ListGuard
) -> None:
    """Compare a field that is a column of the listing, with the lists inside it."""
    stored = getattr(company, field.column) if field.column else None
    lists = {field.name: field} if isinstance(field.kind, ItemList) else _lists_of(field)
    for name, each in lists.items():
        whole = each is field
        if whole or (value is not None and name in value):
            path = (name,) if whole else (field.name, name)
            before = (stored if whole else (stored or {}).get(name)) or []
            kind: Any = each.kind
            rows = guard.resolve(kind, path, value if whole else value[name], before) or None
            value = rows if whole else {**value, name: rows}
            found.steps.append(partial(_retire, company, before, rows or []))
    if isinstance(value, str) and isinstance(stored, str) and not guard.off:
        _refuse_cut_text(field.name, value, stored)
    compare_field(company, field, value, found, replace=replace)


def _retire(company: Company, before: list[JSONObject], after: list[JSONObject], _: AffectedRows) -> None:
    retire(company, (row.get("id", "") for row in before), (row["id"] for row in after))


def _lists_of(field: Field) -> dict[str, Field]:
    record = field.kind
    fields = record.fields if isinstance(record, Record) else ()
    return {each.name: each for each in fields if isinstance(each.kind, ItemList)}


def _refuse_cut_text(name: str, value: str, stored: str) -> None:
    """Refuse the beginning of a stored text as an answer shows it: written back, it would delete the rest."""
    if value.endswith("…") and len(value) < len(stored) and stored.startswith(value[:-1].rstrip()):
        raise BadFields(
            [
                Fault(
                    name,
                    Phrase(
                        "is only the beginning of the stored text of {stored_count:,} characters",
                        stored_count=len(stored),
                    ),
                )
            ],
            "Read the whole text at the URL that the answer gave, or leave the field out.",
        )


def present_values(company: Company, names: Iterable[str]) -> JSONObject:
    """Return the values of fields of a listing in the form of the history; empty lists are left out."""
    return compare(company, dict.fromkeys(names), replace=True).before


class Written(NamedTuple):
    """
    A change that was written.

    Args:
        view: the published view of the company, or None if it is not public.
        entry_id: of the history entry.
    """

    view: CompanyView | None
    entry_id: int


def write(actor: Actor, company: Company, difference: Difference, action: str, *, note: str = "") -> Written:
    """
    Write *difference* with its history and publish it. The last step of an operation.

    Raises:
        TooMany: the account has changed too much text in a short time.
    """
    values = {"before": difference.before, "after": difference.after}
    entry = history.entry(actor, action, **values, company=company, note=note)
    history.charge(actor, entry.before, entry.after, entry.parts)
    loaded: dict[int, CompanyView] = {}
    affected = AffectedRows(loaded=loaded)
    if "name" in difference.columns:
        company.former_names = keeping.after_rename(company, difference.columns["name"])
        difference.columns["former_names"] = company.former_names
    difference.write_columns(company)
    provenance.edited(company, actor, difference.before, difference.after)
    company.version += 1
    company.updated_at = now()
    company.save(update_fields=["version", "updated_at", "provenance", *difference.columns])
    if "website" in difference.columns:
        end_proofs([company.pk])
    for step in difference.steps:
        step(affected)
    if {"fundingRound", "fundingRounds"} & difference.after.keys():
        note_raising(company)
    entry.save()
    publish_company(company, affected, changed=set(difference.after))
    return Written(loaded.get(company.pk), entry.pk)


def publish_owners(*companies: Company) -> None:
    """Publish what listings show of their owners: whether there are any, and the domain that they have proven."""
    if public := [company.pk for company in companies if company.state == State.PUBLISHED]:
        Company.objects.filter(pk__in=public).update(updated_at=now())
        publish(AffectedRows().company(*public))


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
