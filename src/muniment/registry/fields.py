"""Columns that hold the same bytes on SQLite and on PostgreSQL."""

from typing import TYPE_CHECKING, Any

import msgspec
from django.db import models

from muniment.kernel.problems import BadRequest
from muniment.kernel.texts import first_text_fault, text_fault

if TYPE_CHECKING:
    _Column = models.TextField[Any, Any]
else:
    _Column = models.TextField


def _refuse(column: str, fault: str) -> BadRequest:
    return BadRequest(f"{column} {fault}.", "Send text of whole Unicode characters, without NUL.")


class Text(_Column):
    """Text that both databases hold; the last door before them, behind each operation's own checks."""

    def get_prep_value(self, value: Any) -> Any:
        """Refuse what PostgreSQL could not store, on either database."""
        prepared = super().get_prep_value(value)
        if isinstance(prepared, str) and (fault := text_fault(prepared)):
            raise _refuse(self.name, fault)
        return prepared


class JSONText(_Column):
    """
    Any JSON value, kept as compact text: order of keys and bytes are the same on both databases.

    NULL is Python's None; JSON's null inside a value stays.
    """

    if TYPE_CHECKING:  # what the stubs give for values() and the constructor
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any
        _pyi_lookup_exact_type: Any

    def from_db_value(self, value: str | None, _expression: object, _connection: object) -> Any:
        """Read the stored text."""
        return None if value is None else msgspec.json.decode(value)

    def to_python(self, value: Any) -> Any:
        """Leave a value as it is: forms hand over finished JSON values."""
        return value

    def get_prep_value(self, value: Any) -> Any:
        """Write the text; refuse strings that PostgreSQL could not store."""
        if value is None:
            return None
        try:
            text = msgspec.json.encode(value).decode()
        except UnicodeEncodeError:
            raise _refuse(self.name, "contains an unpaired surrogate") from None
        if "\\u0000" in text and (found := first_text_fault(value)):
            raise _refuse(self.name, found[1])
        return text

    def value_to_string(self, obj: models.Model) -> str:
        """Serialise as the stored text."""
        return str(self.get_prep_value(self.value_from_object(obj)) or "")
