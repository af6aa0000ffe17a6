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
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction

from muniment import config
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import COMMAND, Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.registry.declared.current import refresh
from muniment.registry.exchange.batch import BatchCounts, BatchRun
from muniment.registry.exchange.companies import import_companies
from muniment.registry.exchange.frameworks import import_frameworks
from muniment.registry.exchange.people import import_people
from muniment.registry.exchange.reading.batches import BATCH_LINES, Batch, BatchReader, RowFault, RowFinding
from muniment.registry.exchange.reading.jsonl import ImportLine
from muniment.registry.exchange.reading.sources import KINDS, Source, sources_of
from muniment.registry.models import ImportRun
from muniment.registry.people import suppression
from muniment.store import published
from muniment.store.sqlite.base import write_lock_of

ROWS_BESIDE_OTHERS: Final = 100
"""
Rows of the first transaction, and of each after one for whose end others had to wait.

Without others, each has twice as many as the one before, up to a batch.
"""
PAGE_CACHE_KIB: Final = 64 * 1024
CHECKPOINT_PAGES: Final = 8_000
"""Pages of 4 KB in the write-ahead log before they are copied into the file: batches write many of them repeatedly."""
_PRAGMAS: Final = {"cache_size": -PAGE_CACHE_KIB, "wal_autocheckpoint": CHECKPOINT_PAGES}
GC_THRESHOLD: Final = 50_000
ATTEMPTS: Final = 5
"""Attempts per batch on PostgreSQL, where a concurrent writer can win."""
Tell = Callable[[RowFault], object]


def _silent(_bad: RowFault) -> None:
    pass


@dataclass(slots=True)
class Summary:
    """The result of an import."""

    counts: dict[str, BatchCounts] = field(default_factory=lambda: {kind: BatchCounts() for kind in KINDS})
    bad: int = 0
    dropped: int = 0
    warnings: int = 0
    import_run: int | None = None
    """The key of its record; None if nothing was written."""

    @property
    def is_empty(self) -> bool:
        """Return whether the files had no row at all."""
        return not self.bad and all(counts == BatchCounts() for counts in self.counts.values())

    def __str__(self) -> str:
        if self.is_empty:
            return marked("no rows found")
        parts: list[str] = [
            Phrase(
                "{kind}: {new:,} new, {changed:,} changed, {unchanged:,} unchanged",
                kind=kind,
                new=counts.new,
                changed=counts.changed,
                unchanged=counts.unchanged,
            )
            for kind, counts in self.counts.items()
            if counts != BatchCounts()
        ]
        if kept := sum(counts.kept for counts in self.counts.values()):
            parts.append(Phrase("{kept:,} edited fields kept", kept=kept))
        parts.append(Phrase("{bad:,} invalid rows", bad=self.bad) if self.bad else marked("no invalid rows"))
        if self.dropped:
            parts.append(Phrase("{dropped:,} invalid values left out", dropped=self.dropped))
        return "; ".join(parts)


def import_registry(
    path: Path,
    *,
    actor: Actor = COMMAND,
    draft: bool = False,
    dry_run: bool = False,
    strict: bool = False,
    overwrite: bool = False,
    relist: bool = False,
    partial: bool = False,
    origin: str = "",
    restores: int | None = None,
    resumes: int | None = None,
    tell: Tell = _silent,
    warn: Tell = _silent,
    progress: Callable[[Path, int], object] = lambda _path, _read: None,
) -> Summary:
    """
    Import a folder or a file.

    Args:
        path: a folder with any of the three files, or one of them; gzip by extension. Pictures are beside them, in
            the folder ``pictures``.
        draft: leave new rows unpublished, and published ones unchanged.
        dry_run: read and compare everything, write nothing.
        strict: import nothing if any row is invalid, or a value would be left out.
        overwrite: replace fields that people changed since the last import; otherwise they are kept.
        relist: publish listings, people and frameworks that were unlisted; otherwise they stay so.
        partial: keep the stored values of members that rows lack; otherwise they are cleared.
        origin: the name of the file that people know, where those at *path* were made of it.
        restores: the key of an undo, whose former values the files have; it has a record of its own.
        resumes: the key of the record of this import, if it has one.
        tell: called with each fault of an invalid row, and each invalid value that is left out.
        warn: called with each row or field that is kept, ignored or doubtful.
        progress: called with the file and the bytes read so far.

    Raises:
        BadRequest: there is nothing to import at *path*.
        OSError: a file cannot be read.
    """
    sources = sources_of(path)
    if not dry_run:
        suppression.add_from(config.current().data, path if path.is_dir() else path.parent)
    for message in suppression.warnings():
        warn(RowFault(suppression.FILE_NAME, 0, "", message))

    def run(warn: Tell, *, dry: bool) -> Summary:
        chosen = {"draft": draft, "strict": strict, "overwrite": overwrite, "relist": relist}
        state = BatchRun(actor, settings.SCHEMA, draft=draft, dry=dry, overwrite=overwrite, relist=relist)
        state.partial, state.restores = partial or restores is not None, restores is not None
        state.pictures = (path if path.is_dir() else path.parent) / "pictures"
        work = _Import(state, tell, warn, progress)
        if dry:
            return work.run(sources)
        files = [origin] if origin else [each.path.name for each in sources]
        options = [name for name, is_chosen in chosen.items() if is_chosen]
        if (key := restores or resumes or 0) == 0:
            made = ImportRun.objects.create(account_id=actor.account_id, via=actor.via, files=files, options=options)
            key = made.pk
        state.import_run = work.summary.import_run = key
        try:
            work.run(sources)
            _merge_index()
            return work.summary
        finally:  # also of an interrupted import, whose rows are complete
            ended = {"ended_at": now(), "result": str(work.summary)}
            ImportRun.objects.filter(pk=key).update(**ended)
            if restores is None:  # an undo is recorded as one
                detail = {"import": key, "files": files, "options": options, "result": str(work.summary)}
                record(Event.RECORDS_IMPORTED, actor=actor, detail=detail)

    with _bulk_write_settings():
        if not dry_run and not strict:
            return run(warn, dry=False)
        found = run(warn, dry=True)
        if dry_run or found.bad or found.dropped:
            return found
        return run(_silent, dry=False)  # the first pass told the warnings


@contextmanager
def _bulk_write_settings() -> Iterator[None]:
    """
    Tune the process for bulk writes: a larger page cache, fewer checkpoints and fewer garbage collections.

    A batch has some hundred thousand objects without cycles, and published documents are keyed by digests.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD, *thresholds[1:])
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            former = {name: cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in _PRAGMAS}
            for name, value in _PRAGMAS.items():
                cursor.execute(f"PRAGMA {name} = {value}")
        try:
            yield
        finally:
            gc.set_threshold(*thresholds)
            if connection.vendor == "sqlite":
                for name, value in former.items():
                    cursor.execute(f"PRAGMA {name} = {value}")


def _merge_index() -> None:
    """Merge the search index, each step in a transaction of its own; on PostgreSQL, each node has an index."""
    if connection.vendor != "sqlite":
        return
    steps, over = published.merged(connection.connection), object()
    step = None
    while step is not over:
        with transaction.atomic(), connection.wrap_database_errors:
            step = next(steps, over)
        _give_way()


def _give_way() -> bool:
    """Let those write first who wait, and return whether there were any; PostgreSQL has many writers at once."""
    return connection.vendor == "sqlite" and write_lock_of(str(connection.settings_dict["NAME"])).give_way()


@dataclass(slots=True)
class _Import:
    """One pass over the files."""

    state: BatchRun
    tell: Tell
    warn: Tell
    progress: Callable[[Path, int], object]
    summary: Summary = field(default_factory=Summary)
    together: int = ROWS_BESIDE_OTHERS
    """Rows of the next transaction."""

    def run(self, sources: list[Source]) -> Summary:
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
        self.summary.bad += len({each.fault.line for each in findings if not each.warns})
        self.summary.warnings += sum(each.warns for each in findings)
        for each in findings:
            (self.warn if each.warns else self.tell)(each.fault)

    def _write_all(self, batch: Batch, read_ahead: Callable[[], object]) -> None:
        """Write the rows of a batch, in one transaction or, beside others, in several."""
        path, rows = batch.source.path, batch.rows
        while rows:
            chosen, rows = rows[: self.together], rows[self.together :]
            self._write(batch.source, chosen, read_ahead)
            self.progress(path, chosen[-1][0].read)
            others_waited = not self.state.dry and _give_way()
            self.together = ROWS_BESIDE_OTHERS if others_waited else min(2 * self.together, BATCH_LINES)
        if not batch.rows or batch.rows[-1][0] is not batch.lines[-1]:
            self.progress(path, batch.lines[-1].read)

    def _write(self, source: Source, rows: list[tuple[ImportLine, Any]], read_ahead: Callable[[], object]) -> None:
        """Write rows in one transaction; *read_ahead* is called before its commit."""
        numbered = [(line.number, row) for line, row in rows]
        write: Any = {"people": import_people, "companies": import_companies, "frameworks": import_frameworks}
        for attempt in range(ATTEMPTS):
            rejected: list[RowFault] = []
            warned: list[RowFault] = []
            dropped: list[RowFault] = []
            self.state.tell = lambda line, fault: rejected.append(RowFault(source.path.name, line, *fault))  # noqa: B023 - used within this iteration
            self.state.warn = lambda line, fault: warned.append(RowFault(source.path.name, line, *fault))  # noqa: B023 - used within this iteration
            self.state.drop = lambda line, fault: dropped.append(RowFault(source.path.name, line, *fault))  # noqa: B023 - used within this iteration
            try:
                with nullcontext() if self.state.dry else transaction.atomic():
                    counts: BatchCounts = write[source.kind](self.state, numbered)
                    read_ahead()
                break
            except DatabaseError as error:
                if attempt == ATTEMPTS - 1 or not _lost_race(error):
                    raise
        self.summary.counts[source.kind] += counts
        self.summary.bad += len({bad.line for bad in rejected})
        self.summary.dropped += len(dropped)
        self.summary.warnings += len(warned)
        for bad in (*rejected, *dropped):
            self.tell(bad)
        for bad in warned:
            self.warn(bad)


def _lost_race(error: DatabaseError) -> bool:
    """Return whether a concurrent writer won (unique, deadlock, serialization), so that a retry helps."""
    if connection.vendor == "sqlite":
        return False  # SQLite has one writer at a time
    return isinstance(error, IntegrityError) or getattr(error.__cause__, "sqlstate", "") in {"40P01", "40001"}
