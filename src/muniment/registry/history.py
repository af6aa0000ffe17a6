"""History entries: changes in wire form, complete enough to revert."""

from typing import Any, Final

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.registry.models import HistoryEntry
from muniment.schema.record import Record

_NAMES: Final = {"run_cost": "runCost"}
"""Columns of frameworks that have another name in history; the others keep theirs."""


def wire_values(columns: JSONObject, record: Record | None = None) -> JSONObject:
    """Return *columns* in history's form: named by *record*'s fields, exact, null if empty."""
    fields = record.by_column if record else {}
    values: JSONObject = {}
    for column, value in columns.items():
        if field := fields.get(column):
            values[field.name] = field.kind.wire(value)
        else:
            values[_NAMES.get(column, column)] = None if value == "" else value
    return values


def entry(actor: Actor, action: str, *, before: JSONObject, after: JSONObject, **subject: Any) -> HistoryEntry:
    """Return a new, unsaved history entry; *subject* is a company, person or framework, and a note."""
    return HistoryEntry(
        action=action,
        account_id=actor.account_id,
        via=actor.via,
        credential=actor.credential,
        before=before,
        after=after,
        **subject,
    )
