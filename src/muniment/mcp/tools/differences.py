"""
Show what an update changes, by element: of a list the rows that differ, of an object the members that do.

Source: decisions, section 3; tools, update_my_company.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.mcp.tools.truncation import BUDGET_BYTES

_STEPS: Final = ((2_000, 20), (500, 5), (100, 1))
"""Characters of a text and rows of a list."""
_encode = msgspec.json.encode


def shown(changes: Mapping[str, JSONMapping]) -> dict[str, JSONObject]:
    """
    Return the difference of fields, each given before and after, so that it fits.

    A value has `before` and `after`; of an object both have the members that differ. A list has the rows that are
    `added` and `removed`, and by id the members of rows that are `changed`; of more than fit, the numbers.
    """
    for characters, rows in _STEPS:
        fitted = {name: _difference(each["before"], each["after"], characters, rows) for name, each in changes.items()}
        if len(_encode(fitted)) <= BUDGET_BYTES // 2:
            return fitted
    return {name: {"truncated": True} for name in changes}


def _difference(before: Any, after: Any, characters: int, rows: int) -> JSONObject:
    if isinstance(before, list) or isinstance(after, list):
        found = _of_lists(before or [], after or [])
        return dict(_parts(found or {"reordered": True}, characters, rows))
    if isinstance(before, dict) or isinstance(after, dict):
        before, after = _of_objects(before or {}, after or {})
    return {"before": _short(before, characters, rows), "after": _short(after, characters, rows)}


def _of_objects(before: JSONObject, after: JSONObject) -> tuple[JSONObject, JSONObject]:
    """Return the members that differ, of lists within them the rows that do."""
    sides: tuple[JSONObject, JSONObject] = {}, {}
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, list) and isinstance(new, list):
            old, new = _rows_only_in(old, new), _rows_only_in(new, old)
        sides[0][name], sides[1][name] = old, new
    return sides


def _of_lists(before: Sequence[Any], after: Sequence[Any]) -> JSONObject:
    removed, added = _rows_only_in(before, after), _rows_only_in(after, before)
    former = {row["id"]: row for row in removed if isinstance(row, dict) and row.get("id")}
    changed = [row for row in added if isinstance(row, dict) and row.get("id") in former]
    kept = {row["id"] for row in changed}
    found = {
        "added": [row for row in added if not (isinstance(row, dict) and row.get("id") in kept)],
        "removed": [row for row in removed if not (isinstance(row, dict) and row.get("id") in kept)],
        "changed": [{"id": row["id"], **_sides(former[row["id"]], row)} for row in changed],
    }
    return {name: each for name, each in found.items() if each}


def _sides(before: JSONObject, after: JSONObject) -> JSONObject:
    old, new = _of_objects(before, after)
    return {"before": old, "after": new}


def _rows_only_in(rows: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    known = {_encode(each) for each in others}
    return [row for row in rows if _encode(row) not in known]


def _parts(found: JSONObject, characters: int, most: int) -> Iterator[tuple[str, Any]]:
    for name, rows in found.items():
        yield name, _short(rows, characters, most)
        if isinstance(rows, list) and len(rows) > most:
            yield f"{name}Total", len(rows)


def _short(value: Any, characters: int, most: int) -> Any:
    if isinstance(value, str) and len(value) > characters:
        return value[:characters].rstrip() + "…"
    if isinstance(value, list):
        return [_short(each, characters, most) for each in value[:most]]
    if isinstance(value, dict):
        return {name: _short(each, characters, most) for name, each in value.items()}
    return value
