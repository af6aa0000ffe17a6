"""
Fit an owner's listing into one answer: chosen parts, rows from an offset on, and a word on what is not shown.

An owner writes back what was read. So a list that is short enough to be replaced whole is never cut.

Source: decisions, sections 3 and 5.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from muniment.kernel.json import JSONObject
from muniment.mcp.tools import truncation
from muniment.registry.company.changes import is_short

PARTS: Final = ("company", "distribution", "positions", "proposals", "capTable", "fundingRounds")
HISTORY: Final = "history"
"""A part that only a call that names it shows."""
LISTS: Final = ("positions", "proposals", "capTable", "fundingRounds", HISTORY)
_LONGEST: Final = "capTable"
"""The list that a plain read leaves out if it is long: hardly any job needs its first rows."""
_ROOM_BYTES: Final = 8_000
"""For the first rows of long lists: texts are cut before fewer of them are shown."""
_NOTE_BYTES: Final = 250
"""For the note about one list that is not shown whole."""

_encode = msgspec.json.encode


def fit(
    data: JSONObject,
    url: str,
    *,
    parts: Collection[str] | None = None,
    offset: int = 0,
    limit: int | None = None,
    is_lean: bool = False,
) -> JSONObject:
    """
    Return the members of the answer.

    Args:
        data: the whole listing, as plain values.
        url: of the page with the whole listing.
        parts: which of `PARTS` to include; None for all.
        offset: the first row to show of each list.
        limit: how many rows to show of each list; None for 100, and for all of a short list.
        is_lean: of a long cap table only the number of rows is shown, and how to get them.
    """
    chosen = {name: value for name, value in data.items() if name not in PARTS or parts is None or name in parts}
    lists: dict[str, list[Any]] = {name: chosen.pop(name) for name in LISTS if name in chosen}
    whole = {name for name, rows in lists.items() if not offset and limit is None and is_short(rows)}
    room = truncation.BUDGET_BYTES - sum(len(_encode(lists[name])) for name in whole) - _NOTE_BYTES * len(lists)
    room -= _cut(chosen, url, room - (_ROOM_BYTES if len(whole) < len(lists) else 0))
    shown: JSONObject = {}
    notes: JSONObject = {}
    left_out = {_LONGEST} if is_lean and _LONGEST in lists.keys() - whole else set()
    long = [name for name in lists if name not in whole | left_out]
    for name, rows in lists.items():
        if name in whole:
            shown[name] = rows
            continue
        if name in left_out:
            notes[name] = _note(name, rows, (), 0)
            continue
        share = room // len(long[long.index(name) :])
        shown[name], used = _first(rows[offset : offset + (limit or truncation.MAX_LISTED)], share, url)
        room -= used
        if len(shown[name]) < len(rows):
            notes[name] = _note(name, rows, shown[name], offset)
    totals = {f"{name}Total": len(rows) for name, rows in lists.items()} if notes else {}
    return {
        **{name: value for name, value in chosen.items() if name in PARTS},
        **shown,
        **chosen,
        **totals,
        **({"notShown": notes} if notes else {}),
    }


def _cut(chosen: JSONObject, url: str, room: int) -> int:
    """Shorten the texts of the listing until it takes *room* bytes, or only names are left; return its size."""
    size = len(_encode(chosen))
    for characters in (40_000, 20_000, *truncation.TEXT_STEPS):
        if size <= room:
            return size
        for part in (chosen, chosen.get("company"), chosen.get("distribution")):
            if part:
                truncation.cut_texts(part, characters, url)
        size = len(_encode(chosen))
    if size > room:
        chosen.pop("distribution", None)
        if "company" in chosen:
            chosen["company"] = truncation.named(chosen["company"], url)
        size = len(_encode(chosen))
    return size


def _first(rows: Sequence[JSONObject], room: int, url: str) -> tuple[list[JSONObject], int]:
    """Return the first rows that fit into *room* bytes, at least one, and their size."""
    found: list[JSONObject] = []
    used = 0
    for row in rows:
        size = len(_encode(row)) + 1
        if found and used + size > room:
            break
        if not found and size > room:
            row = dict(row)  # noqa: PLW2901 - a copy that is cut
            truncation.cut_texts(row, 500, url)
            size = len(_encode(row)) + 1
        found.append(row)
        used += size
    return found, used


def _note(name: str, rows: Sequence[JSONObject], shown: Sequence[JSONObject], offset: int) -> JSONObject:
    """Return what of a list is not shown, and the arguments that show more of it."""
    end = offset + len(shown)
    note: JSONObject = {"total": len(rows), "offset": offset, "shown": len(shown)}
    if end < len(rows):
        note["next"] = {"parts": [name], "offset": end}
    return note
