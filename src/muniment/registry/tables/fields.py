"""
The columns of a table: the fields that one can hold, and how its values are written.

Fields come from the schema: a field that is declared there is offered, recognized by its name and label, and read by
its kind. This module declares only the forms that tables have and the schema has not, such as a name in two columns.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from django.conf import settings

from muniment.kernel.phrases.phrase import marked
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE, catalogue, key
from muniment.schema.declared.declarations import MAX_CHARACTERS, Declaration
from muniment.schema.declared.declarations import field_of as declared_field
from muniment.schema.declared.presets import PRESETS, SYNONYMS
from muniment.schema.item_lists import ItemList
from muniment.schema.kinds import (
    DATE,
    MONTH,
    Boolean,
    Choice,
    Country,
    Date,
    Integer,
    Items,
    Kind,
    Money,
    Number,
    Slug,
    Text,
)
from muniment.schema.objects import Schema
from muniment.schema.record import Field, Record

ASK: Final = "?"
"""The value of an option that a person must choose."""
EXTRA: Final = "extra:"
"""The prefix of the name of an additional member."""
SKIP: Final = "skip"
PEOPLE_FIELD: Final = "people"
MAX_LABEL: Final = 60
"""Characters of the label of a field that is declared for a column."""
ROW_KEY: Final = "row.key"
"""What tells a row from the others of its source, in each version of the file; it is not published."""
HOUSE_NUMBER: Final = "address.house_number"
DECLARED: Final = "declared"
"""The group of the fields that an operator declared."""
_NEVER_IN_TABLES: Final = frozenset({"documentId"})
"""The key of the former database of a registry, which only its own export has."""
_LABELS: Final = {
    "listedAt": marked("Listing date"),
    "createdAt": marked("Listing month"),
    "icon": marked("Logo (web address)"),
}
"""Labels that say more than those of the schema, which two fields share or which name a picture."""


@dataclass(frozen=True, slots=True)
class TableField:
    """
    A field that a column can hold.

    Args:
        name: the name in mappings; ``socials.email`` is a member of an object, ``extra:lei`` an additional member.
        label: the label in English; pages translate it.
        kind: the kind of its values.
        group: the group of the fields that a page offers together; "" for the general ones.
        declaration: the field that an operator declared, whose limits each cell must keep; None for other fields.
    """

    name: str
    label: str
    kind: Kind
    group: str = ""
    declaration: Field | None = None

    @property
    def is_date(self) -> bool:
        return isinstance(self.kind, Date) or self.kind == MONTH

    @property
    def is_prose(self) -> bool:
        return isinstance(self.kind, Text) and self.kind.lines > 1 and not self.group

    @property
    def is_of_vocabulary(self) -> bool:
        """Return whether its values are words that many rows share, such as a status or a type."""
        return isinstance(self.kind, Choice) or (isinstance(self.kind, Text) and bool(self.kind.suggest))

    @property
    def options(self) -> tuple[str, ...]:
        """The decisions about a column that its cells are read by."""
        if self.name in _OPTIONS_BY_NAME:
            return _OPTIONS_BY_NAME[self.name]
        if self.is_date:
            return ("order",)
        for kind, names in _OPTIONS:
            if isinstance(self.kind, kind):
                return names
        return ()


_OPTIONS_BY_NAME: Final[dict[str, tuple[str, ...]]] = {
    PEOPLE_FIELD: ("separator", "title", "order"),
    "position.company": ("separator",),
    "address": ("end",),
}
_OPTIONS: Final[tuple[tuple[type[Kind], tuple[str, ...]], ...]] = (
    (Money, ("decimal", "currency", "unit")),
    (Integer, ("decimal",)),
    (Number, ("decimal",)),
    (Choice, ("words",)),
    (Items, ("separator",)),
)
_LINE: Final = Text(line=True)
_ONLY_IN_TABLES: Final = {
    COMPANIES: (
        TableField(PEOPLE_FIELD, marked("People with positions"), Items(_LINE), PEOPLE_FIELD),
        TableField("people.first", marked("First name of a person"), _LINE, PEOPLE_FIELD),
        TableField("people.last", marked("Last name of a person"), _LINE, PEOPLE_FIELD),
        TableField("people.title", marked("Position of the person"), _LINE, PEOPLE_FIELD),
        TableField("address", marked("Whole address"), Text(lines=3), "address"),
        TableField(HOUSE_NUMBER, marked("House number"), _LINE, "address"),
        TableField("address.zip_city", marked("Postal code and city"), _LINE, "address"),
        TableField(ROW_KEY, marked("Key of the row (not published)"), _LINE),
        TableField("extra:founded", marked("Founded"), DATE, EXTRA),
        TableField("extra:lei", "LEI", _LINE, EXTRA),
        TableField("extra:registrationNumber", marked("Registration number"), _LINE, EXTRA),
    ),
    PEOPLE: (
        TableField("name.first", marked("First name"), _LINE),
        TableField("name.last", marked("Last name"), _LINE),
        TableField("position.title", marked("Position"), _LINE),
        TableField("position.company", marked("Company of the position"), _LINE),
        TableField(ROW_KEY, marked("Key of the row (not published)"), _LINE),
    ),
}
"""Forms of values that tables have, and additional members whose headings are known."""
_READABLE: Final = (Text, Slug, Choice, Integer, Number, Boolean, Date, Money, Country)
_fields: dict[str, tuple[Schema, dict[str, TableField]]] = {}
_words: dict[str, tuple[Schema, dict[str, str]]] = {}
"""The words by kind of rows, with the schema that they come from: an operator may declare other fields later."""


def fields_of(rows: str) -> Mapping[str, TableField]:
    """Return the fields of a kind of rows by name: those of the schema, of tables alone, and the operator's last."""
    if rows not in _ONLY_IN_TABLES:
        return {}
    schema, fields = _fields.get(rows, (None, {}))
    if schema is not settings.SCHEMA:
        record = _record_of(rows)
        declared: dict[str, TableField] = {}
        for field in record.by_name.values():
            if field.is_additional and field.editable:
                declared[field.name] = TableField(field.name, field.label, field.kind, DECLARED, field)
        fields = {table_field.name: table_field for table_field in _fields_of_schema(record)}
        for table_field in _ONLY_IN_TABLES[rows]:
            own_name = table_field.name.removeprefix(EXTRA)
            if own_name not in fields and own_name not in declared:
                fields[table_field.name] = table_field
        fields |= declared
        _fields[rows] = settings.SCHEMA, fields
    return fields


def _record_of(rows: str) -> Record:
    record: Record = settings.SCHEMA.company if rows == COMPANIES else settings.SCHEMA.person
    return record


def _fields_of_schema(record: Record) -> Iterator[TableField]:
    """Yield the fields of *record* that a cell can give, and the members of its objects."""
    for field in record.imported.values():
        if field.is_additional or field.name in _NEVER_IN_TABLES:
            continue
        if _is_readable(field.kind):
            yield TableField(field.name, _LABELS.get(field.name, field.label), field.kind)
        elif field.editable:
            for member in _members_of(field.kind):
                if _is_readable(member.kind):
                    yield TableField(f"{field.name}.{member.name}", member.label, member.kind, field.name)


def _is_readable(kind: Kind) -> bool:
    if isinstance(kind, Items):
        return isinstance(kind.of, Text)
    return isinstance(kind, _READABLE) or kind == MONTH


def _members_of(kind: Kind) -> tuple[Field, ...]:
    record = kind.of if isinstance(kind, ItemList) else kind
    return record.values if isinstance(record, Record) else ()


def is_list(name: str) -> bool:
    """Return whether a member of companies is a list of objects, of which a row of a table gives one."""
    field = _record_of(COMPANIES).by_name.get(name)
    return field is not None and isinstance(field.kind, ItemList)


def is_of_vocabulary(name: str) -> bool:
    """Return whether a field's values are free words that many rows share, such as a type."""
    field = fields_of(COMPANIES).get(name)
    return field is not None and field.is_of_vocabulary and isinstance(field.kind, Text)


def field_named(name: str) -> TableField | None:
    """
    Return the field with this name, of companies or of people; one that both have is of the same kind.

    An additional member with the name of a field that an operator declared is that field.
    """
    for rows in (COMPANIES, PEOPLE):
        fields = fields_of(rows)
        if name in fields:
            return fields[name]
        declared = fields.get(name.removeprefix(EXTRA))
        if declared is not None and declared.declaration is not None:
            return declared
    return None


def words_for(rows: str) -> Mapping[str, str]:
    """
    Return the names of fields by the headings that mean them, for fields that the catalogue of words does not know.

    The headings are the name, the label, and what tables call a field that many registries declare alike.
    """
    schema, words = _words.get(rows, (None, {}))
    if schema is settings.SCHEMA:
        return words
    words = {}
    in_catalogue = set(chain.from_iterable(catalogue().headings[rows].values()))
    for name, field in fields_of(rows).items():
        if name in in_catalogue and field.declaration is None:
            continue
        synonyms = SYNONYMS[name].split() if _is_preset(name) else ()
        for word in (name, field.label, *synonyms):
            words.setdefault(key(word), name)
    words.pop("", None)
    _words[rows] = settings.SCHEMA, words
    return words


def _is_preset(name: str) -> bool:
    """Return whether a field is declared under the name of a preset and has its kind of value."""
    if name not in SYNONYMS:
        return False
    for declared in settings.DECLARED_FIELDS:
        if declared.key == name:
            return bool(declared.kind == PRESETS[name]["kind"])
    return True


@dataclass(slots=True)
class Column:
    """
    A column and how its values are written; ``?`` in an option asks for a choice.

    Args:
        field: the field that it holds; "" leaves it out; ``extra:name`` keeps it as an additional member.
        order: the order of dates: DMY, MDY or YMD; EXCEL for days since 1900, UNIX for seconds since 1970; or of
            names: LAST_FIRST for "Last, First".
        decimal: the decimal sign of numbers.
        separator: the separator of several values in a cell.
        currency: the currency of amounts whose cells name none; of numbers, the unit that the cells have, such as
            "EUR", "$" or "%", which the label of the declared field names.
        unit: what an amount is multiplied by; 0 asks.
        title: the position of people in the column.
        end: what ends addresses: country or state; "" if only names say it that are no state.
        words: values by the words that mean them; "" leaves a word out.
        check: the field is a guess that a person should check.
        kind: the kind of the declared field that is proposed for a column without one, or is declared for an additional
            member; "" for none.
        choices: the values of a proposed choice.
    """

    heading: str
    field: str = ""
    order: str = ""
    decimal: str = ""
    separator: str = ""
    currency: str = ""
    unit: int = 1
    title: str = ""
    end: str = ""
    words: dict[str, str] = dataclasses.field(default_factory=dict)
    check: bool = False
    kind: str = ""
    choices: list[str] = dataclasses.field(default_factory=list)

    @property
    def label(self) -> str:
        """Return the label of the field that is declared for the column: its heading, with the unit of its numbers."""
        unit = f" ({self.currency})" if self.kind == "number" and self.currency else ""
        heading = " ".join(self.heading.split())
        return heading[: MAX_LABEL - len(unit)].strip() + unit

    @property
    def table_field(self) -> TableField | None:
        """Return the field of the column; one that is yet to be declared, too, by which its cells are read."""
        field = field_named(self.field)
        if field is not None or not self.kind or not (self.field.startswith(EXTRA) or not self.field):
            return field
        most = MAX_CHARACTERS if self.kind == "text" else None
        declared = Declaration("company", "column", self.label, self.kind, choices=tuple(self.choices), max=most)
        declaration = declared_field(declared, "USD")
        return TableField(self.field, self.label, declaration.kind, DECLARED, declaration)
