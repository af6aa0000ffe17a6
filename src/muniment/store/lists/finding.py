"""The documents that a selection finds, in order: one statement that scans one index and probes the others."""

import sqlite3
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from muniment.schema.filters import Bounds
from muniment.store.queries import Selection
from muniment.store.search.closest import Closest, closest_of, hint_of
from muniment.store.search.ranking import Plan, Tier, plan
from muniment.store.search.values import bounded, meant_by

MAX_TIERS: Final = 100
"""More results are never mixed with those of other kinds."""
DAY_SHIFT: Final = 40
"""A position is its listing day above so many bits."""
COLUMNS: Final = {
    "name": "sort_name",
    "treasury": "treasury_minor",
    "team": "team_size",
    "companies": "company_count",
    "updated": "updated_at",
}
"""The columns of orders and ranges."""
_INDEXES: Final = {
    "newest": "published_document_position",
    "name": "published_document_name",
    "treasury": "published_document_treasury_minor",
    "team": "published_document_team_size",
    "companies": "published_document_company_count",
    "updated": "published_document_updated",
}
"""The indexes of orders."""
MAX_WALKED_VALUES: Final = 20
"""Values of one filter in a walk: a word in titles can mean thousands of them."""
_PATIENCE: Final = 4
"""How many times more documents than on average a walk may pass."""
_BUILT_IN: Final = frozenset({*COLUMNS, "listed"})
"""Ranges that look at a column or the position; others look at the values of a declared field."""


class Matches(NamedTuple):
    """
    The documents of a selection, in order.

    Args:
        closest: similar documents, if few or none match.
        hint: what to do if nothing is found.
        tiers: the tiers of the first positions, in the order of relevance.
        is_cut: whether more match, of which these are the most relevant or the newest.
    """

    positions: "array[int]"
    closest: tuple[Closest, ...] = ()
    hint: str = ""
    tiers: bytes = b""
    is_cut: bool = False


NOTHING: Final = Matches(array("q"))


class _Values(NamedTuple):
    """The values of one filter: the number of their documents, and their ids as a JSON array."""

    n: int
    ids: str


def _rows_of(connection: sqlite3.Connection, chosen: Selection) -> Iterator[list[tuple[int, int]]]:
    """Yield the values in use that each filter means, and that each range of a declared field has."""
    for filter_ in chosen.filters:
        yield meant_by(connection, chosen.kind, filter_)
    for bounds in chosen.ranges:
        if bounds.name not in _BUILT_IN:
            yield bounded(connection, chosen.kind, bounds)


def find(connection: sqlite3.Connection, chosen: Selection) -> Matches:
    planned = plan(connection, chosen.kind, chosen.q) if chosen.q else Plan(None)
    positions, is_cut = _find(connection, chosen, planned)
    tiers = bytes(planned.first.get(position, Tier.TEXT) for position in positions[:MAX_TIERS])
    if len(positions) and not (planned.close or planned.former):
        return Matches(positions, tiers=tiers, is_cut=is_cut)
    near: Sequence[int] = ()
    if planned.close:
        like_exact = Plan(planned.match, dict.fromkeys(planned.close, Tier.EXACT))
        near, _ = _find(connection, chosen._replace(order="relevance"), like_exact)
    closest = closest_of(connection, chosen.kind, chosen.q, planned, found=positions, near=near)
    hint = ""
    if not len(positions):
        hint = hint_of(connection, chosen.kind, chosen.q, chosen.filters, chosen.ranges, corrected=planned.corrected)
    return Matches(positions, closest, hint, tiers, is_cut)


def find_start(
    connection: sqlite3.Connection, chosen: Selection, most: int, total: int, count: Callable[[], int]
) -> tuple[Matches, int] | None:
    """
    Return the first *most* documents of a selection in an order with an index, and how many it finds.

    It walks the index of the order until it has them, so the first page of many matches costs about as much as that of
    a few. None if finding and sorting all of them is cheaper, or if it finds nothing, which comes with a hint.

    Args:
        total: the number of all documents of the kind.
        count: counts what the selection finds; called where filters meet, and that number is not stored.
    """
    if chosen.q or chosen.ranges or chosen.ids is not None or chosen.order not in _INDEXES:
        return None
    if chosen.order == "newest" and not chosen.filters:
        return None  # the whole list, which blocks answer
    filters = [meant_by(connection, chosen.kind, each) for each in chosen.filters]
    if chosen.order == "newest" and len(filters) == 1 and len(filters[0]) == 1:
        ((found, value),) = filters[0]
        return (_newest(connection, value, most), found) if found else None
    number = _number_worth_a_walk(filters, most, total, count)
    if not number:
        return None
    start = _walk(connection, chosen, filters, most, most_passed=_PATIENCE * most * total // number)
    if len(start.positions) < min(most, number):
        return None  # those that are wanted come late in this order, such as companies without a treasury
    return start, number


def _number_worth_a_walk(
    filters: Sequence[Sequence[tuple[int, int]]], most: int, total: int, count: Callable[[], int]
) -> int:
    """
    Return how many documents all *filters* find; 0 if there is no walk: none is found, or finding all costs less.

    A walk passes most * total / number documents on average. To find all passes as many as the rarest filter has.
    """
    if not filters:
        return total
    if any(len(values) > MAX_WALKED_VALUES for values in filters):
        return 0  # each document that is passed would be looked for at each of them
    rarest = min(sum(n for n, _ in values) for values in filters)
    if rarest * rarest < most * total:
        return 0
    has_one_value = len(filters) == 1 and len(filters[0]) == 1
    number = rarest if has_one_value else count()
    return number if number * rarest >= most * total else 0


def _newest(connection: sqlite3.Connection, value: int, most: int) -> Matches:
    """Return the newest documents with a value."""
    statement = "SELECT position FROM published_facet WHERE value_id = ? ORDER BY position DESC LIMIT ?"
    return Matches(_positions(connection, (statement, [value, most])))


def _walk(
    connection: sqlite3.Connection,
    chosen: Selection,
    filters: Sequence[Sequence[tuple[int, int]]],
    most: int,
    *,
    most_passed: int,
) -> Matches:
    """
    Walk the index of an order until *most* documents pass the filters.

    Args:
        filters: the values of each, with the number of their documents.
        most_passed: where the walk ends in any case.
    """
    column = COLUMNS.get(chosen.order)
    columns = [f"d.{column}", "d.position"] if column else ["d.position"]
    direction = "" if chosen.order == "name" else " DESC"
    passed = (
        f"SELECT d.position FROM published_document AS d INDEXED BY {_INDEXES[chosen.order]}"
        f" WHERE d.kind = '{chosen.kind}' ORDER BY {', '.join(each + direction for each in columns)} LIMIT ?"
    )
    conditions, parameters = ["1"], list[object]([most_passed])
    for values in filters:
        among_values = f"g.value_id IN ({_LISTED}) AND g.position = d.position"
        conditions.append(f"EXISTS (SELECT 1 FROM published_facet AS g WHERE {among_values})")
        parameters.append(msgspec.json.encode([number for _, number in values]).decode())
    # The rows of the inner statement are looked at one by one in its order, so the outer one stops early.
    statement = f"SELECT d.position FROM ({passed}) AS d WHERE {' AND '.join(conditions)} LIMIT ?"
    return Matches(_positions(connection, (statement, [*parameters, most])))


def everything(connection: sqlite3.Connection, kind: str, most: int) -> "array[int]":
    """Return the newest documents of a kind."""
    statement = "SELECT position FROM published_document WHERE kind = ? ORDER BY position DESC LIMIT ?"
    return _positions(connection, (statement, [kind, most]))


def _find(connection: sqlite3.Connection, chosen: Selection, planned: Plan) -> tuple["array[int]", bool]:
    """Return what is found, and whether that is only a part of it."""
    none: array[int] = array("q")
    if chosen.q and planned.match is None:
        return none, False
    values: list[_Values] = []
    for rows in _rows_of(connection, chosen):
        if not rows:
            return none, False
        values.append(_Values(sum(n for n, _ in rows), msgspec.json.encode([number for _, number in rows]).decode()))
    chosen = chosen._replace(ranges=tuple(each for each in chosen.ranges if each.name in _BUILT_IN))
    values.sort()
    if chosen.ids is not None:
        return _among(connection, chosen, planned, values), False
    if planned.is_wide:
        return _find_wide(connection, chosen, planned, values)
    if not chosen.q:
        return _positions(connection, _statement(chosen, values)), False
    found = array("q", dict.fromkeys((*planned.first, *planned.hits)))
    return _kept(connection, chosen, values, found), False


def _kept(
    connection: sqlite3.Connection, chosen: Selection, values: list[_Values], found: "array[int]"
) -> "array[int]":
    """Return those of the positions *found* that match the rest; for relevance in their order."""
    if chosen.order != "relevance":
        return _positions(connection, _statement(chosen, values, among=found))
    if not (found and (values or chosen.ranges)):
        return found
    kept = set(_positions(connection, _statement(chosen, values, among=found)))
    return array("q", (position for position in found if position in kept))


def _find_wide(
    connection: sqlite3.Connection, chosen: Selection, planned: Plan, values: list[_Values]
) -> tuple["array[int]", bool]:
    if chosen.order not in {"relevance", "newest"}:
        return _positions(connection, _statement(chosen, values, planned=planned)), False
    found = array("q", planned.hits)
    if values or chosen.ranges:
        found = _positions(connection, _statement(chosen, values, planned=planned))
    first = _kept(connection, chosen, values, array("q", planned.first))
    merged = dict.fromkeys((*first, *found))
    is_cut = len(found) > planned.most
    listed = array("q", merged if chosen.order == "relevance" else sorted(merged, reverse=True))
    return listed[: planned.most if is_cut else None], is_cut


def _positions(connection: sqlite3.Connection, statement: tuple[str, list[object]]) -> "array[int]":
    return array("q", (row[0] for row in connection.execute(*statement)))


def _statement(
    chosen: Selection, values: list[_Values], *, planned: Plan | None = None, among: Sequence[int] | None = None
) -> tuple[str, list[object]]:
    """
    Build the query: it scans the most selective source and probes an index for every other condition.

    Args:
        planned: what a wide search finds.
        among: positions that a search has found, of which those are wanted that match the rest.
    """
    kind = chosen.kind
    source, position, conditions, parameters, values = _source(chosen, values, planned, among)
    ordering_and_bounded = (chosen.order, *(bounds.name for bounds in chosen.ranges))
    needs_columns = any(name in COLUMNS for name in ordering_and_bounded)
    if needs_columns and "published_document" not in source:
        source += " CROSS JOIN published_document AS d"
        conditions.append(f"d.kind = '{kind}' AND d.position = {position}")
    for bounds in chosen.ranges:
        condition, limits = within(bounds, position)
        conditions.append(condition)
        parameters += limits
    for value in values:
        among_values = f"g.value_id IN ({_LISTED}) AND g.position = {position}"
        conditions.append(f"EXISTS (SELECT 1 FROM published_facet AS g WHERE {among_values})")
        parameters.append(value.ids)
    if chosen.order in _BY_POSITION:
        order = f"{position} DESC"
        if planned is not None:
            order += f" LIMIT {planned.most + 1}"
    elif chosen.order == "name":
        order = "d.sort_name, d.position"
    else:  # a falling order has those without a value last
        order = f"d.{COLUMNS[chosen.order]} DESC, d.position DESC"
    return f"SELECT {position} AS position FROM {source} WHERE {' AND '.join(conditions)} ORDER BY {order}", parameters


def _source(
    chosen: Selection, values: list[_Values], planned: Plan | None, among: Sequence[int] | None
) -> tuple[str, str, list[str], list[object], list[_Values]]:
    """Return the most selective source, its position, its conditions and parameters, and the values not in it."""
    kind = chosen.kind
    parameters: list[object]
    if among is not None:
        source, position = "published_document AS d", "d.position"
        conditions = [f"d.kind = '{kind}' AND d.position IN ({_LISTED})"]
        parameters = [msgspec.json.encode([*among]).decode()]
    elif planned is not None and chosen.order in _BY_POSITION:
        source, position = f"published_text_{kind} AS t", "t.rowid"
        conditions, parameters = [f"published_text_{kind} MATCH ?"], [planned.match]
    elif planned is not None:
        text = f"SELECT rowid AS position FROM published_text_{kind} WHERE published_text_{kind} MATCH ?"
        source, position = f"({text} UNION {_LISTED}) AS t", "t.position"
        conditions, parameters = ["1"], [planned.match, msgspec.json.encode([*planned.first]).decode()]
    elif values:
        # A document may have several of the values.
        source, position = "(SELECT DISTINCT position FROM published_facet WHERE value_id IN (%s)) AS f", "f.position"
        first, *values = values
        source, conditions, parameters = source % _LISTED, ["1"], [first.ids]
    else:
        source, position, conditions, parameters = "published_document AS d", "d.position", [f"d.kind = '{kind}'"], []
    return source, position, conditions, parameters, values


_LISTED: Final = "SELECT value FROM json_each(?)"
_BY_POSITION: Final = frozenset({"relevance", "newest"})
"""Orders in which the statement sorts by position: the plan of a search puts the most relevant first afterwards."""


def within(bounds: Bounds, position: str) -> tuple[str, list[object]]:
    """Return the condition that an item is within *bounds*, and its parameters."""
    if bounds.name == "listed":
        # Positions without a date come first.
        low = max(bounds.low or 1, 1) << DAY_SHIFT
        high = (1 << 62) if bounds.high is None else ((bounds.high + 1) << DAY_SHIFT) - 1
        return f"{position} BETWEEN ? AND ?", [low, high]
    column = f"d.{COLUMNS[bounds.name]}"
    given = [(">=", bounds.low), ("<=", bounds.high)]
    conditions = [f"{column} {sign} ?" for sign, value in given if value is not None]
    return " AND ".join(conditions), [value for _, value in given if value is not None]


def _among(connection: sqlite3.Connection, chosen: Selection, planned: Plan, values: Sequence[_Values]) -> "array[int]":
    """Select among a few given keys with one look-up each."""
    assert chosen.ids is not None  # noqa: S101 - the only caller has checked
    statement, parameters = _look_up(chosen, values)
    ranks = _ranks(planned)
    keyed: list[tuple[Any, int]] = []
    for key in dict.fromkeys(chosen.ids):
        row = connection.execute(statement, (chosen.kind, key, *parameters)).fetchone()
        if row is None:
            continue
        (position,) = row
        if chosen.q and position not in ranks:
            # The plan of a wide search does not list all that match.
            is_match = planned.is_wide and _has(connection, chosen, planned, position)
            if not is_match:
                continue
        keyed.append((_sort_value(connection, chosen, ranks, position), position))
    if chosen.order in {"name", "relevance"}:
        keyed.sort()
    else:
        keyed.sort(key=_falling, reverse=True)
    return array("q", (position for _, position in keyed))


def _look_up(chosen: Selection, values: Sequence[_Values]) -> tuple[str, list[object]]:
    """Return the query for the document of a kind and a key that passes the filters, and its further parameters."""
    conditions = ["d.kind = ?", "d.key = ?"]
    parameters: list[object] = []
    for bounds in chosen.ranges:
        condition, limits = within(bounds, "d.position")
        conditions.append(condition)
        parameters += limits
    for value in values:
        of_value = f"SELECT 1 FROM published_facet WHERE value_id IN ({_LISTED}) AND position = d.position"
        conditions.append(f"EXISTS ({of_value})")
        parameters.append(value.ids)
    return f"SELECT d.position FROM published_document AS d WHERE {' AND '.join(conditions)}", parameters


def _ranks(planned: Plan) -> dict[int, int]:
    """Return the ranks by relevance of the positions that a plan lists; of a wide search, of the first ones only."""
    positions = dict.fromkeys(planned.first)
    if not planned.is_wide:
        positions |= dict.fromkeys(planned.hits)
    return {position: rank for rank, position in enumerate(positions)}


def _sort_value(connection: sqlite3.Connection, chosen: Selection, ranks: dict[int, int], position: int) -> Any:
    if chosen.order == "relevance":
        return ranks.get(position, len(ranks)), -position
    if chosen.order == "newest":
        return None
    return sort_key(connection, chosen.kind, chosen.order, position)


def _falling(keyed: tuple[Any, int]) -> tuple[bool, Any, int]:
    """Return the sort key of an order that falls, so that items without a value are last."""
    value, position = keyed
    return value is not None, value or 0, position


def _has(connection: sqlite3.Connection, chosen: Selection, planned: Plan, position: int) -> bool:
    """Return whether a document has the words of a wide search."""
    table = f"published_text_{chosen.kind}"
    statement = f"SELECT 1 FROM {table} WHERE {table} MATCH ? AND rowid = ?"
    return connection.execute(statement, (planned.match, position)).fetchone() is not None


def sort_key(connection: sqlite3.Connection, kind: str, order: str, position: int) -> Any:
    """Return what *order* sorts an item by besides its position: "" for the newest first, None without a value."""
    if order == "newest":
        return ""
    statement = f"SELECT d.{COLUMNS[order]} FROM published_document AS d WHERE d.kind = ? AND d.position = ?"
    (value,) = connection.execute(statement, (kind, position)).fetchone()
    return value
