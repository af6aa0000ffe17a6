"""
Files with the long lists of companies: captable.jsonl, positions.jsonl and proposals.jsonl.

A line has one row and the id of its company: ``{"company": "acme", "holder": {...}}``. The lines of a company follow
each other, and are its whole list. A list is imported whole or not at all: without a row that cannot be read, it would
say something else.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry.exchange.json_lines import ImportLine
from muniment.schema.validation import Fault


class ListFile(NamedTuple):
    """A file of lists: the member of a company that it holds, and the member of a line with one row of it."""

    member: str
    row: str


LISTS: Final = {
    "positions": ListFile("positions", "position"),
    "proposals": ListFile("proposals", "proposal"),
    "captable": ListFile("capTable", "holder"),
}
"""The files, by the beginning of their names."""
MAX_ROWS: Final = 100_000
"""
Rows of one list: the detail of a company has its lists whole, as the contract says, so that its import, its document
and each answer hold all of them at once. With so many, an import takes 255 MB.
"""
_UNREAD_NAME: Final = "-"
"""A company must have a name; that of a row which has only lists is not used."""
_ROW: Final = re.compile(r"(?P<member>\w+)\[(?P<index>\d+)\](?P<rest>.*)")


def list_kind_of(first: JSONMapping, name: str) -> str:
    """
    Return the kind of a file; empty if it is no file of lists.

    Args:
        first: its first object; empty if no line has one.
        name: its name, which says what an invalid line should be.
    """
    for kind, (_, row) in LISTS.items():
        is_named = name in {f"{kind}.jsonl", f"{kind}.jsonl.gz"}
        if not first:
            is_of_kind = is_named
        else:
            # A row without its company is a fault if the file is named so; other files may have such objects.
            has_company = isinstance(first.get("company"), str)
            has_row = isinstance(first.get(row), dict)
            is_of_kind = has_row and (has_company or is_named)
        if is_of_kind:
            return kind
    return ""


def companies_of(kind: str, lines: Iterable[ImportLine]) -> set[str]:
    """Return the companies whose lists a file has, also those of which a line is invalid."""
    companies: set[str] = set()
    for line in lines:
        value: JSONObject = line.value or {}
        if LISTS[kind].row in value and isinstance(value.get("company"), str):
            companies.add(value["company"])
    return companies


def line_of(kind: str, company: str, row: Any) -> JSONObject:
    """Return the line with one row of a company's list."""
    return {"company": company, LISTS[kind].row: row}


def place_of(kind: str, line: ImportLine, path: str) -> tuple[int, str]:
    """Return the number of the line that has the value at *path*, and its path there."""
    if not line.rows:
        return line.number, path
    if path == "company.id":
        return line.number, "company"
    of_row = _ROW.match(path)
    if of_row is None or of_row["member"] != LISTS[kind].member:
        return line.number, path
    index = int(of_row["index"])
    if index >= len(line.rows):
        return line.number, path
    return line.rows[index], LISTS[kind].row + of_row["rest"]


@dataclass(slots=True)
class _List:
    """The lines of one company: their rows and numbers, bytes, and the place in the file after the last one."""

    company: str
    total: int = 0
    rows: list[Any] = field(default_factory=list)
    numbers: Sequence[int] = field(default_factory=lambda: array("Q"))
    size: int = 0
    read: int = 0
    broken_by: int = 0
    """The number of a line beside them that cannot be read, and that may be one of them."""

    def add(self, line: ImportLine, row: Any) -> None:
        assert isinstance(self.numbers, array)  # noqa: S101 - for the type checker
        self.total += 1
        if self.total <= MAX_ROWS:
            self.rows.append(row)
            self.numbers.append(line.number)
        self.size += line.size
        self.read = line.read

    def as_line(self, member: str) -> ImportLine:
        """Return the list in the form of a line of companies.jsonl."""
        first = self.numbers[0]
        if self.broken_by:
            reason = Phrase("is left out with the whole list, because line {line} is invalid", line=self.broken_by)
            return ImportLine(first, None, Fault("company", reason), self.size, self.read)
        if self.total > MAX_ROWS:
            reason = Phrase("has {count:,} rows; a list has at most {limit:,}", count=self.total, limit=MAX_ROWS)
            return ImportLine(first, None, Fault(member, reason), self.size, self.read)
        value = {"company": {"id": self.company, "name": _UNREAD_NAME}, member: self.rows}
        return ImportLine(first, value, None, self.size, self.read, self.numbers)


def whole_lists(kind: str, lines: Iterable[ImportLine]) -> Iterator[ImportLine]:
    """Yield the list of each company as one line, and the lines that cannot be read as they are."""
    member, row_member = LISTS[kind]
    current: _List | None = None
    invalid_line = 0
    for line in lines:
        fault = line.fault or _fault_of(line.value or {}, row_member)
        if fault:
            yield ImportLine(line.number, None, fault, line.size, line.read)
            invalid_line = line.number
            if current is not None:
                current.broken_by = line.number
            continue
        value: JSONObject = line.value or {}
        if current is None or current.company != value["company"]:
            if current is not None:
                yield current.as_line(member)
            current = _List(value["company"], broken_by=invalid_line)
        invalid_line = 0
        current.add(line, value[row_member])
    if current is not None:
        yield current.as_line(member)


def _fault_of(value: JSONMapping, row_member: str) -> Fault | None:
    """Return why a line is no row of a list."""
    if not isinstance(value.get("company"), str) or not value["company"]:
        return Fault("company", "must be the id of a company")
    if not isinstance(value.get(row_member), dict):
        return Fault(row_member, "must be an object")
    return None
