"""
The files of an import, read and checked in batches, the next one while another is committed.

A batch has a bounded number of lines and bytes, whatever is wrong with them.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from django.conf import settings

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.exchange.json_lines import ImportLine, read_lines
from muniment.registry.exchange.list_files import LISTS, list_kind_of, place_of, whole_lists
from muniment.registry.exchange.rows import (
    CompanyRow,
    FrameworkRow,
    PersonRow,
    read_company,
    read_framework,
    read_lists,
    read_person,
)
from muniment.schema.objects import Schema
from muniment.schema.validation import Fault, Validation

KINDS: Final = ("people", "companies", "frameworks")
"""The kinds of rows, in order of dependency."""
FILES: Final = ("people", "companies", *LISTS, "frameworks")
"""The kinds of files, in order of dependency: long lists of companies can have files of their own."""
BATCH_LINES: Final = 1_000
BATCH_BYTES: Final = 4 * 1024 * 1024
_READ: Final[dict[str, Callable[[JSONObject, Schema, Validation], CompanyRow | PersonRow | FrameworkRow | None]]] = {
    "people": read_person,
    "companies": read_company,
    "frameworks": read_framework,
    **dict.fromkeys(LISTS, read_lists),
}
_SLUG_FIELDS: Final = {
    "people": "slug",
    "companies": "company.id",
    "frameworks": "framework.frameworkId",
    **dict.fromkeys(LISTS, "company.id"),
}


class Source(NamedTuple):
    """A file to import, and the kind of its lines."""

    kind: str
    path: Path


def sources_of(path: Path) -> list[Source]:
    """
    Return the files to import at *path*.

    Raises:
        BadRequest: there is nothing to import.
    """
    if path.is_dir():
        sources = []
        for kind in FILES:
            for file in (path / f"{kind}.jsonl", path / f"{kind}.jsonl.gz"):
                if file.is_file():
                    sources.append(Source(kind, file))
        if not sources:
            raise BadRequest(
                Phrase(
                    "{path} contains none of companies.jsonl, people.jsonl, frameworks.jsonl, captable.jsonl,"
                    " positions.jsonl and proposals.jsonl.",
                    path=path,
                ),
                "Give a folder with at least one of them (or .jsonl.gz), or one such file.",
            )
        return sources
    if not path.is_file():
        message = Phrase("{path} is neither a folder nor a file.", path=path)
        raise BadRequest(message, "Give a folder created by muniment export, or a file.")
    return [Source(_kind_of(path), path)]


def _kind_of(path: Path) -> str:
    for kind in KINDS:
        if path.name.startswith(kind):
            return kind
    # Of another name: the first line that is an object tells.
    first: JSONObject = next((line.value for line in read_lines(path) if line.value is not None), {})
    list_kind = list_kind_of(first, path.name)
    if list_kind:
        return list_kind
    for kind, member in (("companies", "company"), ("frameworks", "framework"), ("people", "slug")):
        if member in first:
            return kind
    raise BadRequest(
        Phrase("{path} has no line that is a company, a person, a framework or a row of a company's list.", path=path),
        "Rename the file to companies.jsonl, people.jsonl, frameworks.jsonl, captable.jsonl, positions.jsonl or"
        " proposals.jsonl.",
    )


# ---------------------------------------------------------------------- batches


class RowFault(NamedTuple):
    """An invalid row, or a warning: its file, line, field and reason."""

    file: str
    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        return f"{place}: {self.field} {self.reason}" if self.field else f"{place}: {self.reason}"


class RowFinding(NamedTuple):
    """A finding in a line: a fault, which refuses the line, or a warning."""

    fault: RowFault
    warns: bool


@dataclass(slots=True)
class Batch:
    """
    Some lines of a file, read with one schema: the valid rows, and what was found in the lines.

    Args:
        seen: the number of the first valid line of each slug in the file.
    """

    source: Source
    schema: Schema
    seen: dict[str, int]
    lines: list[ImportLine] = field(default_factory=list)
    rows: list[tuple[ImportLine, Any]] = field(default_factory=list)
    """The lines that are valid, and what was read of each."""
    findings: list[RowFinding] = field(default_factory=list)

    def add(self, line: ImportLine) -> None:
        """Read a line."""
        self.lines.append(line)
        kind = self.source.kind
        validation = Validation(change=False)
        row = None
        if line.value is not None:
            row = _READ[kind](line.value, self.schema, validation)
        faults = [line.fault] if line.fault else validation.faults
        if row is not None and not faults:
            # A line that is read again, with another schema, meets its own number.
            first_line = self.seen.setdefault(row.slug, line.number)
            if first_line != line.number:
                reason = Phrase("{slug!r} is already in line {line}", slug=row.slug, line=first_line)
                faults = [Fault(_SLUG_FIELDS[kind], reason)]
        if row is None or faults:
            self.findings += [RowFinding(self.fault(line, fault), warns=False) for fault in faults]
            return
        self.findings += [RowFinding(self.fault(line, fault), warns=True) for fault in validation.warnings]
        self.rows.append((line, row))

    def fault(self, line: ImportLine, fault: Fault) -> RowFault:
        """Return what is wrong with a line of the file, or with one of several that make a list."""
        number, field = place_of(self.source.kind, line, fault.field)
        return RowFault(self.source.path.name, number, field, fault.reason)

    def read_again(self, schema: Schema) -> "Batch":
        """Return the batch as it is with another schema."""
        again = Batch(self.source, schema, self.seen)
        for line in self.lines:
            again.add(line)
        return again


class BatchReader:
    """
    Reads the batches of a file, the next one in a thread as soon as it is told to.

    Tell it to before a commit: SQLite writes and waits for the disk without the interpreter meanwhile.
    """

    def __init__(self, source: Source) -> None:
        self._batches = _batches_of(source)
        self._thread = ThreadPoolExecutor(1, "import-reader")
        self._next: Future[Batch | None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def read_ahead(self) -> None:
        """Begin to read the next batch, unless that was begun."""
        if self._next is None:
            self._next = self._thread.submit(next, self._batches, None)

    def __iter__(self) -> Iterator[Batch]:
        while True:
            self.read_ahead()
            assert self._next is not None  # noqa: S101 - it was begun
            batch = self._next.result()
            self._next = None
            if batch is None:
                return
            yield batch


def _batches_of(source: Source) -> Iterator[Batch]:
    seen: dict[str, int] = {}
    batch, size = Batch(source, settings.SCHEMA, seen), 0
    lines = read_lines(source.path)
    if source.kind in LISTS:
        lines = whole_lists(source.kind, lines)
    for line in lines:
        batch.add(line)
        size += line.size
        if len(batch.lines) >= BATCH_LINES or size >= BATCH_BYTES:
            yield batch
            batch, size = Batch(source, settings.SCHEMA, seen), 0
    if batch.lines:
        yield batch
