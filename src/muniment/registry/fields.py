"""
Model fields that store the same bytes on SQLite and on PostgreSQL, and raw SQL that both accept.

Raw SQL is for the reads of every call: the ORM takes 0.2 ms to compose a query.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec
from django.db import connection, models

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Joined, Verbatim, plain
from muniment.kernel.phrases.storing import packed, unpacked
from muniment.kernel.problems import BadRequest
from muniment.kernel.texts import first_text_fault, text_fault

if TYPE_CHECKING:
    _Column = models.TextField[Any, Any]
else:
    _Column = models.TextField


def _refuse(column: str, fault: str) -> BadRequest:
    return BadRequest(
        Joined("", (Verbatim(f"{column} "), fault, ".")), "Send valid Unicode text without NUL characters."
    )


class Text(_Column):
    """Text that both databases can store; the last check after each operation's own."""

    def get_prep_value(self, value: Any) -> Any:
        if type(value) is str and value.isascii() and "\0" not in value:
            return value
        prepared = super().get_prep_value(value)
        if isinstance(prepared, str) and (fault := text_fault(prepared)):
            raise _refuse(self.name, fault)
        return prepared


class JSONText(_Column):
    """
    Any JSON value, stored as compact text: the order of keys and the bytes are the same on both databases.

    NULL is Python's None; a JSON null inside a value stays.
    """

    if TYPE_CHECKING:  # for the stubs of values() and the constructor
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any
        _pyi_lookup_exact_type: Any

    def from_db_value(self, value: str | None, _expression: object, _connection: object) -> Any:
        return None if value is None else msgspec.json.decode(value)

    def to_python(self, value: Any) -> Any:
        return value

    def get_prep_value(self, value: Any) -> Any:
        if value is None:
            return None
        try:
            text = msgspec.json.encode(value, enc_hook=plain).decode()
        except UnicodeEncodeError:
            raise _refuse(self.name, "contains an unpaired surrogate") from None
        if "\\u0000" in text and (found := first_text_fault(value)):
            raise _refuse(self.name, found[1])
        return text

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.get_prep_value(self.value_from_object(obj)) or "")


class PhraseJSON(JSONText):
    """A JSON value whose phrases are read as the phrases that they were, so that a page can translate them."""

    def from_db_value(self, value: str | None, _expression: object, _connection: object) -> Any:
        return unpacked(super().from_db_value(value, _expression, _connection))

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(packed(value))


def rows(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of *statement*, with ``%s`` for each parameter; JSON columns come as text."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        selected: list[tuple[Any, ...]] = cursor.fetchall()
    return selected


def marks(values: Collection[object]) -> str:
    """Return the ``%s, %s, …`` of an IN list."""
    return ", ".join(["%s"] * len(values))


_Convert = Callable[[Any], Any]


def stored_rows(model: type[models.Model], statement: str, parameters: Sequence[Any]) -> Iterator[JSONObject]:
    """
    Return rows of *model*'s table by column, with values as the model has them; other columns as they come.

    The ORM reads them too, but takes 0.2 ms to compose a query, and many changes need these rows.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        names = tuple(each[0] for each in cursor.description)
        found = cursor.fetchall()
    converted = _conversions(model, names, connection.vendor)
    for row in found:
        values = dict(zip(names, row, strict=True))
        for name, convert in converted:
            if values[name] is not None:
                values[name] = convert(values[name])
        yield values


@cache
def _conversions(model: type[models.Model], names: tuple[str, ...], vendor: str) -> tuple[tuple[str, _Convert], ...]:
    """Return what turns stored values into those of the model, as the ORM does on databases of this *vendor*."""
    meta = model._meta  # noqa: SLF001 - Django's public name
    fields = {field.column: field for field in meta.concrete_fields}
    conversions: list[tuple[str, _Convert]] = []
    for name in names:
        field = fields.get(name)
        # Without Django's converters, which are called with a connection and a column for each value.
        if isinstance(field, JSONText):
            conversions.append((name, msgspec.json.decode))
        elif vendor == "sqlite" and isinstance(field, models.DateTimeField):
            conversions.append((name, _aware))
        elif field:
            column = field.get_col(meta.db_table)
            for converter in (*connection.ops.get_db_converters(column), *field.get_db_converters(connection)):
                conversions.append((name, partial(_convert, converter, column)))
    return tuple(conversions)


def _convert(converter: Callable[[Any, Any, Any], Any], column: Any, value: Any) -> Any:
    return converter(value, column, connection)


def _aware(stored: datetime) -> datetime:
    """Return a moment that SQLite stores: that of UTC, without a zone."""
    return stored.replace(tzinfo=UTC)
