"""
Recognize the format of a file by its content, and return its tables as rows of texts.

This module is the program that :mod:`muniment.registry.tables.reading` starts: it reads a file from standard input and
writes its tables in MessagePack, or a sentence. A workbook of five kilobytes can name a cell a million rows away, and
an archive can unpack to far more than it is: what this costs harms only this process, and what it says is bounded in
sum.
Nothing in a file is executed: formulas are text.

A hostile file may have taken over that process, so an answer of another form or size is rejected. MessagePack gives the
length of a list first, so a list that is too long is never built; the cells of a table are one list.
"""

import datetime as dt
import io
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

import msgspec

from muniment import confinement
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.wire import timestamp
from muniment.registry.tables import delimited, nested

MAX_ROWS: Final = 300_000
MAX_COLUMNS: Final = 1_000
MAX_CELLS: Final = 8_000_000
MAX_SHEETS: Final = 250
MAX_MERGED_CELLS: Final = 100_000
MAX_UNPACKED_BYTES: Final = 400 << 20
MAX_MEMBERS: Final = 100
MAX_NESTING: Final = 2
MAX_SAMPLES: Final = 3
MAX_TABLE_BYTES: Final = 192 << 20
"""The memory that tables take in the process that asks for them: three million short cells."""
TIMES_OF_FILE: Final = 6
"""A large file may take more, so many times its own size: a small one never says much more than it is."""
OK: Final = b"ok\n"
_ZIP: Final = b"PK\x03\x04"
_OF_WORKBOOKS: Final = frozenset({"xl/workbook.xml", "xl/workbook.bin", "content.xml"})
_OLE: Final = b"\xd0\xcf\x11\xe0"
_FOREIGN: Final = {
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"\x1f\x8b": "a gzip file",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x7fELF": "a program",
    b"SQLite format 3\x00": "a database",
}
_MARKUP: Final = (b"<!doctype", b"<html", b"<?xml")
SAVE_AS: Final = "Save the table as CSV or XLSX, and import that file."
OPEN_IT: Final = "Open it in Excel or LibreOffice, save it as XLSX, and import that file."


class NotATable(ValueError):  # noqa: N818 - a verdict
    """The file holds no table that can be read; the message is the reason."""


class TooMuch(NotATable):
    """The tables of a file hold too much together: none of them is given."""


@dataclass(slots=True)
class Sheet:
    """
    The rows of a table as texts; ``notes`` say what was changed or left out while reading.

    Args:
        samples: lines that show whether a guessed encoding is right.
    """

    name: str
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    encoding: str = ""
    delimiter: str = ""
    is_guess: bool = False
    samples: list[str] = field(default_factory=list)


class Reading:
    """The options for reading a file, and the size of its tables so far: limits count them together."""

    def __init__(self, name: str, file_bytes: int, encoding: str, delimiter: str) -> None:
        self.name, self.encoding, self.delimiter = name, encoding, delimiter
        self.most_bytes = most_bytes(file_bytes)
        self.taken_bytes = self.sheets = self.cells = self.merged = self.unpacked_bytes = 0

    def take_sheets(self, count: int) -> None:
        """Count tables, empty ones too: each takes time."""
        self.sheets += count
        if self.sheets > MAX_SHEETS:
            raise TooMuch(Phrase("{name} has more than {limit:,} sheets.", name=self.name, limit=MAX_SHEETS))

    def take_rows(self, rows: list[list[str]]) -> None:
        """Count the cells of a table, and the memory that they take in the process that asks for them."""
        for row in rows:
            self.cells += len(row)
            self.taken_bytes += sys.getsizeof(row) + sum(sys.getsizeof(cell) for cell in row if cell)
            if self.cells > MAX_CELLS:
                raise TooMuch(Phrase("{name} has more than {limit:,} cells.", name=self.name, limit=MAX_CELLS))
            if self.taken_bytes > self.most_bytes:
                raise TooMuch(too_large(self.name, self.most_bytes))

    def take_unpacked(self, size_bytes: int) -> None:
        """Count what an archive, and the archives in it, unpack to."""
        self.unpacked_bytes += size_bytes
        if self.unpacked_bytes > MAX_UNPACKED_BYTES:
            raise TooMuch(
                Phrase(
                    "{name} unpacks to more than {megabytes} MB.", name=self.name, megabytes=MAX_UNPACKED_BYTES >> 20
                )
            )

    def take_merged(self, cells: int) -> bool:
        """Return whether so many merged cells may still be filled with the text of the first one."""
        self.merged += cells
        return self.merged <= MAX_MERGED_CELLS


def too_large(name: str, most: int) -> Phrase:
    return Phrase("The tables of {name} take more than {megabytes:,} MB.", name=name, megabytes=most >> 20)


def most_bytes(file_bytes: int) -> int:
    """Return how many bytes the tables of a file of this size may take."""
    return max(MAX_TABLE_BYTES, TIMES_OF_FILE * file_bytes)


def read_sheets(content: bytes, name: str, encoding: str = "", delimiter: str = "") -> list[Sheet]:
    """
    Return the tables of a file.

    Args:
        encoding: the encoding of text files; "" recognizes it.
        delimiter: the delimiter of delimited text; "" recognizes it.

    Raises:
        NotATable: there is none that can be read.
    """
    sheets = list(_read(content, name, 0, Reading(name, len(content), encoding, delimiter)))
    if not sheets:
        raise NotATable(Phrase("{name} is empty: it has no cell with a value.", name=name))
    return sheets


def _read(content: bytes, name: str, depth: int, reading: Reading) -> Iterator[Sheet]:
    """Yield the tables that have a value."""
    if content.startswith(_ZIP):
        yield from _read_zip(content, name, depth, reading)
    elif content.startswith(_OLE):
        yield from _read_workbook(content, name, reading)
    else:
        for start, what in _FOREIGN.items():
            if content.startswith(start):
                raise NotATable(
                    Phrase("{name} is {what}, not a table. {way_out}", name=name, what=what, way_out=Phrase(SAVE_AS))
                )
        if content[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_MARKUP):
            raise NotATable(_markup(content, name))
        reading.take_sheets(1)
        yield from _kept(_read_text(content, name, reading.encoding, reading.delimiter), reading)


def _markup(content: bytes, name: str) -> str:
    """Return why markup is refused; programs save it under the name of a workbook, and spreadsheet programs open it."""
    suffix = PurePosixPath(name).suffix.lower()
    if b"urn:schemas-microsoft-com:office:spreadsheet" in content[:2_000]:
        what = Phrase(
            "{name} is a workbook in the XML form of Excel 2003. {way_out}", name=name, way_out=Phrase(OPEN_IT)
        )
    elif suffix.startswith(".xl"):
        what = Phrase(
            "{name} is a web page that was saved with the ending {suffix}; it is no workbook. {way_out}",
            name=name,
            suffix=suffix,
            way_out=Phrase(OPEN_IT),
        )
    else:
        what = Phrase("{name} is a web page or XML, not a table. {way_out}", name=name, way_out=Phrase(SAVE_AS))
    return what


def _read_zip(content: bytes, name: str, depth: int, reading: Reading) -> Iterator[Sheet]:
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile:
        raise NotATable(Phrase("{name} is a damaged archive.", name=name)) from None
    reading.take_unpacked(sum(member.file_size for member in archive.infolist()))
    if not _OF_WORKBOOKS.isdisjoint(archive.namelist()):
        yield from _read_workbook(content, name, reading)
        return
    if depth == MAX_NESTING:
        raise NotATable(Phrase("{name} is an archive in an archive in an archive. Unpack it first.", name=name))
    files = [file for file in archive.infolist() if not _is_hidden(file)]
    if len(files) > MAX_MEMBERS:
        raise NotATable(
            Phrase(
                "{name} holds {count:,} files; at most {limit} are read.",
                name=name,
                count=len(files),
                limit=MAX_MEMBERS,
            )
        )
    yield from _read_members(archive, files, depth, reading)


def _read_members(archive: zipfile.ZipFile, files: list[zipfile.ZipInfo], depth: int, reading: Reading) -> list[Sheet]:
    """Return the tables in an archive; a note names the files that are none, unless all are."""
    unread: list[str] = []
    sheets: list[Sheet] = []
    for file in files:
        try:
            sheets += _read_member(archive, file, depth, reading)  # what comes before a fault is kept
        except TooMuch:
            raise
        except NotATable as fault:
            unread.append(str(fault))
    if not sheets and unread:
        raise NotATable(" ".join(unread[:3]))
    if sheets:
        sheets[0].notes += unread
    return sheets


def _read_member(archive: zipfile.ZipFile, file: zipfile.ZipInfo, depth: int, reading: Reading) -> Iterator[Sheet]:
    try:
        with archive.open(file) as member:
            content = member.read(MAX_UNPACKED_BYTES + 1)
        yield from _read(content, PurePosixPath(file.filename).name, depth + 1, reading)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError):
        raise NotATable(Phrase("{name} cannot be unpacked.", name=file.filename)) from None


def _is_hidden(file: zipfile.ZipInfo) -> bool:
    """Return whether a member is a folder, or a file that an operating system keeps for itself."""
    name = file.filename
    return file.is_dir() or name.startswith("__MACOSX/") or PurePosixPath(name).name.startswith(".")


def _read_workbook(content: bytes, name: str, reading: Reading) -> Iterator[Sheet]:
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        reading.take_sheets(len(book.sheet_names))
        for sheet_name in book.sheet_names:
            sheet = _read_worksheet(book.get_sheet_by_name(sheet_name), sheet_name, reading)
            yield from _kept(sheet, reading)
    except CalamineError as error:
        raise NotATable(
            Phrase("{name} cannot be read as a workbook: {error}.", name=name, error=str(error)[:200])
        ) from None


def _read_worksheet(sheet: Any, name: str, reading: Reading) -> Sheet:
    if sheet.start is None:
        return Sheet(name, [])
    height, width = (last + 1 for last in sheet.end)
    if height > MAX_ROWS or height * min(width, MAX_COLUMNS) > MAX_CELLS:
        raise NotATable(
            Phrase(
                "The sheet {name} has {height:,} rows and {width:,} columns, which is too many.",
                name=name,
                height=height,
                width=width,
            )
        )
    rows = [[_text(cell) for cell in row] for row in sheet.to_python(skip_empty_area=False)]
    notes: list[str] = []
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        span = range(left, min(right, width - 1) + 1)
        below = range(top, min(bottom, len(rows) - 1) + 1)
        if not reading.take_merged(len(span) * len(below)):
            notes.append(
                str(
                    Phrase("Only the first {limit:,} merged cells were filled with their text.", limit=MAX_MERGED_CELLS)
                )
            )
            break
        for at in below:
            rows[at][left : left + len(span)] = [rows[top][left]] * len(span)
    return Sheet(name, rows, notes)


def _text(cell: Any) -> str:
    """Return a cell of a workbook as text: days and numbers in the form that every reader takes the same way."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, dt.datetime):
        return cell.date().isoformat() if cell.time() == dt.time() else _moment(cell)
    return cell.isoformat() if isinstance(cell, dt.date) else str(cell).strip()


def _moment(cell: dt.datetime) -> str:
    return timestamp(cell) if cell.tzinfo else cell.isoformat(sep=" ", timespec="seconds")


def _read_text(content: bytes, name: str, encoding: str, delimiter: str) -> Sheet:
    try:
        decoded = delimited.decode(content, encoding)
    except (UnicodeDecodeError, LookupError):
        raise NotATable(
            Phrase(
                "{name} is not in the encoding {encoding}. Correct it in the mapping, or remove it.",
                name=name,
                encoding=encoding,
            )
        ) from None
    notes: list[str] = []
    text = _without_nulls(decoded.text, name, notes)
    unknown = text.count("\ufffd")
    if unknown:
        notes.append(
            str(
                Phrase(
                    "{unknown:,} characters are not {encoding}; set the right encoding in the mapping.",
                    unknown=unknown,
                    encoding=decoded.encoding,
                )
            )
        )
    sheet = Sheet(PurePosixPath(name).stem, [], notes, decoded.encoding, "", decoded.is_guess, _samples(text))
    if text.lstrip("\ufeff \t\r\n")[:1] in {"{", "["}:
        rows_of_json = _read_json(text, name)
        sheet.rows = rows_of_json.rows
        sheet.notes += rows_of_json.notes
        return sheet
    declared = re.match(r"\ufeff?sep=(.)\r?\n", text)  # what a spreadsheet program writes for itself
    if declared:
        # The line stays as a blank one, so that rows keep their numbers.
        text = "\n" + text[declared.end() :]
        delimiter = delimiter or declared[1]
    sheet.delimiter = delimiter or delimited.delimiter_of(text)
    sheet.rows = delimited.cells_of(text, sheet.delimiter)
    return sheet


def _without_nulls(text: str, name: str, notes: list[str]) -> str:
    """Return a text without NUL characters, and note them; many of them are the sign of binary data."""
    nulls = text.count("\0")
    if not nulls:
        return text
    if nulls > max(8, len(text) // 100):
        raise NotATable(Phrase("{name} is binary data, not a table. {way_out}", name=name, way_out=Phrase(SAVE_AS)))
    notes.append(str(Phrase("{nulls:,} NUL characters were left out.", nulls=nulls)))
    return text.replace("\0", "")


def _read_json(text: str, name: str) -> nested.Nested:
    try:
        return nested.rows_of(text.lstrip("\ufeff"))
    except RecursionError:
        raise NotATable(Phrase("{name} is nested too deeply.", name=name)) from None
    except ValueError as fault:
        raise NotATable(
            Phrase("{name} is not JSON that holds a table: {error}.", name=name, error=str(fault)[:200])
        ) from None


def _samples(text: str) -> list[str]:
    samples: list[str] = []
    for line in text.splitlines():
        if not line.isascii():
            samples.append(line.strip()[:160])
            if len(samples) == MAX_SAMPLES:
                break
    return samples


def _kept(sheet: Sheet, reading: Reading) -> Iterator[Sheet]:
    """Yield *sheet* within the limits, if it has a value."""
    if any(map(any, sheet.rows)):
        within = _within_limits(sheet)
        reading.take_rows(within.rows)
        yield within


def _within_limits(sheet: Sheet) -> Sheet:
    """Return *sheet* without empty columns at its end, every row as wide as the widest."""
    width = max(map(_width, sheet.rows), default=0)
    if width > MAX_COLUMNS:
        raise NotATable(
            Phrase(
                "The table {name} has {width:,} columns; at most {limit:,} are read.",
                name=sheet.name,
                width=width,
                limit=MAX_COLUMNS,
            )
        )
    if len(sheet.rows) > MAX_ROWS or len(sheet.rows) * width > MAX_CELLS:
        raise NotATable(
            Phrase(
                "The table {name} has {height:,} rows of {width:,} columns, which is too many.",
                name=sheet.name,
                height=len(sheet.rows),
                width=width,
            )
        )
    sheet.rows = [[*row[:width], *[""] * (width - len(row))] for row in sheet.rows]
    return sheet


def _width(row: list[str]) -> int:
    """Return the number of the last cell of a row that has a value."""
    width = len(row)
    while width and not row[width - 1]:
        width -= 1
    return width


MAX_NOTES = 2 * MAX_MEMBERS * MAX_MEMBERS
"""One note for each file in nested archives, and a few more."""


class NotAnAnswer(ValueError):  # noqa: N818 - a verdict
    """The answer has another form or size than the declared one."""


class _Table(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A table, its cells row by row."""

    name: str
    width: Annotated[int, msgspec.Meta(ge=1, le=MAX_COLUMNS)]
    cells: Annotated[list[str], msgspec.Meta(max_length=MAX_CELLS)]
    notes: Annotated[list[str], msgspec.Meta(max_length=MAX_NOTES)]
    encoding: str
    delimiter: str
    is_guess: bool
    samples: Annotated[list[str], msgspec.Meta(max_length=MAX_SAMPLES)]


_ANSWER = msgspec.msgpack.Decoder(Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1, max_length=MAX_SHEETS)])
_TABLE = msgspec.msgpack.Decoder(_Table)


def pack(sheets: list[Sheet]) -> bytes:
    """Return the answer; each table has rows of one width."""
    return msgspec.msgpack.encode([_table_of(sheet) for sheet in sheets])


def _table_of(sheet: Sheet) -> _Table:
    cells = [cell for row in sheet.rows for cell in row]
    width = len(sheet.rows[0])
    notes = [str(note) for note in sheet.notes]  # some are phrases
    return _Table(sheet.name, width, cells, notes, sheet.encoding, sheet.delimiter, sheet.is_guess, sheet.samples)


def unpack(answer: bytes | memoryview) -> list[Sheet]:
    """Return the tables of an answer, or raise NotAnAnswer."""
    try:
        return list(_unpacked(_ANSWER.decode(answer)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotAnAnswer from None


def _unpacked(tables: list[msgspec.Raw]) -> Iterator[Sheet]:
    count_of_cells = count_of_notes = 0
    for encoded in tables:
        table = _TABLE.decode(encoded)
        count_of_cells += len(table.cells)
        count_of_notes += len(table.notes)
        height, rest = divmod(len(table.cells), table.width)
        if count_of_cells > MAX_CELLS or count_of_notes > MAX_NOTES or rest or not 1 <= height <= MAX_ROWS:
            raise NotAnAnswer
        rows = [table.cells[at : at + table.width] for at in range(0, len(table.cells), table.width)]
        yield Sheet(table.name, rows, table.notes, table.encoding, table.delimiter, table.is_guess, table.samples)


def _main() -> None:
    name, encoding, delimiter = confinement.begin()
    try:
        content = sys.stdin.buffer.read()
        answer = OK + pack(read_sheets(content, name, encoding, delimiter))
        most = most_bytes(len(content))
        if len(answer) > most:
            answer = str(too_large(name, most)).encode("utf-8", "replace")
    except NotATable as fault:
        answer = str(fault).encode("utf-8", "replace")
    except MemoryError:
        os._exit(confinement.NO_MEMORY)  # at once: what an orderly end needs may not be there
    sys.stdout.buffer.write(answer)


if __name__ == "__main__":
    _main()
