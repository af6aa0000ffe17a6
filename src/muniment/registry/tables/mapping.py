"""
The mapping of a file: its tables, and for each column the field that it holds and how its values are written.

A mapping is proposed from the headings and the values, and written as TOML that people edit and give back.
"""

import dataclasses
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from django.conf import settings

from muniment.kernel.phrases.phrase import Counted, Joined, Phrase
from muniment.kernel.problems import BadRequest
from muniment.kernel.texts import printable
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE
from muniment.registry.tables.dates import ORDERS, SERIALS
from muniment.registry.tables.fields import ASK, DECLARED, EXTRA, PEOPLE_FIELD, SKIP, Column, fields_of
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.persons import LAST_FIRST
from muniment.schema.declared.declarations import KINDS

NAMES: Final = ("name", "name.last")
"""The fields of which one makes a row."""


@dataclass(slots=True)
class TableMapping:
    """
    A table of the file.

    Args:
        kind: companies, people, or skip.
        header: the number of the row with the headings; 0 if there is none.
        check: which of "kind" and "header" are guesses that a person should check; "currency" if amounts are in another
            one than those of the registry, and would be left out; "cells" if rows have more of them than there are
            headings.
        combine: whether rows of one name are one organization: yes, no, or ? to ask; "" if their values agree.
    """

    name: str
    kind: str
    header: int
    column: list[Column] = dataclasses.field(default_factory=list)
    check: list[str] = dataclasses.field(default_factory=list)
    combine: str = ""


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
        questions: list[str] = []
        for table in self.table:
            if table.kind == COMPANIES and table.combine == ASK:
                questions.append(Phrase("{table}: {question}", table=table.name, question=Phrase(_COMBINE)))
            if table.kind == SKIP:
                continue
            for column in table.column:
                for option in _options_to_choose(column):
                    questions.append(
                        Phrase(
                            "{table}: {column}: choose {option} = {choices}",
                            table=table.name,
                            column=column.heading,
                            option=option,
                            choices=Phrase(_CHOICES[option]),
                        )
                    )
        return questions

    def guesses(self) -> list[tuple[TableMapping, Column]]:
        """Return the columns whose field is a guess that a person should check."""
        guesses = []
        for table in self.table:
            if table.kind != SKIP:
                guesses += [(table, column) for column in table.column if column.check]
        return guesses

    def doubts(self) -> list[str]:
        """Return a sentence for each guess: the kind of rows, the row of the headings, and fields of columns."""
        doubts: list[str] = []
        for table in self.table:
            if "kind" in table.check:
                doubts.append(Phrase("{table}: the rows may be {kind}", table=table.name, kind=Phrase(table.kind)))
            if "header" in table.check:
                doubts.append(Phrase("{table}: the headings may be in row {row}", table=table.name, row=table.header))
            if "currency" in table.check:
                doubts.append(Phrase(_CURRENCY, table=table.name, currency=settings.CURRENCY))
            if "cells" in table.check:
                doubts.append(Phrase(_CELLS, table=table.name))
        for table, column in self.guesses():
            doubts.append(
                Phrase("{table}: {column} may be {field}", table=table.name, column=column.heading, field=column.field)
            )
        return doubts

    def confirm_guesses(self) -> None:
        for table in self.table:
            table.check = []
        for _, column in self.guesses():
            column.check = False

    def refuse_guesses(self) -> None:
        """
        Refuse a mapping with guesses, which no person has confirmed.

        Raises:
            BadRequest: there are guesses; it names them.
        """
        doubts = self.doubts()
        if doubts:
            raise BadRequest(
                Counted(
                    "{count} guess needs to be confirmed: {doubts}.",
                    "{count} guesses need to be confirmed: {doubts}.",
                    count=len(doubts),
                    doubts=Joined("; ", doubts),
                ),
                "If all of them are right, import with --accept-guesses. Otherwise write the mapping with "
                "--write-mapping, correct it, and import with --mapping.",
            )

    def refuse_questions(self) -> None:
        """
        Refuse a mapping that asks for choices.

        Raises:
            BadRequest: there are questions; it names them.
        """
        questions = self.questions()
        if questions:
            raise BadRequest(
                Counted(
                    "The mapping needs {count} choice: {questions}.",
                    "The mapping needs {count} choices: {questions}.",
                    count=len(questions),
                    questions=Joined("; ", questions),
                ),
                "Write the mapping with --write-mapping, choose, and import with --mapping.",
            )

    def settle_questions(self) -> None:
        """Leave options without a choice empty, so that a preview shows their values as lost."""
        for table in self.table:
            if table.combine == ASK:
                table.combine = "no"
            for column in table.column:
                for option in _CHOICES:
                    if getattr(column, option) == ASK:
                        setattr(column, option, "")
                column.unit = column.unit or 1


def _options_to_choose(column: Column) -> list[str]:
    """Return the options of a column that ask for a choice; a column without a field has none."""
    if not column.field:
        return []
    return [option for option in _CHOICES if getattr(column, option) in {ASK, 0}]


_CURRENCY: Final = (
    "{table}: has amounts in another currency, which will be left out; this registry uses {currency} (to change it, "
    "set MUNIMENT_CURRENCY before the first import)"
)
_CELLS: Final = (
    "{table}: some rows have more cells than there are headings, so values may be in the wrong columns (the usual "
    "cause is a separator or a decimal comma without quotation marks)"
)
_COMBINE: Final = (
    'several rows have the same name but different values: choose combine = "yes" (one organization, with lists of what'
    ' differs) or "no" (separate organizations)'
)
_CHOICES: Final = {
    "order": '"DMY" (day first) or "MDY" (month first); "EXCEL" for days since 1900, "UNIX" for seconds',
    "decimal": '"," or "."',
    "separator": '"," (several people) or "" (one person as "Last, First")',
    "currency": '"EUR", for example',
    "unit": "1, 1000 or 1000000",
}


def read_mapping(text: str) -> FileMapping:
    """
    Return the mapping in a TOML text.

    Raises:
        BadRequest: it is not one.
    """
    try:
        mapping = msgspec.convert(tomllib.loads(text), FileMapping)
        faults = list(_faults(mapping))
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        faults = [str(error)]
    if faults:
        raise BadRequest(
            Phrase("The mapping is invalid: {faults}.", faults=Joined("; ", faults[:5])),
            "Start from a proposed one: --preview.",
        )
    return mapping


def _faults(mapping: FileMapping) -> Iterator[str]:
    for table in mapping.table:
        if table.kind not in {COMPANIES, PEOPLE, SKIP}:
            yield Phrase(
                "{table}: kind must be companies, people or skip, not {kind!r}", table=table.name, kind=table.kind
            )
            continue
        if table.combine not in {"", ASK, "yes", "no"}:
            yield Phrase("{table}: combine must be yes or no", table=table.name)
        if table.kind == SKIP:
            continue
        for column in table.column:
            yield from _faults_of_column(table, column)


def _faults_of_column(table: TableMapping, column: Column) -> Iterator[str]:
    if column.field and column.field not in fields_of(table.kind) and not _is_extra(column.field):
        yield Phrase(
            "{table}: {column}: there is no field {field!r} of {kind}; "
            'to keep the column as an additional member, write "extra:NAME"',
            table=table.name,
            column=column.heading,
            field=column.field,
            kind=table.kind,
        )
    if column.order not in {"", ASK, *ORDERS, *SERIALS, LAST_FIRST}:
        yield Phrase(
            "{table}: {column}: order must be DMY, MDY, YMD, EXCEL, UNIX or LAST_FIRST",
            table=table.name,
            column=column.heading,
        )
    if column.kind and column.kind not in KINDS:
        yield Phrase(
            "{table}: {column}: kind must be one of {kinds}",
            table=table.name,
            column=column.heading,
            kinds=", ".join(KINDS),
        )
    if column.decimal not in {"", ASK, ".", ","}:
        yield Phrase("{table}: {column}: decimal must be a point or a comma", table=table.name, column=column.heading)


def _is_extra(field: str) -> bool:
    """Return whether *field* names an additional member, and not a field of the schema as one."""
    name = field.removeprefix(EXTRA)
    if name == field or not name.isidentifier():
        return False
    for table_field in fields_of(COMPANIES).values():
        is_of_schema = table_field.group not in {DECLARED, EXTRA}
        if is_of_schema and table_field.name.partition(".")[0] == name:
            return False
    return True


def write_mapping(mapping: FileMapping, sheets: Sequence[Sheet] = ()) -> str:
    """Return a mapping as TOML; columns that are left out are first, each with an example."""
    lines = ["# A column without a field is left out. Fields of companies:", *_field_lines(COMPANIES)]
    lines += ["# Fields of people:", *_field_lines(PEOPLE)]
    lines += ['# "extra:name" keeps a column as an additional member. "?" asks for a choice.', ""]
    if mapping.encoding:
        lines.append(f"encoding = {_toml(mapping.encoding)}")
    if mapping.delimiter:
        lines.append(f"delimiter = {_toml(mapping.delimiter)}")
    lines.append(f"same_name_is_same_person = {_toml(mapping.same_name_is_same_person)}")
    sheets_by_name = {sheet.name: sheet for sheet in sheets}
    for table in mapping.table:
        lines += _table_lines(table, sheets_by_name.get(table.name))
    return "\n".join(lines) + "\n"


def _table_lines(table: TableMapping, sheet: Sheet | None) -> Iterator[str]:
    yield from ("", "[[table]]", f"name = {_toml(table.name)}", f"kind = {_toml(table.kind)}")
    yield f"header = {table.header}"
    if table.combine:
        yield f"combine = {_toml(table.combine)}"
    if table.check:
        yield f"check = {_toml(table.check)}  # guesses; remove this line to confirm them"
    places = {column.heading: n for n, column in enumerate(table.column)}
    for column in sorted(table.column, key=lambda column: bool(column.field)):
        if column.heading or column.field:
            yield from _column_lines(column, _example(sheet, table, places[column.heading]))


def _field_lines(kind: str) -> Iterator[str]:
    """Yield comments with the names of the fields of a kind, eight in a line."""
    names = [name for name in fields_of(kind) if not name.startswith(EXTRA)]
    for start in range(0, len(names), 8):
        yield f"#   {', '.join(names[start : start + 8])}"


def _column_lines(column: Column, example: str) -> Iterator[str]:
    yield ""
    yield "[[table.column]]"
    comment = f"  # {example}" if example else ""
    yield f"heading = {_toml(column.heading)}{comment}"
    yield f"field = {_toml(column.field)}"
    for option in ("order", "decimal", "separator", "currency", "unit", "title", "end"):
        value = getattr(column, option)
        # For people, no separator is a choice too: one person in a cell, as "Last, First".
        if value not in {"", 1} or (option == "separator" and column.field == PEOPLE_FIELD):
            yield f"{option} = {_toml(value)}"
    if column.kind:
        comment = "" if column.field else "  # the field that --keep-all declares"
        yield f"kind = {_toml(column.kind)}{comment}"
    if column.choices:
        yield f"choices = {_toml(column.choices)}"
    if column.check:
        yield "check = true  # a guess; remove this line to confirm it"
    if column.words:
        pairs = [f"{_toml(word)} = {_toml(meaning)}" for word, meaning in column.words.items()]
        yield "words = { " + ", ".join(pairs) + " }"


def _example(sheet: Sheet | None, table: TableMapping, at: int) -> str:
    """Return the beginning of the first value of a column; "" if the file is not there, or the column has none."""
    rows = sheet.rows[table.header :] if sheet else ()
    for row in rows:
        if at < len(row) and row[at]:
            return printable(row[at])[:50].strip()
    return ""


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
