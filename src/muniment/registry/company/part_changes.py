"""Compare changes of a listing's proposals, holders and rounds with the stored rows, and write them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db import models

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry.company.company_change import HINT, ROWS_HINT, BadFields
from muniment.registry.company.difference import Difference
from muniment.registry.models import CapTableEntry, Company, Proposal, RemovedItem
from muniment.schema.item_lists import ItemChange, ItemList
from muniment.schema.validation import Fault, Path, Validation

SHORT_LIST_ROWS: Final = 50
SHORT_LIST_BYTES: Final = 12 << 10
"""No read truncates a list of this size, so that a shorter one is meant."""
GUARDED: Final = ("positions", "proposals", "capTable", "fundingRounds", "address", "pools")
"""The lists with rows."""


def is_short(rows: Sequence[JSONObject]) -> bool:
    """Return whether every read shows the whole list."""
    return len(rows) <= SHORT_LIST_ROWS and len(msgspec.json.encode(rows)) <= SHORT_LIST_BYTES


@dataclass(frozen=True, slots=True)
class ListGuard:
    """
    What the caller knows of the lists that a change replaces.

    Args:
        company: the listing.
        actor: who makes the change; None only compares, without the rules about naming people.
        totals: the number of stored rows, by the name of the list.
        knows_version: the change named the present version of the listing.
        off: a shorter list is meant: there is none yet, or the change comes from the history.
        reverts: the change comes from the history.
    """

    company: Company
    actor: Actor | None = None
    totals: Mapping[str, int] = field(default_factory=dict)
    knows_version: bool = False
    off: bool = False
    reverts: bool = False

    def __post_init__(self) -> None:
        faults = [
            Fault(f"expectedTotals.{name}", "must be the number of stored rows of a list that the change replaces")
            for name, total in self.totals.items()
            if name not in GUARDED or type(total) is not int
        ]
        if faults:
            raise BadFields(faults, Phrase("Lists with totals: {lists}.", lists=", ".join(GUARDED)))

    def check(self, name: str, stored: Sequence[JSONObject], given: Sequence[JSONObject]) -> None:
        """
        Refuse a list that may have been read only in part.

        Raises:
            BadFields: it is shorter than the stored one, which the caller may not have seen whole.

        Source: decisions, section 5, update_*.
        """
        if self.off:
            return
        total = self.totals.get(name)
        if total is not None and total != len(stored):
            raise BadFields(
                [
                    Fault(
                        f"expectedTotals.{name}",
                        Phrase(
                            "is {total:,}, but the list has {stored_count:,} rows",
                            total=total,
                            stored_count=len(stored),
                        ),
                    )
                ],
                "Read the list again, then repeat the change if it still fits.",
            )
        if len(given) >= len(stored) or total is not None:
            return
        short = is_short(stored)
        if short and self.knows_version:
            return
        with_version = Phrase(" or, since the list is short, expectedVersion") if short else ""
        raise BadFields(
            [
                Fault(
                    name,
                    Phrase(
                        "has {given_count:,} rows, but {stored_count:,} are stored: the others would be deleted",
                        given_count=len(given),
                        stored_count=len(stored),
                    ),
                )
            ],
            Phrase(
                'To edit single rows, send {{"add": [rows], "set": [rows with id], "remove": [ids]}}. To '
                'replace the whole list, send it with expectedTotals {{"{name}": '
                "{stored_count}}}{with_version}.",
                name=name,
                stored_count=len(stored),
                with_version=with_version,
            ),
        )

    def resolve(
        self, kind: ItemList, path: Path, change: ItemChange | Sequence[JSONObject] | None, stored: Sequence[JSONObject]
    ) -> list[JSONObject]:
        """
        Return the rows of a list after *change*, each with its id.

        Raises:
            BadFields: an id that no row has, an invalid member, or a list that may be incomplete.
        """
        if isinstance(change, ItemChange):
            validation = Validation(change=True)
            given = validation.collect(lambda: kind.apply(stored, change, path, validation), list(stored))
            if validation.faults:
                known = {row.get("id") for row in stored}
                is_of_rows = not known.issuperset((*change.set, *change.remove))
                raise BadFields(validation.faults, ROWS_HINT if is_of_rows else HINT)
        else:
            given = list(change or ())
            self.check(str(path[-1]), stored, given)
            if not self.off:
                _refuse_unknown_ids(kind, path, given, stored)
        if all(row.get("id") for row in given):
            return given
        retired = frozenset(RemovedItem.objects.filter(company=self.company).values_list("item", flat=True))
        return kind.with_ids(given, stored, retired)


def _refuse_unknown_ids(kind: ItemList, path: Path, given: Sequence[JSONObject], stored: Sequence[JSONObject]) -> None:
    known = {row.get("id") for row in stored}
    validation = Validation(change=True)
    for index, row in enumerate(given):
        if not (each := row.get("id")):
            continue
        if each not in known and not kind.own_ids:
            validation.refuse(
                (*path, index, "id"), Phrase("{given!r} is the id of no row; leave it out for a new row", given=each)
            )
    if validation.faults:
        raise BadFields(validation.faults, ROWS_HINT)


class StoredRow(NamedTuple):
    """A row as its table holds it."""

    key: int
    rank: int
    id: str
    columns: JSONObject


def write_rows(
    model: type[models.Model], company: Company, stored: Sequence[StoredRow], given: Sequence[tuple[str, JSONObject]]
) -> None:
    """Write the rows in *given*, by id and columns: only what differs, if the order of the stored ones stays."""
    rows: Any = model._default_manager  # noqa: SLF001 - Django's public name
    by_id = {row.id: row for row in stored}
    kept = [by_id[each].rank for each, _ in given if each in by_id]
    last = max((row.rank for row in stored), default=-1)
    in_place = (
        len(by_id) == len(stored) and kept == sorted(set(kept)) and all(each in by_id for each, _ in given[: len(kept)])
    )
    if not in_place:
        rows.filter(company=company).delete()
        rows.bulk_create([model(company=company, rank=n, **columns) for n, (_, columns) in enumerate(given)])
    else:
        left = {each for each, _ in given}
        rows.filter(pk__in=[row.key for row in stored if row.id not in left]).delete()
        for each, columns in given[: len(kept)]:
            if columns != by_id[each].columns:
                rows.filter(pk=by_id[each].key).update(**columns)
        added = given[len(kept) :]
        rows.bulk_create([model(company=company, rank=last + n, **each) for n, (_, each) in enumerate(added, 1)])
    retire(company, (row.id for row in stored), (each for each, _ in given))


def retire(company: Company, before: Iterable[str], after: Iterable[str]) -> None:
    """Record the ids that no row has any more, so that no other row gets them."""
    gone = {*before} - {*after} - {""}
    RemovedItem.objects.bulk_create(
        [RemovedItem(company=company, item=each) for each in sorted(gone)], ignore_conflicts=True
    )


def compare_documents(
    name: str, model: type[Proposal | CapTableEntry], change: Any, found: Difference, guard: ListGuard
) -> None:
    """Compare rows that are stored as they are published."""
    company = guard.company
    rows = model.objects.filter(company=company).order_by("rank").values_list("pk", "rank", "document")
    stored = [StoredRow(key, rank, each.get("id", ""), {"document": each}) for key, rank, each in rows]
    before = [row.columns["document"] for row in stored]
    after = guard.resolve(kind_of(name), (name,), change, before)
    if before == after:
        return
    found.before[name], found.after[name] = before, after
    columns = [(each["id"], {"document": each}) for each in after]
    found.steps.append(lambda _: write_rows(model, company, stored, columns))


def kind_of(name: str) -> ItemList:
    """Return the list of the schema with this name."""
    kind = settings.SCHEMA.bundle.by_name[name].kind
    assert isinstance(kind, ItemList)  # noqa: S101 - for the type checker
    return kind
