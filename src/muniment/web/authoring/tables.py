"""
Read a table that was copied out of a spreadsheet: its cells, and which column is which.

Columns are recognized by their headings, or by their order. Pure.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from muniment.registry.tables.catalogue import key as heading_key
from muniment.registry.tables.delimited import DELIMITERS, cells_of
from muniment.web.row_lists import Column, RowList

MAX_CHARACTERS: Final = 1_000_000
MAX_COLUMNS: Final = 40
_COMMA: Final = re.compile(r"[+-]?\d{1,3}(?:[.\s]?\d{3})*,\d+\s*%?")
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?\s*%?")
_GAPS: Final = re.compile(r"(?<=\d)[\s\u00a0\u202f'\u2019](?=\d{3})")
_WORDS: Final[Mapping[str, str]] = {
    "name": "holder shareholder stakeholder owner investor member person fullname who inhaber aktionar nom"
    " nombre titular pool category allocation round personne persona naam",
    "address": "wallet walletaddress walletid account publickey ethaddress adresse direccion",
    "tokens": "token amount quantity balance shares numberofshares units stucke anteile cantidad nombre_de_titres",
    "percentage": "percent share stake ownership pct part prozent anteil porcentaje pourcentage weight",
    "title": "role position jobtitle job function funktion titre rol cargo fonction proposal subject",
    "slug": "profile profilelink link id",
    "status": "state result outcome",
    "for": "yes votesyes pro infavour infavor",
    "against": "no votesno contra",
    "endDate": "end ends enddate deadline closes date votingends",
    "target": "goal raise amount size",
    "opened": "open opens start startdate from",
    "closed": "close closes end enddate until to",
    "address_1": "street streetaddress address1 line1 strasse rue calle",
    "address_2": "line2 address2 suite",
    "city": "town ort stadt ville ciudad",
    "state": "region province county bundesland",
    "zip": "postalcode postcode plz zipcode",
    "country": "land pays pais",
}
"""Further headings of a column, without spaces, accents and signs."""
_ORDERS: Final[Mapping[str, Sequence[tuple[str, ...]]]] = {
    "positions": (("name",), ("name", "title"), ("name", "title", "slug")),
    "capTable": (("name",), ("name", "percentage"), ("name", "tokens", "percentage")),
}
"""The columns of a table without headings, by how many it has; otherwise those of the form."""


class Table(NamedTuple):
    """
    The rows of a pasted text.

    Args:
        rows: without the headings, each with as many cells as there are columns.
        headings: the first line, if it says what the columns are.
        columns: the name of each column's member; empty where it is not taken over.
        first_line: the number of the first of *rows* in the text.
    """

    rows: list[list[str]]
    headings: list[str]
    columns: list[str]
    first_line: int


def read_table(text: str, rows: RowList, chosen: Mapping[int, str] | None = None) -> Table:
    """
    Return the table in *text*, for a list of rows.

    Args:
        chosen: the member of a column, where a person said which it is.
    """
    lines = _cells_of(text)
    width = min(max(map(len, lines), default=0), MAX_COLUMNS)
    lines = [[*line[:width], *[""] * (width - len(line))] for line in lines]
    found = [_named(cell, rows.columns) for cell in lines[0]] if lines else []
    filled = sum(bool(cell) for cell in lines[0]) if lines else 0
    has_headings = any(found) and 2 * sum(map(bool, found)) >= filled
    body = lines[1:] if has_headings else lines
    columns = _once(found) if has_headings else _by_order(rows, body, width)
    known = {column.name for column in rows.columns}
    for at, name in (chosen or {}).items():
        if at < width and name in {*known, ""}:
            columns[at] = name
    return Table(body, lines[0] if has_headings else [], _once(columns), 2 if has_headings else 1)


def cells_by_column(table: Table, columns: Sequence[Column]) -> list[dict[str, str]]:
    """Return the cells of every row by the name of their column, numbers as forms take them."""
    numeric = {column.name for column in columns if column.is_number}
    found: list[dict[str, str]] = [{} for _ in table.rows]
    for at, name in enumerate(table.columns):
        if not name:
            continue
        cells = [row[at] for row in table.rows]
        for row, cell in zip(found, plain_numbers(cells) if name in numeric else cells, strict=True):
            row[name] = cell
    return found


def plain_numbers(cells: Sequence[str]) -> list[str]:
    """Return the numbers of a column with a decimal point; whether a comma is one is decided for the whole column."""
    bare = [_GAPS.sub("", cell.strip()) for cell in cells]
    has_decimal_comma = any(_COMMA.fullmatch(cell) and not _THOUSANDS.fullmatch(cell) for cell in bare)
    if has_decimal_comma:
        bare = [_with_point(cell) for cell in bare]
    return [_joined_percent(cell) for cell in bare]


def _with_point(cell: str) -> str:
    return cell.replace(".", "").replace(",", ".") if _COMMA.fullmatch(cell) else cell


def _joined_percent(cell: str) -> str:
    """Return a cell without blanks before its signs; without a pattern, which takes long for many blanks in a row."""
    *parts, last = cell.split("%")
    return "%".join([*map(str.rstrip, parts), last])


def _cells_of(text: str) -> list[list[str]]:
    """Return the cells of the lines that have any; a quoted cell may have line breaks."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = next((each for each in DELIMITERS if each in first), "\t")
    return [line for line in cells_of(text.strip("\r\n"), delimiter) if any(line)]


def _named(heading: str, columns: Sequence[Column]) -> str:
    """Return the column that a heading means; empty if none."""
    key = heading_key(heading)
    if not key:
        return ""
    for column in columns:
        if key in {heading_key(column.name), heading_key(column.field.label)}:
            return column.name
    return next((column.name for column in columns if key in _WORDS.get(column.name, "").split()), "")


def _by_order(rows: RowList, body: Sequence[Sequence[str]], width: int) -> list[str]:
    names = [column.name for column in rows.columns]
    order = next((each for each in _ORDERS.get(rows.name, ()) if len(each) == width), tuple(names))
    if rows.name == "capTable" and width == len(("name", "tokens")):
        shares = plain_numbers([row[1] for row in body])
        are_shares = all(_is_share(text) for text in shares)
        order = ("name", "percentage" if are_shares else "tokens")
    return [*order[:width], *[""] * (width - len(order))]


def _is_share(text: str) -> bool:
    try:
        return not text or 0 <= float(text.removesuffix("%")) <= 100
    except ValueError:
        return False


def _once(names: Sequence[str]) -> list[str]:
    """Return *names* with each of them once: the first column that has it."""
    return [name if name not in names[:at] else "" for at, name in enumerate(names)]
