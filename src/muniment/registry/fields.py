"""
Model fields that store the same bytes on SQLite and on PostgreSQL, and raw SQL that both accept.

Raw SQL is for the reads of every call: the ORM takes 0.2 ms to compose a query.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from django.db import connection, models

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
