"""Revert a change in the history of a listing or a profile."""

from collections.abc import Callable, Collection, Iterable, Iterator

from django.db.models import QuerySet

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry import history
from muniment.registry.history import Change
from muniment.registry.models import HistoryEntry


class LaterChanges(Conflict):
    """Reverting would replace values that later changes wrote. ``fields`` names them."""

    def __init__(self, fields: Iterable[str]) -> None:
        self.fields = list(fields)
        super().__init__(
            Phrase("Later changes touched the same fields: {fields}.", fields=", ".join(self.fields)),
            "Reverting replaces their values too: repeat it with overwrite true, or edit the fields.",
        )


def values_before(
    entry: HistoryEntry, editable: Collection[str], current: Callable[[Collection[str]], JSONMapping] = lambda _: {}
) -> JSONObject:
    """
    Return the whole values that *entry* replaced.

    Args:
        current: returns the present values of fields, in the form of the history. Those of a person are whole there.

    Raises:
        BadRequest: it changed no editable field.
    """
    change = Change(entry.before, entry.after, entry.parts)
    values = {key: value for key, value in entry.before.items() if key in editable}
    if entry.action in history.NOT_REVERTED or not values:
        raise BadRequest(
            "This history entry has no change that can be reverted.",
            "Choose an entry that changed fields. To withdraw a change that waits for review, set the field to its "
            "published value.",
        )
    return history.values_before(change._replace(before=values), _changes_after(entry), current)


def _changes_after(entry: HistoryEntry) -> Iterator[Change]:
    """Yield the later changes of the fields that are not whole in *entry*, oldest first."""
    names = {*(entry.parts or ())}
    if history.ROUNDS in names:
        names.add(history.ROUND)
    later = history.touching(_later(entry), names).order_by("pk")
    for values in later.values_list(*Change._fields).iterator(chunk_size=1):
        yield Change(*values)


def _later(entry: HistoryEntry) -> QuerySet[HistoryEntry]:
    same = HistoryEntry.objects.filter(company=entry.company_id, person=entry.person_id, pk__gt=entry.pk)
    return same.exclude(action__in=history.REQUESTS)


def check_later(entry: HistoryEntry, fields: Collection[str]) -> None:
    """Raise LaterChanges if entries after *entry* changed any of *fields*."""
    later = _later(entry).exclude(action__in=history.NOT_REVERTED)
    touched: set[str] = set()
    for names in later.values_list("changed", flat=True).iterator():
        touched.update(names)
    if both := [name for name in fields if name in touched]:
        raise LaterChanges(both)
