"""What changed, as history keeps it: in the contract's words, whole enough to be put back."""

from typing import Any, Final

from muniment.kernel.actor import Actor
from muniment.registry.models import HistoryEntry
from muniment.schema.record import Record

_NAMES: Final = {"run_cost": "runCost"}
"""Columns of frameworks that history names otherwise; it knows the others by the names of the columns."""


def wire_values(columns: dict[str, Any], record: Record | None = None) -> dict[str, Any]:
    """Return *columns* as history keeps them: by the names of *record*'s fields, exact, null where empty."""
    fields = record.by_column if record else {}
    return {
        fields[column].name if column in fields else _NAMES.get(column, column): fields[column].kind.wire(value)
        if column in fields
        else (None if value == "" else value)
        for column, value in columns.items()
    }


def entry(actor: Actor, action: str, *, before: dict[str, Any], after: dict[str, Any], **subject: Any) -> HistoryEntry:
    """Make a history entry, not yet saved; *subject* is a company, person or framework, and a note."""
    return HistoryEntry(
        action=action,
        account_id=actor.account_id,
        via=actor.via,
        credential=actor.credential,
        before=before,
        after=after,
        **subject,
    )
