"""
Recognize the format of a file by its content, and return its tables as rows of texts.

It runs in the process that :mod:`muniment.registry.tables.reading` starts, whose memory and time are limited.
"""

import datetime as dt
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.wire import timestamp
from muniment.registry.tables import delimited, nested

MAX_ROWS: Final = 300_000
MAX_COLUMNS: Final = 1_000
MAX_CELLS: Final = 8_000_000
MAX_MERGED_CELLS: Final = 100_000
MAX_UNPACKED_BYTES: Final = 400 << 20
MAX_MEMBERS: Final = 100
MAX_NESTING: Final = 2
_ZIP: Final = b"PK\x03\x04"
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


def read_sheets(content: bytes, name: str, encoding: str = "", delimiter: str = "") -> list[Sheet]:
    """
    Return the tables of a file.

    Args:
        encoding: of text files; "" recognizes it.
        delimiter: of delimited text; "" recognizes it.

    Raises:
        NotATable: there is none that can be read.
    """
    sheets = [_within_limits(each) for each in _read(content, name, encoding, delimiter, 0) if any(map(any, each.rows))]
    if not sheets:
        raise NotATable(Phrase("{name} is empty: it has no cell with a value.", name=name))
    return sheets


def _read(content: bytes, name: str, encoding: str, delimiter: str, depth: int) -> Iterator[Sheet]:
    if content.startswith(_ZIP):
        yield from _read_zip(content, name, encoding, delimiter, depth)
    elif content.startswith(_OLE):
        yield from _read_workbook(content, name)
    else:
        for start, what in _FOREIGN.items():
            if content.startswith(start):
                raise NotATable(
                    Phrase("{name} is {what}, not a table. {way_out}", name=name, what=what, way_out=Phrase(SAVE_AS))
                )
        if content[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_MARKUP):
            raise NotATable(_markup(content, name))
        yield _read_text(content, name, encoding, delimiter)


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


def _read_zip(content: bytes, name: str, encoding: str, delimiter: str, depth: int) -> Iterator[Sheet]:
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        names = archive.namelist()
    except zipfile.BadZipFile:
        raise NotATable(Phrase("{name} is a damaged archive.", name=name)) from None
    if sum(each.file_size for each in archive.infolist()) > MAX_UNPACKED_BYTES:
        raise NotATable(
            Phrase("{name} unpacks to more than {megabytes} MB.", name=name, megabytes=MAX_UNPACKED_BYTES >> 20)
        )
    if "xl/workbook.xml" in names or "xl/workbook.bin" in names or "content.xml" in names:
        yield from _read_workbook(content, name)
        return
    if depth == MAX_NESTING:
        raise NotATable(Phrase("{name} is an archive in an archive in an archive. Unpack it first.", name=name))
    files = [each for each in archive.infolist() if not each.is_dir() and not _is_hidden(each.filename)]
    if len(files) > MAX_MEMBERS:
        raise NotATable(
            Phrase(
                "{name} holds {count:,} files; at most {limit} are read.",
                name=name,
                count=len(files),
                limit=MAX_MEMBERS,
            )
        )
    unread: list[str] = []
    found: list[Sheet] = []
    for each in files:
        try:
            with archive.open(each) as member:
                inner = member.read(MAX_UNPACKED_BYTES + 1)
            found += _read(inner, PurePosixPath(each.filename).name, encoding, delimiter, depth + 1)
        except (NotATable, zipfile.BadZipFile, RuntimeError, NotImplementedError) as fault:
            unread.append(
                str(fault) if isinstance(fault, NotATable) else Phrase("{name} cannot be unpacked.", name=each.filename)
            )
    if not found and unread:
        raise NotATable(" ".join(unread[:3]))
    if found:
        found[0].notes += unread
    yield from found


def _is_hidden(name: str) -> bool:
    return name.startswith("__MACOSX/") or PurePosixPath(name).name.startswith(".")


def _read_workbook(content: bytes, name: str) -> Iterator[Sheet]:
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        for each in book.sheet_names:
            yield _read_worksheet(book.get_sheet_by_name(each), each)
    except CalamineError as error:
        raise NotATable(
            Phrase("{name} cannot be read as a workbook: {error}.", name=name, error=str(error)[:200])
        ) from None


def _read_worksheet(sheet: Any, name: str) -> Sheet:
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
    merged = 0
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        span = range(left, min(right, width - 1) + 1)
        below = range(top, min(bottom, len(rows) - 1) + 1)
        merged += len(span) * len(below)
        if merged > MAX_MERGED_CELLS:
            break
        for at in below:
            rows[at][left : left + len(span)] = [rows[top][left]] * len(span)
    return Sheet(name, rows)


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
        found = delimited.decode(content, encoding)
    except (UnicodeDecodeError, LookupError):
        raise NotATable(
            Phrase(
                "{name} is not in the encoding {encoding}. Correct it in the mapping, or remove it.",
                name=name,
                encoding=encoding,
            )
        ) from None
    notes: list[str] = []
    text = found.text
    if nulls := text.count("\0"):
        if nulls > max(8, len(text) // 100):
            raise NotATable(Phrase("{name} is binary data, not a table. {way_out}", name=name, way_out=Phrase(SAVE_AS)))
        text = text.replace("\0", "")
        notes.append(str(Phrase("{nulls:,} NUL characters were left out.", nulls=nulls)))
    if unknown := text.count("\ufffd"):
        notes.append(
            str(
                Phrase(
                    "{unknown:,} characters are not {encoding}; set the right encoding in the mapping.",
                    unknown=unknown,
                    encoding=found.encoding,
                )
            )
        )
    sheet = Sheet(PurePosixPath(name).stem, [], notes, found.encoding, "", found.is_guess, _samples(text))
    if text.lstrip("\ufeff \t\r\n")[:1] in {"{", "["}:
        try:
            rows, left_out = nested.rows_of(text.lstrip("\ufeff"))
        except RecursionError:
            raise NotATable(Phrase("{name} is nested too deeply.", name=name)) from None
        except ValueError as fault:
            raise NotATable(
                Phrase("{name} is not JSON that holds a table: {error}.", name=name, error=str(fault)[:200])
            ) from None
        sheet.rows, sheet.notes = rows, notes + left_out
        return sheet
    if declared := re.match(r"\ufeff?sep=(.)\r?\n", text):  # what a spreadsheet program writes for itself
        text, delimiter = "\n" + text[declared.end() :], delimiter or declared[1]
    sheet.delimiter = delimiter or delimited.delimiter_of(text)
    sheet.rows = delimited.cells_of(text, sheet.delimiter)
    return sheet


def _samples(text: str) -> list[str]:
    found: list[str] = []
    for line in text.splitlines():
        if not line.isascii():
            found.append(line.strip()[:160])
            if len(found) == 3:
                break
    return found


def _within_limits(sheet: Sheet) -> Sheet:
    """Return *sheet* without empty columns at its end, every row as wide as the widest."""
    width = max((at for row in sheet.rows for at, cell in enumerate(row, 1) if cell), default=0)
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
