"""Present the answer to a statement: its rows by pages and in the order of a column, and the chart that suits it."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from django.utils.safestring import SafeString
from django.utils.translation import gettext

from muniment.kernel.texts import is_web_address
from muniment.languages.writing import number
from muniment.store.tables.answering import MAX_CELL_CHARACTERS, Answered
from muniment.store.tables.statements import MAX_BYTES, MAX_CSV_ROWS, MAX_ROWS
from muniment.web.presenters import charts
from muniment.web.presenters.charts import ChartSlice

ROWS_A_PAGE: Final = 100
SHOWN_CHARACTERS: Final = 160
MAX_BARS: Final = 40
KINDS: Final = ("bar", "line", "scatter")
_ROOMS: Final = {"company": "companies", "person": "people", "framework": "frameworks", "framework_id": "frameworks"}
_TIME: Final = re.compile(r"\d{4}(?:-\d\d){0,2}(?:[T ].*)?")
Raw = str | int | float | None


class Heading(NamedTuple):
    """The head of a column; *sorted_by* is ascending, descending or an empty text."""

    label: str
    address: str
    is_number: bool
    sorted_by: str


class Cell(NamedTuple):
    """A cell with where it leads, to a page of this registry or outside."""

    text: str
    address: str
    is_number: bool
    is_outside: bool


class Plot(NamedTuple):
    """
    A line, or points.

    Args:
        points: of an SVG of 100 by 100.
    """

    kind: str
    title: str
    points: tuple[tuple[str, str], ...]
    low: str
    high: str
    first: str
    last: str

    @property
    def line(self) -> str:
        return " ".join(f"{x},{y}" for x, y in self.points)


class ShownAnswer(NamedTuple):
    """
    The answer as a page shows it.

    Args:
        cut: what cut it, and how to get the rest.
        chart_kinds: the kinds that it can be drawn as, with their label, address, and whether it is the one shown.
    """

    headings: list[Heading]
    rows: list[list[Cell]]
    total: int
    first: int
    last: int
    before: str
    after: str
    cut: list[str]
    bars: SafeString
    plot: Plot | None
    chart_kinds: list[tuple[str, str, bool]]


class Shown(NamedTuple):
    """What a visitor has chosen: the column to sort by from 1, negative for descending, 0 for the statement's order."""

    sort: int = 0
    page: int = 1
    chart: str = ""


def chosen(values: "dict[str, str]", columns: int) -> Shown:
    """Read what was chosen from the values of an address; what is no choice is none."""
    sort = _whole(values.get("_sort", "").removeprefix("-"))
    sort = sort if sort <= columns else 0
    is_descending = values.get("_sort", "").startswith("-")
    return Shown(-sort if is_descending else sort, max(1, _whole(values.get("_page", ""))), values.get("_chart", ""))


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0


def result(title: str, answered: Answered, shown: Shown, path: str, pairs: Sequence[tuple[str, str]]) -> ShownAnswer:
    """Present an answer; *path* and *pairs* are the address of the page without what was chosen."""

    def address(sort: int = shown.sort, page: int = 1, chart: str = shown.chart) -> str:
        more = [("_sort", str(sort) if sort else ""), ("_page", str(page) if page > 1 else ""), ("_chart", chart)]
        return f"{path}?{urlencode([*pairs, *((name, value) for name, value in more if value)])}"

    numbers = [_is_numeric(answered, index) for index in range(len(answered.columns))]
    headings = []
    for index, label in enumerate(answered.columns):
        place = index + 1
        # Numbers are read from the largest, texts from the first letter.
        first = -place if numbers[index] else place
        following = -shown.sort if abs(shown.sort) == place else first
        order = "descending" if shown.sort < 0 else "ascending"
        sorted_by = order if abs(shown.sort) == place else ""
        headings.append(Heading(label, address(sort=following), numbers[index], sorted_by))
    rows = _sorted(answered.rows, shown.sort)
    pages = max(1, -(-len(rows) // ROWS_A_PAGE))
    page = min(shown.page, pages)
    first_row = (page - 1) * ROWS_A_PAGE
    visible = rows[first_row : first_row + ROWS_A_PAGE]
    kinds = possible_charts(answered, numbers)
    kind = shown.chart if shown.chart in {*kinds, "none"} else next(iter(kinds), "none")
    labels = {"bar": gettext("Bars"), "line": gettext("Line"), "scatter": gettext("Points"), "none": gettext("None")}
    choices = []
    if kinds:
        choices = [(labels[each], address(chart=each), each == kind) for each in (*kinds, "none")]
    bars, plot = _drawn(title, answered, numbers, kind)
    return ShownAnswer(
        headings,
        [[_cell(name, value) for name, value in zip(answered.columns, row, strict=True)] for row in visible],
        len(rows),
        first_row + 1,
        first_row + len(visible),
        address(page=page - 1) if page > 1 else "",
        address(page=page + 1) if page < pages else "",
        _cuts(answered),
        bars,
        plot,
        choices,
    )


def _is_numeric(answered: Answered, index: int) -> bool:
    values = [row[index] for row in answered.rows if row[index] is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def _sorted(rows: list[list[Raw]], sort: int) -> list[list[Raw]]:
    """Return rows in the order of a column: numbers before texts, and what is missing last in both directions."""
    if not sort:
        return rows
    index = abs(sort) - 1
    present = [row for row in rows if row[index] is not None]
    missing = [row for row in rows if row[index] is None]

    def key(row: list[Raw]) -> tuple[bool, float, str]:
        value = row[index]
        if isinstance(value, str):
            return True, 0, value.casefold()
        return False, value or 0, ""

    return [*sorted(present, key=key, reverse=sort < 0), *missing]


def _cell(column: str, value: Raw) -> Cell:
    if value is None:
        return Cell("", "", is_number=False, is_outside=False)
    if not isinstance(value, str):
        return Cell(f"{value:.12g}" if isinstance(value, float) else str(value), "", is_number=True, is_outside=False)
    text = value if len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS].rstrip()}…"
    room = _ROOMS.get(column)
    if room and value:
        return Cell(text, f"/{room}/{quote(value, safe='')}", is_number=False, is_outside=False)
    is_outside = is_web_address(value)
    return Cell(text, value if is_outside else "", is_number=False, is_outside=is_outside)


def _cuts(answered: Answered) -> list[str]:
    said = {
        "rows": gettext("Only the first %(rows)s rows are shown. The CSV has up to %(most)s.")
        % {"rows": number(MAX_ROWS), "most": number(MAX_CSV_ROWS)},
        "bytes": gettext("Only the first %(rows)s rows are shown, because they have more than %(size)s MB.")
        % {"rows": number(answered.count), "size": MAX_BYTES >> 20},
        "cells": gettext("Texts of more than %(count)s characters are cut. The CSV has them whole.")
        % {"count": number(MAX_CELL_CHARACTERS)},
    }
    return [said[cut] for cut in answered.cut_by]


# ---------------------------------------------------------------------- charts


def possible_charts(answered: Answered, numbers: Sequence[bool]) -> tuple[str, ...]:
    """Return the kinds of charts that show an answer, the one that suits it best first; none if none does."""
    if len(answered.rows) < 2 or not any(numbers):
        return ()
    label = next((index for index, is_number in enumerate(numbers) if not is_number), None)
    if label is None:
        return ("scatter", "line") if sum(numbers) > 1 else ()
    value = numbers.index(True)
    names = [row[label] for row in answered.rows if row[label] is not None]
    is_over_time = len(names) > 1 and all(isinstance(name, str) and _TIME.fullmatch(name) for name in names)
    amounts = [row[value] for row in answered.rows]
    is_short = len(amounts) <= MAX_BARS and all(isinstance(each, int | float) and each >= 0 for each in amounts)
    kinds = [kind for kind, is_right in (("line", is_over_time), ("bar", is_short)) if is_right]
    if sum(numbers) > 1:
        kinds.append("scatter")
    return tuple(kinds)


def _drawn(title: str, answered: Answered, numbers: Sequence[bool], kind: str) -> tuple[SafeString, Plot | None]:
    if kind not in KINDS:
        return SafeString(""), None
    columns = answered.columns
    label = next((index for index, is_number in enumerate(numbers) if not is_number), None)
    value = numbers.index(True)
    if kind == "bar" and label is not None:
        amounts = [(row[label], row[value]) for row in answered.rows]
        slices = [ChartSlice(str(name or ""), _real(amount), _written(amount)) for name, amount in amounts]
        return charts.bar(title, f"{columns[value]}, {columns[label]}", slices, unit=columns[value]), None
    if kind == "line" and label is not None:
        dated = [row for row in answered.rows if row[label] is not None and row[value] is not None]
        points = sorted((str(row[label]), _real(row[value])) for row in dated)
        if len(points) < 2:
            return SafeString(""), None
        heights = [height for _, height in points]
        places = [float(place) for place in range(len(points))]
        return SafeString(""), _plot("line", f"{title}: {columns[value]}", places, heights, points[0][0], points[-1][0])
    other = numbers.index(True, value + 1)
    pairs = sorted(
        (_real(row[value]), _real(row[other]))
        for row in answered.rows
        if row[value] is not None and row[other] is not None
    )
    if len(pairs) < 2:
        return SafeString(""), None
    name = f"{title}: {columns[other]} / {columns[value]}"
    ends = _written(pairs[0][0]), _written(pairs[-1][0])
    return SafeString(""), _plot(kind, name, [x for x, _ in pairs], [y for _, y in pairs], *ends)


def _plot(  # noqa: PLR0917 - a plot, in the order of its parts
    kind: str, title: str, across: Sequence[float], heights: Sequence[float], first: str, last: str
) -> Plot:
    low, high = min(0.0, *heights), max(heights)
    left, right = min(across), max(across)
    tall, wide = high - low or 1, right - left or 1
    points = [
        (f"{100 * (x - left) / wide:.2f}", f"{100 - 100 * (y - low) / tall:.2f}")
        for x, y in zip(across, heights, strict=True)
    ]
    return Plot(kind, title, tuple(points), _written(low), _written(high), first, last)


def _real(value: Raw) -> float:
    """Return the number of a cell of a column of numbers."""
    return float(value) if isinstance(value, int | float) else 0.0


def _written(value: Raw) -> str:
    return charts.exact(value) if isinstance(value, int | float) else str(value or "")
