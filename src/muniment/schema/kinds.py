"""
The kinds of values that a field holds: how each is read from JSON, stored, written back, and described.

Those that are text on the wire and something else when stored are in :mod:`muniment.schema.parsed_kinds`.

A rule about the type of a value holds everywhere, and is judged while it is read. A rule about the value itself
(`breaches`) is judged on the wire form, also of stored values; a *limit* among them bounds a size, of which an import
may only warn.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any, ClassVar, Final

from msgspec import Struct

from muniment.kernel.ids import slug_fault
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.texts import is_web_address, line_fault
from muniment.kernel.wire import PICTURE_PATH, number
from muniment.schema.validation import ABSENT, Breach, Path, Validation, kind_of, shown

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
        """Return the stored form of *value*, None where it is empty; report what is wrong with its type."""
        raise NotImplementedError

    def breaches(
        self,
        value: Any,
        path: Path,
        stored: Any = ABSENT,
        *,
        by_row: bool = False,  # noqa: ARG002 - lists look at it
    ) -> Iterable[Breach]:
        """
        Return the rules that *value*, in wire form, breaks.

        Args:
            stored: the value before; what is unchanged breaks no rule.
            by_row: a changed row is judged whole; otherwise by its changed members.
        """
        return () if value is None or (stored is not ABSENT and value == stored) else self.own_breaches(value, path)

    def own_breaches(self, value: Any, path: Path) -> Iterable[Breach]:  # noqa: ARG002 - kinds with rules look at it
        """Return the rules that *value* breaks; of a wrong type it breaks none."""
        return ()

    def wire(self, value: Any) -> Any:
        """Return a stored value as JSON that reads back as the same value; None where it is empty."""
        return value

    def show(self, value: Any) -> Any:
        """Return a stored value as published answers show it."""
        return self.wire(value)

    def bound(self, value: Any) -> int | float | None:
        """Return the number that ranges compare of *value*, in wire form; None where it is none."""
        read = self.read(value, (), Validation(change=False))
        found = read.toordinal() if isinstance(read, date) else read
        return found if isinstance(found, int | float) else None

    def holds_text(self) -> bool:
        """Return whether a value is text of any wording, or contains such text: an agent must not obey it."""
        return False

    def csv_columns(self, name: str) -> tuple[str, ...]:
        """Return the columns of the CSV export for a field of this *name*; a dot leads to a member."""
        return (name,)


class Text(Kind, frozen=True):
    """
    Text.

    Args:
        max: how many characters it may have; None for any number.
        strip: whether a change loses white space at both ends. An import keeps it, so that exports round-trip.
        line: whether it is one line, as names and titles are: without control and bidirectional characters.
        lines: the height of its form field.
        suggest: values that the form and the form options suggest; others are allowed too.
    """

    empty: ClassVar[Any] = ""
    max: int | None = None
    strip: bool = False
    line: bool = False
    lines: int = 1
    suggest: tuple[str, ...] = ()

    def holds_text(self) -> bool:
        return True

    def schema(self, view: View) -> JsonSchema:
        return {"type": "string", **({"maxLength": self.max} if view.change and self.max else {})}

    def read(self, value: Any, path: Path, validation: Validation) -> str | None:
        if type(value) is not str:
            validation.refuse(path, Phrase("must be text, not {kind}", kind=kind_of(value)))
            return None
        return value.strip() if self.strip and validation.change else value

    def own_breaches(self, value: Any, path: Path) -> Iterable[Breach]:
        if type(value) is not str:
            return ()
        bare = value.strip()
        most = len(value) if self.max is None else self.max
        found = too_long(bare if self.strip else value, most, path)
        fault = line_fault(value) if self.line else None
        if not fault and 0 < len(bare) <= most:
            fault = self.form_fault(bare)
        return (*found, Breach(path, fault)) if fault else found

    def form_fault(self, text: str) -> str:  # noqa: ARG002 - texts of a form look at it
        """Return what is wrong with the form of *text*, which is not empty and not too long."""
        return ""

    def wire(self, value: Any) -> Any:
        return value or None


class Link(Text, frozen=True):
    """A web address."""

    def form_fault(self, text: str) -> str:
        return link_fault(text)


class PictureLink(Link, frozen=True):
    """The web address of a picture, or the path of one that is stored here."""

    def form_fault(self, text: str) -> str:
        return picture_fault(text)


class Slug(Kind, frozen=True):
    """The permanent name of a company, person or framework in addresses; an empty text is no value."""

    json: ClassVar[JsonSchema] = {"type": "string"}

    def read(self, value: Any, path: Path, validation: Validation) -> str | None:
        if type(value) is not str:
            validation.refuse(path, Phrase("must be text, not {kind}", kind=kind_of(value)))
        elif value and (fault := slug_fault(value)):
            validation.refuse(path, fault)
        return value or None


class ItemId(Kind, frozen=True):
    """The id of a row. An import takes a number for its text."""

    HELP: ClassVar[str] = "Permanent within the list. A new row gets one."
    empty: ClassVar[Any] = ""
    max: int = 200

    def schema(self, view: View) -> JsonSchema:
        explains = view.described and not view.change  # a change names ids that an answer gave
        return {"type": "string", **({"description": self.HELP} if explains else {})}

    def read(self, value: Any, path: Path, validation: Validation) -> str | None:
        if type(value) is int and not validation.change:
            value = str(value)
        if type(value) is not str:
            validation.refuse(path, Phrase("must be text, not {kind}", kind=kind_of(value)))
        return value or None

    def own_breaches(self, value: Any, path: Path) -> Iterable[Breach]:
        if type(value) is not str:
            return ()
        found, fault = too_long(value, self.max, path), line_fault(value)
        return (*found, Breach(path, fault)) if fault else found

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
            validation.refuse(
                path, Phrase("must be one of {values}, not {value}", values=", ".join(self.values), value=shown(value))
            )
        return value or None

    def wire(self, value: Any) -> Any:
        return value or None


class Integer(Kind, frozen=True):
    """A whole number from 0; 5.0 is one."""

    max: int = 2**31 - 1

    def schema(self, view: View) -> JsonSchema:
        return {"type": "integer", "minimum": 0, **({"maximum": self.max} if view.change else {})}

    def read(self, value: Any, path: Path, validation: Validation) -> int | None:
        whole = number(value) if type(value) in {int, float} else None
        if type(whole) is int and 0 <= whole <= self.max:
            return whole
        validation.refuse(
            path, Phrase("must be a whole number from 0 to {limit:,}, not {value}", limit=self.max, value=shown(value))
        )
        return None


class Number(Kind, frozen=True):
    """A finite number; a whole one is stored without its ``.0``."""

    json: ClassVar[JsonSchema] = {"type": "number"}
    least: float | None = None
    most: float | None = None

    def read(self, value: Any, path: Path, validation: Validation) -> float | None:
        # A whole number may exceed what a float holds, which isfinite would not take.
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            return number(value)
        validation.refuse(path, Phrase("must be a number, not {value}", value=shown(value)))
        return None

    def own_breaches(self, value: Any, path: Path) -> Iterator[Breach]:
        if type(value) not in {int, float}:
            return
        if self.least is not None and value < self.least:
            yield Breach(
                path, Phrase("must be at least {limit:,.15g}, not {value}", limit=self.least, value=shown(value))
            )
        elif self.most is not None and value > self.most:
            yield Breach(
                path, Phrase("must be at most {limit:,.15g}, not {value}", limit=self.most, value=shown(value))
            )


class Boolean(Kind, frozen=True):
    """True or false."""

    json: ClassVar[JsonSchema] = {"type": "boolean"}

    def read(self, value: Any, path: Path, validation: Validation) -> bool | None:
        if type(value) is bool:
            return value
        validation.refuse(path, Phrase("must be true or false, not {value}", value=shown(value)))
        return None


class Items(Kind, frozen=True):
    """
    A list; entries without any value are left out.

    Args:
        max: how many entries it may have.
        unique: whether an entry may be there once only, and must not be empty.
    """

    of: Kind
    max: int | None = None
    unique: bool = False

    def holds_text(self) -> bool:
        return self.of.holds_text()

    def schema(self, view: View) -> JsonSchema:
        limit = {"maxItems": self.max} if view.change and self.max else {}
        return {"type": "array", "items": self.of.schema(view), **limit}

    def read(self, value: Any, path: Path, validation: Validation) -> list[Any] | None:
        if type(value) is not list:
            validation.refuse(path, Phrase("must be a list, not {kind}", kind=kind_of(value)))
            return None
        read = (self.of.read(entry, (*path, index), validation) for index, entry in enumerate(value))
        return [entry for entry in read if entry is not None]

    def own_breaches(self, value: Any, path: Path) -> Iterator[Breach]:
        if type(value) is not list:
            return
        yield from self.too_many(value, path)
        seen = set()
        for index, entry in enumerate(value):
            yield from self.of.breaches(entry, (*path, index))
            if self.unique and type(entry) is str:
                if not entry.strip():
                    yield Breach((*path, index), "must not be empty")
                elif entry in seen:
                    yield Breach((*path, index), Phrase("is there twice: {value}", value=shown(entry)))
                seen.add(entry)

    def too_many(self, value: list[Any], path: Path, stored: int = 0) -> Iterator[Breach]:
        """Yield the breach of a list that has too many entries, and more than are *stored*."""
        if self.max is not None and len(value) > max(self.max, stored):
            reason = Phrase("has {count:,} entries; at most {limit:,} are allowed", count=len(value), limit=self.max)
            yield Breach(path, reason, is_limit=True)


class Anything(Kind, frozen=True):
    """An object that has rules of its own elsewhere."""

    json: ClassVar[JsonSchema] = {"type": "object"}

    def holds_text(self) -> bool:
        return True

    def read(self, value: Any, path: Path, validation: Validation) -> JSONObject | None:
        if type(value) is dict:
            return value
        validation.refuse(path, Phrase("must be an object, not {kind}", kind=kind_of(value)))
        return None


def too_long(text: str, most: int | None, path: Path) -> tuple[Breach, ...]:
    """Return the breach of a text of more than *most* characters."""
    return () if most is None or len(text) <= most else (Breach(path, length_fault(text, most), is_limit=True),)


def length_fault(text: str, most: int) -> str:
    return Phrase("has {count:,} characters; at most {limit:,} are allowed", count=len(text), limit=most)


def link_fault(text: str) -> str:
    """Return why *text* cannot be a web address, or an empty text."""
    if is_web_address(text):
        return ""
    return Phrase("must be a web address such as https://example.org, not {value}", value=shown(text))


def picture_fault(text: str) -> str:
    """Return why *text* cannot be the address of a picture, or an empty text."""
    return "" if PICTURE_PATH.fullmatch(text) else link_fault(text)
