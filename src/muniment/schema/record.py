"""Records: an object of the wire as a table of its fields, from which every surface derives its own form of it."""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, structs

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.schema.filters import Filter, Range
from muniment.schema.kinds import ItemId, Items, JsonSchema, Kind, View
from muniment.schema.validation import ABSENT, Breach, Path, Validation, kind_of, text_of

_OF_ITS_NAME: Final = "*"
"""The default of `Field.column`; a record replaces it, since a field alone does not know whether it is in a table."""
MAX_DEPTH: Final = 8
"""Levels of an object with the objects and lists inside it: readers of exports refuse deeper ones."""


class Field(Struct, frozen=True):
    """
    One member of an object.

    Args:
        name: on the wire, in history and in every tool.
        kind: which values it holds.
        label: its name on pages.
        help: a sentence for the form and the tools that edit, and for readers unless there is a *description*.
        description: what the API reference says of the value instead; "" for nothing.
        example: a value for the API reference.
        column: the column that stores it, which two fields may share; by default the one of its name, if the record
            is a table. "" for a member that is derived, has tables of its own, or is kept among the additional
            members of an open object.
        csv: its place among the columns of CSV files, equal ones in the order of the fields; 0 leaves it out.
        required: every input must contain it.
        promised: every response contains it; by default true for required fields.
        null: an empty value is null in responses; otherwise the field is left out.
        shown: it is part of published responses.
        imported: it is read from import files; otherwise it is ignored there.
        editable: owners can change it, by form and by tool.
        clearable: null in a change clears it.
        review: changes to a published listing wait for a reviewer.
        unless: it is read only if this other field is absent.
        filters: how lists are filtered by it.
        range: how lists are bounded by it.
        order: the name of the order by it, and of its range.
        is_sorted: lists can be sorted by it.
        summary: which summaries of tools have it: all, only that of the single item, or none.
    """

    name: str
    kind: Kind
    label: str
    help: str = ""
    example: Any = None
    column: str = _OF_ITS_NAME
    csv: int = 10
    required: bool = False
    promised: bool | None = None
    null: bool = False
    shown: bool = True
    imported: bool = True
    editable: bool = True
    clearable: bool = True
    review: bool = False
    unless: str = ""
    filters: tuple[Filter, ...] = ()
    range: Range | None = None
    order: str = ""
    is_sorted: bool = True
    summary: Literal["all", "item", "none"] = "all"
    description: str | None = None

    @property
    def is_promised(self) -> bool:
        """Return whether every response has it."""
        return self.required if self.promised is None else self.promised

    @property
    def is_additional(self) -> bool:
        """Return whether the value is kept among the additional members of an open object."""
        return self.imported and not self.column

    def schema(self, view: View) -> JsonSchema:
        schema = self.kind.schema(view)
        takes_null = self.null
        if view.change:
            takes_null = self.clearable and not self.required
        if takes_null:
            schema = nullable(schema)
        if not view.described:
            return schema
        text = self.help
        if self.description is not None and not view.change:
            text = self.description
        if text:
            schema = {**schema, "description": text}
        return schema

    def read(self, value: Any, path: Path, validation: Validation) -> Any:
        """Return the stored form of *value*, None where it is empty or cleared."""
        if value is None:
            if self.required:
                validation.refuse(path, "is missing", self.shape_hint(path))
            elif validation.change and not self.clearable:
                validation.refuse(path, "cannot be cleared")
            return None
        if self.required and type(value) is str and not value.strip():
            validation.refuse(path, "must not be empty")
            return None
        stored = self.kind.read(value, path, validation)
        # A column of a list has one form for "no entries". An additional member is kept as it was sent.
        if stored == [] and self.column:
            return None
        return stored

    def show(self, row: JSONMapping) -> Any:
        """Return the value in a stored row as :meth:`Record.published` shows it, None where there is none."""
        extra = row["extra"] or {}
        if not self.column or self.name in extra:
            return extra.get(self.name)
        value = row[self.column]
        if value is not None:
            value = self.kind.show(value)
        return self.kind.empty if value is None and self.is_promised else value

    def shape_hint(self, path: Path) -> str:
        """Return how an object at *path* is sent; "" for other values."""
        return self.kind.shape_hint(path) if isinstance(self.kind, Record) else ""

    def sample(self) -> Any:
        """Return an example of the value, None where there is none."""
        if self.example is not None:
            return self.example
        if self.null:
            return None
        if isinstance(self.kind, Record):
            return self.kind.sample()
        if isinstance(self.kind, Items) and isinstance(self.kind.of, Record):
            return [self.kind.of.sample()]
        return None


class Record(Kind, frozen=True, dict=True):
    """
    An object.

    Args:
        name: the name of its schema in the API reference; "" for one that is described in place.
        fields: the fields in the order of the wire.
        others: what becomes of members that are not declared: kept (an open object), refused, or ignored.
        others_on_import: the same for an imported row, where it differs.
        limits_on_import: whether a broken limit, also of a member within, refuses an imported row, or warns.
        table: its fields are columns of a table.
        whole: every member is always there, null where it is empty; without any value the whole object is null.
        partial: a change gives some of the members, the others stay; otherwise it replaces the object.
        check: a rule about several members: gets what was read, and reports.
    """

    name: str
    fields: tuple[Field, ...]
    others: Literal["keep", "refuse", "ignore"] = "keep"
    others_on_import: Literal["", "keep", "refuse", "ignore"] = ""
    limits_on_import: Literal["refuse", "warn"] = "refuse"
    table: bool = False
    whole: bool = False
    partial: bool = False
    check: Callable[[JSONObject, Path, Validation], None] | None = None

    def __post_init__(self) -> None:
        fields = []
        for field in self.fields:
            if field.column == _OF_ITS_NAME:
                column = _snake(field.name) if self.table else ""
                field = structs.replace(field, column=column)  # noqa: PLW2901 - the same field with its column
            fields.append(field)
        # A frozen struct allows no assignment, not even in its own __post_init__.
        structs.force_setattr(self, "fields", tuple(fields))

    @cached_property
    def by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    @cached_property
    def by_column(self) -> dict[str, Field]:
        """The fields by column; of two that share one, the first."""
        by_column: dict[str, Field] = {}
        for field in self.fields:
            if field.column:
                by_column.setdefault(field.column, field)
        return by_column

    @cached_property
    def editable(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields if field.editable}

    @cached_property
    def imported(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields if field.imported}

    @cached_property
    def texts(self) -> frozenset[str]:
        """The names of the fields that hold text that people write freely."""
        return frozenset(field.name for field in self.fields if field.kind.holds_text())

    def holds_text(self) -> bool:
        return bool(self.texts)

    @cached_property
    def shown(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.shown)

    @cached_property
    def values(self) -> tuple[Field, ...]:
        """The fields without the id of a row."""
        return tuple(field for field in self.fields if not isinstance(field.kind, ItemId))

    @cached_property
    def _published(self) -> tuple[tuple[str, str, Callable[[Any], Any], Any, bool], ...]:
        """How each member is rendered: its name, its column, what writes it, its empty form, and whether it is null."""
        # Decided once for each record: rendering a registry asks for every member of every row.
        published = []
        for field in self.fields:
            column = field.column if field.shown else ""
            # The inherited `show` only calls `wire`, and that may call another function, which is called instead.
            is_shown_as_stored = type(field.kind).show is Kind.show
            show = field.kind.writer if is_shown_as_stored else field.kind.show
            empty = field.kind.empty if field.is_promised else None
            published.append((field.name, column, show, empty, field.null))
        return tuple(published)

    @cached_property
    def _exact(self) -> tuple[tuple[str, str, Callable[[Any], Any]], ...]:
        """The name of each member that is stored in a column, the column, and what writes it."""
        return tuple((field.name, field.column, field.kind.writer) for field in self.fields if field.column)

    @cached_property
    def _columns_of_import(self) -> dict[str, str]:
        """The columns of the fields that an import stores in one, by name."""
        return {field.name: field.column for field in self.imported.values() if field.column}

    @cached_property
    def _empty_columns(self) -> JSONObject:
        """The content of these columns when there is no value."""
        return {column: self.by_column[column].kind.empty for column in self._columns_of_import.values()}

    @cached_property
    def _not_additional(self) -> frozenset[str]:
        return frozenset(field.name for field in self.fields if not field.is_additional)

    @cached_property
    def declared(self) -> tuple[Field, ...]:
        """The fields that are kept among the additional members, and shown."""
        return tuple(field for field in self.shown if field.is_additional)

    @cached_property
    def _retired(self) -> frozenset[str]:
        return frozenset(field.name for field in self.fields if field.is_additional and not field.shown)

    def retired(self, row: JSONMapping) -> JSONObject:
        """Return the additional members of a stored row that are kept and not shown."""
        return {name: value for name, value in (row["extra"] or {}).items() if name in self._retired}

    @cached_property
    def csv(self) -> tuple[str, ...]:
        """The columns of CSV files: exports and lists."""
        fields = [field for field in self.fields if field.csv]
        columns: list[str] = []
        for field in sorted(fields, key=lambda field: field.csv):
            columns += field.kind.csv_columns(field.name)
        return tuple(columns)

    def csv_columns(self, name: str) -> tuple[str, ...]:
        return tuple(f"{name}.{column}" for column in self.csv)

    # ------------------------------------------------------------------ JSON Schema

    def schema(self, view: View) -> JsonSchema:
        """Return the JSON Schema, as a reference where the view has references."""
        return view.ref(self.name) if view.ref and self.name else self.definition(view)

    def definition(self, view: View) -> JsonSchema:
        fields = tuple(self.editable.values()) if view.change else self.shown
        required = [field.name for field in fields if self._requires(field, view)]
        schema: JsonSchema = {"type": "object", "properties": {field.name: field.schema(view) for field in fields}}
        if required:
            schema["required"] = required
        if view.change and self.others == "refuse":
            schema["additionalProperties"] = False
        elif view.described and not view.change:
            # Clients must not refuse members that a later version adds, nor those of an open object.
            schema["additionalProperties"] = True
        return schema

    def _requires(self, field: Field, view: View) -> bool:
        if view.change:
            return field.required and not self.partial
        return field.is_promised or self.whole

    # ------------------------------------------------------------------ reading

    def read(self, value: Any, path: Path, validation: Validation) -> JSONObject | None:
        """
        Return the stored form of an object: its members with a value in the order of the fields, then the others.

        Of a partial change, the members that it gives, None for those that it clears.
        """
        if type(value) is not dict:
            validation.refuse(path, Phrase("must be an object, not {kind}", kind=kind_of(value)), self.shape_hint(path))
            return None
        partial = self.partial and validation.change
        members = self._members(value, path, validation, partial=partial)
        others = self._others(value, path, validation)
        if self.check is not None:
            self.check(members, path, validation)
        if partial:
            if self.whole:  # its empty members are null
                members = {name: member or None for name, member in members.items()}
            return {**members, **others}
        if self.whole:
            every = {field.name: members.get(field.name) or None for field in self.fields}
            # The id of a row is no value: a row of an id alone is empty.
            has_value = any(every[field.name] for field in self.values)
            return every if has_value else None
        members.update(others)
        return members

    def _members(self, value: JSONObject, path: Path, validation: Validation, *, partial: bool) -> JSONObject:
        members = {}
        fields = self.editable if validation.change else self.imported
        for name, field in fields.items():
            member_path = (*path, name)
            if name not in value:
                if field.required and not partial:
                    validation.refuse(member_path, "is missing", field.shape_hint(member_path))
                continue
            if field.unless and value.get(field.unless):
                continue
            member = field.read(value[name], member_path, validation)
            # In a partial change, None clears what is stored; otherwise an empty member is simply absent.
            if member is not None or partial:
                members[name] = member
        return members

    def _others(self, value: JSONObject, path: Path, validation: Validation) -> JSONObject:
        known: Mapping[str, Field] = self.by_name
        policy = self.others_on_import or self.others
        if validation.change:
            known = self.editable
            policy = self.others
        if value.keys() <= known.keys():
            return {}
        unknown = sorted(value.keys() - known.keys())
        if policy == "refuse":
            rule: str = Phrase("is not one of {known}", known=", ".join(known))
            if validation.change and not path:
                rule = "is not an editable field"
            for name in unknown:
                validation.refuse((*path, name), rule)
        if policy != "keep":
            return {}
        return {name: value[name] for name in unknown}

    # ------------------------------------------------------------------ rules

    def breaches(self, value: Any, path: Path, stored: Any = ABSENT, *, by_row: bool = False) -> list[Breach]:
        """Return the rules that the members break; unknown ones must not be nested too deeply."""
        breaches: list[Breach] = []
        if type(value) is not dict or value == stored:
            return breaches
        stored_members = stored if type(stored) is dict else {}
        for name, member in value.items():
            if member is None:
                continue
            field = self.by_name.get(name)
            if field is not None:
                stored_member = stored_members.get(name, ABSENT)
                breaches += field.kind.breaches(member, (*path, name), stored_member, by_row=by_row)
                continue
            if type(member) not in {dict, list} or member == stored_members.get(name):
                continue
            # A change has a company's members at its top; the line of an export has them one level further in.
            if _is_deep(member, MAX_DEPTH - max(len(path), 1)):
                reason = Phrase("is nested too deeply; at most {limit} levels are allowed", limit=MAX_DEPTH)
                breaches.append(Breach((*path, name), reason))
        if self.limits_on_import == "warn":
            breaches = [breach._replace(warns=breach.warns or breach.is_limit) for breach in breaches]
        return breaches

    # ------------------------------------------------------------------ tables

    def columns(self, document: JSONMapping) -> JSONObject:
        """
        Return what a row stores of a *document* that was read: every column, the additional members as ``extra``.

        Of two fields that share a column, a document has one.
        """
        columns = dict(self._empty_columns)
        for name, value in document.items():
            column = self._columns_of_import.get(name)
            if column and value is not None:
                columns[column] = value
        extra: JSONObject = {}
        for name in sorted(document.keys() - self._not_additional):
            value = document[name]
            # ``extra`` is JSON, so a declared day or amount is stored there in its wire form.
            field = self.by_name.get(name)
            if field is not None:
                value = field.kind.wire(value)
            extra[name] = value
        columns["extra"] = extra
        return columns

    def exact(self, row: JSONMapping) -> JSONObject:
        """Return the members of a stored row so that reading them gives the same row; empty ones are left out."""
        members: JSONObject = {}
        for name, column, write in self._exact:
            value = row[column]
            if value is not None:
                value = write(value)
            if value is not None:
                members[name] = value
        return members

    def merge(self, stored: JSONMapping | None, change: JSONMapping | None) -> JSONObject | None:
        """Return *stored* with the members of a partial *change*; None clears a member, or the whole."""
        if change is None:
            return None
        merged = {**(stored or {}), **change}
        if self.whole:
            every = {field.name: merged.get(field.name) for field in self.fields}
            return every if any(every.values()) else None
        return self.in_order({name: value for name, value in merged.items() if value is not None}) or None

    def in_order(self, members: JSONMapping) -> JSONObject:
        """Return *members* in the order of the fields, the additional ones after them."""
        known = {name: members[name] for name in self.by_name if name in members}
        if len(known) == len(members):
            return known
        return known | {name: members[name] for name in sorted(members.keys() - known.keys())}

    def published(self, row: JSONMapping, derived: JSONMapping) -> JSONObject:
        """
        Return a stored row as published answers show it.

        Args:
            row: the values by column; the additional members under ``extra`` come last, in sorted order.
            derived: values of members that are not simply what a column holds.
        """
        members: JSONObject = {}
        for name, column, show, empty, null in self._published:
            if name in derived:
                value = derived[name]
            elif column:
                value = row[column]
                if value is not None:
                    value = show(value)
            else:
                continue
            if value is None:
                value = empty
            if value is not None or null:
                members[name] = value
        extra = row["extra"]
        if not extra:
            return members
        for name in sorted(extra):
            if name not in self._retired:
                members[name] = extra[name]
        return members

    def sample(self) -> JSONObject:
        sample: JSONObject = {}
        for field in self.shown:
            value = field.sample()
            if value is not None or field.null:
                sample[field.name] = value
        return sample

    def shortest(self) -> JSONObject:
        """Return an example of a new object: its first member, and those that it must have."""
        example: JSONObject = {}
        for field in self.editable.values():
            if isinstance(field.kind, ItemId):
                continue
            is_first = not example
            if is_first or field.required:
                example[field.name] = field.kind.shortest() if isinstance(field.kind, Record) else field.sample()
        return example

    def shape_hint(self, path: Path) -> str:
        """Return how the object at *path* is sent: an example, and its members."""
        return Phrase(
            "Send {field} as an object such as {example}. Its members are {members}.",
            field=text_of(path),
            example=msgspec.json.encode(self.shortest()).decode(),
            members=", ".join(self.editable),
        )


def _is_deep(value: Any, levels: int) -> bool:
    """Return whether *value* has more than *levels* levels of objects and lists."""
    # Level by level instead of by recursion, so that a hostile depth costs no stack.
    level = [value]
    for _ in range(levels):
        members: list[Any] = []
        for container in level:
            members += container.values() if type(container) is dict else container
        level = [member for member in members if type(member) in {dict, list}]
        if not level:
            return False
    return True


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def nullable(schema: JsonSchema) -> JsonSchema:
    """Allow null; as ``anyOf`` where ``items`` or ``enum`` beside a list of types would break clients."""
    if "anyOf" in schema:
        return {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    if schema.keys() & {"$ref", "items", "properties", "enum"}:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def change_of(name: str, *records: Record) -> Record:
    """Return the record of a change: the editable fields of *records*, any of them."""
    fields = tuple(field for record in records for field in record.fields if field.editable)
    return Record(name, fields, others="refuse", partial=True)
