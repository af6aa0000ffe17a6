"""History entries: changes in wire form, without what did not change; how to read whole values, and revert a change."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from django.db import models
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast, Coalesce, Length

from muniment.kernel import fairness
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry.models import Company, HistoryEntry, PendingChange, Person, Petition
from muniment.schema.record import MAX_DEPTH, Record

_NAMES: Final = {"opens_on": "opensOn", "closes_on": "closesOn", "run_cost": "runCost"}
"""Columns of frameworks that have another name in history; the others keep theirs."""
REQUESTS: Final = ("asked", "request withdrawn", "change refused")
"""Actions that changed no field: a request waits for a reviewer."""
MERGED: Final = "person merged"
NOT_REVERTED: Final = (*REQUESTS, MERGED)
"""Actions that cannot be reverted, and that are no edit of a listing."""
ROUNDS: Final = "fundingRounds"
ROUND: Final = "fundingRound"
"""The one round that an edit changed; its values are whole."""
_LIMITED: Final = ("web", "token", "app")
VALUE_COLUMNS: Final[list[tuple[type[models.Model], tuple[str, ...]]]] = [
    (HistoryEntry, ("before", "after")),
    (PendingChange, ("changes",)),
    (Petition, ("changes",)),
]
"""The columns with values of listings."""
MAX_READ: Final = 2 << 20
"""Characters of values that one page of the history reads."""


def wire_values(columns: JSONObject, record: Record | None = None) -> JSONObject:
    """Return *columns* in history's form: named by *record*'s fields, exact, null if empty."""
    fields = record.by_column if record else {}
    values: JSONObject = {}
    for column, value in columns.items():
        field = fields.get(column)
        if field is not None:
            values[field.name] = field.kind.wire(value)
        else:
            # Also an additional member, which has its name and its JSON already.
            values[_NAMES.get(column, column)] = None if value == "" else value
    return values


def entry(actor: Actor, action: str, *, before: JSONObject, after: JSONObject, **subject: Any) -> HistoryEntry:
    """
    Return a new, unsaved history entry.

    Args:
        subject: a company, person or framework, and a note. The values of a person are whole, since a merge joins the
            histories of two people.
    """
    whole = after if "person" in subject else (ROUND,)
    changed = reduce_change(before, after, whole=whole)
    return HistoryEntry(
        action=action,
        account_id=actor.account_id,
        via=actor.via,
        credential=actor.credential,
        before=changed.before,
        after=changed.after,
        parts=changed.parts or None,
        changed=names_of(after, before),
        **subject,
    )


def insert_creations(
    actor: Actor, action: str, subject: str, rows: Sequence[Company | Person], import_run: int | None
) -> None:
    """Insert the history entries of new *rows*, which changed no field; *subject* is "company" or "person"."""
    of_all: JSONObject = {
        "at": now(),
        "action": action,
        "account_id": actor.account_id,
        "via": actor.via,
        "credential": actor.credential,
        "before": {},
        "after": {},
        "changed": [],
        "import_run_id": import_run,
    }
    HistoryEntry.objects.bulk_create([HistoryEntry(**of_all, **{f"{subject}_id": row.pk}) for row in rows])


def limit_written_bytes(actor: Actor, *values: Any) -> None:
    """
    Count the bytes that a change writes against the limit of its account, before it is written.

    Raises:
        TooMany: the account has changed too much text in a short time.
    """
    if actor.account_id is None or actor.via not in _LIMITED:
        return
    size = sum(len(msgspec.json.encode(value)) for value in values if value)
    # A change that is larger than the limit needs all of it.
    fairness.current().take("written_bytes", actor.account_id, min(size, fairness.BURST_BYTES))


def names_of(*values: JSONMapping) -> list[str]:
    """Return the names of fields, each once, in their order."""
    names: dict[str, None] = {}
    for members in values:
        names |= dict.fromkeys(members)
    return list(names)


class Changed(NamedTuple):
    """
    Values before and after by field.

    Args:
        parts: the parts of the fields whose values are not whole.
    """

    before: JSONObject
    after: JSONObject
    parts: JSONObject


_encode = msgspec.json.Encoder(order="sorted").encode


def reduce_change(
    before: JSONMapping, after: JSONMapping, *, whole: Collection[str] = (), levels: int = MAX_DEPTH
) -> Changed:
    """
    Return what differs between two sets of fields in compact form.

    Args:
        whole: fields that stay whole.
        levels: how deep objects are reduced.
    """
    changed = Changed(dict(before), dict(after), {})
    for name in sorted(before.keys() & after.keys() - set(whole)):
        old, new, part = _reduce(before[name], after[name], levels)
        if part is not None:
            changed.before[name], changed.after[name], changed.parts[name] = old, new, part
    return changed


def _reduce(before: Any, after: Any, levels: int) -> tuple[Any, Any, JSONObject | None]:
    """Return both values without what they share, and what `undo` needs to restore it; None if they stay whole."""
    if type(before) is dict and type(after) is dict and levels:
        return _reduce_object(before, after, levels)
    if type(before) is list and type(after) is list:
        old, new = rows_by_id(before), rows_by_id(after)
        if old and new:
            return _reduce_list(old, new)
    return before, after, None


def _reduce_object(before: JSONObject, after: JSONObject, levels: int) -> tuple[Any, Any, JSONObject | None]:
    same = {name for name in before.keys() & after.keys() if _is_same(before[name], after[name])}
    if not same:
        return before, after, None
    changed = reduce_change(_without(before, same), _without(after, same), levels=levels - 1)
    return changed.before, changed.after, {"members": changed.parts}


def _without(members: JSONObject, names: Collection[str]) -> JSONObject:
    return {name: value for name, value in members.items() if name not in names}


def _reduce_list(
    old: dict[str, JSONObject], new: dict[str, JSONObject]
) -> tuple[list[JSONObject], list[JSONObject], JSONObject | None]:
    """Return the rows that the change added, edited or removed, before and after it, and the places that changed."""
    kept_ids = [row_id for row_id in old if row_id in new]
    edited_ids = {row_id for row_id in kept_ids if not _is_same(old[row_id], new[row_id])}
    if len(edited_ids) == len(kept_ids):  # nothing can be left out
        return list(old.values()), list(new.values()), None
    moved_ids = _moved(kept_ids, [row_id for row_id in new if row_id in old])
    removed_ids = old.keys() - new.keys()
    added_ids = new.keys() - old.keys()
    ids_before, ids_after = edited_ids | removed_ids, edited_ids | added_ids
    before = [row for row_id, row in old.items() if row_id in ids_before]
    after = [row for row_id, row in new.items() if row_id in ids_after]
    places = {"from": _runs(old, moved_ids | removed_ids), "to": _runs(new, moved_ids | added_ids)}
    return before, after, places


def rows_by_id(rows: Any) -> dict[str, JSONObject] | None:
    """Return the rows of a list by id, or None if these do not tell them apart."""
    if type(rows) is not list:
        return {}
    by_id: dict[str, JSONObject] = {}
    for row in rows:
        row_id = row.get("id") if type(row) is dict else None
        if type(row_id) is not str or not row_id or row_id in by_id:
            return None
        by_id[row_id] = row
    return by_id


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: 1, 1.0 and true are not."""
    return one is other or (one == other and _encode(one) == _encode(other))


def _moved(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """Return the fewest ids without which both have the same order: those outside a longest increasing subsequence."""
    if before == after:
        return set()
    place_before = {row_id: place for place, row_id in enumerate(before)}
    # Patience sorting: of all increasing runs of one length, the one that ends lowest can be continued best. For each
    # length, the place where that run ends, and the index in *after* of its last id.
    lowest_ends: list[int] = []
    last_indexes: list[int] = []
    # For each id of *after*, the index of the one before it in its run, -1 for the first.
    predecessors: list[int] = []
    for index, row_id in enumerate(after):
        place = place_before[row_id]
        length = bisect_left(lowest_ends, place)  # of the longest run that this id continues
        predecessors.append(last_indexes[length - 1] if length else -1)
        if length == len(lowest_ends):
            lowest_ends.append(place)
            last_indexes.append(index)
        else:
            lowest_ends[length] = place
            last_indexes[length] = index
    moved = set(after)
    index = last_indexes[-1]
    while index >= 0:
        moved.discard(after[index])
        index = predecessors[index]
    return moved


def _runs(ids: Iterable[str], placed_ids: Collection[str]) -> list[list[Any]]:
    """Return the places of *placed_ids* among *ids*: for each run, its neighbours, its index and its ids."""
    runs: list[list[Any]] = []
    front, is_open = "", False
    for index, row_id in enumerate(ids):
        if row_id in placed_ids:
            if not is_open:
                runs.append([front, "", index])
            runs[-1].append(row_id)
            is_open = True
            continue
        if is_open:
            runs[-1][1] = row_id
        front, is_open = row_id, False
    return runs


def _only(values: JSONObject, name: str) -> JSONObject:
    return {name: values[name]} if name in values else {}


class Change(NamedTuple):
    """The values of an entry, as it is stored."""

    before: JSONObject
    after: JSONObject
    parts: JSONObject | None

    def part_of(self, name: str) -> JSONObject | None:
        return (self.parts or {}).get(name)

    def of(self, name: str) -> "Change | None":
        """Return this change with the field *name* alone; None if it did not change."""
        if name in self.before or name in self.after:
            return Change(_only(self.before, name), _only(self.after, name), _only(self.parts or {}, name))
        if name != ROUNDS or ROUND not in self.after:
            return None
        # The edit of one round, as the change of the list with that row alone: a new round comes first.
        old, new = self.before.get(ROUND), self.after[ROUND]
        rows_before = [old] if old else []
        rows_after = [new] if new else []
        places_after = [] if old else [["", "", 0, new.get("id")]]
        return Change({ROUNDS: rows_before}, {ROUNDS: rows_after}, {ROUNDS: {"from": [], "to": places_after}})


_UNREAD: Final = Change({}, {}, None)


def values_before(
    change: Change, later: Iterable[Change], current: Callable[[Collection[str]], JSONMapping]
) -> JSONObject:
    """
    Return the whole values before a change.

    Args:
        later: the changes of the same row after it, oldest first.
        current: returns the present values of fields, in the form of the history.
    """
    # The changes of each field that has to be undone, from the wanted one on; the other fields are stored whole.
    changes_to_undo = {name: [of_field] for name, of_field in _changes_of_rows(change)}
    if not changes_to_undo:
        return dict(change.before)
    # A whole value of the field after these changes: from it, they are undone backwards.
    whole_values: JSONObject = {}
    for later_change in later:
        for name in changes_to_undo.keys() - whole_values.keys():
            of_field = later_change.of(name)
            if of_field is None:
                continue
            if of_field.part_of(name) is None:
                whole_values[name] = of_field.before.get(name)
            else:
                changes_to_undo[name].append(of_field)
        if len(whole_values) == len(changes_to_undo):
            break  # the later entries are many, and are read one by one
    missing = changes_to_undo.keys() - whole_values.keys()
    if missing:
        present_values = current(missing)
        for name in missing:
            whole_values[name] = present_values.get(name)
    values = dict(change.before)
    for name, changes in changes_to_undo.items():
        values[name] = _undo_all(name, whole_values[name], changes)
    return values


def _changes_of_rows(change: Change) -> Iterator[tuple[str, Change]]:
    """Yield the fields of which the entry holds only the rows that changed; of the others it holds the whole values."""
    for name in change.before:
        of_field = change.of(name)
        if of_field is not None and change.part_of(name) is not None:
            yield name, of_field


def _undo_all(name: str, value: Any, changes: list[Change]) -> Any:
    for change in reversed(changes):
        value = undo(value, change.before.get(name), change.after.get(name), change.part_of(name))
    return value


def touching(
    entries: QuerySet[HistoryEntry], names: Iterable[str], *, actions: Collection[str] = ()
) -> QuerySet[HistoryEntry]:
    """
    Return the entries that changed one of the fields *names*.

    Args:
        actions: entries of these are returned too.
    """
    found = Q(action__in=actions)
    for name in names:
        found |= Q(names__contains=msgspec.json.encode(name).decode())
    return entries.annotate(names=Cast("changed", TextField())).filter(found)


def rows_naming(model: type[models.Model], columns: tuple[str, ...], text: str) -> models.QuerySet[Any]:
    """Return the rows of a table with *text*, in any case, as a value in one of the columns."""
    encoded = msgspec.json.encode(text).decode()
    # The columns are JSON, which Django compares as such: as text, the value is found wherever it is nested.
    as_texts = {f"{column}_text": Cast(column, TextField()) for column in columns}
    contains = Q(pk__in=[])
    for column in as_texts:
        contains |= Q(**{f"{column}__icontains": encoded})
    naming: models.QuerySet[Any] = model._default_manager.annotate(**as_texts).filter(contains)  # noqa: SLF001 - Django's public name
    return naming


def read_page(
    entries: QuerySet[HistoryEntry], page: int, page_size: int, *, with_values: bool = True
) -> Page[HistoryEntry]:
    """
    Return a page of entries, latest first, each with the names of its fields.

    Args:
        with_values: also read the values, as long as those of the page have at most `MAX_READ` characters.
    """
    # First the entries without their values: one value can have megabytes, and a page has many entries.
    size = Length("before") + Length("after") + Coalesce(Length("parts"), 0)
    light = entries.select_related("account").annotate(size=size).defer("before", "after", "parts")
    page_of_entries: Page[Any] = Page.of(light.order_by("-at", "-pk"), page, page_size)
    left = MAX_READ
    read_keys = set()
    for listed in page_of_entries.items:
        if with_values and listed.size <= left:
            left -= listed.size
            read_keys.add(listed.pk)
    changes: dict[int, Change] = {}
    stored = HistoryEntry.objects.filter(pk__in=read_keys)
    for key, *values in stored.values_list("pk", *Change._fields):
        changes[key] = Change(*values)
    for listed in page_of_entries.items:
        listed.is_loaded = listed.pk in changes
        listed.before, listed.after, listed.parts = changes.get(listed.pk, _UNREAD)
    return page_of_entries


class LaterChanges(Conflict):
    """Reverting would replace values that later changes wrote. ``fields`` names them."""

    def __init__(self, fields: Iterable[str]) -> None:
        self.fields = list(fields)
        super().__init__(
            Phrase("Later changes touched the same fields: {fields}.", fields=", ".join(self.fields)),
            "Reverting replaces their values too: repeat it with overwrite true, or edit the fields.",
        )


def replaced_values(
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
    if entry.action in NOT_REVERTED or not values:
        raise BadRequest(
            "This history entry has no change that can be reverted.",
            "Choose an entry that changed fields. To withdraw a change that waits for review, set the field to its "
            "published value.",
        )
    return values_before(change._replace(before=values), _changes_after(entry), current)


def _changes_after(entry: HistoryEntry) -> Iterator[Change]:
    """Yield the later changes of the fields that are not whole in *entry*, oldest first."""
    names = {*(entry.parts or ())}
    if ROUNDS in names:
        names.add(ROUND)
    later = touching(_later(entry), names).order_by("pk")
    # One at a time: the caller stops at the first entry that has the whole values, and one can have megabytes.
    for values in later.values_list(*Change._fields).iterator(chunk_size=1):
        yield Change(*values)


def _later(entry: HistoryEntry) -> QuerySet[HistoryEntry]:
    same = HistoryEntry.objects.filter(company=entry.company_id, person=entry.person_id, pk__gt=entry.pk)
    return same.exclude(action__in=REQUESTS)


def check_later(entry: HistoryEntry, fields: Collection[str]) -> None:
    """Raise LaterChanges if entries after *entry* changed any of *fields*."""
    later = _later(entry).exclude(action__in=NOT_REVERTED)
    touched: set[str] = set()
    for names in later.values_list("changed", flat=True).iterator():
        touched.update(names)
    both = [name for name in fields if name in touched]
    if both:
        raise LaterChanges(both)


def undo(value: Any, before: Any, after: Any, part: JSONMapping | None) -> Any:
    """
    Return what *value* was before a change.

    Args:
        value: the whole value after the change. Rows that are no longer there are left out.
        part: None where *before* is whole.
    """
    if part is None:
        return before
    if "members" in part:
        return _undo_object(value if type(value) is dict else {}, before, after, part["members"])
    return _undo_list(value if type(value) is list else [], before, part)


def _undo_object(value: JSONObject, before: JSONObject, after: JSONObject, parts: JSONMapping) -> JSONObject:
    undone: JSONObject = {}
    for name, member in value.items():
        is_added = name in after and name not in before  # by the change
        if not is_added:
            undone[name] = member
    for name, member_before in before.items():
        undone[name] = undo(value.get(name), member_before, after.get(name), parts.get(name))
    return undone


def _undo_list(rows: list[Any], before: Iterable[JSONObject], part: JSONMapping) -> list[Any]:
    former_rows = {row["id"]: row for row in before}
    present_rows = {row.get("id"): row for row in rows}
    kept = _rows_in_place(rows, former_rows, part["to"])
    kept_ids = {row.get("id") for row in kept}
    behind: dict[str, list[Any]] = {}
    ahead: dict[str, list[Any]] = {}
    without_neighbours: list[tuple[int, list[Any]]] = []
    for front, back, index, *ids in part["from"]:
        run = _rows_of(ids, former_rows, present_rows)
        # By a neighbour rather than by the index, which later changes of the list have shifted.
        if not front or front in kept_ids:
            behind[front] = run
        elif back and back in kept_ids:
            ahead[back] = run
        else:
            without_neighbours.append((index, run))
    restored = behind.pop("", [])
    for row in kept:
        row_id = row.get("id")
        restored += [*ahead.pop(row_id, ()), row, *behind.pop(row_id, ())]
    # Later changes removed both neighbours of these, so that only the former index is left to go by.
    for index, run in without_neighbours:
        restored[index:index] = run
    return restored


def _rows_in_place(rows: list[Any], former_rows: JSONMapping, runs: Iterable[list[Any]]) -> list[Any]:
    """Return the rows that a change neither added nor moved, as they were before it."""
    placed_ids: set[str] = set()
    for _front, _back, _index, *ids in runs:
        placed_ids.update(ids)
    kept = []
    for row in rows:
        row_id = row.get("id")
        if row_id not in placed_ids:
            kept.append(former_rows.get(row_id, row))
    return kept


def _rows_of(ids: Iterable[str], former_rows: JSONMapping, present_rows: JSONMapping) -> list[Any]:
    """Return the rows of a run before the change; one that was only moved is among the present ones."""
    run = []
    for row_id in ids:
        row = former_rows.get(row_id) or present_rows.get(row_id)
        if row is not None:  # a later change may have removed it
            run.append(row)
    return run


def without_rows(part: JSONMapping, ids: Collection[str]) -> JSONObject:
    """Return a part of a list without the places of some rows."""
    reduced: JSONObject = {}
    for side, runs in part.items():
        reduced[side] = []
        for front, back, index, *placed_ids in runs:
            left_ids = [row_id for row_id in placed_ids if row_id not in ids]
            if left_ids:
                reduced[side].append([front, back, index, *left_ids])
    return reduced
