"""
A change of a listing or a profile: read it by the schema, compare it with what is stored, and judge it.

In the order in which it happens: `read_change` reads the given fields; `without_unchanged` leaves out what answers
show; `compare_field` and `ListGuard` find the `Difference` and how to write it; `refuse_broken_rules` judges the values
after the edit, and `refuse_company` asks the plugins about it. What an edit does not touch breaks no rule: values
stored before a rule, and those that an import brought, stay until an edit changes them. An owner who writes a listing
back as it was read changes nothing: neither a value that answers show rounded or derived, nor one that was stored
before a rule forbade it.

Source: decisions, section 5, update_* and values; tools, update_my_company.
"""

import copy
import difflib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db import connection, models

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONMapping, JSONObject, bytes_of, encode
from muniment.kernel.phrases.phrase import Joined, Phrase, either
from muniment.kernel.problems import BadRequest, Unavailable
from muniment.kernel.texts import first_text_fault
from muniment.plugins.loading import installed
from muniment.plugins.values import Change, Kind
from muniment.registry.fields import rows
from muniment.registry.models import CapTableEntry, Company, PendingChange, Person, Proposal, RemovedItem, State
from muniment.registry.publishing.documents import CompanyView, company_line, company_views
from muniment.registry.publishing.publisher import AffectedRows
from muniment.schema.company import (
    MAX_OBJECT_BYTES,
    TREASURY_NOTE,
    listing_breaches,
    object_breaches,
)
from muniment.schema.item_lists import ItemChange, ItemList
from muniment.schema.kinds import Choice, Text
from muniment.schema.objects import Schema
from muniment.schema.record import Field, Record
from muniment.schema.validation import MAX_FAULTS, Breach, Fault, Path, Validation

HINT: Final = "list_company_form_options lists the accepted values and lengths."
ROWS_HINT: Final = "get_my_company shows the rows of its lists with their ids."
_LIKENESS: Final = 0.75
"""The least similarity of an unknown name to the field that it may mean; "state" is not "status"."""
_MAX_UNKNOWN: Final = 5
"""Unknown names that are compared with known ones, by their first characters."""
_MAX_CHARACTERS: Final = 60
_MAX_FAULTS_NAMED: Final = 5
log = logging.getLogger("muniment.plugins")

Edit = JSONObject
"""A validated change: stored values by field name, None to clear."""


class BadFields(BadRequest):
    """
    Invalid values. ``faults`` lists each with its field, for forms that show them in place.

    Args:
        hint: the hint for faults that have none of their own.
    """

    def __init__(self, faults: Iterable[Fault], hint: str = HINT) -> None:
        self.faults = list(faults)
        named = self.faults[:_MAX_FAULTS_NAMED]
        sentences = Joined("; ", (fault.sentence for fault in named))
        unnamed_count = len(self.faults) - _MAX_FAULTS_NAMED
        if unnamed_count > 0:
            message: Phrase | Joined = Phrase("{faults}; and {more} more.", faults=sentences, more=unnamed_count)
        else:
            message = Joined("", (sentences, "."))
        hints = list(dict.fromkeys(fault.hint or hint for fault in named))
        super().__init__(message, hints[0] if len(hints) == 1 else Joined(" ", hints))


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
    return {_COLUMNS.get(name, name): value for name, value in edit.items()}


def read_fields(change: JSONMapping, record: Record, hint: str = HINT, *, is_new: bool = False) -> Edit:
    """
    Read the fields given in *change* by *record*.

    Raises:
        BadFields: invalid values, or fields that cannot be edited.
    """
    text_fault = first_text_fault(change)
    if text_fault:
        raise BadFields([Fault(*text_fault)], hint)
    validation = Validation(change=True)
    if is_new:
        edit: Edit = validation.read(record, dict(change))
    else:
        # Values are judged once the edit is applied, because those that it does not touch break no rule.
        edit = validation.parse(record, dict(change))
    if validation.faults:
        if not is_new:
            validation.judge_too(record, dict(change))  # so that one answer names all that is wrong
        unknown = sorted(change.keys() - record.editable.keys())
        raise BadFields(validation.faults, _fields_hint(unknown, record) if unknown else hint)
    # Answers name the changed fields in this order: texts before all others.
    texts: Edit = {}
    others: Edit = {}
    for name, value in edit.items():
        if isinstance(record.editable[name].kind, Text | Choice):
            texts[name] = value
        else:
            others[name] = value
    return texts | others


def _fields_hint(unknown: Sequence[str], record: Record) -> Joined:
    """Return the names of editable fields, after those, members of objects included, that *unknown* names may mean."""
    paths = _paths_of_members(record)
    for name in record.editable:
        paths[name] = name
    similar_fields: dict[str, None] = {}
    for name in unknown[:_MAX_UNKNOWN]:
        for match in difflib.get_close_matches(name[:_MAX_CHARACTERS], paths, n=1, cutoff=_LIKENESS):
            similar_fields[paths[match]] = None
    sentences = [Phrase("Editable fields: {fields}.", fields=", ".join(record.editable))]
    if similar_fields:
        sentences.insert(0, Phrase("Did you mean {near}?", near=either(list(similar_fields))))
    return Joined(" ", sentences)


def _paths_of_members(record: Record) -> dict[str, str]:
    """Return the paths of the members of objects by name; a member of a row has no single path."""
    paths: dict[str, str] = {}
    for object_name, member in record.editable.items():
        if isinstance(member.kind, Record):
            for name in member.kind.editable:
                paths[name] = f"{object_name}.{name}"
    return paths


_AMOUNT: Final = "treasuryAmount"
_COLUMNS: Final = {_AMOUNT: "treasury"}
"""Two fields of one column, which have one name in the history."""
_PARTS: Final = frozenset({"positions", "proposals", "capTable", "fundingRounds"})


@dataclass(slots=True)
class Difference:
    """
    The effect of an edit, in wire form, and how to write it.

    Attributes:
        operations: the edits of single rows that led to it, by the path of their list.
        asked: slugs of people who are asked to confirm a position.
        profiles: for each name that it adds without a profile, the slugs of the people with that name.
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
        before = {name: self.before[name] for name in names}
        after = {name: self.after[name] for name in names}
        return before, after

    def write_columns(self, row: Company | Person) -> None:
        for name, value in self.columns.items():
            setattr(row, name, value)

    def to_wire(self) -> dict[str, JSONObject]:
        """Return the values before and after for each field."""
        return {key: {"before": self.before[key], "after": value} for key, value in self.after.items()}


def compare_field(
    row: Company | Person, field: Field, value: Any, difference: Difference, *, replace: bool = False
) -> None:
    """
    Add what *value* changes in a field of *row* to *difference*.

    Args:
        replace: replace a stored object instead of merging with it.
    """
    kind = field.kind
    if field.column:
        stored = getattr(row, field.column)
        if isinstance(kind, Record):
            value = kind.merge(None if replace else stored, value)
        if value is None:
            value = kind.empty
        if value != stored:
            difference.columns[field.column] = value
            difference.before[field.name] = kind.wire(stored)
            difference.after[field.name] = kind.wire(value)
        return
    # Fields without a column are kept on the wire form, as members of one column.
    extra = dict(difference.columns.get("extra") or row.extra or {})
    before = extra.pop(field.name, None)
    after = kind.wire(value)
    if after != before:
        if after is not None:
            extra[field.name] = after
        difference.columns["extra"] = extra
        difference.before[field.name] = before
        difference.after[field.name] = after


def without_unchanged(company: Company, change: JSONMapping) -> CompanyChange:
    """
    Return the members of *change* that differ from those that answers about *company* show.

    Raises:
        BadFields: two members give different amounts for the treasury.
    """
    if not change:
        return CompanyChange()
    fields = settings.SCHEMA.company_change.by_name
    known_fields = [fields[name] for name in change if name in fields]
    shown = _shown(company, known_fields)
    waiting = _waiting_fields(company, known_fields)
    remaining = CompanyChange()
    for name, value in change.items():
        field = fields.get(name)
        if field is None:
            remaining[name] = value  # refused by read_change
            continue
        # To repeat the current value of a field that waits for a reviewer withdraws the request, so it is a change.
        is_unchanged = field.shown and name not in waiting and is_same(value, shown.get(name))
        if not is_unchanged:
            remaining[name] = _changed_part(field, value, shown.get(name))
    # A note that is given with another amount holds for that one, also if its text stays the same.
    if TREASURY_NOTE in change and {"treasury", _AMOUNT} & remaining.keys():
        remaining[TREASURY_NOTE] = change[TREASURY_NOTE]
    return _with_one_treasury(remaining)


def _changed_part(field: Field, value: Any, shown: Any) -> Any:
    """Return a changed value; of an object that is merged with the stored one, only the members that differ."""
    is_merged = isinstance(field.kind, Record) and field.kind.partial
    if not is_merged or type(value) is not dict or type(shown) is not dict:
        return value
    return {name: member for name, member in value.items() if not is_same(member, shown.get(name))}


def is_same(given: Any, shown: Any) -> bool:
    """Return whether two JSON values are equal, 1 and true told apart."""
    if type(given) is not type(shown):
        return False
    if isinstance(given, dict):
        return given.keys() == shown.keys() and all(is_same(given[name], shown[name]) for name in given)
    if isinstance(given, list):
        return len(given) == len(shown) and all(map(is_same, given, shown))
    return bool(given == shown)


def _shown(company: Company, fields: Iterable[Field]) -> JSONObject:
    """Return the values of fields of a listing as answers show them."""
    columns = vars(company)
    shown = {field.name: field.show(columns) for field in fields}
    if "teamSize" in shown:
        shown["teamSize"] = ...  # it is compared with the people in the positions
    parts = [name for name in ("distribution", *_PARTS) if name in shown]
    if parts:
        has_rows = not _PARTS.isdisjoint(parts)
        view = company_views([company.pk])[company.pk] if has_rows else CompanyView(columns)
        line = company_line(view, {}, settings.SCHEMA)
        shown |= msgspec.json.decode(msgspec.json.encode({name: line[name] for name in parts}))
    return shown


def _waiting_fields(company: Company, fields: Iterable[Field]) -> Collection[str]:
    """Return the names of the fields that wait for a reviewer; none if no reviewer decides about any of *fields*."""
    if not any(field.review for field in fields):
        return ()
    undecided = PendingChange.objects.filter(company=company, decision="").first()
    return undecided.changes.keys() if undecided else ()


def _with_one_treasury(change: CompanyChange) -> CompanyChange:
    """Leave out the text of an amount that is given exactly too."""
    if "treasury" not in change or _AMOUNT not in change:
        return change
    fields = settings.SCHEMA.company.by_name
    money, exact = fields["treasury"], fields[_AMOUNT]
    validation = Validation(change=True)
    amount_of_text = money.read(change["treasury"], ("treasury",), validation)
    amount = exact.read(change[_AMOUNT], (_AMOUNT,), validation)
    if validation.faults:
        raise BadFields(validation.faults)
    # An answer shows the text rounded, so a rounded text beside the exact amount is no contradiction.
    if amount_of_text != amount and change["treasury"] != money.kind.show(amount):
        fault = Fault("treasury", "differs from treasuryAmount")
        raise BadFields([fault], "Give one of them: treasuryAmount is exact.")
    exact_only = CompanyChange(change)
    del exact_only["treasury"]
    return exact_only


SHORT_LIST_ROWS: Final = 50
SHORT_LIST_BYTES: Final = 12 << 10
"""No read truncates a list of this size, so that a shorter one is meant."""
GUARDED: Final = ("positions", "proposals", "capTable", "fundingRounds", "address", "pools")
"""The lists with rows."""


def is_short(rows: Sequence[JSONObject]) -> bool:
    """Return whether every read shows the whole list."""
    return len(rows) <= SHORT_LIST_ROWS and bytes_of(rows) <= SHORT_LIST_BYTES


@dataclass(frozen=True, slots=True)
class ListGuard:
    """
    The caller's knowledge of the lists that a change replaces.

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
        faults = []
        for name, total in self.totals.items():
            if name not in GUARDED or type(total) is not int:
                reason = "must be the number of stored rows of a list that the change replaces"
                faults.append(Fault(f"expectedTotals.{name}", reason))
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
            reason = Phrase(
                "is {total:,}, but the number of stored rows is {stored_count:,}", total=total, stored_count=len(stored)
            )
            hint = "Read the list again, then repeat the change if it still fits."
            raise BadFields([Fault(f"expectedTotals.{name}", reason)], hint)
        if total is not None or len(given) >= len(stored):
            return
        # A short list is shown whole by every read, so a client that knows the version has seen all of it.
        stored_is_short = is_short(stored)
        if stored_is_short and self.knows_version:
            return
        reason = Phrase(
            "shrinks from {stored_count:,} to {given_count:,}: the rows left out would be deleted",
            given_count=len(given),
            stored_count=len(stored),
        )
        or_version = Phrase(" or, since the list is short, expectedVersion") if stored_is_short else ""
        raise BadFields(
            [Fault(name, reason)],
            Phrase(
                'To edit single rows, send {{"add": [rows], "set": [rows with id], "remove": [ids]}}. To '
                'replace the whole list, send it with expectedTotals {{"{name}": '
                "{stored_count}}}{with_version}.",
                name=name,
                stored_count=len(stored),
                with_version=or_version,
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
                known_ids = {row.get("id") for row in stored}
                names_unknown_rows = not known_ids.issuperset((*change.set, *change.remove))
                raise BadFields(validation.faults, ROWS_HINT if names_unknown_rows else HINT)
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
    if kind.own_ids:
        return
    known_ids = {row.get("id") for row in stored}
    validation = Validation(change=True)
    for index, row in enumerate(given):
        row_id = row.get("id")
        if row_id and row_id not in known_ids:
            reason = Phrase("{given!r} is the id of no row; leave it out for a new row", given=row_id)
            validation.refuse((*path, index, "id"), reason)
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
    """
    Write the rows of a list: only what differs, if the stored rows that stay keep their order.

    Args:
        given: the id and the columns of each row, in order.
    """
    rows: Any = model._default_manager  # noqa: SLF001 - Django's public name
    stored_ids, given_ids = [row.id for row in stored], [row_id for row_id, _ in given]
    if _has_stored_order(given_ids, stored):
        # In place, so that an edit of one row of thousands writes one row.
        removed_ids = {*stored_ids} - {*given_ids}
        rows.filter(pk__in=[row.key for row in stored if row.id in removed_ids]).delete()
        stored_by_id = {row.id: row for row in stored}
        added = []
        for row_id, columns in given:
            stored_row = stored_by_id.get(row_id)
            if stored_row is None:
                added.append((row_id, columns))
            elif columns != stored_row.columns:
                rows.filter(pk=stored_row.key).update(**columns)
        first_rank = max((row.rank for row in stored), default=-1) + 1
    else:
        rows.filter(company=company).delete()
        added, first_rank = list(given), 0
    rows.bulk_create(
        model(company=company, rank=rank, **columns) for rank, (_, columns) in enumerate(added, first_rank)
    )
    retire(company, stored_ids, given_ids)


def _has_stored_order(given_ids: Sequence[str], stored: Sequence[StoredRow]) -> bool:
    """Return whether the stored rows among the given ones come first, and in the order of their ranks."""
    rank_by_id = {row.id: row.rank for row in stored}
    if len(rank_by_id) != len(stored):
        return False  # the ids do not tell the stored rows apart
    kept_ranks = [rank_by_id[row_id] for row_id in given_ids if row_id in rank_by_id]
    kept_come_first = all(row_id in rank_by_id for row_id in given_ids[: len(kept_ranks)])
    return kept_come_first and kept_ranks == sorted(set(kept_ranks))


def retire(company: Company, before: Iterable[str], after: Iterable[str]) -> None:
    """Record the ids that no row has any more, so that no other row gets them."""
    removed_ids = {*before} - {*after} - {""}
    removed = [RemovedItem(company=company, item=item_id) for item_id in sorted(removed_ids)]
    RemovedItem.objects.bulk_create(removed, ignore_conflicts=True)


def compare_documents(
    name: str, model: type[Proposal | CapTableEntry], change: Any, difference: Difference, guard: ListGuard
) -> None:
    """Compare rows that are stored as they are published: proposals and holders."""
    company = guard.company
    rows = model.objects.filter(company=company).order_by("rank").values_list("pk", "rank", "document")
    stored = [StoredRow(key, rank, row.get("id", ""), {"document": row}) for key, rank, row in rows]
    before = [row.columns["document"] for row in stored]
    after = guard.resolve(kind_of(name), (name,), change, before)
    if before == after:
        return
    difference.before[name] = before
    difference.after[name] = after
    columns = [(row["id"], {"document": row}) for row in after]
    difference.steps.append(lambda _: write_rows(model, company, stored, columns))


def kind_of(name: str) -> ItemList:
    """Return the list of the schema with this name."""
    kind = settings.SCHEMA.bundle.by_name[name].kind
    assert isinstance(kind, ItemList)  # noqa: S101 - for the type checker
    return kind


class _SizedPart(NamedTuple):
    """
    A part of a listing whose bytes count.

    Args:
        columns: the columns of *table* with its text.
        other_bytes: about how many bytes of a row are elsewhere.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    other_bytes: int


_SIZED_PARTS: Final = (
    _SizedPart("positions", "registry_position", ("COALESCE(title, '')", "extra"), 60),
    _SizedPart("proposals", "registry_proposal", ("document",), 1),
    _SizedPart("capTable", "registry_captableentry", ("document",), 1),
)


def refuse_broken_rules(company: Company, difference: Difference) -> None:
    """
    Refuse an edit whose changed values break a rule.

    Raises:
        BadFields: names each of them by its place in the change.
    """
    breaches = list(islice(_breaches(company, difference), MAX_FAULTS))
    if breaches:
        raise BadFields(breach._replace(path=_in_change(breach.path, difference)).fault for breach in breaches)


def refuse_broken_fields(record: Record, difference: Difference, hint: str = HINT) -> None:
    """
    Refuse an edit of an object without parts.

    Raises:
        BadFields: a changed value breaks a rule.
    """
    faults: list[Fault] = []
    for name, after in difference.after.items():
        breaches = record.by_name[name].kind.breaches(after, (name,), difference.before[name])
        faults += [breach.fault for breach in breaches]
    if faults:
        raise BadFields(faults, hint)


def _breaches(company: Company, difference: Difference) -> Iterator[Breach]:
    edited_by_row = {path[0] for path in difference.operations}
    for name, after in difference.after.items():
        kind = settings.SCHEMA.company_fields[name].kind
        breaches = kind.breaches(after, (name,), difference.before[name], by_row=name not in edited_by_row)
        for breach in breaches:
            if name != "positions" or not _names_known_person(after, breach.path):
                yield breach
    yield from _size_breaches(company, difference)


def _names_known_person(positions: list[JSONObject], path: Path) -> bool:
    """Return whether *path* is the name of a person who has a profile, which the listing only shows."""
    return path[2:] == ("person", "name") and bool(positions[int(path[1])]["person"].get("slug"))


def _size_breaches(company: Company, difference: Difference) -> Iterator[Breach]:
    if difference.columns:
        after = _object_bytes({**vars(company), **difference.columns})
        if after > MAX_OBJECT_BYTES:  # the former size matters only then
            yield from object_breaches(after, _object_bytes(vars(company)))
    growth = 0
    for part in _SIZED_PARTS:
        if part.name in difference.after:
            growth += bytes_of(difference.after[part.name]) - bytes_of(difference.before[part.name])
    # A listing that is too large already may get smaller.
    if growth > 0:
        yield from listing_breaches(listing_bytes(company) + growth)


def _object_bytes(columns: JSONMapping) -> int:
    return len(encode(_members_of_company(columns)))


def listing_bytes(company: Company) -> int:
    """Return about how many bytes the stored listing has with all its parts."""
    if company.pk is None:
        return 0
    # SQL, because the database counts the bytes of 14,000 rows without sending them.
    byte_count = "octet_length({})" if connection.vendor == "postgresql" else "length(CAST({} AS BLOB))"
    sums = []
    for part in _SIZED_PARTS:
        row_bytes = " + ".join(byte_count.format(column) for column in part.columns)
        total = f"COALESCE(SUM({row_bytes} + {part.other_bytes}), 0)"
        sums.append(f"(SELECT {total} FROM {part.table} WHERE company_id = %s)")
    ((*part_bytes,),) = rows(f"SELECT {', '.join(sums)}", [company.pk] * len(sums))
    return sum(map(int, part_bytes)) + _object_bytes(vars(company))


def _in_change(path: Path, difference: Difference) -> Path:
    """Return the place in the change as it was sent of a value that is at *path* after the change."""
    for list_path, change in difference.operations.items():
        within = path[len(list_path) :]
        if path[: len(list_path)] != list_path or not within or not isinstance(within[0], int):
            continue
        rows_after: Any = difference.after
        for name in list_path:
            rows_after = rows_after[name]
        return (*list_path, *_in_operations(within[0], change, rows_after), *within[1:])
    return path


def _in_operations(index: int, change: ItemChange, rows_after: Sequence[JSONObject]) -> Path:
    """Return the place in the operations on a list of the row that is at *index* after them."""
    row_id = rows_after[index].get("id", "")
    if row_id in change.set:
        return ("set", list(change.set).index(row_id))
    first_added = len(rows_after) - len(change.add)
    if index >= first_added:
        return ("add", index - first_added)
    return (index,)  # a row that the operations do not name


# ---------------------------------------------------------------- what plugins say of a change
# They are asked in the transaction of the change. It fails closed: where a plugin cannot be loaded, or fails itself,
# nothing is stored.

_PLUGIN_HINT: Final = "This rule is one of this registry: ask its operator if it is unclear."
_PLUGIN_CHARACTERS: Final = 500
_RETRY_S: Final = 60


class PluginFailed(Unavailable):
    """A plugin that checks changes does not work."""

    def __init__(self, name: str) -> None:
        super().__init__(
            Phrase(
                "The plugin {name} of this registry does not work, so changes cannot be checked; nothing was saved.",
                name=name,
            ),
            "Tell the operator: the log has the cause, and muniment plugins lists the plugins. A plugin that is left"
            " out of MUNIMENT_PLUGINS checks nothing.",
            retry_after_s=_RETRY_S,
        )


def is_checked_by_plugins() -> bool:
    """Return whether a plugin checks changes, or would perhaps if it could be loaded."""
    plugins = installed()
    return bool(plugins.failed or plugins.calls("validate_change"))


def refuse_company(
    actor: Actor, company: Company, columns: JSONMapping, parts: tuple[JSONMapping, JSONMapping] = ({}, {})
) -> None:
    """
    Ask the plugins about a listing that is edited, or that takes a step.

    Args:
        columns: those that change.
        parts: the lists that change, before and after, in wire form.

    Raises:
        BadFields: a plugin refuses the change.
        PluginFailed: a plugin does not work.
    """
    if is_checked_by_plugins():
        _refuse_change(change_of_company(actor, company, columns, parts))


def refuse_step(actor: Actor, company: Company, end: str) -> None:
    """Ask the plugins about a listing that is going to be public, or asks for it; as :func:`refuse_company`."""
    if end in {State.SUBMITTED, State.PUBLISHED} and is_checked_by_plugins():
        _refuse_change(change_of_company(actor, company, {}, is_public=True))


def refuse_person(actor: Actor, person: Person, columns: JSONMapping, *, publishes: bool = False) -> None:
    """Ask the plugins about a person who is edited, or whose profile is published; as :func:`refuse_company`."""
    if is_checked_by_plugins():
        _refuse_change(change_of_person(actor, person, columns, publishes=publishes))


def change_of_company(
    actor: Actor,
    company: Company,
    columns: JSONMapping,
    parts: tuple[JSONMapping, JSONMapping] = ({}, {}),
    *,
    is_public: bool = False,
    is_import: bool = False,
) -> Change:
    parts_before, parts_after = parts
    before: JSONObject = {}
    if company.pk and company.version:
        before = {**_members_of_company(vars(company)), **parts_before}
    after = {**_members_of_company({**vars(company), **columns}), **parts_after}
    is_public = is_public or company.state not in {State.DRAFT, State.CHANGES_REQUESTED, State.REJECTED}
    return _change_for_plugins("company", company.slug, before, after, actor, is_public=is_public, is_import=is_import)


def change_of_person(
    actor: Actor, person: Person, columns: JSONMapping, *, publishes: bool = False, is_import: bool = False
) -> Change:
    before = _members(settings.SCHEMA.person, vars(person)) if person.pk else {}
    after = _members(settings.SCHEMA.person, {**vars(person), **columns})
    is_public = publishes or person.published or person.listed
    return _change_for_plugins("person", person.slug, before, after, actor, is_public=is_public, is_import=is_import)


def plugin_faults(change: Change) -> list[Fault]:
    """
    Return why plugins refuse a change.

    Raises:
        PluginFailed: one could not be loaded, or raises.
    """
    plugins = installed()
    for failed in plugins.failed:
        raise PluginFailed(failed.name)
    faults: list[Fault] = []
    for call in plugins.calls("validate_change"):
        try:
            refusals = list(call(change=change) or ())
            faults += [Fault(str(each.field), str(each.message)[:_PLUGIN_CHARACTERS]) for each in refusals]
        except Exception:
            log.exception("plugin %s failed in validate_change of %s %s", call.plugin, change.kind, change.id)
            raise PluginFailed(call.plugin) from None
    return faults[:MAX_FAULTS]


def _refuse_change(change: Change) -> None:
    if faults := plugin_faults(change):
        raise BadFields(faults, _PLUGIN_HINT)


def _members_of_company(columns: JSONMapping) -> JSONObject:
    return {**_members(settings.SCHEMA.company, columns), "distribution": columns["distribution"]}


def _members(record: Any, columns: JSONMapping) -> JSONObject:
    return {**record.exact(columns), **(columns["extra"] or {})}


def _change_for_plugins(
    kind: Kind, slug: str, before: JSONObject, after: JSONObject, actor: Actor, *, is_public: bool, is_import: bool
) -> Change:
    names = before.keys() | after.keys()
    return Change(
        kind=kind,
        id=slug,
        # Copies: what a plugin does with them must not reach the rows.
        before=MappingProxyType(copy.deepcopy(before)),
        after=MappingProxyType(copy.deepcopy(after)),
        fields=frozenset(name for name in names if before.get(name) != after.get(name)),
        is_public=is_public,
        via=actor.via,
        is_import=is_import,
    )
