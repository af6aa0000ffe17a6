"""
The mapping of a file: its tables, and for each column the field that it holds and how its values are written.

A mapping is proposed from the headings and the values, and written as TOML that people edit and give back.
"""

import dataclasses
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from muniment.kernel.phrases.phrase import Joined, Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.declared import cells
from muniment.registry.tables import columns as decide
from muniment.registry.tables.columns import ASK, Column
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.headings import (
    COMPANIES,
    EXTRA,
    FIELDS,
    PEOPLE,
    SKIP,
    field_of,
    fields_in,
    header_row,
    headings_of,
    kind_of_table,
    preset_of,
)
from muniment.registry.tables.values import currency_in_heading, is_blank

PEOPLE_FIELD: Final = "people"
DATES: Final = ("listedAt", "createdAt", f"{EXTRA}founded")
NUMBERS: Final = ("teamSize", "treasury")
_LEAST_SHARE: Final = 0.5
_PROFILE_ROWS: Final = 5_000
_NO_HEADERS: Final[Mapping[str, int]] = {}
_BETTER_LAST: Final = ("title", "titel", "label", "bezeichnung", "contact", "name")


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
                    if getattr(column, option) == ASK and column.field:
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

    def settle_questions(self) -> None:
        """Leave options without a choice empty, so that a preview shows their values as lost."""
        for table in self.table:
            for column in table.column:
                for option in _CHOICES:
                    if getattr(column, option) == ASK:
                        setattr(column, option, "")


_CHOICES: Final = {
    "order": '"DMY" (day first) or "MDY" (month first)',
    "decimal": '"," or "."',
    "separator": '"," (several people) or "" (one person as "Last, First")',
    "currency": '"EUR", for example',
}


def propose(sheets: Sequence[Sheet], file_name: str, headers: Mapping[str, int] = _NO_HEADERS) -> FileMapping:
    """
    Return a mapping of *sheets* by their headings and values.

    Args:
        headers: the numbers of rows with headings that a person chose, by the name of the table.
    """
    tables = [_propose_table(sheet, file_name, headers.get(sheet.name, 0)) for sheet in sheets]
    first = sheets[0]
    return FileMapping(tables, first.encoding, first.delimiter)


def _propose_table(sheet: Sheet, file_name: str, header: int) -> TableMapping:
    at = header - 1 if 0 < header <= len(sheet.rows) else header_row(sheet.rows)
    headings = headings_of(sheet.rows, at)
    body = sheet.rows[at + 1 : at + 1 + _PROFILE_ROWS]
    preset = preset_of(headings)
    kind = preset.kind if preset else kind_of_table(headings, f"{sheet.name} {file_name}")
    found = []
    for n, heading in enumerate(headings):
        values = [row[n] for row in body if row[n]]
        chosen = preset.options_of(heading) if preset else {"field": field_of(heading, kind)}
        found.append(_propose_column(heading, chosen, values))
    _keep_one_of_each(found)
    table = TableMapping(sheet.name, kind, at + 1, found)
    if not any(each.field in {"name", "name.last"} for each in found):
        table.kind = SKIP
    return table


def _propose_column(heading: str, chosen: dict[str, Any], values: list[str]) -> Column:
    column = Column(heading, **chosen)
    values = [each for each in values if not is_blank(each)]
    if column.field.startswith(f"{PEOPLE_FIELD}:"):
        column.field, _, column.title = column.field.partition(":")
    if not _fits(column, values):
        column.field = ""
    decide_options(column, values)
    return column


def decide_options(column: Column, values: Sequence[str]) -> None:
    """Decide how the values of a column are written, for the field that it holds; blank values do not count."""
    values = [each for each in values if not is_blank(each)]
    declared = cells.field_in(column)
    if declared is not None:
        cells.decide_options(declared, column, values)
    elif column.field in DATES:
        column.order = column.order or decide.order_of_dates(values) or "YMD"
    elif column.field in NUMBERS:
        column.decimal = decide.decimal_sign(values, is_count=column.field == "teamSize")
    elif column.field == "themes":
        column.separator = decide.separator_of(values)
    elif column.field == PEOPLE_FIELD:
        column.separator = decide.separator_of_people(values)
    if column.field == "treasury":
        column.currency, column.unit = currency_in_heading(column.heading)
        if not column.currency and any(each.strip("+-−.,'’ 0123456789\u00a0\u202f") == "" for each in values):
            column.currency = ASK


_LOOKS: Final[dict[str, Callable[[str], bool]]] = {
    PEOPLE_FIELD: lambda text: any(each.isalpha() for each in text) and "@" not in text,
    "id": lambda text: any(each.isalpha() for each in text),  # a number in another system is no slug
    "socials.email": lambda text: "@" in text,
    "website": lambda text: "." in text and "@" not in text,
    "dao_website": lambda text: "." in text and "@" not in text,
    "icon": lambda text: "/" in text,
}


def _fits(column: Column, values: list[str]) -> bool:
    """Return whether the values of a column can be what its heading means."""
    if not values:
        return True
    declared = cells.field_in(column)
    if declared is not None:
        return cells.fits(declared, values)
    if column.field in DATES:
        return decide.share_of_dates(values) >= _LEAST_SHARE
    if column.field in NUMBERS:
        return decide.share_of_numbers(values) >= _LEAST_SHARE
    looks_right = _LOOKS.get(column.field)
    return looks_right is None or 2 * sum(map(looks_right, values)) > len(values)


def _keep_one_of_each(found: Iterable[Column]) -> None:
    """Let one column hold each field: the first, but a general word such as "Title" gives way."""
    taken: dict[str, Column] = {}
    for column in found:
        if not column.field or column.field == PEOPLE_FIELD:
            continue
        other = taken.get(column.field)
        if other is None:
            taken[column.field] = column
        elif other.heading.casefold() in _BETTER_LAST and column.heading.casefold() not in _BETTER_LAST:
            other.field, taken[column.field] = "", column
        else:
            column.field = ""


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
        known = fields_in(table.kind)
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
            if column.order not in {"", ASK, *decide.ORDERS}:
                yield Phrase(
                    "{table}: {column}: order must be DMY, MDY or YMD", table=table.name, column=column.heading
                )
            if column.decimal not in {"", ASK, ".", ","}:
                yield Phrase(
                    "{table}: {column}: decimal must be a point or a comma", table=table.name, column=column.heading
                )


def _is_extra(field: str) -> bool:
    name = field.removeprefix(EXTRA)
    return name != field and name.isidentifier() and name not in {each.partition(".")[0] for each in FIELDS[COMPANIES]}


def write_mapping(mapping: FileMapping, sheets: Sequence[Sheet] = ()) -> str:
    """Return a mapping as TOML; columns that are left out are first, each with an example."""
    lines = ["# A column without a field is left out. Fields of companies:"]
    for kind in (COMPANIES, PEOPLE):
        named = [each for each in fields_in(kind) if not each.startswith(EXTRA)]
        lines += ([] if kind == COMPANIES else ["# Fields of people:"]) + [
            f"#   {', '.join(named[n : n + 8])}" for n in range(0, len(named), 8)
        ]
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


def _column_lines(column: Column, example: str) -> Iterator[str]:
    yield ""
    yield "[[table.column]]"
    yield f"heading = {_toml(column.heading)}" + (f"  # {example}" if example else "")
    yield f"field = {_toml(column.field)}"
    for option in ("order", "decimal", "separator", "currency", "unit", "title"):
        value = getattr(column, option)
        if value not in {"", 1} or (option == "separator" and column.field == PEOPLE_FIELD):
            yield f"{option} = {_toml(value)}"
    if column.words:
        yield "words = { " + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in column.words.items()) + " }"


def _example(sheet: Sheet | None, table: TableMapping, at: int) -> str:
    rows = sheet.rows[table.header :] if sheet else ()
    found = next((row[at] for row in rows if at < len(row) and row[at]), "")
    return "".join(each if each.isprintable() else " " for each in found)[:50].strip()


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
