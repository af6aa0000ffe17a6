"""What an edit changes: the values before and after in wire form, and how to write them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from muniment.kernel.json import JSONObject
from muniment.registry.models import Company, Person
from muniment.registry.publishing.publisher import AffectedRows
from muniment.schema.item_lists import ItemChange
from muniment.schema.record import Field, Record
from muniment.schema.validation import Path


@dataclass(slots=True)
class Difference:
    """
    The effect of an edit, in wire form, and how to write it.

    Attributes:
        operations: the edits of single rows that led to it, by the path of their list.
        asked: slugs of people who are asked to confirm a position.
    """

    before: JSONObject = field(default_factory=dict)
    after: JSONObject = field(default_factory=dict)
    columns: JSONObject = field(default_factory=dict)
    steps: list[Callable[[AffectedRows], None]] = field(default_factory=list)
    operations: dict[Path, ItemChange] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.after)

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
