"""
What imports remember of a table: which rows of which source are which listings and people.

The next import of the same source finds its rows by this memory, also if a name was changed here since, and says which
of them are gone. The memory belongs to the record of an import, so an undo brings back the memory of the import before.
It names rows by digests of their keys and by the keys of the database, and so holds no text of anybody.
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
    found = _OF_ONE_DOWNLOAD.sub("", stem)
    while found != (shorter := _OF_ONE_DOWNLOAD.sub("", found).strip(_EDGES)):
        found = shorter
    return f"{address}/{found or stem}".lstrip("/")[:200]


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
        found: dict[str, dict[str, str]] = {}
        for kind, rows in self.rows.items():
            slugs = dict(_values(kind, rows.values(), "pk", "slug"))
            found[kind] = {key: slugs[row] for key, row in rows.items() if row in slugs}
        return found


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
    named = ImportedRows.objects.exclude(source="").exclude(run_id__in=[*undone_imports()])
    last = named.values("source").annotate(run=Max("run_id"))
    sources = {each["run"]: each["source"] for each in last}
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
    among = {kind: set(memory.rows.get(kind, {}).values()) for kind in present}
    return plan_pruning_of(present, among=among, limit=options.limit)


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
        keys_of_slugs = dict(_values(kind, slugs_by_key.values(), "slug", "pk"))
        rows[kind] = {key: keys_of_slugs[slug] for key, slug in slugs_by_key.items() if slug in keys_of_slugs}
        named = set(rows[kind].values())
        public = {row for (row,) in _values(kind, former.get(kind, {}).values(), "pk", is_public=True)}
        for key, row in former.get(kind, {}).items():
            if row in public and row not in named and len(rows[kind]) < KEPT_ROWS:
                rows[kind].setdefault(key, row)
    content = zlib.compress(msgspec.json.encode(rows), 6)
    ImportedRows.objects.update_or_create(run_id=run, defaults={"source": source, "rows": content})
    _forget_old(source)


def _forget_old(source: str) -> None:
    of_source = ImportedRows.objects.filter(source=source)
    in_effect = of_source.exclude(run_id__in=[*undone_imports()]).order_by("-run_id")
    oldest = list(in_effect.values_list("run_id", flat=True)[:KEPT_IMPORTS])[-1]
    of_source.filter(run_id__lt=oldest).delete()
    last = ImportedRows.objects.exclude(source="").values("source").annotate(run=Max("run_id")).order_by("-run")
    ImportedRows.objects.filter(source__in=[each["source"] for each in last[KEPT_SOURCES:]]).delete()


def _values(
    kind: str, wanted: Iterable[int | str], column: str, *more: str, is_public: bool = False
) -> list[tuple[Any, ...]]:
    """Return columns of the rows whose *column* is wanted, read in parts that a statement can hold."""
    rows: Any = _MODELS[kind]._default_manager.all()  # noqa: SLF001 - Django's public name
    if is_public:
        rows = rows.filter(state=State.PUBLISHED) if kind == "company" else rows.filter(published=True)
    values = list(wanted)
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(values), _CHUNK):
        some = values[start : start + _CHUNK]
        found += rows.filter(**{f"{column}__in": some}).values_list(column, *more)
    return found
