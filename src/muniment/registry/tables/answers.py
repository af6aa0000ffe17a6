"""
The tables of a file, as the process that reads it sends them in MessagePack.

A hostile file may have taken over that process, so an answer of another form or size is rejected. MessagePack gives the
length of a list first, so a list that is too long is never built; the cells of a table are one list.
"""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from muniment.registry.tables.formats import MAX_CELLS, MAX_COLUMNS, MAX_MEMBERS, MAX_ROWS, MAX_SHEETS, Sheet

MAX_NOTES = 2 * MAX_MEMBERS * MAX_MEMBERS
"""One note for each file in nested archives, and a few more."""


class NotAnAnswer(ValueError):  # noqa: N818 - a verdict
    """The answer has another form or size than the declared one."""


class _Told(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A table, its cells row by row."""

    name: str
    width: Annotated[int, msgspec.Meta(ge=1, le=MAX_COLUMNS)]
    cells: Annotated[list[str], msgspec.Meta(max_length=MAX_CELLS)]
    notes: Annotated[list[str], msgspec.Meta(max_length=MAX_NOTES)]
    encoding: str
    delimiter: str
    is_guess: bool
    samples: Annotated[list[str], msgspec.Meta(max_length=3)]


_ANSWER = msgspec.msgpack.Decoder(Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1, max_length=MAX_SHEETS)])
_TABLE = msgspec.msgpack.Decoder(_Told)


def pack(sheets: list[Sheet]) -> bytes:
    """Return the answer; each table has rows of one width."""
    return msgspec.msgpack.encode([_told(each) for each in sheets])


def _told(sheet: Sheet) -> _Told:
    cells = [cell for row in sheet.rows for cell in row]
    width = len(sheet.rows[0])
    notes = [str(note) for note in sheet.notes]  # some are phrases
    return _Told(sheet.name, width, cells, notes, sheet.encoding, sheet.delimiter, sheet.is_guess, sheet.samples)


def unpack(answer: bytes | memoryview) -> list[Sheet]:
    """Return the tables of an answer, or raise NotAnAnswer."""
    try:
        return list(_unpacked(_ANSWER.decode(answer)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotAnAnswer from None


def _unpacked(tables: list[msgspec.Raw]) -> Iterator[Sheet]:
    cells = notes = 0
    for each in tables:
        told = _TABLE.decode(each)
        cells += len(told.cells)
        notes += len(told.notes)
        height, rest = divmod(len(told.cells), told.width)
        if cells > MAX_CELLS or notes > MAX_NOTES or rest or not 1 <= height <= MAX_ROWS:
            raise NotAnAnswer
        rows = [told.cells[at : at + told.width] for at in range(0, len(told.cells), told.width)]
        yield Sheet(told.name, rows, told.notes, told.encoding, told.delimiter, told.is_guess, told.samples)
