"""
Import JSON Lines files in batches.

A batch is one transaction, so an interrupted import can be repeated: rows that are already stored are compared and
skipped. Invalid rows never block valid ones.

Source: decisions, section 6.
"""

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction

from muniment import config
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import COMMAND, Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Joined, Phrase, marked
from muniment.kernel.phrases.storing import packed
from muniment.registry.declared.current import refresh
from muniment.registry.exchange.batch import BatchCounts, BatchRun
from muniment.registry.exchange.companies import import_companies
from muniment.registry.exchange.frameworks import import_frameworks
from muniment.registry.exchange.json_lines import ImportLine, read_lines
from muniment.registry.exchange.list_files import LISTS, companies_of, place_of
from muniment.registry.exchange.people import import_people
from muniment.registry.exchange.reading import (
    BATCH_LINES,
    KINDS,
    Batch,
    BatchReader,
    RowFault,
    RowFinding,
    Source,
    sources_of,
)
from muniment.registry.exchange.results import IMPORTED, NOTHING_INVALID
from muniment.registry.models import HistoryEntry, ImportRun, WaitingPerson
from muniment.registry.people import suppression
from muniment.registry.publishing.later import publish_waiting
from muniment.schema.validation import Fault
from muniment.store import published
from muniment.store.sqlite.base import write_lock_of
from muniment.store.sqlite.bulk_writes import bulk_write_settings

ROWS_BESIDE_OTHERS: Final = 100
"""
Rows of the first transaction, and of each after one for whose end others had to wait.

Without others, each has twice as many as the one before, up to a batch.
"""
GC_THRESHOLD: Final = 50_000
ATTEMPTS: Final = 5
"""Attempts per batch on PostgreSQL, where a concurrent writer can win."""
Tell = Callable[[RowFault], object]


class RowResult(NamedTuple):
    """What became of a valid row: new, changed or unchanged, with the entry of a changed one."""

    file: str
    line: int
    result: str
    entry: HistoryEntry | None


def _silent(_row: RowFault | RowResult) -> None:
    pass


@dataclass(slots=True)
class Summary:
    """The result of an import."""

    counts: dict[str, BatchCounts] = field(default_factory=lambda: {kind: BatchCounts() for kind in KINDS})
    bad: int = 0
    dropped: int = 0
    warnings: int = 0
    unlisted: int = 0
    """Rows that the files no longer hold."""
    import_run: int | None = None
    """The key of its record; None if nothing was written."""

    @property
    def is_empty(self) -> bool:
        """Return whether the files had no row at all."""
        return not self.bad and all(counts == BatchCounts() for counts in self.counts.values())

    @property
    def words(self) -> str:
        """Return a summary of the import; the numbers of each kind are values of a phrase made of :data:`IMPORTED`."""
        if self.is_empty:
            return marked("no rows found")
        words: list[str] = []
        kept = 0
        for kind, counts in self.counts.items():
            kept += counts.kept
            if counts != BatchCounts():
                words.append(
                    Phrase(IMPORTED, kind=kind, new=counts.new, changed=counts.changed, unchanged=counts.unchanged)
                )
        if kept:
            words.append(Phrase("{kept:,} edited fields kept", kept=kept))
        if self.bad:
            words.append(Phrase("{bad:,} invalid rows", bad=self.bad))
        else:
            words.append(NOTHING_INVALID)
        if self.dropped:
            words.append(Phrase("{dropped:,} invalid values left out", dropped=self.dropped))
        if self.unlisted:
            words.append(Phrase("{unlisted:,} unlisted", unlisted=self.unlisted))
        return Joined("; ", words)

    def __str__(self) -> str:
        return str(self.words)

    def __add__(self, other: "Summary") -> "Summary":
        """Return the result of this part of an import and of *other*, the next part."""
        return Summary(
            {kind: self.counts[kind] + other.counts[kind] for kind in KINDS},
            self.bad + other.bad,
            self.dropped + other.dropped,
            self.warnings + other.warnings,
            self.unlisted + other.unlisted,
            self.import_run,
        )


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """
    The options of an import.

    Args:
        draft: leave new rows unpublished, and published ones unchanged.
        dry_run: read and compare everything, write nothing.
        strict: import nothing if any row is invalid, or a value would be left out.
        overwrite: replace fields that people changed since the last import; otherwise they are kept.
        relist: publish listings, people and frameworks that were unlisted; otherwise they stay so.
        partial: keep the stored values of members that rows lack; otherwise they are cleared.
        origin: the name of the file that people know, where the imported ones were made of it.
        restores: the key of an undo, whose former values the files have; it has a record of its own.
        resumes: the key of the record of this import, if it has one.
        follows: the result of the parts of this import before this one, which are one record and one audit entry.
    """

    draft: bool = False
    dry_run: bool = False
    strict: bool = False
    overwrite: bool = False
    relist: bool = False
    partial: bool = False
    origin: str = ""
    restores: int | None = None
    resumes: int | None = None
    follows: Summary | None = None

    def chosen(self) -> list[str]:
        """Return the names of the options that a person has chosen, as the record of the import has them."""
        return [name for name in ("draft", "strict", "overwrite", "relist") if getattr(self, name)]


_AS_USUAL: Final = ImportOptions()


def import_registry(
    path: Path,
    options: ImportOptions = _AS_USUAL,
    *,
    actor: Actor = COMMAND,
    tell: Tell = _silent,
    warn: Tell = _silent,
    result: Callable[[RowResult], object] = _silent,
    progress: Callable[[Path, int], object] = lambda _path, _read: None,
    publishing: Callable[[int, int], object] = lambda _done, _total: None,
) -> Summary:
    """
    Import a folder or a file.

    Args:
        path: a folder with any of the files, or one of them; gzip by extension. Pictures are beside them, in the
            folder ``pictures``.
        tell: called with each fault of an invalid row, and each invalid value that is left out.
        warn: called with each row or field that is kept, ignored or doubtful.
        result: called with what became of each valid row.
        progress: called with the file and the bytes read so far.
        publishing: called with how many of the people who wait for the last row are published, and how many they are.

    Raises:
        BadRequest: there is nothing to import at *path*.
        OSError: a file cannot be read.
    """
    sources = sources_of(path)
    folder = path if path.is_dir() else path.parent
    if not options.dry_run:
        suppression.add_from(config.current().data, folder)
    for message in suppression.warnings():
        warn(RowFault(suppression.FILE_NAME, 0, "", message))

    def new_pass(warn: Tell, *, dry: bool) -> "_Pass":
        return _Pass(_batch_run(options, actor, folder, dry=dry), tell, warn, result, progress)

    with _rare_garbage_collections(), bulk_write_settings(connection):
        if not options.dry_run and not options.strict:
            return _recorded(new_pass(warn, dry=False), sources, options, publishing)
        rehearsal = new_pass(warn, dry=True).run(sources)
        if options.dry_run or rehearsal.bad or rehearsal.dropped:
            return rehearsal
        # The rehearsal reported the warnings.
        return _recorded(new_pass(_silent, dry=False), sources, options, publishing)


def _batch_run(options: ImportOptions, actor: Actor, folder: Path, *, dry: bool) -> BatchRun:
    return BatchRun(
        actor,
        settings.SCHEMA,
        draft=options.draft,
        dry=dry,
        overwrite=options.overwrite,
        relist=options.relist,
        partial=options.partial or options.restores is not None,
        restores=options.restores is not None,
        pictures=folder / "pictures",
    )


def _recorded(
    import_pass: "_Pass", sources: list[Source], options: ImportOptions, publishing: Callable[[int, int], object]
) -> Summary:
    """Write the rows of *sources*, with a record of the import that an undo finds them by."""
    actor, summary = import_pass.state.actor, import_pass.summary
    files = [source.path.name for source in sources]
    if options.origin:
        files = [options.origin]
    former = options.follows
    key = options.restores or options.resumes or (former and former.import_run)
    if not key:
        key = ImportRun.objects.create(
            account_id=actor.account_id, via=actor.via, files=files, options=options.chosen()
        ).pk
    import_pass.state.import_run = summary.import_run = key
    try:
        import_pass.run(sources)
        _publish_waiting(publishing)
        _merge_index()
        return summary
    finally:  # also of an interrupted import, whose rows are complete
        total = summary if former is None else former + summary
        ImportRun.objects.filter(pk=key).update(ended_at=now(), result=total.words)
        # An undo is recorded as one; and a registry that is followed for a year is one import.
        if options.restores is None and former is None:
            detail = {"import": key, "files": files, "options": options.chosen(), "result": packed(summary.words)}
            record(Event.RECORDS_IMPORTED, actor=actor, detail=detail)


@contextmanager
def _rare_garbage_collections() -> Iterator[None]:
    """Collect garbage rarely: a batch has some hundred thousand objects without cycles."""
    thresholds = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _publish_waiting(told: Callable[[int, int], object]) -> None:
    """Publish the people who wait for the end of a long import; *told* gets how many are done, and of how many."""
    done, total = 0, WaitingPerson.objects.count()
    for count in publish_waiting():
        done += count
        told(done, max(done, total))  # another import may add some
        _give_way()


_MERGED: Final = object()


def _merge_index() -> None:
    """Merge the search index, each step in a transaction of its own; on PostgreSQL, each node has an index."""
    if connection.vendor != "sqlite":
        return
    steps = published.merged(connection.connection)
    is_merged = False
    while not is_merged:
        with transaction.atomic(), connection.wrap_database_errors:
            is_merged = next(steps, _MERGED) is _MERGED
        _give_way()


def _give_way() -> bool:
    """Let those write first who wait, and return whether there were any; PostgreSQL has many writers at once."""
    return connection.vendor == "sqlite" and write_lock_of(str(connection.settings_dict["NAME"])).give_way()


@dataclass(slots=True)
class _Attempt:
    """What one attempt to write some rows of a file reports; it is told only after its commit."""

    source: Source
    lines: dict[int, ImportLine]
    """The lines, by their numbers."""
    rejected: list[RowFault] = field(default_factory=list)
    dropped: list[RowFault] = field(default_factory=list)
    warned: list[RowFault] = field(default_factory=list)
    results: list[RowResult] = field(default_factory=list)

    def listen(self, state: BatchRun) -> None:
        """Collect what the operations of *state* report from now on."""
        state.tell = partial(self._add_fault, self.rejected)
        state.drop = partial(self._add_fault, self.dropped)
        state.warn = partial(self._add_fault, self.warned)
        state.result = self._add_result

    def _add_fault(self, faults: list[RowFault], number: int, fault: Fault) -> None:
        line, path = place_of(self.source.kind, self.lines[number], fault.field)
        faults.append(RowFault(self.source.path.name, line, path, fault.reason))

    def _add_result(self, line: int, result: str, entry: HistoryEntry | None) -> None:
        self.results.append(RowResult(self.source.path.name, line, result, entry))


@dataclass(slots=True)
class _Pass:
    """One pass over the files."""

    state: BatchRun
    tell: Tell
    warn: Tell
    result: Callable[[RowResult], object]
    progress: Callable[[Path, int], object]
    summary: Summary = field(default_factory=Summary)
    together: int = ROWS_BESIDE_OTHERS
    """Rows of the next transaction."""

    def run(self, sources: list[Source]) -> Summary:
        for kind, path in sources:
            if kind in LISTS:
                of_file = companies_of(kind, read_lines(path))
                self.state.lists_in_files.setdefault(LISTS[kind].member, set()).update(of_file)
        for source in sources:
            with BatchReader(source) as batches:
                for read in batches:
                    batch = self._as_declared(read)
                    self._tell(batch.findings)
                    self._write_all(batch, batches.read_ahead)
        return self.summary

    def _as_declared(self, batch: Batch) -> Batch:
        """Return a batch, read again if an operator has declared other fields since."""
        refresh()
        self.state.schema = settings.SCHEMA
        return batch if batch.schema is settings.SCHEMA else batch.read_again(settings.SCHEMA)

    def _tell(self, findings: Iterable[RowFinding]) -> None:
        bad_lines = set()  # a line can have several faults
        for finding in findings:
            if finding.warns:
                self.summary.warnings += 1
                self.warn(finding.fault)
            else:
                bad_lines.add(finding.fault.line)
                self.tell(finding.fault)
        self.summary.bad += len(bad_lines)

    def _write_all(self, batch: Batch, read_ahead: Callable[[], object]) -> None:
        """Write the rows of a batch, in one transaction or, beside others, in several."""
        path, rows = batch.source.path, batch.rows
        while rows:
            next_rows, rows = rows[: self.together], rows[self.together :]
            self._write(batch.source, next_rows, read_ahead)
            self.progress(path, next_rows[-1][0].read)
            others_waited = not self.state.dry and _give_way()
            self.together = ROWS_BESIDE_OTHERS if others_waited else min(2 * self.together, BATCH_LINES)
            if self.together == BATCH_LINES:
                self.state.is_long = True
        # Invalid lines at the end have no rows, but are read as well.
        if not batch.rows or batch.rows[-1][0] is not batch.lines[-1]:
            self.progress(path, batch.lines[-1].read)

    def _write(self, source: Source, rows: list[tuple[ImportLine, Any]], read_ahead: Callable[[], object]) -> None:
        """Write rows in one transaction; *read_ahead* is called before its commit."""
        write = _WRITERS[source.kind]
        numbered = [(line.number, row) for line, row in rows]
        lines = {line.number: line for line, _ in rows}
        for number in range(1, ATTEMPTS + 1):
            attempt = _Attempt(source, lines)
            attempt.listen(self.state)
            try:
                with nullcontext() if self.state.dry else transaction.atomic():
                    counts = write(self.state, numbered)
                    read_ahead()
                break
            except DatabaseError as error:
                if number == ATTEMPTS or not _lost_race(error):
                    raise
        self._report(attempt, counts)

    def _report(self, attempt: _Attempt, counts: BatchCounts) -> None:
        """Report what an attempt collected, now that its rows are written, and count it."""
        kind, summary = attempt.source.kind, self.summary
        summary.counts[kind] = summary.counts.get(kind, BatchCounts()) + counts
        summary.bad += len({fault.line for fault in attempt.rejected})  # a line can have several faults
        summary.dropped += len(attempt.dropped)
        summary.warnings += len(attempt.warned)
        for fault in (*attempt.rejected, *attempt.dropped):
            self.tell(fault)
        for fault in attempt.warned:
            self.warn(fault)
        for row in attempt.results:
            self.result(row)


_WRITERS: Final[dict[str, Callable[[BatchRun, list[Any]], BatchCounts]]] = {
    "people": import_people,
    "companies": import_companies,
    "frameworks": import_frameworks,
    **dict.fromkeys(LISTS, import_companies),
}


def _lost_race(error: DatabaseError) -> bool:
    """Return whether a concurrent writer won (unique, deadlock, serialization), so that a retry helps."""
    if connection.vendor == "sqlite":
        return False  # SQLite has one writer at a time
    return isinstance(error, IntegrityError) or getattr(error.__cause__, "sqlstate", "") in {"40P01", "40001"}
