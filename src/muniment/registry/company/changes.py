"""
A change of a listing or a profile: read it by the schema, compare it with what is stored, and judge it.

In the order in which it happens: `read_change` reads the given fields; `without_unchanged` leaves out what answers
show; `compare_field` and `ListGuard` find the `Difference` and how to write it; `refuse_broken_rules` judges the values
after the edit. What an edit does not touch breaks no rule: values stored before a rule, and those that an import
brought, stay until an edit changes them. An owner who writes a listing back as it was read changes nothing: neither a
value that answers show rounded or derived, nor one that was stored before a rule forbade it.

Source: decisions, section 5, update_* and values; tools, update_my_company.
"""

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db import connection, models

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.phrases.phrase import Joined, Phrase, either
from muniment.kernel.problems import BadRequest
from muniment.kernel.texts import first_text_fault
from muniment.registry.models import CapTableEntry, Company, PendingChange, Person, Proposal, RemovedItem
from muniment.registry.publishing.documents import company_views
from muniment.registry.publishing.publisher import AffectedRows
from muniment.registry.publishing.rendering import CompanyView, company_line, company_object
from muniment.registry.sql import rows
from muniment.schema.company import bytes_of, listing_breaches, object_breaches
from muniment.schema.item_lists import ItemChange, ItemList
from muniment.schema.kinds import Choice, Text
from muniment.schema.objects import Schema
from muniment.schema.record import Field, Record
from muniment.schema.validation import MAX_FAULTS, Breach, Fault, Path, Validation

HINT: Final = "list_company_form_options lists the accepted values and lengths."
ROWS_HINT: Final = "get_my_company shows the rows of its lists with their ids."
_LIKENESS: Final = 0.75
"""Of an unknown name and the field that it may mean; "state" is not "status"."""
_MAX_UNKNOWN: Final = 5
"""Unknown names that are compared with known ones, by their first characters."""
_MAX_CHARACTERS: Final = 60

Edit = JSONObject
"""A validated change: stored values by field name, None to clear."""


class BadFields(BadRequest):
    """Invalid values. ``faults`` lists each with its field, for forms that show them in place."""

    def __init__(self, faults: Iterable[Fault], hint: str = HINT) -> None:
        self.faults = list(faults)
        named = Joined("; ", (each.sentence for each in self.faults[:5]))
        more = len(self.faults) - 5
        message = (
            Phrase("{faults}; and {more} more.", faults=named, more=more) if more > 0 else Joined("", (named, "."))
        )
        super().__init__(message, hint)


class CompanyChange(dict[str, Any]):
    """
    The fields of a listing to change, by wire name: absent fields stay, None clears.

    Lists replace, objects merge by key. ``fundingRound`` edits the open round or opens one.
    """


def read_change(change: JSONMapping, schema: Schema, *, is_new: bool = False) -> Edit:
    """
    Read *change* of a listing.

    Args:
        is_new: nothing is stored yet. Of a stored listing, values are judged after the change is applied.

    Raises:
        BadFields: values of a wrong type, fields that cannot be edited, such as id or owner.
    """
    edit = read_fields(change, schema.company_change, is_new=is_new)
    # One column, and one name in history: the one that both an old and a new history entry revert.
    return {{"treasuryAmount": "treasury"}.get(name, name): value for name, value in edit.items()}


def read_fields(change: JSONMapping, record: Record, hint: str = HINT, *, is_new: bool = False) -> Edit:
    """
    Read the fields given in *change* by *record*.

    Raises:
        BadFields: invalid values, or fields that cannot be edited.
    """
    if fault := first_text_fault(change):
        raise BadFields([Fault(*fault)], hint)
    validation = Validation(change=True)
    read = validation.read if is_new else validation.parse
    edit: Edit = read(record, dict(change))
    if validation.faults:
        if not is_new:
            validation.judge_too(record, dict(change))
        unknown = sorted(change.keys() - record.editable.keys())
        raise BadFields(validation.faults, _fields_hint(unknown, record) if unknown else hint)
    # The order of the fields in the answer: texts before all others, as in earlier versions.
    return dict(sorted(edit.items(), key=lambda each: not isinstance(record.editable[each[0]].kind, Text | Choice)))


def _fields_hint(unknown: Sequence[str], record: Record) -> Joined:
    """Return which fields there are, and first those that *unknown* names may mean."""
    near = [
        each
        for name in unknown[:_MAX_UNKNOWN]
        for each in difflib.get_close_matches(name[:_MAX_CHARACTERS], record.editable, n=1, cutoff=_LIKENESS)
    ]
    meant = [Phrase("Did you mean {near}?", near=either(list(dict.fromkeys(near))))] if near else []
    return Joined(" ", [*meant, Phrase("Editable fields: {fields}.", fields=", ".join(record.editable))])


_AMOUNT: Final = "treasuryAmount"
_PARTS: Final = frozenset({"positions", "proposals", "capTable", "fundingRounds"})


@dataclass(slots=True)
class Difference:
    """
    The effect of an edit, in wire form, and how to write it.

    Attributes:
        operations: the edits of single rows that led to it, by the path of their list.
        asked: slugs of people who are asked to confirm a position.
        profiles: of each name that it adds without a profile, the slugs of the people with that name.
    """

    before: JSONObject = field(default_factory=dict)
    after: JSONObject = field(default_factory=dict)
    columns: JSONObject = field(default_factory=dict)
    steps: list[Callable[[AffectedRows], None]] = field(default_factory=list)
    operations: dict[Path, ItemChange] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    profiles: dict[str, list[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.after)

    @property
    def lists(self) -> tuple[JSONObject, JSONObject]:
        """Return the lists beside the listing's object that change, before and after."""
        names = [name for name in self.after if name in _PARTS]
        return {name: self.before[name] for name in names}, {name: self.after[name] for name in names}

    def write_columns(self, row: Company | Person) -> None:
        for name, value in self.columns.items():
            setattr(row, name, value)

    def to_wire(self) -> dict[str, JSONObject]:
        """Return the values before and after for each field."""
        return {key: {"before": self.before[key], "after": value} for key, value in self.after.items()}


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


def without_unchanged(company: Company, change: JSONMapping) -> CompanyChange:
    """
    Return the members of *change* that differ from those that answers about *company* show.

    Raises:
        BadFields: two members give different amounts for the treasury.
    """
    fields = settings.SCHEMA.company_change.by_name
    shown = _shown(company, change.keys()) if change else {}
    pending = _pending(company) if any(field.review for name, field in fields.items() if name in change) else {}
    kept = CompanyChange()
    for name, value in change.items():
        field = fields.get(name)
        if field and field.shown and name not in pending and is_same(value, shown.get(name)):
            continue
        kind = field and field.kind
        if isinstance(kind, Record) and kind.partial and type(value) is dict and type(shown.get(name)) is dict:
            kept[name] = {key: each for key, each in value.items() if not is_same(each, shown[name].get(key))}
        else:
            kept[name] = value
    return _with_one_treasury(kept)


def is_same(given: Any, shown: Any) -> bool:
    """Return whether two JSON values are equal, 1 and true told apart."""
    if type(given) is not type(shown):
        return False
    if isinstance(given, dict):
        return given.keys() == shown.keys() and all(is_same(each, shown[name]) for name, each in given.items())
    if isinstance(given, list):
        return len(given) == len(shown) and all(map(is_same, given, shown))
    return bool(given == shown)


def _shown(company: Company, names: Collection[str]) -> JSONObject:
    """Return the facts of a listing, and those of its parts that are in *names*, as answers show them."""
    has_parts = not _PARTS.isdisjoint(names)
    view = company_views([company.pk])[company.pk] if has_parts else CompanyView(vars(company))
    facts = company_object(view, settings.SCHEMA)
    line = company_line(view, facts, settings.SCHEMA)
    parts = {name: line[name] for name in ("distribution", *_PARTS) if name in names}
    decoded: JSONObject = msgspec.json.decode(msgspec.json.encode(parts))
    return {**facts, **decoded, "teamSize": ...}  # a team size is compared with the people in the positions


def _pending(company: Company) -> JSONObject:
    """Return the fields that wait for a reviewer: to repeat the current value withdraws them."""
    waiting = PendingChange.objects.filter(company=company, decision="").values_list("changes", flat=True)
    return next(iter(waiting), None) or {}


def _with_one_treasury(change: CompanyChange) -> CompanyChange:
    """Leave out the text of an amount that is given exactly too."""
    if not {"treasury", _AMOUNT} <= change.keys():
        return change
    money, exact = (settings.SCHEMA.company.by_name[name] for name in ("treasury", _AMOUNT))
    validation = Validation(change=True)
    text, amount = (field.read(change[field.name], (field.name,), validation) for field in (money, exact))
    if validation.faults:
        raise BadFields(validation.faults)
    if text != amount and change["treasury"] != money.kind.show(amount):
        fault = Fault("treasury", "differs from treasuryAmount")
        raise BadFields([fault], "Give one of them: treasuryAmount is exact.")
    return CompanyChange({name: value for name, value in change.items() if name != "treasury"})


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


_SIZED_PARTS: Final = (
    ("positions", "registry_position", ("COALESCE(title, '')", "extra"), 60),
    ("proposals", "registry_proposal", ("document",), 1),
    ("capTable", "registry_captableentry", ("document",), 1),
)
"""The parts of a listing: its table, the columns with its text, and about how many bytes of a row are elsewhere."""


def refuse_broken_rules(company: Company, found: Difference) -> None:
    """
    Refuse an edit whose changed values break a rule.

    Raises:
        BadFields: names each of them by its place in the change.
    """
    if breaches := list(islice(_breaches(company, found), MAX_FAULTS)):
        raise BadFields([each._replace(path=_in_change(each.path, found)).fault for each in breaches])


def refuse_broken_fields(record: Record, found: Difference, hint: str = HINT) -> None:
    """
    Refuse an edit of an object without parts.

    Raises:
        BadFields: a changed value breaks a rule.
    """
    breaches = [
        breach
        for name, after in found.after.items()
        for breach in record.by_name[name].kind.breaches(after, (name,), found.before[name])
    ]
    if breaches:
        raise BadFields([each.fault for each in breaches], hint)


def _breaches(company: Company, found: Difference) -> Iterator[Breach]:
    by_id = {path[0] for path in found.operations}
    for name, after in found.after.items():
        kind = settings.SCHEMA.company_field(name).kind
        for breach in kind.breaches(after, (name,), found.before[name], by_row=name not in by_id):
            if name != "positions" or not _names_known_person(after, breach.path):
                yield breach
    yield from _sizes(company, found)


def _names_known_person(positions: list[JSONObject], path: Path) -> bool:
    """Return whether *path* is the name of a person who has a profile, which the listing only shows."""
    return path[2:] == ("person", "name") and bool(positions[int(path[1])]["person"].get("slug"))


def _sizes(company: Company, found: Difference) -> Iterator[Breach]:
    if found.columns:
        before, after = _object_bytes(vars(company)), _object_bytes({**vars(company), **found.columns})
        yield from object_breaches(after, before)
    changed = [name for name, *_ in _SIZED_PARTS if name in found.after]
    growth = sum(bytes_of(found.after[name]) - bytes_of(found.before[name]) for name in changed)
    if growth > 0:
        yield from listing_breaches(listing_bytes(company) + growth)


def _object_bytes(columns: JSONMapping) -> int:
    members = settings.SCHEMA.company.exact(columns)
    return bytes_of({**members, **(columns["extra"] or {}), "distribution": columns["distribution"]})


def listing_bytes(company: Company) -> int:
    """Return about how many bytes the stored listing has with all its parts."""
    if company.pk is None:
        return 0
    size = "octet_length" if connection.vendor == "postgresql" else "length"
    text = "{}" if connection.vendor == "postgresql" else "CAST({} AS BLOB)"
    sums = ", ".join(
        f"(SELECT COALESCE(SUM({' + '.join(f'{size}({text.format(each)})' for each in columns)} + {overhead}), 0)"
        f" FROM {table} WHERE company_id = %s)"
        for _, table, columns, overhead in _SIZED_PARTS
    )
    ((*parts,),) = rows(f"SELECT {sums}", [company.pk] * len(_SIZED_PARTS))
    return sum(map(int, parts)) + _object_bytes(vars(company))


def _in_change(path: Path, found: Difference) -> Path:
    """Return the place in the change of a value at *path* after the change."""
    for prefix, change in found.operations.items():
        rest = path[len(prefix) :]
        if path[: len(prefix)] == prefix and rest and isinstance(rest[0], int):
            return (*prefix, *_in_operations(rest[0], change, _rows_at(prefix, found)), *rest[1:])
    return path


def _rows_at(prefix: Path, found: Difference) -> list[JSONObject]:
    value: Any = found.after
    for name in prefix:
        value = value[name]
    return list(value)


def _in_operations(index: int, change: ItemChange, given: list[JSONObject]) -> Path:
    if (each := given[index].get("id", "")) in change.set:
        return ("set", list(change.set).index(each))
    first = len(given) - len(change.add)
    return ("add", index - first) if index >= first else (index,)
