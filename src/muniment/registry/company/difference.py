"""
What an edit changes: the values before and after in wire form, and how to write them.

An owner who writes a listing back as it was read changes nothing: neither a value that answers show rounded or
derived, nor one that was stored before a rule forbade it.

Source: decisions, section 5, update_*.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from django.conf import settings

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.registry.company.company_change import BadFields, CompanyChange
from muniment.registry.models import Company, PendingChange, Person
from muniment.registry.publishing.documents import company_views
from muniment.registry.publishing.publisher import AffectedRows
from muniment.registry.publishing.rendering import CompanyView, company_line, company_object
from muniment.schema.item_lists import ItemChange
from muniment.schema.record import Field, Record
from muniment.schema.validation import Fault, Path, Validation

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
