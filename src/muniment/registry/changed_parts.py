"""
The compact form of a change: of a list the rows that changed, of an object the members that did. Pure.

Where nothing is left out, a value stays whole: it is text or a number, was empty before or after, shares no row or
member with the other side, or is a list whose rows are not told apart by ids.

A value that is not whole has a *part*, which says how the sides fit into the whole. Of an object, ``members`` holds the
parts of members that are themselves incomplete. Of a list, ``from`` and ``to`` hold the places of rows that are on one
side only or were moved, before and after, in runs: the ids of the rows in front and behind (empty at the ends), the
index, the ids.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.schema.record import MAX_DEPTH

_encode = msgspec.json.Encoder(order="sorted").encode


class Changed(NamedTuple):
    """
    Values before and after by field.

    Args:
        parts: the parts of the fields whose values are not whole.
    """

    before: JSONObject
    after: JSONObject
    parts: JSONObject


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
    old, new = ({name: each for name, each in side.items() if name not in same} for side in (before, after))
    changed = reduce_change(old, new, levels=levels - 1)
    return changed.before, changed.after, {"members": changed.parts}


def _reduce_list(
    old: dict[str, JSONObject], new: dict[str, JSONObject]
) -> tuple[list[JSONObject], list[JSONObject], JSONObject | None]:
    kept = [each for each in old if each in new]
    edited = {each for each in kept if not _is_same(old[each], new[each])}
    if len(edited) == len(kept):
        return list(old.values()), list(new.values()), None
    moved = _moved(kept, [each for each in new if each in old])
    before = [row for each, row in old.items() if each in edited or each not in new]
    after = [row for each, row in new.items() if each in edited or each not in old]
    places = {
        "from": _runs(old, lambda each: each in moved or each not in new),
        "to": _runs(new, lambda each: each in moved or each not in old),
    }
    return before, after, places


def rows_by_id(rows: Any) -> dict[str, JSONObject] | None:
    """Return the rows of a list by id, or None if these do not tell them apart."""
    found: dict[str, JSONObject] = {}
    for row in rows if type(rows) is list else ():
        each = row.get("id") if type(row) is dict else None
        if type(each) is not str or not each or each in found:
            return None
        found[each] = row
    return found


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: 1, 1.0 and true are not."""
    return one is other or (one == other and _encode(one) == _encode(other))


def _moved(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """Return the fewest ids without which both have the same order: those outside a longest increasing subsequence."""
    if before == after:
        return set()
    place = {each: index for index, each in enumerate(before)}
    tails: list[int] = []
    ends: list[int] = []
    former: list[int] = []
    for index, each in enumerate(after):
        at = bisect_left(tails, place[each])
        former.append(ends[at - 1] if at else -1)
        if at == len(tails):
            tails.append(place[each])
            ends.append(index)
        else:
            tails[at], ends[at] = place[each], index
    moved = set(after)
    index = ends[-1]
    while index >= 0:
        moved.discard(after[index])
        index = former[index]
    return moved


def _runs(ids: Iterable[str], is_placed: Callable[[str], bool]) -> list[list[Any]]:
    runs: list[list[Any]] = []
    former, is_open = "", False
    for index, each in enumerate(ids):
        if is_placed(each):
            if not is_open:
                runs.append([former, "", index])
            runs[-1].append(each)
            is_open = True
            continue
        if is_open:
            runs[-1][1] = each
        former, is_open = each, False
    return runs


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
    found = {name: each for name, each in value.items() if name in before or name not in after}
    for name, each in before.items():
        found[name] = undo(value.get(name), each, after.get(name), parts.get(name))
    return found


def _undo_list(rows: list[Any], before: Iterable[JSONObject], part: JSONMapping) -> list[Any]:
    former = {row["id"]: row for row in before}
    placed = {each for _, _, _, *ids in part["to"] for each in ids}
    here = {row.get("id"): row for row in rows}
    kept = [former.get(row.get("id"), row) for row in rows if row.get("id") not in placed]
    known = {"", *(row.get("id") for row in kept)}
    behind: dict[str, list[Any]] = {}
    ahead: dict[str, list[Any]] = {}
    homeless: list[tuple[int, list[Any]]] = []
    for front, back, index, *ids in part["from"]:
        run = [row for each in ids if (row := former.get(each) or here.get(each)) is not None]
        if front in known:
            behind[front] = run
        elif back in known and back:
            ahead[back] = run
        else:
            homeless.append((index, run))
    found = behind.pop("", [])
    for row in kept:
        found += ahead.pop(row.get("id"), ())
        found.append(row)
        found += behind.pop(row.get("id"), ())
    for index, run in homeless:
        found[index:index] = run
    return found


def without_rows(part: JSONMapping, ids: Collection[str]) -> JSONObject:
    """Return a part of a list without the places of some rows."""
    found: JSONObject = {}
    for side, runs in part.items():
        left = ([*run[:3], *(each for each in run[3:] if each not in ids)] for run in runs)
        found[side] = [run for run in left if len(run) > 3]
    return found
