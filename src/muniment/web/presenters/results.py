"""Present the answer to a statement: its rows by pages and in the order of a column, and the chart that suits it."""

import math
import re
from collections.abc import Sequence
from datetime import datetime
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
from muniment.web.requests.pagination import whole_number

ROWS_A_PAGE: Final = 100
SHOWN_CHARACTERS: Final = 160
MAX_BARS: Final = 40
KINDS: Final = ("bar", "line", "scatter")
_FOLDERS: Final = {"company": "companies", "person": "people", "framework": "frameworks", "framework_id": "frameworks"}
"""The pages to which the values of a column of this name lead."""
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
    """Read the choices in the values of an address; an invalid one counts as none."""
    order = values.get("_sort", "")
    column = whole_number(order.removeprefix("-"), 5) or 0
    if column > columns:
        column = 0
    sort = -column if order.startswith("-") else column
    page = whole_number(values.get("_page", ""), 5) or 1
    return Shown(sort, page, values.get("_chart", ""))


class _Address:
    """
    The address of the page with other choices than those that are shown.

    Args:
        chart: the kind of chart that the page shows without a choice, so that no address names it.
    """

    def __init__(self, path: str, pairs: Sequence[tuple[str, str]], shown: Shown, chart: str) -> None:
        self._path, self._pairs, self._shown, self._chart = path, pairs, shown, chart

    def sorted_by(self, sort: int) -> str:
        return self._with(sort, 1, self._shown.chart)

    def of_page(self, page: int) -> str:
        return self._with(self._shown.sort, page, self._shown.chart)

    def with_chart(self, chart: str) -> str:
        return self._with(self._shown.sort, 1, chart)

    def _with(self, sort: int, page: int, chart: str) -> str:
        pairs = [*self._pairs]
        if sort:
            pairs.append(("_sort", str(sort)))
        if page > 1:
            pairs.append(("_page", str(page)))
        if chart != self._chart:
            pairs.append(("_chart", chart))
        return f"{self._path}?{urlencode(pairs)}" if pairs else self._path


MAX_COLUMNS_DRAWN: Final = 6
"""Columns of an answer that is drawn unasked: the rows of a whole table are read, and two of its columns mislead."""


def result(
    title: str, answered: Answered, shown: Shown, where: tuple[str, Sequence[tuple[str, str]]], chart: str = ""
) -> ShownAnswer:
    """
    Present an answer.

    Args:
        where: the path and the parameters of the page without what was chosen.
        chart: the kind of chart that suits it, where its author has chosen one.
    """
    path, pairs = where
    numbers = [_is_numeric(answered, index) for index in range(len(answered.columns))]

    kinds = possible_charts(answered, numbers)
    default_kind = "none"
    if chart in {*kinds, "none"}:
        default_kind = chart
    elif kinds and len(numbers) <= MAX_COLUMNS_DRAWN:
        default_kind = kinds[0]
    kind = default_kind
    if kinds and shown.chart in {*kinds, "none"}:
        kind = shown.chart
    bars, plot = _drawn(title, answered, numbers, kind)
    address = _Address(path, pairs, shown._replace(chart=kind), default_kind)

    rows = _sorted(answered.rows, shown.sort)
    pages = max(1, math.ceil(len(rows) / ROWS_A_PAGE))
    page = min(shown.page, pages)
    first_row = (page - 1) * ROWS_A_PAGE
    rows_of_page = rows[first_row : first_row + ROWS_A_PAGE]
    cells = []
    for row in rows_of_page:
        cells.append([_cell(name, value) for name, value in zip(answered.columns, row, strict=True)])
    previous, following = "", ""
    if page > 1:
        previous = address.of_page(page - 1)
    if page < pages:
        following = address.of_page(page + 1)
    return ShownAnswer(
        _headings(answered.columns, numbers, shown.sort, address),
        cells,
        len(rows),
        first_row + 1,
        first_row + len(rows_of_page),
        previous,
        following,
        _cuts(answered),
        bars,
        plot,
        _choices(kinds, kind, address),
    )


def _headings(columns: Sequence[str], numbers: Sequence[bool], sort: int, address: _Address) -> list[Heading]:
    """Return the head of each column with the address that sorts by it, or turns the order if it is sorted by it."""
    headings = []
    for place, (label, is_number) in enumerate(zip(columns, numbers, strict=True), 1):
        if abs(sort) == place:
            order = "descending" if sort < 0 else "ascending"
            following = -sort
        else:
            order = ""
            # Numbers are read from the largest, texts from the first letter.
            following = -place if is_number else place
        headings.append(Heading(label, address.sorted_by(following), is_number, order))
    return headings


def _choices(kinds: Sequence[str], shown: str, address: _Address) -> list[tuple[str, str, bool]]:
    """Return the charts to choose from, with label, address and whether it is shown; nothing if there is none."""
    if not kinds:
        return []
    labels = {"bar": gettext("Bars"), "line": gettext("Line"), "scatter": gettext("Points"), "none": gettext("None")}
    return [(labels[kind], address.with_chart(kind), kind == shown) for kind in (*kinds, "none")]


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
    if isinstance(value, float):
        # Twelve digits hide what sums of floats add behind the last digit.
        return Cell(f"{value:.12g}", "", is_number=True, is_outside=False)
    if isinstance(value, int):
        return Cell(str(value), "", is_number=True, is_outside=False)
    text = value
    if len(value) > SHOWN_CHARACTERS:
        text = f"{value[:SHOWN_CHARACTERS].rstrip()}…"
    folder = _FOLDERS.get(column)
    if folder and value:
        return Cell(text, f"/{folder}/{quote(value, safe='')}", is_number=False, is_outside=False)
    if is_web_address(value):
        return Cell(text, value, is_number=False, is_outside=True)
    return Cell(text, "", is_number=False, is_outside=False)


def _cuts(answered: Answered) -> list[str]:
    sentences = {
        "rows": gettext("Only the first %(rows)s rows are shown. The CSV has up to %(most)s.")
        % {"rows": number(MAX_ROWS), "most": number(MAX_CSV_ROWS)},
        "bytes": gettext("Only the first %(rows)s rows are shown, because they have more than %(size)s MB.")
        % {"rows": number(answered.count), "size": MAX_BYTES >> 20},
        "cells": gettext("Texts of more than %(count)s characters are cut. The CSV has them whole.")
        % {"count": number(MAX_CELL_CHARACTERS)},
    }
    return [sentences[cut] for cut in answered.cut_by]


# ---------------------------------------------------------------------- charts


def possible_charts(answered: Answered, numbers: Sequence[bool]) -> tuple[str, ...]:
    """Return the kinds of charts that show an answer, the one that suits it best first; none if none does."""
    if len(answered.rows) < 2 or not any(numbers):
        return ()
    has_several_numbers = sum(numbers) > 1
    if all(numbers):
        return ("scatter", "line") if has_several_numbers else ()
    kinds = []
    if _is_over_time(answered, numbers.index(False)):
        kinds.append("line")
    if _fits_bars(answered, numbers.index(True)):
        kinds.append("bar")
    if has_several_numbers:
        kinds.append("scatter")
    return tuple(kinds)


def _is_over_time(answered: Answered, column: int) -> bool:
    """Return whether a column has years, months or days."""
    values = [row[column] for row in answered.rows if row[column] is not None]
    return len(values) > 1 and all(isinstance(value, str) and _TIME.fullmatch(value) for value in values)


def _fits_bars(answered: Answered, column: int) -> bool:
    """Return whether a column has few amounts, none of them negative or missing."""
    amounts = [row[column] for row in answered.rows]
    return len(amounts) <= MAX_BARS and all(isinstance(amount, int | float) and amount >= 0 for amount in amounts)


def _drawn(title: str, answered: Answered, numbers: Sequence[bool], kind: str) -> tuple[SafeString, Plot | None]:
    """Draw the chart of a kind: bars, or a line or points to be plotted."""
    if kind not in KINDS:
        return SafeString(""), None
    value = numbers.index(True)
    # Without a column of texts, a line goes through the points of two columns of numbers.
    if kind == "scatter" or all(numbers):
        return SafeString(""), _points(title, answered, kind, value, numbers.index(True, value + 1))
    label = numbers.index(False)
    if kind == "bar":
        return _bars(title, answered, label, value), None
    return SafeString(""), _line(title, answered, label, value)


def _bars(title: str, answered: Answered, label: int, value: int) -> SafeString:
    columns = answered.columns
    slices = []
    for row in answered.rows:
        slices.append(ChartSlice(str(row[label] or ""), _real(row[value]), _written(row[value])))
    return charts.bar(title, f"{columns[value]}, {columns[label]}", slices, unit=columns[value])


def _line(title: str, answered: Answered, label: int, value: int) -> Plot | None:
    """Plot amounts over time; None for fewer than two."""
    points = []
    for row in answered.rows:
        if row[label] is not None and row[value] is not None:
            points.append((str(row[label]), _real(row[value])))
    points.sort()
    if len(points) < 2:
        return None
    # A year without a row takes as much room as one with rows.
    moments = [_moment(written) for written, _ in points]
    places = [moment for moment in moments if moment is not None]
    if len(places) < len(points):
        places = [float(place) for place in range(len(points))]
    heights = [height for _, height in points]
    name = f"{title}: {answered.columns[value]}"
    return _plot("line", name, places, heights, points[0][0], points[-1][0])


def _moment(written: str) -> float | None:
    """Return a year, a month, a day or a time, as :data:`_TIME` has them, in days; None if it is none."""
    missing = {4: "-01-01", 7: "-01"}  # the first day of a year and of a month
    try:
        at = datetime.fromisoformat(written + missing.get(len(written), ""))
    except ValueError:
        return None
    return at.toordinal() + (at.hour * 3600 + at.minute * 60 + at.second) / 86_400


def _points(title: str, answered: Answered, kind: str, across: int, up: int) -> Plot | None:
    """Plot one column of numbers against another; None for fewer than two points."""
    points = []
    for row in answered.rows:
        if row[across] is not None and row[up] is not None:
            points.append((_real(row[across]), _real(row[up])))
    points.sort()
    if len(points) < 2:
        return None
    name = f"{title}: {answered.columns[up]} / {answered.columns[across]}"
    places, heights = [x for x, _ in points], [y for _, y in points]
    return _plot(kind, name, places, heights, _written(places[0]), _written(places[-1]))


def _plot(  # noqa: PLR0917 - a plot, in the order of its parts
    kind: str, title: str, across: Sequence[float], heights: Sequence[float], first: str, last: str
) -> Plot:
    low, high = min(0.0, *heights), max(heights)
    left, right = min(across), max(across)
    tall, wide = high - low or 1, right - left or 1
    points = []
    for x, y in zip(across, heights, strict=True):
        from_left = 100 * (x - left) / wide
        from_top = 100 - 100 * (y - low) / tall
        points.append((f"{from_left:.2f}", f"{from_top:.2f}"))
    return Plot(kind, title, tuple(points), _written(low), _written(high), first, last)


def _real(value: Raw) -> float:
    """Return the number of a cell of a column of numbers."""
    return float(value) if isinstance(value, int | float) else 0.0


def _written(value: Raw) -> str:
    return charts.exact(value) if isinstance(value, int | float) else str(value or "")
