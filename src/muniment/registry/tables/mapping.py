"""
The mapping of a file: its tables, and for each column the field that it holds and how its values are written.

A mapping is proposed from the headings and the values, and written as TOML that people edit and give back.
"""

import dataclasses
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from muniment.kernel.phrases.phrase import Joined, Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.tables import columns as decide
from muniment.registry.tables.cells.amounts import currency_in_heading
from muniment.registry.tables.cells.dates import ORDERS, SERIALS
from muniment.registry.tables.cells.profiles import fits, fits_best, looks_like, looks_like_names
from muniment.registry.tables.columns import ASK, Column
from muniment.registry.tables.fields import DECLARED, EXTRA, PEOPLE_FIELD, SKIP, field_named, fields_of
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.headings import header_row, headings_of, kind_of_table, meaning_of
from muniment.registry.tables.values import is_blank
from muniment.registry.tables.words.catalogue import COMPANIES, PEOPLE
from muniment.registry.tables.words.matching import Match
from muniment.registry.tables.words.presets import Preset, preset_of
from muniment.schema.kinds import Integer

_PROFILE_ROWS: Final = 5_000
_NO_HEADERS: Final[Mapping[str, int]] = {}
NAMES: Final = ("name", "name.last")
"""The fields of which one makes a row."""


@dataclass(slots=True)
class TableMapping:
    """
    A table of the file.

    Args:
        kind: companies, people, or skip.
        header: the number of the row with the headings; 0 if there is none.
    """

    name: str
    kind: str
    header: int
    column: list[Column] = dataclasses.field(default_factory=list)


@dataclass(slots=True)
class FileMapping:
    """
    The mapping of a file.

    Args:
        same_name_is_same_person: a name that several rows have means one person.
    """

    table: list[TableMapping] = dataclasses.field(default_factory=list)
    encoding: str = ""
    delimiter: str = ""
    same_name_is_same_person: bool = True

    def questions(self) -> list[str]:
        """Return what a person must choose before an import."""
        found: list[str] = []
        for table in self.table:
            for column in table.column if table.kind != SKIP else ():
                for option, choices in _CHOICES.items():
                    if column.field and getattr(column, option) in {ASK, 0}:
                        found.append(
                            Phrase(
                                "{table}: {column}: choose {option} = {choices}",
                                table=table.name,
                                column=column.heading,
                                option=option,
                                choices=Phrase(choices),
                            )
                        )
        return found

    def guesses(self) -> list[tuple[TableMapping, Column]]:
        """Return the columns whose field is a guess that a person should check."""
        return [(table, each) for table in self.table if table.kind != SKIP for each in table.column if each.check]

    def confirm_guesses(self) -> None:
        for _, column in self.guesses():
            column.check = False

    def leave_guesses_out(self) -> None:
        """
        Leave out what no person has confirmed.

        Raises:
            BadRequest: the name of the rows is a guess.
        """
        for table, column in self.guesses():
            if column.field in NAMES:
                message = f'{table.name}: no heading means the name; it may be the column "{column.heading}".'
                raise BadRequest(message, "Import with --accept-guesses, or write the mapping with --write-mapping.")
            column.field, column.check = "", False

    def settle_questions(self) -> None:
        """Leave options without a choice empty, so that a preview shows their values as lost."""
        for table in self.table:
            for column in table.column:
                for option in _CHOICES:
                    if getattr(column, option) == ASK:
                        setattr(column, option, "")
                column.unit = column.unit or 1


_CHOICES: Final = {
    "order": '"DMY" (day first) or "MDY" (month first); "EXCEL" for days since 1900, "UNIX" for seconds',
    "decimal": '"," or "."',
    "separator": '"," (several people) or "" (one person as "Last, First")',
    "currency": '"EUR", for example',
    "unit": "1, 1000 or 1000000",
}


def propose(sheets: Sequence[Sheet], file_name: str, headers: Mapping[str, int] = _NO_HEADERS) -> FileMapping:
    """
    Return a mapping of *sheets* by their headings and values.

    Args:
        headers: the numbers of rows with headings that a person chose, by the name of the table.
    """
    tables = [
        _propose_table(sheet, file_name, headers.get(sheet.name, 0), is_only=len(sheets) == 1) for sheet in sheets
    ]
    first = sheets[0]
    return FileMapping(tables, first.encoding, first.delimiter)


def _propose_table(sheet: Sheet, file_name: str, header: int, *, is_only: bool) -> TableMapping:
    at = header - 1 if 0 < header <= len(sheet.rows) else header_row(sheet.rows)
    headings = headings_of(sheet.rows, at)
    body = sheet.rows[at + 1 : at + 1 + _PROFILE_ROWS]
    preset = preset_of(headings)
    kind = preset.kind if preset else kind_of_table(headings, f"{sheet.name} {file_name}", is_only=is_only)
    values = [[row[n][: decide.JUDGED] for row in body if not is_blank(row[n])] for n in range(len(headings))]
    found = _preset_columns(headings, values, preset) if preset else _columns(headings, values, kind)
    table = TableMapping(sheet.name, kind, at + 1, found)
    if not any(each.field in NAMES for each in found):
        table.kind = SKIP
    return table


def _preset_columns(headings: Sequence[str], values: Sequence[list[str]], preset: Preset) -> list[Column]:
    """Return the columns of a public format: its fields, unless the values contradict or another column has them."""
    columns: list[Column] = []
    for heading, cells in zip(headings, values, strict=True):
        column = Column(heading, **preset.options_of(heading))
        if column.field.startswith(f"{PEOPLE_FIELD}:"):  # people with the position that the heading says
            column.field, _, title = column.field.partition(":")
            column.title = column.title or title
        is_taken = any(other.field == column.field for other in columns)
        # Several columns can hold people; for any other field, only the first column counts.
        if (is_taken and column.field != PEOPLE_FIELD) or not fits(column.field, cells):
            column.field = ""
        decide_options(column, cells)
        columns.append(column)
    return columns


def _columns(headings: Sequence[str], values: Sequence[list[str]], kind: str) -> list[Column]:
    """Return the columns of a table: what headings mean and values fit, then guesses by values alone."""
    matches = [meaning_of(each, kind) for each in headings]
    found = [Column(each) for each in headings]
    taken: dict[str, int] = {}
    for n in sorted(range(len(found)), key=lambda n: (matches[n].is_guess, _is_general(headings[n]), n)):
        _take(found[n], matches[n], values[n], taken, n)
    if kind == COMPANIES:
        _people_of_two_columns(found, matches, taken)
    for n, column in enumerate(found):
        if not (column.field or matches[n].is_left_out or matches[n].fields or kind != COMPANIES):
            column.field = looks_like(values[n], lambda field: field not in taken)
            column.check = bool(column.field)
            taken.setdefault(column.field, n)
    if not {*NAMES} & taken.keys():
        _guess_name(found, matches, values)
    for column, cells in zip(found, values, strict=True):
        decide_options(column, cells)
    return found


def _is_general(heading: str) -> bool:
    """Return whether a heading gives way to others of its field: "Name" can be that of a person, too."""
    company, person = meaning_of(heading, COMPANIES).fields, meaning_of(heading, PEOPLE).fields
    is_name = bool(company) and company[0] == "name" and bool({*person} & {"name", "name.first", "name.last"})
    return is_name or heading.casefold().strip() in _BETTER_LAST


_BETTER_LAST: Final = ("title", "titel", "titre", "título", "titolo", "label", "bezeichnung", "contact", "kontakt")


def _take(column: Column, found: Match, values: Sequence[str], taken: dict[str, int], n: int) -> None:
    """Let a column hold the first field that it can mean, that is free, and that its values fit."""
    free = [each for each in found.fields if each.startswith(PEOPLE_FIELD + ":") or each not in taken]
    if found.fields and not free and PEOPLE_FIELD in found.fields:
        free = [PEOPLE_FIELD]
    # People with a position, "people:Founder", are tried as people; of several positions, the first counts.
    named: dict[str, str] = {}
    for meaning in reversed(free):
        name = meaning.partition(":")[0] if meaning.startswith("people:") else meaning
        named[name] = meaning
    field = fits_best([*reversed(named)], values)
    if not field or (field in taken and field != PEOPLE_FIELD):
        return
    column.field, column.check = field, found.is_guess
    if field == PEOPLE_FIELD:
        column.title = named.get(field, "").partition(":")[2]
    taken.setdefault(field, n)


def _people_of_two_columns(found: Sequence[Column], matches: Sequence[Match], taken: Mapping[str, int]) -> None:
    """Let a general heading be the other part of a name: "Nom" beside "Prénom" and "Société"."""
    for one, other in (("people.first", "people.last"), ("people.last", "people.first")):
        if one in taken and other not in taken:
            for column, said in zip(found, matches, strict=True):
                parts = {*meaning_of(column.heading, PEOPLE).fields} & {"name", "name.first", "name.last"}
                if not column.field and parts and not said.is_left_out:
                    column.field = other
                    break


def _guess_name(found: Sequence[Column], matches: Sequence[Match], values: Sequence[list[str]]) -> None:
    """Let the first column of mostly different short texts be the name, for a person to check."""
    for column, said, cells in zip(found, matches, values, strict=True):
        if not (column.field or said.is_left_out) and looks_like_names(cells):
            column.field, column.check = "name", True
            return


def decide_options(column: Column, values: Sequence[str]) -> None:
    """Decide how the values of a column are written, for the field that it holds; blank values do not count."""
    values = [each[: decide.JUDGED] for each in values if not is_blank(each)]
    field = field_named(column.field)
    if field is None:
        return
    if column.field == PEOPLE_FIELD:
        column.separator = decide.separator_of_people(values)
    elif "separator" in field.options:
        column.separator = decide.separator_of(values)
    if "order" in field.options:
        column.order = column.order or decide.order_of_dates(values) or "YMD"
    if "decimal" in field.options:
        column.decimal = decide.decimal_sign(values, is_count=isinstance(field.kind, Integer))
    if "currency" in field.options:
        column.currency, column.unit = currency_in_heading(column.heading)
        if not column.currency and any(_names_no_currency(each) for each in values):
            column.currency = ASK


def _names_no_currency(text: str) -> bool:
    return not any(each.isalpha() or each in "€$£¥" for each in text)


def read_mapping(text: str) -> FileMapping:
    """
    Return the mapping in a TOML text.

    Raises:
        BadRequest: it is not one.
    """
    try:
        found = msgspec.convert(tomllib.loads(text), FileMapping)
        faults = list(_faults(found))
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        faults = [str(error)]
    if faults:
        raise BadRequest(
            Phrase("The mapping is invalid: {faults}.", faults=Joined("; ", faults[:5])),
            "Start from a proposed one: --preview.",
        )
    return found


def _faults(mapping: FileMapping) -> Iterator[str]:
    for table in mapping.table:
        if table.kind not in {COMPANIES, PEOPLE, SKIP}:
            yield Phrase(
                "{table}: kind must be companies, people or skip, not {kind!r}", table=table.name, kind=table.kind
            )
            continue
        known = fields_of(table.kind)
        for column in table.column if table.kind != SKIP else ():
            if column.field and column.field not in known and not _is_extra(column.field):
                yield Phrase(
                    "{table}: {column}: there is no field {field!r} of {kind}; "
                    'to keep the column as an additional member, write "extra:NAME"',
                    table=table.name,
                    column=column.heading,
                    field=column.field,
                    kind=table.kind,
                )
            if column.order not in {"", ASK, *ORDERS, *SERIALS}:
                yield Phrase(
                    "{table}: {column}: order must be DMY, MDY, YMD, EXCEL or UNIX",
                    table=table.name,
                    column=column.heading,
                )
            if column.decimal not in {"", ASK, ".", ","}:
                yield Phrase(
                    "{table}: {column}: decimal must be a point or a comma", table=table.name, column=column.heading
                )


def _is_extra(field: str) -> bool:
    """Return whether *field* names an additional member, and not a field of the schema as one."""
    name = field.removeprefix(EXTRA)
    if name == field or not name.isidentifier():
        return False
    of_schema = (each for each in fields_of(COMPANIES).values() if each.group not in {DECLARED, EXTRA})
    return name not in {each.name.partition(".")[0] for each in of_schema}


def write_mapping(mapping: FileMapping, sheets: Sequence[Sheet] = ()) -> str:
    """Return a mapping as TOML; columns that are left out are first, each with an example."""
    lines = ["# A column without a field is left out. Fields of companies:", *_field_lines(COMPANIES)]
    lines += ["# Fields of people:", *_field_lines(PEOPLE)]
    lines += ['# "extra:name" keeps a column as an additional member. "?" asks for a choice.', ""]
    for option in ("encoding", "delimiter"):
        if value := getattr(mapping, option):
            lines.append(f"{option} = {_toml(value)}")
    lines += [f"same_name_is_same_person = {_toml(mapping.same_name_is_same_person)}"]
    by_name = {sheet.name: sheet for sheet in sheets}
    for table in mapping.table:
        lines += ["", "[[table]]", f"name = {_toml(table.name)}", f"kind = {_toml(table.kind)}"]
        lines += [f"header = {table.header}"]
        places = {column.heading: n for n, column in enumerate(table.column)}
        for column in sorted(table.column, key=lambda each: bool(each.field)):
            if not column.heading and not column.field:
                continue
            lines += _column_lines(column, _example(by_name.get(table.name), table, places[column.heading]))
    return "\n".join(lines) + "\n"


def _field_lines(kind: str) -> Iterator[str]:
    """Yield comments with the names of the fields of a kind, eight in a line."""
    names = [name for name in fields_of(kind) if not name.startswith(EXTRA)]
    for start in range(0, len(names), 8):
        yield f"#   {', '.join(names[start : start + 8])}"


def _column_lines(column: Column, example: str) -> Iterator[str]:
    yield ""
    yield "[[table.column]]"
    yield f"heading = {_toml(column.heading)}" + (f"  # {example}" if example else "")
    yield f"field = {_toml(column.field)}"
    for option in ("order", "decimal", "separator", "currency", "unit", "title"):
        value = getattr(column, option)
        if value not in {"", 1} or (option == "separator" and column.field == PEOPLE_FIELD):
            yield f"{option} = {_toml(value)}"
    if column.check:
        yield "check = true  # a guess; remove this line to confirm it"
    if column.words:
        yield "words = { " + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in column.words.items()) + " }"


def _example(sheet: Sheet | None, table: TableMapping, at: int) -> str:
    rows = sheet.rows[table.header :] if sheet else ()
    found = next((row[at] for row in rows if at < len(row) and row[at]), "")
    return "".join(each if each.isprintable() else " " for each in found)[:50].strip()


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
