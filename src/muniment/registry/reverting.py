"""Revert a change in the history of a listing or a profile."""

from collections.abc import Collection, Iterable
from typing import Final

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry.models import HistoryEntry

_REQUESTS: Final = ("asked", "request withdrawn", "change refused")
"""Actions that changed no field: a request waits for a reviewer."""


class LaterChanges(Conflict):
    """Reverting would replace values that later changes wrote. ``fields`` names them."""

    def __init__(self, fields: Iterable[str]) -> None:
        self.fields = list(fields)
        super().__init__(
            f"Later changes touched the same fields: {', '.join(self.fields)}.",
            "Reverting replaces their values too: repeat it with overwrite true, or edit the fields.",
        )


def values_before(entry: HistoryEntry, editable: Collection[str]) -> JSONObject:
    """
    Return the values that *entry* replaced.

    Raises:
        BadRequest: it changed no editable field.
    """
    values = {key: value for key, value in entry.before.items() if key in editable}
    if entry.action in _REQUESTS or not values:
        raise BadRequest(
            "This history entry has no change that can be reverted.",
            "Choose an entry that shows a field before and after.",
        )
    return values


def check_later(entry: HistoryEntry, fields: Collection[str]) -> None:
    """Raise LaterChanges if entries after *entry* changed any of *fields*."""
    same = HistoryEntry.objects.filter(company=entry.company_id, person=entry.person_id, pk__gt=entry.pk)
    later = same.exclude(action__in=_REQUESTS).values_list("after", flat=True)
    touched = {name for after in later.iterator() for name in after}
    if both := [name for name in fields if name in touched]:
        raise LaterChanges(both)
