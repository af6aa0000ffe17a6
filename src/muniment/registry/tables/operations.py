"""Import a table: read it, propose a mapping, convert its rows, and give them to the importer of registry files."""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec

from muniment import config
from muniment.kernel.actor import COMMAND, Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.exchange.importer import ImportOptions, RowResult, Summary, import_registry
from muniment.registry.exchange.json_lines import read_lines
from muniment.registry.exchange.list_files import LISTS, list_kind_of
from muniment.registry.exchange.reading import KINDS, RowFault
from muniment.registry.imports.reports import keep_report
from muniment.registry.imports.sources import (
    SourceOptions,
    memory_of,
    plan_gone,
    refuse_drafts,
    remember,
    source_named,
    unlist_gone,
)
from muniment.registry.models import HistoryEntry
from muniment.registry.review.pruning import Pruning
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.mapping import FileMapping, read_mapping, write_mapping
from muniment.registry.tables.proposing import propose
from muniment.registry.tables.reading import TableFile, open_file, read_file
from muniment.registry.tables.records import KnownRows, Loss, Records, records_of

_encode = msgspec.json.Encoder().encode
_TABLES: Final = frozenset({".csv", ".tsv", ".txt", ".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".zip"})
_AS_USUAL: Final = ImportOptions()
_NO_SOURCE: Final = SourceOptions()
_MEMBERS: Final = ("company", "framework")


@dataclass(slots=True)
class Prepared:
    """
    A file that was read, with its mapping.

    Args:
        is_proposed: no person gave the mapping.
    """

    file: TableFile
    sheets: list[Sheet]
    mapping: FileMapping
    is_proposed: bool

    def mapping_text(self) -> str:
        return write_mapping(self.mapping, self.sheets)


class TableResult(NamedTuple):
    """
    What became of a row of a table.

    Args:
        row: its number in the file; 0 of rows that the file lacks.
        kind: company or person.
        result: new, changed, unchanged or unlisted.
        entry: of a changed row, its entry in the history, which a dry run has not stored.
    """

    row: int
    kind: str
    slug: str
    name: str
    result: str
    entry: HistoryEntry | None = None


@dataclass(slots=True)
class TableImport:
    """
    The result of an import of a table.

    Args:
        gone: the public rows of earlier imports that the table no longer has.
        results: what became of each row, by the kind of its line.
    """

    summary: Summary
    losses: list[Loss]
    records: Records
    gone: Pruning = field(default_factory=lambda: Pruning([]))
    results: list[TableResult] = field(default_factory=list)


def is_table(path: Path) -> bool:
    """Return whether *path* is a table, and not a file in the form that an export writes."""
    if not path.is_file():
        return False
    if path.suffix.lower() in _TABLES:
        return True
    # An export's own name says it even if the file has no row.
    if path.name.startswith(KINDS) and path.suffix in {".jsonl", ".gz"}:
        return False
    return not _has_registry_row(path)


def _has_registry_row(path: Path) -> bool:
    """Return whether the first object of a file of JSON lines is a row of a registry."""
    first: JSONObject = next((line.value for line in read_lines(path) if line.value is not None), {})
    if list_kind_of(first, path.name):
        return True
    return any(isinstance(first.get(member), dict) for member in _MEMBERS) or {"slug", "name"} <= first.keys()


def prepare(source: Path | str, mapping: str = "") -> Prepared:
    """
    Read a file or an address, and propose a mapping if none is given.

    Args:
        mapping: the TOML text of a mapping.

    Raises:
        BadRequest: the file holds no table, or the mapping is invalid.
        OSError: the file cannot be read.
    """
    return prepare_file(open_file(source), mapping)


def prepare_file(file: TableFile, mapping: str = "") -> Prepared:
    """
    Read the content of a file, and propose a mapping if none is given.

    Raises:
        BadRequest: the file holds no table, or the mapping is invalid.
    """
    if mapping:
        file_mapping = read_mapping(mapping)
        sheets = read_file(file, encoding=file_mapping.encoding, delimiter=file_mapping.delimiter)
        return Prepared(file, sheets, file_mapping, is_proposed=False)
    sheets = read_file(file)
    _refuse_lists(sheets)
    return Prepared(file, sheets, propose(sheets, file.name), is_proposed=True)


def _refuse_lists(sheets: Iterable[Sheet]) -> None:
    """Refuse files of companies' lists: as a table, each of their rows would be a company with an id for its name."""
    for sheet in sheets:
        if _has_lists(sheet):
            raise BadRequest(
                Phrase(
                    "{name} is not a table: it has the rows of companies' lists, as an export has.", name=sheet.name
                ),
                "Import the unpacked file, or its folder, on the command line: muniment import FOLDER.",
            )


def _has_lists(sheet: Sheet) -> bool:
    """Return whether a sheet was made of a file of companies' lists: a company and one row are all that a line has."""
    is_json = bool(sheet.encoding) and not sheet.delimiter
    # The headings of an object's members begin with its name and a dot.
    members = {"".join(heading.partition(".")[:2]) for heading in sheet.rows[0]}
    return is_json and members in [{"company", f"{row}."} for _, row in LISTS.values()]


def import_table(
    prepared: Prepared, options: ImportOptions = _AS_USUAL, again: SourceOptions | None = None, **reports: Any
) -> TableImport:
    """
    Import the rows of a table; stored values that it has no column for stay.

    Args:
        again: how its source is treated; by default it is named after the file.
        reports: the actor and the progress of :func:`import_records`.

    Raises:
        BadRequest: the mapping asks for choices, or the table has no row to import.
    """
    again = again or SourceOptions(source_named(prepared.file.name))
    return import_records(convert(prepared, again.source), prepared.file.name, options, again=again, **reports)


def convert(prepared: Prepared, source: str = "", *, besides: int | None = None) -> Records:
    """
    Return the rows of a table as lines of an import.

    Args:
        source: whose rows of the last import are found again.
        besides: the key of the import that is being made.

    Raises:
        BadRequest: the mapping asks for choices.
    """
    prepared.mapping.refuse_questions()
    known = KnownRows.read(memory_of(source, besides=besides).slugs())
    return records_of(prepared.sheets, prepared.mapping, known, config.current().currency)


def import_records(
    records: Records,
    name: str,
    options: ImportOptions = _AS_USUAL,
    *,
    again: SourceOptions = _NO_SOURCE,
    actor: Actor = COMMAND,
    progress: Callable[[Path, int], object] = lambda _path, _read: None,
    between: Callable[[], object] = lambda: None,
) -> TableImport:
    """
    Import lines that were made of a table, and unlist what it no longer has, if that is chosen.

    Args:
        name: the name of the file that people know.
        between: is called after each row that is unlisted, and each chunk of people published at the end.

    Raises:
        BadRequest: more rows are gone than the limit, or an import of drafts should unlist; nothing is imported then.
    """
    table_import = TableImport(Summary(), list(records.losses), records)
    files: dict[str, list[tuple[int, JSONObject]]] = {}
    if records.people:
        files["people.jsonl"] = records.people
    if records.companies:
        files["companies.jsonl"] = records.companies
    if not files:
        return table_import
    table_import.gone = plan_gone(records, again, besides=options.resumes)
    if again.unlists and not options.dry_run:
        refuse_drafts(is_draft=options.draft)
        table_import.gone.check()
    results: dict[tuple[str, int], RowResult] = {}  # of a strict import, those of its second pass

    def report(fault: RowFault) -> None:
        lines = files.get(fault.file, [])
        number = lines[fault.line - 1][0] if 0 < fault.line <= len(lines) else 0
        table_import.losses.append(Loss("", number, fault.field, fault.reason, is_whole=not fault.field))

    def keep_result(row: RowResult) -> None:
        results[row.file, row.line] = row

    with TemporaryDirectory() as place:
        folder = Path(place)
        for file, lines in files.items():
            _write(folder / file, lines)
        options = dataclasses.replace(options, origin=name, partial=True)
        table_import.summary = import_registry(
            folder,
            options,
            actor=actor,
            tell=report,
            warn=report,
            result=keep_result,
            progress=progress,
            publishing=lambda _done, _total: between(),
        )
    table_import.results = [_table_result(files, row) for row in results.values()]
    if table_import.summary.import_run is not None:
        _end_import(table_import, actor, again, between)
    return table_import


def _end_import(table_import: TableImport, actor: Actor, again: SourceOptions, between: Callable[[], object]) -> None:
    """Unlist what is gone, if that is chosen, and remember the rows of the source."""
    if again.unlists:
        unlist_gone(table_import.gone, table_import.summary, actor, between)
    run = table_import.summary.import_run or 0
    remember(run, again.source, table_import.records)
    keep_report(run, table_import, are_unlisted=again.unlists)


def _table_result(files: dict[str, list[tuple[int, JSONObject]]], result: RowResult) -> TableResult:
    row, line = files[result.file][result.line - 1]
    if result.file == "people.jsonl":
        return TableResult(row, "person", line["slug"], line["name"], result.result, result.entry)
    company = line["company"]
    return TableResult(row, "company", company["id"], company.get("name", ""), result.result, result.entry)


def _write(path: Path, lines: Iterable[tuple[int, JSONObject]]) -> None:
    with path.open("wb") as out:
        for _, line in lines:
            out.write(_encode(line) + b"\n")
