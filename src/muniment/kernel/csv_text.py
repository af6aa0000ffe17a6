"""Rows as CSV: the one writer of exports, lists, statements, logs and statements of credits."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from muniment.kernel.texts import spreadsheet_cell

MAX_ROWS: Final = 100_000
"""Rows of a CSV that is made for a request, without its head."""
COMMA: Final = ","
SEMICOLON: Final = ";"
BOM: Final = "\ufeff"
"""The mark by which Excel reads a file as UTF-8; other programs may take it for a part of the first name."""


class CsvForm(msgspec.Struct, frozen=True):
    """
    What a program needs to open a CSV with one click.

    Args:
        has_mark: it begins with the mark of UTF-8.
        delimiter: what is between two cells; Excel expects that of the language of its computer.
    """

    has_mark: bool = False
    delimiter: str = COMMA


PLAIN: Final = CsvForm()


class CsvText:
    """
    CSV as text, written in rows and taken in parts.

    A spreadsheet would run a text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return as a formula:
    it gets an apostrophe before it. Numbers are no texts.
    """

    def __init__(self, form: CsvForm = PLAIN) -> None:
        self._text = io.StringIO(newline="")
        self._write = csv.writer(self._text, delimiter=form.delimiter).writerow
        if form.has_mark:
            self._text.write(BOM)

    def write(self, cells: Iterable[Any]) -> None:
        self._write([_cell(cell) for cell in cells])

    @property
    def characters(self) -> int:
        """How many characters have been written and not taken."""
        return self._text.tell()

    def take(self) -> bytes:
        """Return what has been written since the last time."""
        taken = self._text.getvalue().encode()
        self._text.seek(0)
        self._text.truncate()
        return taken


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return spreadsheet_cell(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return spreadsheet_cell(_joined(value))


def _joined(value: Any) -> str:
    """Return a list as one text, and an object as its values: that of another object is its name."""
    if isinstance(value, Mapping):
        named = [_named(each) for each in value.values()]
        return ", ".join([str(each) for each in named if each is not None and each != ""])
    return "; ".join([_entry(each) for each in value])


def _named(value: Any) -> Any:
    return value.get("name") if isinstance(value, Mapping) else value


def _entry(value: Any) -> str:
    return _joined(value) if isinstance(value, Mapping) else str(value)
