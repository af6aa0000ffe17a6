"""Import a table: read it, propose a mapping, convert its rows, and give them to the importer of registry files."""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from muniment import config
from muniment.kernel.actor import COMMAND, Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Counted, Joined, Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.exchange.importer import ImportOptions, Summary, import_registry
from muniment.registry.exchange.json_lines import read_lines
from muniment.registry.exchange.list_files import LISTS, list_kind_of
from muniment.registry.exchange.reading import KINDS, RowFault
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.mapping import FileMapping, read_mapping, write_mapping
from muniment.registry.tables.proposing import propose
from muniment.registry.tables.reading import TableFile, open_file, read_file
from muniment.registry.tables.records import KnownRows, Loss, Records, common_reason, records_of

_encode = msgspec.json.Encoder().encode
_TABLES: Final = frozenset({".csv", ".tsv", ".txt", ".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".zip"})
_AS_USUAL: Final = ImportOptions()
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


@dataclass(slots=True)
class TableImport:
    """The result of an import of a table."""

    summary: Summary
    losses: list[Loss]
    records: Records


def is_table(path: Path) -> bool:
    """Return whether *path* is a table, and not a file in the form that an export writes."""
    if not path.is_file():
        return False
    if path.suffix.lower() in _TABLES:
        return True
    if path.name.startswith(KINDS) and (path.suffix in {".jsonl", ".gz"} or _has_registry_row(path)):
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
    given = read_mapping(mapping) if mapping else None
    sheets = read_file(file, encoding=given.encoding if given else "", delimiter=given.delimiter if given else "")
    if given is None:
        _refuse_lists(sheets)
    return Prepared(file, sheets, given or propose(sheets, file.name), is_proposed=given is None)


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


def import_table(prepared: Prepared, options: ImportOptions = _AS_USUAL, **reports: Any) -> TableImport:
    """
    Import the rows of a table; stored values that it has no column for stay.

    Args:
        reports: the actor and the progress of :func:`import_records`.

    Raises:
        BadRequest: the mapping asks for choices, or the table has no row to import.
    """
    return import_records(convert(prepared), prepared.file.name, options, **reports)


def convert(prepared: Prepared) -> Records:
    """
    Return the rows of a table as lines of an import.

    Raises:
        BadRequest: the mapping asks for choices.
    """
    if questions := prepared.mapping.questions():
        raise BadRequest(
            Counted(
                "The mapping needs {count} choice: {questions}.",
                "The mapping needs {count} choices: {questions}.",
                count=len(questions),
                questions=Joined("; ", questions),
            ),
            "Write the mapping with --write-mapping, choose, and give it back with --mapping.",
        )
    return records_of(prepared.sheets, prepared.mapping, KnownRows.read(), config.current().currency)


def import_records(
    records: Records,
    name: str,
    options: ImportOptions = _AS_USUAL,
    *,
    actor: Actor = COMMAND,
    progress: Callable[[Path, int], object] = lambda _path, _read: None,
) -> TableImport:
    """
    Import lines that were made of a table.

    Args:
        name: the name of the file that people know.
    """
    losses = list(records.losses)
    with TemporaryDirectory() as place:
        folder = Path(place)
        rows = {
            f"{kind}.jsonl": _write(folder / f"{kind}.jsonl", lines)
            for kind, lines in (("people", records.people), ("companies", records.companies))
            if lines
        }
        if not rows:
            return TableImport(Summary(), losses, records)

        def told(fault: RowFault) -> None:
            numbers = rows.get(fault.file, [])
            number = numbers[fault.line - 1] if 0 < fault.line <= len(numbers) else 0
            losses.append(Loss("", number, fault.field, common_reason(fault.reason), fault.reason))

        options = dataclasses.replace(options, origin=name, partial=True)
        summary = import_registry(folder, options, actor=actor, tell=told, warn=told, progress=progress)
    return TableImport(summary, losses, records)


def _write(path: Path, lines: Iterable[tuple[int, JSONObject]]) -> list[int]:
    """Write lines, and return the row of each."""
    rows = []
    with path.open("wb") as out:
        for row, line in lines:
            out.write(_encode(line) + b"\n")
            rows.append(row)
    return rows
