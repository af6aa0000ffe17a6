"""
What imports remember of a table: which rows of which source are which listings and people.

The next import of the same source recognizes its rows by this memory, even if a name was changed here since, and says
which of them are gone. The memory belongs to the record of an import, so an undo brings back the memory of the import
before. It names rows by digests of their keys and by the keys of the database, and so holds no text of anybody.
"""

import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec
from django.db.models import Max

from muniment.kernel.actor import COMMAND, Actor
from muniment.kernel.problems import BadRequest
from muniment.registry.exchange.edits import IMPORTED
from muniment.registry.exchange.importer import Summary
from muniment.registry.imports.undoing import undone_imports
from muniment.registry.models import Company, HistoryEntry, ImportedRows, ImportRun, Person, State
from muniment.registry.review.pruning import Pruning, plan_pruning_of
from muniment.registry.tables.records import Records

KEPT_IMPORTS: Final = 3
"""Imports of one source that keep their memory: an undo of the last two finds the one before."""
KEPT_SOURCES: Final = 200
KEPT_ROWS: Final = 300_000
"""Rows of a source, as many as a table can have."""
_CHUNK: Final = 5_000
_MODELS: Final[dict[str, type[Company] | type[Person]]] = {"company": Company, "person": Person}
_OF_ONE_DOWNLOAD: Final = re.compile(
    r"""
      \(\d{1,3}\)                                       # "members (2)", as browsers name a second download
    | (?<!\d) (?:19|20)\d{2} [\s_.-]? [01]\d (?: [\s_.-]? [0-3]\d )? (?!\d)     # 2026-11-28, 202611
    | (?<!\d) [0-3]?\d [_.-] [01]?\d [_.-] (?:19|20)\d{2} (?!\d)                # 28.11.2026
    | [\s_.-] (?: v | version | rev ) [\s_.-]? \d{1,3} $
    | [\s_.-] (?: copy | kopie | final | new | neu ) $
    """,
    re.VERBOSE,
)
_EDGES: Final = " _.-"


def source_named(name: str) -> str:
    """Return the source of a file or address: its name without its type, and without what tells downloads apart."""
    address, _, path = name.strip().casefold().partition("?")[0].rpartition("/")
    stem = PurePosixPath(path).stem
    shortest = ""
    shorter = _OF_ONE_DOWNLOAD.sub("", stem)
    # One addition can hide another: "members 2026-11 (2)".
    while shorter != shortest:
        shortest = shorter
        shorter = _OF_ONE_DOWNLOAD.sub("", shortest).strip(_EDGES)
    return f"{address}/{shortest or stem}".lstrip("/")[:200]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """
    How an import of a table treats its source.

    Args:
        source: the name by which the next import of the same source finds this one; empty: nothing is remembered.
        is_complete: the table is the full list: what it lacks is gone, whichever source brought it.
        unlists: unlist what is gone.
        limit: the greatest number of rows to unlist; None: a tenth of each kind.
    """

    source: str = ""
    is_complete: bool = False
    unlists: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """
    What the last import of a source knows.

    Args:
        run: the key of its record; None if there was none.
        rows: the primary keys of companies and people, by kind and the digest of the row's key.
    """

    run: int | None = None
    rows: dict[str, dict[str, int]] = field(default_factory=dict)

    def slugs(self) -> dict[str, dict[str, str]]:
        """Return the present slugs of the rows, by kind and digest."""
        slugs: dict[str, dict[str, str]] = {}
        for kind, rows in self.rows.items():
            slugs_of_rows = dict(_columns(kind, rows.values(), "pk", "slug"))
            slugs[kind] = {key: slugs_of_rows[row] for key, row in rows.items() if row in slugs_of_rows}
        return slugs


def memory_of(source: str, *, besides: int | None = None) -> Memory:
    """
    Return what the last import of *source* that is not undone remembers.

    Args:
        besides: the key of an import that does not count, because it is the one that is being made.
    """
    kept = ImportedRows.objects.filter(source=source).exclude(run_id__in=[*undone_imports()])
    last = kept.exclude(run_id=besides or 0).order_by("-run_id").first() if source else None
    if last is None:
        return Memory()
    return Memory(last.run_id, msgspec.json.decode(zlib.decompress(bytes(last.rows))))


def list_sources() -> list[tuple[str, ImportRun]]:
    """Return the sources that are remembered, each with its last import, the latest first."""
    remembered = ImportedRows.objects.exclude(source="").exclude(run_id__in=[*undone_imports()])
    last_runs = remembered.values("source").annotate(run=Max("run_id"))
    sources = {last["run"]: last["source"] for last in last_runs}
    runs = ImportRun.objects.filter(pk__in=sources).order_by("-pk")
    return [(sources[run.pk], run) for run in runs]


def plan_gone(records: Records, options: SourceOptions, *, besides: int | None = None) -> Pruning:
    """
    Return the public rows that earlier imports brought and that a table no longer has.

    A kind of which the table has no row is not compared: a table of people says nothing about companies.
    """
    present = {kind: set(slugs.values()) for kind, slugs in records.keys.items() if slugs}
    if options.is_complete:
        return plan_pruning_of(present, limit=options.limit)
    memory = memory_of(options.source, besides=besides)
    remembered = {kind: set(memory.rows.get(kind, {}).values()) for kind in present}
    return plan_pruning_of(present, among=remembered, limit=options.limit)


def refuse_drafts(*, is_draft: bool) -> None:
    """Refuse to unlist rows by an import of drafts."""
    if is_draft:
        raise BadRequest(
            "An import of drafts leaves published rows unchanged, so it can't unlist any.",
            "Choose one of the two. Nothing was imported.",
        )


def unlist_gone(
    gone: Pruning, summary: Summary, actor: Actor = COMMAND, between: Callable[[], object] = lambda: None
) -> None:
    """Unlist what an import no longer holds, as a part of it, so that its undo restores it."""
    run = summary.import_run
    if run is None:
        return  # nothing was imported
    gone.unlist(actor, run, between)
    summary.unlisted = count_unlisted(run)  # also in an earlier attempt
    ImportRun.objects.filter(pk=run).update(result=summary.words)


def count_unlisted(run: int) -> int:
    """Return how many rows an import has unlisted."""
    return HistoryEntry.objects.filter(import_run=run).exclude(action=IMPORTED).count()


def remember(run: int, source: str, records: Records) -> None:
    """
    Let the import *run* remember the rows of its source.

    Rows that earlier imports of the source brought and that are public still stay in the memory, so that the next
    import names them again.
    """
    if not source:
        return
    former = memory_of(source, besides=run).rows
    rows: dict[str, dict[str, int]] = {}
    for kind, slugs_by_key in records.keys.items():
        rows_by_slug = dict(_columns(kind, slugs_by_key.values(), "slug", "pk"))
        rows[kind] = {key: rows_by_slug[slug] for key, slug in slugs_by_key.items() if slug in rows_by_slug}
        _keep_gone(rows[kind], kind, former.get(kind, {}))
    content = zlib.compress(msgspec.json.encode(rows), 6)
    ImportedRows.objects.update_or_create(run_id=run, defaults={"source": source, "rows": content})
    _forget_old(source)


def _keep_gone(rows: dict[str, int], kind: str, former: dict[str, int]) -> None:
    """Add the *former* rows of a kind that are public still, and that the source no longer has."""
    present = set(rows.values())
    public = {row for (row,) in _columns(kind, former.values(), "pk", is_public=True)}
    for key, row in former.items():
        if row in public and row not in present and len(rows) < KEPT_ROWS:
            rows.setdefault(key, row)


def _forget_old(source: str) -> None:
    """Forget all but the last imports of *source*, and the sources that were not imported for longest."""
    of_source = ImportedRows.objects.filter(source=source)
    in_effect = of_source.exclude(run_id__in=[*undone_imports()]).order_by("-run_id")
    oldest = list(in_effect.values_list("run_id", flat=True)[:KEPT_IMPORTS])[-1]
    of_source.filter(run_id__lt=oldest).delete()
    sources = ImportedRows.objects.exclude(source="").values("source").annotate(run=Max("run_id")).order_by("-run")
    ImportedRows.objects.filter(source__in=[old["source"] for old in sources[KEPT_SOURCES:]]).delete()


def _columns(
    kind: str, wanted: Iterable[int | str], column: str, *more: str, is_public: bool = False
) -> list[tuple[Any, ...]]:
    """Return *column* and *more* of the rows whose *column* is wanted, read in parts that a statement can hold."""
    rows: Any = _MODELS[kind]._default_manager.all()  # noqa: SLF001 - Django's public name
    if is_public:
        rows = rows.filter(state=State.PUBLISHED) if kind == "company" else rows.filter(published=True)
    wanted_values = list(wanted)
    columns: list[tuple[Any, ...]] = []
    for start in range(0, len(wanted_values), _CHUNK):
        chunk = wanted_values[start : start + _CHUNK]
        columns += rows.filter(**{f"{column}__in": chunk}).values_list(column, *more)
    return columns
