"""
The kinds of values that a field holds: how each is read from JSON, stored, written back, and described.

A rule about the type of a value holds everywhere. A *limit* (length, number of entries, form of a link) refuses
an owner's change; whether it refuses an imported row or warns is for the field to say.
"""

import math
from collections.abc import Callable
from datetime import date
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from msgspec import Struct

from muniment.kernel.ids import slug_fault
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import (
    currency_sign,
    format_money,
    month_and_year,
    number,
    parse_money,
    parse_month_and_year,
    parse_timestamp,
    timestamp,
)
from muniment.schema.validation import Path, Validation, kind_of, shown

JsonSchema = JSONObject


class View(Struct, frozen=True):
    """
    Which JSON Schema is derived.

    Args:
        change: of an owner's change: editable members with their limits. Otherwise of a published answer.
        described: with the fields' help as descriptions.
        ref: gets the name of a record and returns a reference to it; None writes every record in place.
    """

    change: bool = False
    described: bool = True
    ref: Callable[[str], JsonSchema] | None = None


CONTRACT: Final = View(ref=lambda name: {"$ref": f"#/components/schemas/{name}"})
"""For OpenAPI."""
ANSWER: Final = View(described=False)
"""For what a tool answers: short, since a client loads all of them before its first call."""
CHANGE: Final = View(change=True)
"""For what a tool takes."""


class Kind(Struct, frozen=True):
    """A kind of value. ``empty`` is what a column holds when there is no value; ``json`` its JSON Schema."""

    empty: ClassVar[Any] = None
    json: ClassVar[JsonSchema] = {}

    def schema(self, view: View) -> JsonSchema:  # noqa: ARG002 - kinds with limits or members look at it
        """Return the JSON Schema of a value, without null."""
        return dict(self.json)

    def read(self, value: Any, path: Path, validation: Validation) -> Any:
        """Return the stored form of *value*, None where it is empty; report what is wrong with it."""
        raise NotImplementedError

    def wire(self, value: Any) -> Any:
        """Return a stored value as JSON that reads back as the same value; None where it is empty."""
        return value

    def show(self, value: Any) -> Any:
        """Return a stored value as published answers show it."""
        return self.wire(value)


class Text(Kind, frozen=True):
    """
    Text.

    Args:
        max: how many characters it may have; None for any number.
        strip: whether a change loses white space at both ends. An import keeps it, so that exports round-trip.
        lines: the height of its form field.
        suggest: values that the form and the form options suggest; others are allowed too.
    """

    empty: ClassVar[Any] = ""
    max: int | None = None
    strip: bool = False
    lines: int = 1
    suggest: tuple[str, ...] = ()

    def schema(self, view: View) -> JsonSchema:
        return {"type": "string", **({"maxLength": self.max} if view.change and self.max else {})}

    def read(self, value: Any, path: Path, validation: Validation) -> str | None:
        if type(value) is not str:
            validation.refuse(path, f"must be text, not {kind_of(value)}")
            return None
        text: str = value.strip() if self.strip and validation.change else value
        check_length(text, self.max, path, validation)
        return text

    def wire(self, value: Any) -> Any:
        return value or None


class Link(Text, frozen=True):
    """A web address."""

    def read(self, value: Any, path: Path, validation: Validation) -> str | None:
        read = super().read(value, path, validation)
        if read and read.strip() and not _is_web_address(read.strip()):
            validation.limit(path, f"must be a web address such as https://example.org, not {shown(read)}")
        return read


class Slug(Kind, frozen=True):
    """The permanent name of a company, person or framework in addresses; an empty text is no value."""

    json: ClassVar[JsonSchema] = {"type": "string"}

    def read(self, value: Any, path: Path, validation: Validation) -> str | None:
        if type(value) is not str:
            validation.refuse(path, f"must be text, not {kind_of(value)}")
        elif value and (fault := slug_fault(value)):
            validation.refuse(path, fault)
        return value or None


class ItemId(Kind, frozen=True):
    """The id of a row. An import takes a number for its text."""

    empty: ClassVar[Any] = ""
    max: int = 200

    def schema(self, view: View) -> JsonSchema:
        return {"type": "string", **({"maxLength": self.max} if view.change else {})}

    def read(self, value: Any, path: Path, validation: Validation) -> str | None:
        if type(value) is int and not validation.change:
            value = str(value)
        if type(value) is not str:
            validation.refuse(path, f"must be text, not {kind_of(value)}")
        elif len(value) > self.max:
            validation.limit(path, f"has {len(value):,} characters; at most {self.max} are allowed")
        return value or None

    def wire(self, value: Any) -> Any:
        return value or None


class Choice(Kind, frozen=True):
    """One of a closed set of words; an empty text is no value."""

    empty: ClassVar[Any] = ""
    values: tuple[str, ...]

    def schema(self, view: View) -> JsonSchema:  # noqa: ARG002 - the same for all
        return {"type": "string", "enum": list(self.values)}

    def read(self, value: Any, path: Path, validation: Validation) -> str | None:
        if value != "" and value not in self.values:
            validation.refuse(path, f"must be one of {', '.join(self.values)}, not {shown(value)}")
        return value or None

    def wire(self, value: Any) -> Any:
        return value or None


class Parsed(Kind, frozen=True):
    """
    A value that is text on the wire and something else when stored; an empty text is no value.

    Args:
        rule: what the text must be, as messages say it.
        parse: makes the stored value of the text, or raises ValueError.
        write: makes the text of the stored value.
        format: the format that JSON Schema has for it, if any.
    """

    rule: str
    parse: Callable[[str], Any]
    write: Callable[[Any], str]
    format: str = ""

    def schema(self, view: View) -> JsonSchema:  # noqa: ARG002 - the same for all
        return {"type": "string", **({"format": self.format} if self.format else {})}

    def read(self, value: Any, path: Path, validation: Validation) -> Any:
        if type(value) is not str:
            validation.refuse(path, f"must be text, not {kind_of(value)}")
        elif value:
            try:
                return self.parse(value)
            except ValueError:
                validation.refuse(path, f"must be {self.rule}, not {shown(value)}")
        return None

    def wire(self, value: Any) -> Any:
        return None if value is None else self.write(value)


def _day(text: str) -> date:
    if len(text) != 10:  # ISO has shorter forms too
        raise ValueError
    return date.fromisoformat(text)


DATE: Final = Parsed("a date such as 2024-03-31", _day, date.isoformat, "date")
MONTH: Final = Parsed("a month and year such as March 2024", parse_month_and_year, month_and_year)
"""A day that is shown as its month, and read as the first day of it."""
MOMENT: Final = Parsed("an RFC 3339 timestamp such as 2026-11-21T10:00:00Z", parse_timestamp, timestamp, "date-time")


class Money(Kind, frozen=True):
    """
    An amount, stored in minor units; an empty text is no value.

    Published rounded (``$1.2M``); in history and exports short where that loses nothing, else in full.
    """

    max: int
    currency: str

    def schema(self, view: View) -> JsonSchema:
        return {"type": "string", **({"maxLength": self.max} if view.change else {})}

    def read(self, value: Any, path: Path, validation: Validation) -> int | None:
        if type(value) is not str:
            validation.refuse(path, f"must be text, not {kind_of(value)}")
        elif value:
            check_length(value, self.max, path, validation)
            try:
                return parse_money(value, self.currency)
            except ValueError:
                sign = currency_sign(self.currency)
                validation.refuse(
                    path, f"must be an amount such as {sign}1.2M, of at most {sign}1000T, not {shown(value)}"
                )
        return None

    def wire(self, value: Any) -> Any:
        if value is None:
            return None
        short = format_money(value, self.currency)
        if parse_money(short, self.currency) == value:
            return short
        return f"{currency_sign(self.currency)}{value // 100}.{value % 100:02d}"

    def show(self, value: Any) -> Any:
        return None if value is None else format_money(value, self.currency)


class Integer(Kind, frozen=True):
    """A whole number from 0; 5.0 is one."""

    max: int = 2**31 - 1

    def schema(self, view: View) -> JsonSchema:
        return {"type": "integer", "minimum": 0, **({"maximum": self.max} if view.change else {})}

    def read(self, value: Any, path: Path, validation: Validation) -> int | None:
        whole = number(value) if type(value) in {int, float} else None
        if type(whole) is int and 0 <= whole <= self.max:
            return whole
        validation.refuse(path, f"must be a whole number from 0 to {self.max:,}, not {shown(value)}")
        return None


class Number(Kind, frozen=True):
    """A finite number; a whole one is stored without its ``.0``."""

    json: ClassVar[JsonSchema] = {"type": "number"}

    def read(self, value: Any, path: Path, validation: Validation) -> float | None:
        # A whole number may exceed what a float holds, which isfinite would not take.
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            return number(value)
        validation.refuse(path, f"must be a number, not {shown(value)}")
        return None


class Boolean(Kind, frozen=True):
    """True or false."""

    json: ClassVar[JsonSchema] = {"type": "boolean"}

    def read(self, value: Any, path: Path, validation: Validation) -> bool | None:
        if type(value) is bool:
            return value
        validation.refuse(path, f"must be true or false, not {shown(value)}")
        return None


class Items(Kind, frozen=True):
    """A list; entries without any value are left out."""

    of: Kind
    max: int | None = None

    def schema(self, view: View) -> JsonSchema:
        limit = {"maxItems": self.max} if view.change and self.max else {}
        return {"type": "array", "items": self.of.schema(view), **limit}

    def read(self, value: Any, path: Path, validation: Validation) -> list[Any] | None:
        if type(value) is not list:
            validation.refuse(path, f"must be a list, not {kind_of(value)}")
            return None
        if self.max is not None and len(value) > self.max:
            validation.limit(path, f"has {len(value):,} entries; at most {self.max:,} are allowed")
        read = (self.of.read(entry, (*path, index), validation) for index, entry in enumerate(value))
        return [entry for entry in read if entry is not None]


class Anything(Kind, frozen=True):
    """An object that has rules of its own elsewhere."""

    json: ClassVar[JsonSchema] = {"type": "object"}

    def read(self, value: Any, path: Path, validation: Validation) -> JSONObject | None:
        if type(value) is dict:
            return value
        validation.refuse(path, f"must be an object, not {kind_of(value)}")
        return None


def check_length(text: str, most: int | None, path: Path, validation: Validation) -> None:
    """Report a text of more than *most* characters."""
    if most is not None and len(text) > most:
        validation.limit(path, f"has {len(text):,} characters; at most {most:,} are allowed")


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and not any(map(str.isspace, text))
    except ValueError:
        return False
