"""The form of a mapping: for each table its kind, for each column its field and how its values are written."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.json import JSONObject
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE
from muniment.registry.tables.fields import ASK, DECLARED, EXTRA, PEOPLE_FIELD, SKIP, Column, field_named, fields_of
from muniment.registry.tables.headings import field_of
from muniment.registry.tables.mapping import FileMapping, TableMapping
from muniment.registry.tables.records import member_of

KINDS: Final = {
    COMPANIES: gettext_lazy("Companies"),
    PEOPLE: gettext_lazy("People"),
    SKIP: gettext_lazy("Leave this table out"),
}
_ORDERS: Final[dict[str, str | Promise]] = {
    "DMY": gettext_lazy("Day first: 31.12.2026"),
    "MDY": gettext_lazy("Month first: 12/31/2026"),
    "YMD": gettext_lazy("Year first: 2026-12-31"),
    "EXCEL": gettext_lazy("Days since 1900: 46387"),
    "UNIX": gettext_lazy("Seconds since 1970: 1798675200"),
}
_DECIMALS: Final[dict[str, str | Promise]] = {
    ".": gettext_lazy("Point: 1,200.50"),
    ",": gettext_lazy("Comma: 1.200,50"),
}
_UNITS: Final[dict[str, str | Promise]] = {
    "1": gettext_lazy("As written"),
    "1000": gettext_lazy("Thousands"),
    "10000": gettext_lazy("Ten thousands"),
    "1000000": gettext_lazy("Millions"),
    "100000000": gettext_lazy("Hundred millions"),
    "1000000000": gettext_lazy("Billions"),
}
_SEPARATORS: Final[dict[str, str | Promise]] = {
    "": gettext_lazy("One value in a cell"),
    ",": gettext_lazy("Comma"),
    ";": gettext_lazy("Semicolon"),
    "|": gettext_lazy("Vertical bar"),
    " / ": gettext_lazy("Slash"),
    " & ": "&",
    " and ": gettext_lazy("The word “and”"),
    " und ": gettext_lazy("The word “und”"),
    "、": "、",
    "\n": gettext_lazy("Line break"),
}
_NAMES: Final = {
    "order": gettext_lazy("Order of dates"),
    "decimal": gettext_lazy("Decimal sign"),
    "currency": gettext_lazy("Currency"),
    "unit": gettext_lazy("Unit"),
    "separator": gettext_lazy("Separator"),
    "title": gettext_lazy("Position"),
    "words": gettext_lazy("Meanings of words"),
}
_HINTS: Final = {
    "currency": gettext_lazy("Currency, such as EUR"),
    "title": gettext_lazy("Position, such as Chair"),
    "words": gettext_lazy("word = status; word = status"),
}
_CHOICES: Final[dict[str, Mapping[str, str | Promise]]] = {
    "order": _ORDERS,
    "decimal": _DECIMALS,
    "unit": _UNITS,
    "separator": _SEPARATORS,
}
_MAX_TEXT: Final = 300


class OptionField(NamedTuple):
    """An option of a column: a select if it has choices, else a text."""

    name: str
    label: str
    short: str
    value: str
    choices: list[tuple[str, str]]
    is_asked: bool
    hint: str


class ColumnField(NamedTuple):
    """A column on the page."""

    name: str
    number: int
    heading: str
    samples: list[str]
    field: str
    groups: list[tuple[str, list[tuple[str, str]]]]
    options: list[OptionField]
    is_guess: bool = False

    @property
    def is_asked(self) -> bool:
        return any(each.is_asked for each in self.options)

    @property
    def part(self) -> str:
        """Return the heading under which the column is: what a person must look at comes first."""
        if self.is_asked:
            return gettext("Needs a choice")
        if not self.field:
            return gettext("Left out")
        return gettext("Guessed, please check") if self.is_guess else gettext("To be imported")


class TableField(NamedTuple):
    """A table on the page, with the columns that are left out first."""

    name: str
    title: str
    rows: int
    kind: str
    header: int
    columns: list[ColumnField]
    left_out: int
    hidden: int
    notes: list[str]


def label_of(name: str) -> str:
    """Return the label of a field: that of its declaration, or of an additional member its name in words."""
    field = field_named(name)
    if field is not None:
        return gettext(field.label)
    return name.rpartition(".")[2].removeprefix(EXTRA).replace("_", " ").capitalize()


def _options_of(name: str) -> tuple[str, ...]:
    field = field_named(name)
    return field.options if field is not None else ()


def tables_of(mapping: FileMapping, facts: JSONObject) -> list[TableField]:
    """Return the form of *mapping*; columns that are left out come first, as they are what a person looks for."""
    found = []
    for n, (table, known) in enumerate(zip(mapping.table, facts.get("tables") or (), strict=False)):
        name = f"t{n}"
        shown = [
            _column(f"{name}-c{at}", at, table, column, known["columns"][at])
            for at, column in enumerate(table.column[: len(known["columns"])])
            if column.heading or known["columns"][at]["samples"]
        ]
        shown.sort(key=lambda each: (not each.is_asked, bool(each.field), not each.is_guess, not each.samples))
        left_out = sum(not each.field for each in shown)
        hidden = len(table.column) - len(known["columns"])
        found.append(
            TableField(
                name, table.name, known["rows"], table.kind, table.header, shown, left_out, hidden, known["notes"]
            )
        )
    return found


def _column(name: str, at: int, table: TableMapping, column: Column, known: JSONObject) -> ColumnField:
    return ColumnField(
        name,
        at + 1,
        column.heading or gettext("Column %(n)d") % {"n": at + 1},
        known["samples"],
        column.field,
        _groups(table.kind, column),
        [_option(name, column, each) for each in _options_of(column.field)] if table.kind != SKIP else [],
        column.check and table.kind != SKIP,
    )


def _groups(kind: str, column: Column) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the fields that a column can hold, in groups."""
    fields = fields_of(COMPANIES if kind == SKIP else kind)
    group_of = {name: field.group for name, field in fields.items()}
    group_of.setdefault(f"{EXTRA}{member_of(column.heading) or 'note'}", EXTRA)
    if column.field.startswith(EXTRA):
        group_of.setdefault(column.field, EXTRA)
    elif _is_gone(column.field):
        group_of[column.field] = ""
    titles = {
        "": gettext("General"),
        DECLARED: gettext("Fields of this registry"),
        PEOPLE_FIELD: gettext("People"),
        "socials": gettext("Contact and profiles"),
        "address": gettext("Address"),
        EXTRA: gettext("Additional fields, public"),
    }
    groups: dict[str, list[tuple[str, str]]] = {title: [] for title in titles.values()}
    for name, group in group_of.items():
        groups[titles.get(group, titles[""])].append((name, label_of(name)))
    return [(title, options) for title, options in groups.items() if options]


def _is_gone(field: str) -> bool:
    """Return whether a column has a field that is not declared any more; it is offered, so that it stays."""
    return field.isidentifier() and field not in fields_of(COMPANIES) and field not in fields_of(PEOPLE)


def _option(name: str, column: Column, option: str) -> OptionField:
    stored = getattr(column, option)
    value = "; ".join(f"{word} = {meaning}" for word, meaning in stored.items()) if option == "words" else str(stored)
    is_asked = value == (ASK if option != "unit" else "0")
    choices = [(code, str(label)) for code, label in _CHOICES.get(option, {}).items()]
    if choices and not is_asked and value not in dict(choices):
        choices.append((value, value))
    label = f"{column.heading}: {_NAMES[option]}"
    short = str(_NAMES[option])
    return OptionField(
        f"{name}-{option}",
        label,
        short,
        "" if is_asked and not choices else value,
        choices,
        is_asked,
        str(_HINTS.get(option, "")),
    )


def read_form(mapping: FileMapping, facts: JSONObject, sent: Mapping[str, str]) -> FileMapping:
    """Return *mapping* with what a form says; columns that the form lacks stay as they are."""
    for n, (table, known) in enumerate(zip(mapping.table, facts.get("tables") or (), strict=False)):
        name = f"t{n}"
        kind = sent.get(f"{name}-kind", table.kind)
        if kind != table.kind and kind in KINDS:
            table.kind = kind
            for column in table.column:
                column.field = column.field or _proposed(column, kind)
            sent = {key: value for key, value in sent.items() if not key.startswith(f"{name}-c") or value}
        for at, (column, options) in enumerate(zip(table.column, known["columns"], strict=False)):
            _read_column(f"{name}-c{at}", table, column, options["options"], sent)
    mapping.same_name_is_same_person = "same" in sent if "has-same" in sent else mapping.same_name_is_same_person
    return mapping


def _proposed(column: Column, kind: str) -> str:
    """Return the field that a column's heading means in a table of *kind*."""
    field = "" if kind == SKIP else field_of(column.heading, kind)
    return PEOPLE_FIELD if field.startswith(f"{PEOPLE_FIELD}:") else field


def _read_column(name: str, table: TableMapping, column: Column, known: JSONObject, sent: Mapping[str, str]) -> None:
    field = sent.get(name, column.field)
    allowed = {each for _, options in _groups(table.kind, column) for each, _ in options}
    if field and field not in allowed:
        proposed = _proposed(column, table.kind)
        field = proposed if proposed in allowed else ""
    if field != column.field:
        column.field, column.check = field, False
        for option, value in known.get(field, {}).items():
            setattr(column, option, value)
        return
    for option in _options_of(field):
        text = sent.get(f"{name}-{option}")
        if text is not None:
            _read_option(column, option, text.replace("\r\n", "\n")[:_MAX_TEXT])


def _read_option(column: Column, option: str, text: str) -> None:
    if option == "words":
        pairs = (each.partition("=") for each in text.split(";") if "=" in each)
        column.words = {word.strip(): meaning.strip() for word, _, meaning in pairs if word.strip()}
    elif option == "unit":
        column.unit = int(text) if text in _UNITS else column.unit
    elif option in _CHOICES:
        if text in _CHOICES[option] or text == getattr(column, option):
            setattr(column, option, text)
    elif option == "currency":
        # Left empty where the cells name their currency, it stays so; where a person is asked, the question stays.
        column.currency = text.strip().upper()[:3] or (ASK if column.currency == ASK else "")
    else:
        column.title = " ".join(text.split())


def headers_of(mapping: FileMapping, sent: Mapping[str, str]) -> dict[str, int]:
    """Return the rows of headings that a form says, by the name of the table."""
    found = {}
    for n, table in enumerate(mapping.table):
        text = sent.get(f"t{n}-header", "")
        found[table.name] = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else table.header
    return found


def questions_of(tables: list[TableField]) -> Iterator[tuple[str, str]]:
    """Yield the name and the label of each option that a person must choose."""
    for table in tables:
        for column in table.columns if table.kind != SKIP else ():
            for option in column.options:
                if option.is_asked:
                    yield option.name, option.label


def duplicates_of(tables: list[TableField]) -> list[str]:
    """Return a sentence for each field that several columns of a table hold: only the first value of a row counts."""
    found = []
    for table in tables:
        held: dict[str, list[str]] = {}
        for column in table.columns:
            if column.field and column.field != PEOPLE_FIELD:
                held.setdefault(column.field, []).append(column.heading)
        for field, headings in held.items():
            if len(headings) > 1:
                said = gettext("%(columns)s hold the same field, %(field)s. The first column with a value counts.")
                found.append(said % {"columns": ", ".join(headings), "field": label_of(field)})
    return found


def has_name(tables: list[TableField]) -> bool:
    """Return whether at least one table is imported and has a name in each row."""
    wanted: Any = {"name", "name.last"}
    return any(table.kind != SKIP and wanted & {each.field for each in table.columns} for table in tables)
