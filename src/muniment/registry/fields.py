"""Columns that hold the same bytes on SQLite and on PostgreSQL."""

from typing import Any

import msgspec
from django.db import models

from muniment.kernel.problems import BadRequest


def text_fault(text: str) -> str | None:
    """Say why *text* cannot be kept, or None. PostgreSQL holds no NUL, UTF-8 no half of a surrogate pair."""
    if "\0" in text:
        return "holds the character U+0000"
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is no character"
    return None


def first_text_fault(value: object, path: str = "") -> tuple[str, str] | None:
    """Give the path and the fault of the first text inside *value* (JSON) that cannot be kept, or None."""
    if isinstance(value, str):
        fault = text_fault(value)
        return (path, fault) if fault else None
    if isinstance(value, dict):
        for key, member in value.items():
            if fault := text_fault(key):
                return path, f"has a key that {fault}"
            if found := first_text_fault(member, f"{path}.{key}" if path else key):
                return found
    elif isinstance(value, list):
        for index, member in enumerate(value):
            if found := first_text_fault(member, f"{path}[{index}]"):
                return found
    return None


def _refuse(column: str, fault: str) -> BadRequest:
    return BadRequest(f"{column} {fault}.", "Send text of whole Unicode characters, without NUL.")


class Text(models.TextField):  # type: ignore[type-arg]
    """Text that both databases hold; the last door before them, behind each operation's own checks."""

    def get_prep_value(self, value: Any) -> Any:
        """Refuse what PostgreSQL could not store, on either database."""
        prepared = super().get_prep_value(value)
        if isinstance(prepared, str) and (fault := text_fault(prepared)):
            raise _refuse(self.name, fault)
        return prepared


class JSONText(models.TextField):  # type: ignore[type-arg]
    """
    Any JSON value, kept as compact text: order of keys and bytes are the same on both databases.

    NULL is Python's None; JSON's null inside a value stays.
    """

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
            raise _refuse(self.name, "holds half of a surrogate pair, which is no character") from None
        if "\\u0000" in text and (found := first_text_fault(value)):
            raise _refuse(self.name, found[1])
        return text

    def value_to_string(self, obj: models.Model) -> str:
        """Serialise as the stored text."""
        return str(self.get_prep_value(self.value_from_object(obj)) or "")
