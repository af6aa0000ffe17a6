"""
The public tables: their columns, derived from the schema, and the rows of a published document.

Every value comes from a published document, so that no table can show what the API does not. A field of the schema is
a column; a list of the schema is a table of its own, with a row for each entry in its order.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import msgspec

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.wire import parse_amount, parse_money
from muniment.schema.company import CSV_LAST
from muniment.schema.company_parts import ADDRESS, DISTRIBUTION, SOCIALS
from muniment.schema.kinds import (
    MONTH,
    Amount,
    Boolean,
    Integer,
    ItemId,
    Items,
    Kind,
    Money,
    Number,
    PictureLink,
    parse_month_and_year,
)
from muniment.schema.objects import Schema
from muniment.schema.record import Field, Record
from muniment.store.published_document import KINDS

VERSION: Final = 2
"""Raise it when the value of a column changes although its declaration does not: the tables are then made again."""
Cell = str | int | float | None
Row = tuple[Cell, ...]
_MAX_INTEGER: Final = 2**63 - 1
_ORDINAL: Final = "ordinal"
_KEY: Final = " key"
_ENTRY: Final = " entry"
_ADDRESS: Final = " first address"
_FIRST_CHANGE: Final = " first change"
# Members of an object beside those of the document: no field begins with a space.

_TABLE_NAMES: Final = {"capTable": "holders", "address": "addresses"}
"""The tables that are not named after their field."""
_LEFT_OUT: Final = frozenset({"documentId", "logo", "socials"})
"""
Fields without a column: what only programs use, as are pictures and the ids of rows, and what is a table of its own.

They would be a tenth of the file.
"""
_QUANTITIES: Final = frozenset({"tokens"})
"""Texts that begin with a number, such as "20,508.39 OP", which as text can be neither compared nor summed."""
_QUANTITY: Final = re.compile(r"([0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(\.[0-9]+)?(?: ?[A-Za-z$][^0-9]{0,30})?")
_IDENTIFIED: Final = frozenset({"proposals"})
"""Lists whose ids people know, such as eip-1."""
_INDEXED: Final = {
    "positions": ("person",),
    "themes": ("theme",),
    "assessments": ("framework_id",),
}
"""Columns that statements look up, by table; each table is also in the order of its key."""
_NUMBERED: Final = frozenset({"companies", "changes"})
"""
Tables that are stored by the number of a row, which is the key of the feed.

The texts of a company are too long to be stored in the order of its key; all other rows are, without an index.
"""


_SLUG_OF_COMPANY: Final = Phrase("The slug of the company.")


class Column(NamedTuple):
    """
    A column.

    Args:
        help: what it holds; pages translate it.
        value: returns the cell of an object of a document.
        is_long: it comes last, so that statements that do not name it skip its pages.
    """

    name: str
    type: Literal["TEXT", "INTEGER", "REAL"]
    help: Phrase
    value: Callable[[JSONObject], Cell]
    is_long: bool = False


class Table(msgspec.Struct, frozen=True, dict=True):
    """
    A table.

    Args:
        kind: the kind of the documents that its rows are made of; "" for the change feed.
        key: the columns of its primary key, of which the first holds the key of the document.
        entries: returns the objects of a document that are its rows.
    """

    name: str
    kind: str
    help: Phrase
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    entries: Callable[[JSONObject], Sequence[JSONObject]]

    @cached_property
    def statement(self) -> str:
        """The statement that creates it, without indexes."""
        columns = ", ".join([f'"{each.name}" {each.type}' for each in self.columns])
        form = "STRICT" if self.name in _NUMBERED else "STRICT, WITHOUT ROWID"
        return f'CREATE TABLE "{self.name}" ({columns}, PRIMARY KEY ({", ".join(self.key)})) {form}'

    @cached_property
    def indexes(self) -> list[str]:
        """The statements that create its indexes."""
        indexed = _INDEXED.get(self.name, ())
        return [f'CREATE INDEX "{self.name}_{each}" ON "{self.name}" ("{each}")' for each in indexed]

    @cached_property
    def delete(self) -> str:
        return f'DELETE FROM "{self.name}" WHERE "{self.key[0]}" = ?'

    @cached_property
    def insert(self) -> str:
        return f'INSERT OR REPLACE INTO "{self.name}" VALUES ({", ".join("?" * len(self.columns))})'

    @cached_property
    def _values(self) -> tuple[Callable[[JSONObject], Cell], ...]:
        return tuple(each.value for each in self.columns)

    def rows(self, document: JSONObject) -> list[Row]:
        entries = self.entries(document)
        if not entries:  # most documents have few of the lists
            return []
        values = self._values
        return [tuple([value(entry) for value in values]) for entry in entries]


class Form:
    """The tables of a schema."""

    def __init__(self, schema: Schema) -> None:
        self.tables = (*_tables(schema), CHANGES)
        self.of_kind: dict[str, tuple[Table, ...]] = {}
        for kind in KINDS:
            self.of_kind[kind] = tuple(table for table in self.tables if table.kind == kind)
        shape = [VERSION, [(each.statement, *each.indexes) for each in self.tables]]
        self.id = hashlib.sha256(msgspec.json.encode(shape)).hexdigest()[:24]
        """What tells these tables from those of another version, or of other declared fields."""

    def rows(self, kind: str, key: str, body: bytes, first_change: str | None) -> list[list[Row]]:
        """Return the rows of a published document, in the order of the tables of its kind."""
        document: JSONObject = msgspec.json.decode(body)["data"]
        document[_KEY] = key
        document[_FIRST_CHANGE] = first_change
        return [table.rows(document) for table in self.of_kind[kind]]


# ---------------------------------------------------------------------- tables


def _tables(schema: Schema) -> Iterator[Table]:
    currency = schema.company.by_name["treasury"].kind
    money = currency.currency if isinstance(currency, Money) else ""
    says = Phrase("Companies, one per row.")
    yield _of_documents("companies", "company", says, _company_columns(schema, money), _company)
    people = [*_columns(schema.person.shown, money), _COMPANY_COUNT]
    says = Phrase("People with a profile, one per row.")
    yield _of_documents("people", "person", says, people, _itself)
    frameworks = _columns(schema.framework.shown, money)
    says = Phrase("Assessment frameworks and programs.")
    yield _of_documents("frameworks", "framework", says, frameworks, _itself)
    for within, record in (("company", schema.company), ("", schema.bundle), ("distribution", DISTRIBUTION)):
        for field in record.shown:
            if isinstance(field.kind, Items):
                yield _of_list(field, field.kind, within, money)
    says = Phrase("Profiles and contacts of companies.")
    yield Table("socials", "company", says, _SOCIALS, ("company", "network"), _socials)


def _of_documents(
    name: str, kind: str, says: Phrase, columns: Iterable[Column], entries: Callable[[JSONObject], Sequence[JSONObject]]
) -> Table:
    own = [each for each in columns if each.name != "slug"]
    key = Column("slug", "TEXT", Phrase("The name in addresses, which is permanent."), _text(_KEY))
    return Table(name, kind, says, _in_order([key, *own]), ("slug",), entries)


def _company_columns(schema: Schema, money: str) -> list[Column]:
    built_in = [field for field in schema.company.shown if field not in schema.company.declared]
    columns = _columns(built_in, money)
    for column in _columns([ADDRESS.by_name[name] for name in ("country", "state", "city")], money):
        columns.append(_inside(column, _ADDRESS, help=_of_part(Phrase("First address"), column.help)))
    says = Phrase("The time of its first change in the feed, as far as it goes back; the last one is updated_at.")
    columns.append(Column("first_change", "TEXT", says, _text(_FIRST_CHANGE)))
    for column in _columns(DISTRIBUTION.shown, money):
        columns.append(_inside(column, "distribution", name=_joined("distribution", column.name)))
    return columns + _columns(schema.company.declared, money)


def _of_list(field: Field, kind: Items, within: str, money: str) -> Table:
    """Return the table of a list: its rows have their company, and their place in the list."""
    name = _TABLE_NAMES.get(field.name, snake(field.name))
    if isinstance(kind.of, Record):
        columns = _columns(kind.of.shown, money)
    else:
        name_of_one = field.filters[0].name if field.filters else field.name
        single = Field(name_of_one, kind.of, field.label, field.help, column="")
        columns = [each._replace(value=_text(_ENTRY)) for each in _columns([single], money)]
    first = [
        Column("company", "TEXT", _SLUG_OF_COMPANY, _text(_KEY)),
        Column(_ORDINAL, "INTEGER", Phrase("The place in the list, from 1."), _whole(_ORDINAL)),
    ]
    if name in _IDENTIFIED:
        first.append(Column("id", "TEXT", Phrase("The id within the company, such as eip-1."), _text("id")))
    says = Phrase("{label} of companies, one per row.", label=Phrase.of(field.label))
    return Table(name, "company", says, _in_order([*first, *columns]), ("company", _ORDINAL), _list(within, field.name))


def _in_order(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return columns with different names, the long ones last; a declared field leaves a built-in one its name."""
    named: dict[str, Column] = {}
    for column in columns:
        name = column.name
        while name in named:
            name = f"own_{name}"
        named[name] = column._replace(name=name)
    return tuple(sorted(named.values(), key=lambda each: each.is_long))


# ---------------------------------------------------------------------- columns


def _columns(fields: Iterable[Field], money: str) -> list[Column]:
    """Return the columns of *fields*, without their lists."""
    shown = list(fields)
    exact = {each.column for each in shown if isinstance(each.kind, Amount)}
    columns: list[Column] = []
    for field in shown:
        is_counted = field.name == "companyCount"  # in lists only: made of the positions
        is_rounded = isinstance(field.kind, Money) and field.column in exact
        if not (is_counted or is_rounded or field.name in _LEFT_OUT or isinstance(field.kind, ItemId | PictureLink)):
            columns += _columns_of(field, money)
    return columns


def _columns_of(field: Field, money: str) -> list[Column]:
    kind, name, label = field.kind, field.column or snake(field.name), Phrase.of(field.label)
    if isinstance(kind, Items):
        return []
    if isinstance(kind, Record):
        return _columns_of_record(field, kind, money)
    if isinstance(kind, Money | Amount):
        base = name.removesuffix("_minor")
        if isinstance(kind, Amount):
            read = _minor_of_amount(field.name)
        else:
            read = _minor_of_money(field.name, money)
        in_minor = Phrase("{label}, in hundredths of {currency}.", label=label, currency=money)
        in_major = Phrase("{label}, in {currency}.", label=label, currency=money)
        return [Column(f"{base}_minor", "INTEGER", in_minor, read), Column(base, "REAL", in_major, _major(read))]
    if kind == MONTH:
        month = f"{name.removesuffix('_on')}_month"
        says = Phrase("{label}: the month, such as 2024-03.", label=label)
        return [Column(month, "TEXT", says, _month(field.name))]
    is_long = field.csv == CSV_LAST or field.name == "description"
    column = Column(name, _TYPES.get(type(kind), "TEXT"), _help(field), _reader(kind)(field.name), is_long)
    if field.name in _QUANTITIES:
        says = Phrase("{label}: the number alone, to compare and to sum.", label=label)
        return [column, Column(f"{name}_number", "REAL", says, _quantity(field.name))]
    return [column]


def _columns_of_record(field: Field, record: Record, money: str) -> list[Column]:
    """Return the columns of an object: of one that refers to a document, its slug and its name."""
    name, label = snake(field.name), Phrase.of(field.label)
    if "slug" in record.by_name:
        key = Column(name, "TEXT", Phrase("{label}: the slug.", label=label), _text("slug"))
        named = Column(f"{name}_name", "TEXT", Phrase("{label}: the name.", label=label), _text("name"))
        return [_inside(key, field.name), _inside(named, field.name)]
    inner = _columns(record.shown, money)
    return [_inside(each, field.name, name=_joined(name, each.name), help=_of_part(label, each.help)) for each in inner]


def _joined(outer: str, inner: str) -> str:
    """Return the name of a column of an inner object, without words that both names have at the seam."""
    words = outer.split("_")
    while words and inner.split("_", maxsplit=1)[0] in words:
        if inner == "_".join(words[-len(inner.split("_")) :]):
            return outer
        words = words[:-1]
    return f"{outer}_{inner}"


def _inside(column: Column, member: str, **changed: Any) -> Column:
    value = column.value

    def inner(entry: JSONObject) -> Cell:
        found = entry.get(member)
        return value(found) if isinstance(found, dict) else None

    return column._replace(value=inner, **changed)


def _of_part(label: Phrase, says: str) -> Phrase:
    """Return what a column of a part of a document holds: after the label of the part."""
    return Phrase("{label}: {help}", label=label, help=says)


def _help(field: Field) -> Phrase:
    text = field.help if field.description is None else field.description
    return Phrase.of(text) if text else Phrase("{label}.", label=Phrase.of(field.label))


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


_Reader = Callable[[str], Callable[[JSONObject], Cell]]


def _text(member: str) -> Callable[[JSONObject], Cell]:
    def read(entry: JSONObject) -> Cell:
        value = entry.get(member)
        if value is None or type(value) is str:
            return value
        # An additional member that an import has kept as it was.
        return msgspec.json.encode(value).decode()

    return read


def _whole(member: str) -> Callable[[JSONObject], Cell]:
    def read(entry: JSONObject) -> Cell:
        value = entry.get(member)
        return value if type(value) is int and abs(value) <= _MAX_INTEGER else None

    return read


def _real(member: str) -> Callable[[JSONObject], Cell]:
    def read(entry: JSONObject) -> Cell:
        value = entry.get(member)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value)

    return read


def _quantity(member: str) -> Callable[[JSONObject], Cell]:
    """Return a reader of the number that a text begins with; None if it cannot be told, as of "1,5" or "1.000,5"."""

    def read(entry: JSONObject) -> Cell:
        value = entry.get(member)
        match = _QUANTITY.fullmatch(value.strip()) if type(value) is str else None
        if match is None:
            return None
        return float(match[1].replace(",", "") + (match[2] or ""))

    return read


def _truth(member: str) -> Callable[[JSONObject], Cell]:
    def read(entry: JSONObject) -> Cell:
        value = entry.get(member)
        return int(value) if type(value) is bool else None

    return read


def _month(member: str) -> Callable[[JSONObject], Cell]:
    def read(entry: JSONObject) -> Cell:
        try:
            return parse_month_and_year(entry.get(member) or "").isoformat()[:7]
        except ValueError:
            return None

    return read


def _minor_of_money(member: str, currency: str) -> Callable[[JSONObject], int | None]:
    def read(entry: JSONObject) -> int | None:
        value = entry.get(member)
        try:
            return parse_money(value, currency) if type(value) is str else None
        except ValueError:
            return None

    return read


def _minor_of_amount(member: str) -> Callable[[JSONObject], int | None]:
    def read(entry: JSONObject) -> int | None:
        value = entry.get(member)
        return parse_amount(value["amount"]) if isinstance(value, dict) else None

    return read


def _major(minor: Callable[[JSONObject], int | None]) -> Callable[[JSONObject], Cell]:
    def read(entry: JSONObject) -> Cell:
        found = minor(entry)
        return None if found is None else found / 100

    return read


_TYPES: Final[dict[type[Kind], Literal["TEXT", "INTEGER", "REAL"]]] = {
    Integer: "INTEGER",
    Boolean: "INTEGER",
    Number: "REAL",
}
_READERS: Final[dict[type[Kind], _Reader]] = {Integer: _whole, Boolean: _truth, Number: _real}


def _reader(kind: Kind) -> _Reader:
    return _READERS.get(type(kind), _text)


# ---------------------------------------------------------------------- rows


def _itself(document: JSONObject) -> tuple[JSONObject]:
    return (document,)


def _company(document: JSONObject) -> tuple[JSONObject]:
    company = document["company"]
    beside = {name: document[name] for name in ("distribution", _KEY, _FIRST_CHANGE) if name in document}
    first = (company.get("address") or [None])[0]
    return ({**company, **beside, _ADDRESS: first},)


def _list(within: str, name: str) -> Callable[[JSONObject], Sequence[JSONObject]]:
    def entries(document: JSONObject) -> Sequence[JSONObject]:
        around = document.get(within) if within else document
        listed = around.get(name) if around else None
        if not listed:
            return ()
        found: list[JSONObject] = []
        for ordinal, entry in enumerate(listed, 1):
            members = entry if isinstance(entry, dict) else {_ENTRY: entry}
            found.append({**members, _KEY: document[_KEY], _ORDINAL: ordinal})
        return found

    return entries


def _socials(document: JSONObject) -> Sequence[JSONObject]:
    socials = document["company"].get("socials")
    if not socials:
        return ()
    given = [field.name for field in SOCIALS.fields if socials.get(field.name)]
    return [{"network": name, "value": socials[name], _KEY: document[_KEY]} for name in given]


_NETWORKS: Final = ", ".join(field.name for field in SOCIALS.fields)
_SOCIALS: Final = (
    Column("company", "TEXT", _SLUG_OF_COMPANY, _text(_KEY)),
    Column("network", "TEXT", Phrase("One of {names}.", names=_NETWORKS), _text("network")),
    Column("value", "TEXT", Phrase("The address, the number, or the name there."), _text("value")),
)


def _count_companies(person: JSONObject) -> Cell:
    companies = [position.get("company") or {} for position in person.get("positions") or ()]
    return len({company.get("slug") for company in companies})


_COMPANY_COUNT: Final = Column(
    "company_count",
    "INTEGER",
    Phrase("Reviewed companies where the person holds a position."),
    _count_companies,
)
CHANGES: Final = Table(
    "changes",
    "",
    Phrase("The change feed: what was published, updated or unlisted, as far as it goes back."),
    (
        Column("sequence", "INTEGER", Phrase("The number in the feed."), _whole("sequence")),
        Column("kind", "TEXT", Phrase("One of {names}.", names="company, person, framework"), _text("kind")),
        Column(
            "slug", "TEXT", Phrase("The slug of the document; absent for a person who was unlisted."), _text("slug")
        ),
        Column("change", "TEXT", Phrase("One of {names}.", names="published, updated, unlisted"), _text("change")),
        Column("at", "TEXT", Phrase("The time, RFC 3339."), _text("at")),
        Column(
            "fields",
            "TEXT",
            Phrase("The changed members of an update, as a JSON list, where they are known."),
            _text("fields"),
        ),
    ),
    ("sequence",),
    lambda _: (),
)
"""Its rows are copied from the change feed."""
