"""
Truncate answers to fit a model's context: at most 60 KB, with links to the full data.

Source: decisions, section 3.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any

import msgspec

from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page

BUDGET_BYTES = 60_000
MAX_LISTED = 100
FRAMEWORK_DESCRIPTION_CHARACTERS = 500
PARTS = ("body", "positions", "capTable", "proposals", "distribution", "fundingRounds")
"""The parts of a company's bundle that a call can leave out."""
SHOWN_PARTS = PARTS[1:]
"""The members of a company's bundle besides the company."""
_LISTS = ("positions", "proposals", "capTable")
TEXT_STEPS = (8_000, 2_000, 500, 200, 80)
_LENGTH_STEPS = (100, 50, 25, 10, 5, 2, 1)
_NEVER_CUT = frozenset({"id", "slug", "frameworkId", "documentId", "companySlug", "name", "frameworkName"})
_MAX_NAME = 200
_HINT_BYTES = 400
_NEXT_BYTES = 30
"""For `nextOffset`."""
_HALF_BYTES = BUDGET_BYTES // 2 - 1_000
_PAGE_SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 24, 30, 40, 50, 60, 80, 100, 120, 150)

_encode = msgspec.json.encode


def cut_text(record: JSONObject, member: str, characters: int, url: str) -> None:
    """Truncate a text of *record*, and add a marker and the URL of the full text."""
    text = record.get(member)
    if isinstance(text, str) and len(text) > characters:
        record[member] = text[:characters].rstrip() + "…"
        record[f"{member}Truncated"] = True
        record[f"{member}Url"] = url


def cut_texts(record: JSONObject, characters: int, url: str) -> None:
    """Truncate every text of *record* that is longer than *characters*, except names."""
    for member in [name for name, value in record.items() if isinstance(value, str) and name not in _NEVER_CUT]:
        if not member.endswith("Url"):
            cut_text(record, member, characters, url)


def bundle(data: JSONObject, url: str, *, offset: int = 0, limit: int = MAX_LISTED) -> bytes:
    """
    Fit a company with its parts; `nextOffset` continues its lists.

    Args:
        offset: the first row to show of each list.
        limit: how many rows to show of each list.
    """
    totals = {name: len(data[name] or ()) for name in _LISTS if name in data}
    longest = max(totals.values(), default=0)
    if longest <= min(limit, MAX_LISTED) and not offset and len(body := _encode({"data": data})) <= BUDGET_BYTES:
        return body
    for name in totals:
        data[name] = (data[name] or ())[offset : offset + limit]
    if longest > 1:
        data = {"company": data["company"], **{f"{name}Total": total for name, total in totals.items()}, **data}

    def steps() -> Iterator[tuple[int, int]]:
        """Shorten long texts first, to a readable length; then the lists, to what fits; then texts again."""
        yield from ((characters, limit) for characters in (40_000, 20_000, *TEXT_STEPS[:2]))
        yield TEXT_STEPS[1], _fitting(data, _LISTS)
        yield from ((characters, 1) for characters in TEXT_STEPS[2:])

    finished = _shrink(data, _LISTS, steps(), (data, data["company"], data.get("distribution") or {}), url)
    shown = max((len(data[name]) for name in totals), default=0)
    if shown and offset + shown < longest:
        finished = _encode({"data": data, "nextOffset": offset + shown})
    if len(finished) <= BUDGET_BYTES:
        return finished
    kept = {name: data[name] for name in ("state", "version", "pendingChanges") if name in data}
    totals_of = {f"{name}Total": total for name, total in totals.items()}
    return _encode({"data": {"company": named(data["company"], url), **kept, **totals_of}})


def facts(company: JSONObject, url: str) -> JSONObject:
    """Fit a company's facts into half an answer; *url* has the full data."""
    kept = dict(company)
    for characters in TEXT_STEPS:
        if len(_encode(kept)) <= _HALF_BYTES:
            return kept
        cut_texts(kept, characters, url)
    return kept if len(_encode(kept)) <= _HALF_BYTES else named(company, url)


def record(data: JSONObject, url: str, listed: str = "") -> bytes:
    """
    Fit the detail of a person or a framework, or an owner's profile.

    Args:
        listed: the member that is a list and can be truncated, with its total.
    """
    total = len(data.get(listed) or ())
    if total <= MAX_LISTED and len(body := _encode({"data": data})) <= BUDGET_BYTES:
        return body
    if total:
        data.setdefault(f"{listed}Total", total)
    steps = (
        *((characters, MAX_LISTED) for characters in (40_000, 20_000, *TEXT_STEPS)),
        *((TEXT_STEPS[-1], length) for length in _LENGTH_STEPS),
    )
    return _shrink(data, (listed,), steps, (data, *(value for value in data.values() if isinstance(value, dict))), url)


def _fitting(data: JSONObject, lists: Iterable[str]) -> int:
    """Return how many rows of each list fit together, at least one."""
    sizes = [[len(_encode(row)) + 1 for row in data.get(name) or ()] for name in lists]
    room = BUDGET_BYTES - len(_encode({"data": {**data, **{name: [] for name in lists if name in data}}})) - _NEXT_BYTES
    fitting = 0
    for rows in zip_longest(*sizes, fillvalue=0):
        room -= sum(rows)
        if room < 0:
            break
        fitting += 1
    return max(fitting, 1)


def _shrink(
    data: JSONObject, lists: Iterable[str], steps: Iterable[tuple[int, int]], parts: Iterable[JSONObject], url: str
) -> bytes:
    """Cut the texts of *parts* and the *lists* of *data*, step by step, until it fits."""
    for characters, length in steps:
        for name in lists:
            if data.get(name):
                data[name] = data[name][:length]
        for part in parts:
            cut_texts(part, characters, url)
        finished = _encode({"data": data})
        if len(finished) <= BUDGET_BYTES - _NEXT_BYTES:
            break
    return finished


def page(
    records: list[JSONObject], rest: JSONObject, url_of: Callable[[JSONObject], str], *, named: bool = False
) -> bytes:
    """
    Fit a page of a list: truncate long texts, then return fewer items, like a smaller page.

    Args:
        rest: the members besides `data`, including `pagination` and `nextPage`.
        url_of: returns the URL of an item's full data.
        named: reduce the largest items to their names before moving items to another page.
    """
    finished = _encode({"data": records, **rest})
    for characters in TEXT_STEPS:
        if len(finished) <= BUDGET_BYTES:
            return finished
        for item in records:
            cut_texts(item, characters, url_of(item))
        finished = _encode({"data": records, **rest})
    if len(finished) > BUDGET_BYTES and named:
        finished = _bare(records, rest, url_of)
    return finished if len(finished) <= BUDGET_BYTES else _fewer(records, rest)


def named(item: JSONObject, url: str) -> JSONObject:
    """Return only the names of *item*, and where the whole is."""
    kept = {name: value for name, value in item.items() if name in _NEVER_CUT or name in {"kind", "isOpen"}}
    for name in ("name", "frameworkName"):
        cut_text(kept, name, _MAX_NAME, url)
    return {**kept, "truncated": True, "url": url}


def _bare(records: list[JSONObject], rest: JSONObject, url_of: Callable[[JSONObject], str]) -> bytes:
    """Reduce the largest items to their names, as many as necessary, if that is shorter."""
    sizes = sorted(((len(_encode(item)), index) for index, item in enumerate(records)), reverse=True)
    finished = b""
    for size, index in sizes:
        names = named(records[index], url_of(records[index]))
        if len(_encode(names)) < size:
            records[index] = names
        finished = _encode({"data": records, **rest})
        if len(finished) <= BUDGET_BYTES:
            break
    return finished


def _fewer(records: list[JSONObject], rest: JSONObject, *, where: str = "") -> bytes:
    """Return as many of the first items as fit, with a hint how to continue: smaller pages, or the list at *where*."""
    room, fitting = BUDGET_BYTES - len(_encode({"data": [], **rest})) - _HINT_BYTES, 0
    for item in records:
        room -= len(_encode(item)) + 1
        if room < 0:
            break
        fitting += 1
    pagination = rest.get("pagination")
    if pagination is None:
        left = len(records) - fitting
        hint = f"{left} more do not fit into one answer; all are at {where}"
        return _encode({"data": records[:fitting], **rest, "omitted": left, "hint": hint})
    start = (pagination["page"] - 1) * pagination["pageSize"]
    # On the first page any size works; one with many divisors can shrink again later.
    sizes = range(1, fitting + 1) if start else [each for each in _PAGE_SIZES if each <= fitting]
    size = max((each for each in sizes if start % each == 0), default=1)
    smaller = Page(records[:size], start // size + 1, size, pagination["total"])
    hint = f"No more than {size} fit into one answer. Go on with page {smaller.next_page} and pageSize {size}."
    paged = {"pagination": {**pagination, **smaller.to_wire()}, "nextPage": smaller.next_page}
    return _encode({"data": smaller.items, **rest, **paged, **({"hint": hint} if smaller.next_page else {})})


def paging(found: Page[Any]) -> JSONObject:
    """Return a list's members besides `data`."""
    return {"pagination": found.to_wire(), "nextPage": found.next_page}


def framework_items(
    records: list[JSONObject], rest: JSONObject, url_of: Callable[[JSONObject], str], *, where: str = ""
) -> bytes:
    """Fit the list of frameworks: truncate descriptions, then reduce items to names, then omit the last ones."""
    for characters in (FRAMEWORK_DESCRIPTION_CHARACTERS, 200, 80):
        for item in records:
            text = item.get("description")
            if isinstance(text, str) and len(text) > characters:
                item["description"] = text[: characters - 1].rstrip() + "…"
                item["descriptionTruncated"] = True
        finished = _encode({"data": records, **rest})
        if len(finished) <= BUDGET_BYTES:
            return finished
    finished = _bare(records, rest, url_of)
    return finished if len(finished) <= BUDGET_BYTES else _fewer(records, rest, where=where)
