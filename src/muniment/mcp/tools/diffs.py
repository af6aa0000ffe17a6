"""Fit the diff of an update into an answer."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.mcp.tools import truncation

_STEPS: Final = ((2_000, 20), (500, 5), (100, 1))
"""Characters of a text and entries of a list, fewer until the diff takes half an answer."""

_encode = msgspec.json.encode


def fitting(diff: Mapping[str, JSONMapping]) -> dict[str, JSONObject]:
    """Return a diff that fits: long texts are truncated; of long lists it has the rows that differ, and the total."""
    for characters, entries in _STEPS:
        fitted = {name: _sides(sides, characters, entries) for name, sides in diff.items()}
        if len(_encode(fitted)) <= truncation.BUDGET_BYTES // 2:
            return fitted
    return {name: {"truncated": True} for name in diff}


def _sides(sides: JSONMapping, characters: int, entries: int) -> JSONObject:
    before, after = sides["before"], sides["after"]
    if max(len(each) if isinstance(each, list) else 0 for each in (before, after)) > entries:
        return {
            "before": _list(before or [], after or [], entries),
            "after": _list(after or [], before or [], entries),
        }
    return {side: _short(value, characters) for side, value in sides.items()}


def _list(rows: Sequence[Any], others: Sequence[Any], entries: int) -> JSONObject:
    known = {_encode(each) for each in others}
    changed = [row for row in rows if _encode(row) not in known]
    return {"changed": changed[:entries], "total": len(rows), "truncated": True}


def _short(value: Any, characters: int) -> Any:
    if isinstance(value, str) and len(value) > characters:
        return value[:characters].rstrip() + "…"
    return value
