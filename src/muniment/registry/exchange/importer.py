"""
Import: files of JSON lines become rows and published documents, batch by batch.

A batch is one transaction: what was committed is whole, and a second run completes a first that was cut
off, since what stands already is compared and skipped. A bad row never stops the good ones.

Source: decisions, section 6.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction

from muniment.kernel.actor import COMMAND, Actor
from muniment.kernel.problems import BadRequest
from muniment.registry.exchange.batch import BatchCounts, BatchRun
from muniment.registry.exchange.companies import import_companies
from muniment.registry.exchange.frameworks import import_frameworks
from muniment.registry.exchange.jsonl import ImportLine, read_lines
from muniment.registry.exchange.people import import_people
from muniment.registry.exchange.rows import (
    CompanyRow,
    FrameworkRow,
    PersonRow,
    read_company,
    read_framework,
    read_person,
)
from muniment.schema.objects import Schema
from muniment.schema.validation import Fault, Validation

BATCH_ROWS: Final = 500
BATCH_BYTES: Final = 4 * 1024 * 1024
PAGE_CACHE_KIB: Final = 64 * 1024
COLLECTED_EVERY: Final = 50_000
ATTEMPTS: Final = 5
"""How often a batch is tried on PostgreSQL, where another writer may have been first."""
KINDS: Final = ("people", "companies", "frameworks")
"""In the order in which they need each other."""
_READ: Final[dict[str, Callable[[dict[str, Any], Schema], tuple[Any, Validation]]]] = {
    "people": read_person,
    "companies": read_company,
    "frameworks": read_framework,
}
_SLUG_FIELDS: Final = {"people": "slug", "companies": "company.id", "frameworks": "framework.frameworkId"}


class Bad(NamedTuple):
    """A row that was not imported, or that gave a warning: where, which field, why."""

    file: str
    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        """Show it on one line."""
        return f"{self.file}:{self.line}: {self.field + ' ' if self.field else ''}{self.reason}"


class Source(NamedTuple):
    """A file to import, and what its lines are."""

    kind: str
    path: Path


@dataclass(slots=True)
class Summary:
    """What an import did."""

    counts: dict[str, BatchCounts] = field(default_factory=lambda: {kind: BatchCounts() for kind in KINDS})
    bad: int = 0
    warnings: int = 0

    def __str__(self) -> str:
        """Tell it in a sentence for each kind that was met."""
        said = [
            f"{kind}: {counts.new:,} new, {counts.changed:,} changed, {counts.unchanged:,} unchanged"
            for kind, counts in self.counts.items()
            if counts.total
        ]
        said.append(f"{self.bad:,} bad rows" if self.bad else "no bad row")
        return "; ".join(said)


def sources_of(path: Path) -> list[Source]:
    """
    Find what there is to import at *path*.

    Raises:
        BadRequest: nothing there has the form.
    """
    if path.is_dir():
        found = [
            Source(kind, file)
            for kind in KINDS
            for file in (path / f"{kind}.jsonl", path / f"{kind}.jsonl.gz")
            if file.is_file()
        ]
        if not found:
            raise BadRequest(
                f"{path} holds none of companies.jsonl, people.jsonl and frameworks.jsonl.",
                "Name a folder with at least one of them (also as .jsonl.gz), or one such file.",
            )
        return found
    if not path.is_file():
        raise BadRequest(f"{path} is neither a folder nor a file.", "Name a folder made by muniment export, or a file.")
    return [Source(_kind_of(path), path)]


def _kind_of(path: Path) -> str:
    for kind in KINDS:
        if path.name.startswith(kind):
            return kind
    first = next((line.value for line in read_lines(path) if line.value is not None), {})
    for kind, member in (("companies", "company"), ("frameworks", "framework"), ("people", "slug")):
        if member in first:
            return kind
    raise BadRequest(
        f"{path} has no line that is a company, a person or a framework.",
        "Name the file companies.jsonl, people.jsonl or frameworks.jsonl to say what its lines are.",
    )


def import_registry(
    path: Path,
    *,
    actor: Actor = COMMAND,
    draft: bool = False,
    dry_run: bool = False,
    strict: bool = False,
    tell: Callable[[Bad], object] = lambda _bad: None,
    warn: Callable[[Bad], object] = lambda _bad: None,
    progress: Callable[[Path, int], object] = lambda _path, _read: None,
) -> Summary:
    """
    Import a folder or a file.

    Args:
        path: a folder with any of the three files, or one of them; gzip by extension.
        actor: who the history names.
        draft: leave new rows unpublished, and published ones as they stand.
        dry_run: read and compare everything, write nothing.
        strict: import nothing if any row is bad.
        tell: called with each bad row.
        warn: called with each warning.
        progress: called with the file and the bytes of it that are read.

    Raises:
        BadRequest: nothing at *path* has the form.
        OSError: a file cannot be read.
    """
    sources = sources_of(path)
    found = Summary()
    with _elbow_room():
        if dry_run or strict:
            found = _Import(actor, draft=draft, dry=True, tell=tell, warn=warn, progress=progress).run(sources)
            if dry_run or found.bad:
                return found
        return _Import(
            actor,
            draft=draft,
            dry=False,
            tell=tell,
            warn=(lambda _bad: None) if strict else warn,  # the first pass told them
            progress=progress,
        ).run(sources)


@contextmanager
def _elbow_room() -> Iterator[None]:
    """
    Give a long run of writes what it likes: index pages that stay in memory, and few rounds of the collector.

    A batch holds some hundred thousand objects, none of them in a cycle; documents stand under digests of their
    names, so that each goes to another page.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(COLLECTED_EVERY, *thresholds[1:])
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            former = cursor.execute("PRAGMA cache_size").fetchone()[0]
            cursor.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KIB}")
        try:
            yield
        finally:
            gc.set_threshold(*thresholds)
            if connection.vendor == "sqlite":
                cursor.execute(f"PRAGMA cache_size = {former}")


class _Import:
    """One pass over the files."""

    def __init__(
        self,
        actor: Actor,
        *,
        draft: bool,
        dry: bool,
        tell: Callable[[Bad], object],
        warn: Callable[[Bad], object],
        progress: Callable[[Path, int], object],
    ) -> None:
        self.state = BatchRun(actor, settings.SCHEMA, draft=draft, dry=dry)
        self.tell, self.warn, self.progress = tell, warn, progress
        self.summary = Summary()

    def run(self, sources: list[Source]) -> Summary:
        """Import all of *sources*."""
        for source in sources:
            for batch in _batches(self._rows(source)):
                self._write(source, batch)
        return self.summary

    def _rows(self, source: Source) -> Iterator[tuple[ImportLine, Any]]:
        seen: dict[str, int] = {}
        for line in read_lines(source.path):
            row, faults, warnings = self._read(source.kind, line)
            if row is not None and row.slug in seen:
                reason = f"{row.slug!r} stands in line {seen[row.slug]} already"
                row, faults = None, [Fault(_SLUG_FIELDS[source.kind], reason)]
            for warning in warnings if row is not None else ():
                self.summary.warnings += 1
                self.warn(Bad(source.path.name, line.number, *warning))
            if row is None:
                self.summary.bad += 1
                for fault in faults:
                    self.tell(Bad(source.path.name, line.number, *fault))
                self.progress(source.path, line.read)
            else:
                seen[row.slug] = line.number
                yield line, row

    def _read(
        self, kind: str, line: ImportLine
    ) -> tuple[CompanyRow | PersonRow | FrameworkRow | None, list[Fault], list[Fault]]:
        if line.value is None:
            return None, [line.fault] if line.fault else [], []
        row, validation = _READ[kind](line.value, self.state.schema)
        return row, validation.faults, validation.warnings

    def _write(self, source: Source, batch: list[tuple[ImportLine, Any]]) -> None:
        write: Any = {"people": import_people, "companies": import_companies, "frameworks": import_frameworks}
        rows = [(line.number, row) for line, row in batch]
        for attempt in range(ATTEMPTS):
            told: list[Bad] = []
            warned: list[Bad] = []
            self.state.tell = lambda line, fault: told.append(Bad(source.path.name, line, *fault))  # noqa: B023 - used within this turn
            self.state.warn = lambda line, fault: warned.append(Bad(source.path.name, line, *fault))  # noqa: B023 - used within this turn
            try:
                with nullcontext() if self.state.dry else transaction.atomic():
                    counts: BatchCounts = write[source.kind](self.state, rows)
                break
            except DatabaseError as error:
                if attempt == ATTEMPTS - 1 or not _was_second(error):
                    raise
        total = self.summary.counts[source.kind]
        total.new += counts.new
        total.changed += counts.changed
        total.unchanged += counts.unchanged
        self.summary.bad += len({bad.line for bad in told})
        self.summary.warnings += len(warned)
        for bad in told:
            self.tell(bad)
        for bad in warned:
            self.warn(bad)
        self.progress(source.path, batch[-1][0].read)


def _was_second(error: DatabaseError) -> bool:
    """Tell whether another writer was first (unique, deadlock, serialisation), so that a second look helps."""
    if connection.vendor == "sqlite":
        return False  # its writers stand in one queue
    return isinstance(error, IntegrityError) or getattr(error.__cause__, "sqlstate", "") in {"40P01", "40001"}


def _batches(rows: Iterator[tuple[ImportLine, Any]]) -> Iterator[list[tuple[ImportLine, Any]]]:
    batch: list[tuple[ImportLine, Any]] = []
    size = 0
    for line, row in rows:
        batch.append((line, row))
        size += line.size
        if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
