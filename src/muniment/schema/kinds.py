"""
The kinds of values that a field holds: how each is read from JSON, stored, written back, and described.

First the kinds that JSON has, then those that are text on the wire and something else when stored (`Parsed`), then
those with a form that standards or networks define: days, amounts, countries, email, profiles.

A rule about the type of a value holds everywhere, and is judged while it is read. A rule about the value itself
(`breaches`) is judged on the wire form, also of stored values; a *limit* among them bounds a size, of which an import
may only warn.
"""

import functools
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any, ClassVar, Final

from msgspec import Struct

from muniment.kernel.ids import slug_fault
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.kernel.texts import is_web_address, line_fault
from muniment.kernel.wire import (
    MAX_PARSED,
    PICTURE_PATH,
    currency_sign,
    format_amount,
    format_money,
    number,
    parse_amount,
    parse_money,
    parse_timestamp,
    timestamp,
)
from muniment.schema.other_names import COUNTRIES
from muniment.schema.validation import ABSENT, Breach, Path, Validation, kind_of, shown

JsonSchema = JSONObject


class View(Struct, frozen=True):
    """
    The JSON Schema to derive.

    Args:
        change: derive it for an owner's change, with editable members and their limits, not for a published answer.
        described: include the fields' help as descriptions.
        ref: gets the name of a record and returns a reference to it; None writes every record in place.
    """

    change: bool = False
    described: bool = True
    ref: Callable[[str], JsonSchema] | None = None


CONTRACT: Final = View(ref=lambda name: {"$ref": f"#/components/schemas/{name}"})
"""The schemas of OpenAPI."""
ANSWER: Final = View(described=False)
"""The schemas of tool results: short, because a client loads all of them before its first call."""
CHANGE: Final = View(change=True)
"""The schemas of tool arguments."""


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
        is_unchanged = stored is not ABSENT and value == stored
        if value is None or is_unchanged:
            return ()
        return self.own_breaches(value, path)

    def own_breaches(self, value: Any, path: Path) -> Iterable[Breach]:  # noqa: ARG002 - kinds with rules look at it
        """Return the rules that *value* breaks; of a wrong type it breaks none."""
        return ()

    def wire(self, value: Any) -> Any:
        """Return a stored value as JSON that reads back as the same value; None where it is empty."""
        return value

    def show(self, value: Any) -> Any:
        """Return a stored value as published answers show it."""
        return self.wire(value)

    @property
    def writer(self) -> Callable[[Any], Any]:
        """What :meth:`wire` does with a value that there is."""
        return self.wire

    def bound(self, value: Any) -> int | float | None:
        """Return the number that ranges compare of *value*, in wire form; None where it is none."""
        stored = self.read(value, (), Validation(change=False))
        if isinstance(stored, date):
            return stored.toordinal()
        if isinstance(stored, int | float):
            return stored
        return None

    def holds_text(self) -> bool:
        """Return whether a value is text of any wording, or contains such text: an agent must not obey it."""
        return False

    def csv_columns(self, name: str) -> tuple[str, ...]:
        """Return the columns of CSV files for a field of this *name*; a dot leads to a member."""
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
        breaches = too_long(bare if self.strip else value, most, path)
        fault = line_fault(value) if self.line else None
        # The form of a text that is too long is not judged.
        if not fault and 0 < len(bare) <= most:
            fault = self.form_fault(bare)
        if fault:
            return (*breaches, Breach(path, fault))
        return breaches

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
            return value or None
        if validation.change:
            # An owner names what exists; an import gives the slug itself, which must be written as it is stored.
            value = unicodedata.normalize("NFC", value)
        fault = slug_fault(value) if value else None
        if fault:
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
        breaches = too_long(value, self.max, path)
        fault = line_fault(value)
        if fault:
            return (*breaches, Breach(path, fault))
        return breaches

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
        # By its type and not isinstance: a bool is an int to Python, and no number to JSON.
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
        entries = []
        for index, given_entry in enumerate(value):
            entry = self.of.read(given_entry, (*path, index), validation)
            if entry is not None:
                entries.append(entry)
        return entries

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
        # A list that was stored before the limit can be edited, as long as it does not grow.
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
    if most is None or len(text) <= most:
        return ()
    return (Breach(path, length_fault(text, most), is_limit=True),)


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

    def schema(self, view: View) -> JsonSchema:
        schema: JsonSchema = {"type": "string"}
        if self.format and view.described:
            schema["format"] = self.format
        return schema

    def read(self, value: Any, path: Path, validation: Validation) -> Any:
        if type(value) is not str:
            validation.refuse(path, Phrase("must be text, not {kind}", kind=kind_of(value)))
            return None
        if not value:
            return None
        # A text that is longer than any value of this kind is not given to the parser.
        if len(value) <= MAX_PARSED:
            try:
                return self.parse(value)
            except ValueError:
                pass
        validation.refuse(path, Phrase("must be {rule}, not {value}", rule=Phrase(self.rule), value=shown(value)))
        return None

    def wire(self, value: Any) -> Any:
        return None if value is None else self.write(value)

    @property
    def writer(self) -> Callable[[Any], Any]:
        return self.write


def _day(text: str) -> date:
    if len(text) != 10:  # ISO has shorter forms too
        raise ValueError
    return date.fromisoformat(text)


class Date(Parsed, frozen=True):
    """A day in a year that a record can speak of."""

    def own_breaches(self, value: Any, path: Path) -> Iterator[Breach]:
        if type(value) is str and value[:4].isdecimal() and not is_plausible_year(value):
            yield Breach(path, Phrase("must be {rule}, not {value}", rule=Phrase(self.rule), value=shown(value)))


def is_plausible_year(text: str) -> bool:
    return "1000" <= text[:4] <= "2999"


DATE_RULE: Final = marked("a date such as 2024-03-31")
DATE: Final = Date(DATE_RULE, _day, date.isoformat, "date")
_MONTHS: Final = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905 - easier to read as one text
)


def month_and_year(day: date) -> str:
    return f"{_MONTHS[day.month - 1]} {day.year}"


def parse_month_and_year(text: str) -> date:
    """Parse ``March 2024`` as the first day of that month, or raise ValueError."""
    month, _, year = text.strip().partition(" ")
    month = month.capitalize()
    if len(text) > MAX_PARSED or month not in _MONTHS or not re.fullmatch(r"[12]\d{3}", year.strip()):
        message = "is not a month and year such as March 2024"
        raise ValueError(message)
    return date(int(year), _MONTHS.index(month) + 1, 1)


MONTH: Final = Parsed(marked("a month and year such as March 2024"), parse_month_and_year, month_and_year)
"""A day that is shown as its month, and read as the first day of it."""
MOMENT: Final = Parsed(
    marked("an RFC 3339 timestamp such as 2026-11-21T10:00:00Z"), parse_timestamp, timestamp, "date-time"
)


class Money(Kind, frozen=True):
    """
    An amount, stored in minor units; an empty text is no value.

    Published rounded (``$1.2M``); in history and exports short where that loses nothing, else in full.
    """

    max: int
    currency: str

    def schema(self, view: View) -> JsonSchema:
        schema: JsonSchema = {"type": "string"}
        if view.change:
            schema["maxLength"] = self.max
        return schema

    def read(self, value: Any, path: Path, validation: Validation) -> int | None:
        if type(value) is not str:
            validation.refuse(path, Phrase("must be text, not {kind}", kind=kind_of(value)))
            return None
        if len(value) > self.max:
            validation.refuse(path, length_fault(value, self.max))
            return None
        if not value:
            return None
        try:
            return parse_money(value, self.currency)
        except ValueError:
            reason = Phrase(
                "must be an amount such as {sign}1.2M, of at most {sign}1000T, not {value}",
                sign=currency_sign(self.currency),
                value=shown(value),
            )
            validation.refuse(path, reason)
            return None

    def wire(self, value: Any) -> Any:
        if value is None:
            return None
        short = format_money(value, self.currency)
        # $1.2M is short for exactly 1,200,000.00, and would lose the rest of 1,234,567.89.
        if parse_money(short, self.currency) == value:
            return short
        return f"{currency_sign(self.currency)}{format_amount(value)}"

    def show(self, value: Any) -> Any:
        return None if value is None else format_money(value, self.currency)


MAX_COUNTRY_CHARACTERS: Final = 200


class Day(Text, frozen=True):
    """A day, or a moment of it, that is stored as it was given."""

    def schema(self, view: View) -> JsonSchema:
        schema = super().schema(view)
        if view.change:
            schema["format"] = "date"
        return schema

    def form_fault(self, text: str) -> str:
        moment = f"{text}T00:00:00Z" if len(text) == len("2026-11-21") else text
        try:
            parse_timestamp(moment)
            is_real = is_plausible_year(text)
        except ValueError:
            is_real = False
        return "" if is_real else Phrase("must be {rule}, not {value}", rule=Phrase(DATE_RULE), value=shown(text))


class Email(Text, frozen=True):
    """An email address. Whether it receives mail is not looked up."""

    def form_fault(self, text: str) -> str:
        from email_validator import EmailNotValidError, validate_email  # late: 50 ms, which no read needs

        try:
            validate_email(text.removeprefix("mailto:"), check_deliverability=False)
        except EmailNotValidError:
            return Phrase("must be an email address such as office@example.org, not {value}", value=shown(text))
        return ""


class Profile(Text, frozen=True):
    """A profile on a network: a web address, or a name there, which has no spaces. An import only warns of spaces."""

    def own_breaches(self, value: Any, path: Path) -> Iterable[Breach]:
        breaches = tuple(super().own_breaches(value, path))
        if breaches or type(value) is not str or len(value.split()) <= 1:
            return breaches
        return (Breach(path, self._fault(value.strip()), warns=True),)

    def form_fault(self, text: str) -> str:
        is_name = ":" not in text and not text.startswith("//")
        return "" if is_name or is_web_address(text) else self._fault(text)

    @staticmethod
    def _fault(text: str) -> str:
        return Phrase(
            "must be a web address such as https://example.org or the name of a profile, not {value}", value=shown(text)
        )


class Amount(Kind, frozen=True):
    """
    An exact amount, ``{amount, currency}``, stored in minor units.

    An input may leave out the currency, of which an instance has one, and decimals.
    """

    currency: str

    def schema(self, view: View) -> JsonSchema:
        amount = {"type": "string"}
        schema: JsonSchema = {"type": "object", "properties": {"amount": amount, "currency": {"type": "string"}}}
        if view.described and not view.change:
            amount["pattern"] = r"^\d+\.\d\d$"
            schema["required"] = ["amount", "currency"]
        return schema

    def read(self, value: Any, path: Path, validation: Validation) -> int | None:
        if type(value) is not dict:
            validation.refuse(path, Phrase("must be an object, not {kind}", kind=kind_of(value)))
            return None
        for name in sorted(value.keys() - {"amount", "currency"}):
            validation.refuse((*path, name), "is not one of amount, currency")
        if value.get("currency", self.currency) != self.currency:
            validation.refuse(
                (*path, "currency"),
                Phrase("must be {currency}, not {value}", currency=self.currency, value=shown(value["currency"])),
            )
        text = value.get("amount")
        try:
            return parse_amount(text if type(text) is str else "")
        except ValueError as fault:
            validation.refuse((*path, "amount"), Phrase("{fault}, not {value}", fault=fault.args[0], value=shown(text)))
            return None

    def wire(self, value: Any) -> Any:
        return None if value is None else {"amount": format_amount(value), "currency": self.currency}

    def csv_columns(self, name: str) -> tuple[str, ...]:
        return (f"{name}.amount", f"{name}.currency")


class Country(Kind, frozen=True):
    """A country by its two letters; an empty text is no value."""

    def schema(self, view: View) -> JsonSchema:
        schema: JsonSchema = {"type": "string"}
        if view.described and not view.change:
            schema["pattern"] = "^[A-Z]{2}$"  # a change may give small letters
        return schema

    def read(self, value: Any, path: Path, validation: Validation) -> str | None:
        if type(value) is not str:
            validation.refuse(path, Phrase("must be text, not {kind}", kind=kind_of(value)))
            return None
        if not value:
            return None
        code = value.upper()
        if code not in country_names():
            validation.refuse(
                path, Phrase("must be a country by its two letters such as FR, not {value}", value=shown(value))
            )
        return code


@functools.cache
def country_names() -> JSONObject:
    """Return the English names of all countries by code, sorted by name."""
    import pycountry  # when a country is first read or shown: the package takes 50 ms to load

    # The standard's own names are official ones, such as "Bolivia, Plurinational State of".
    names = {country.alpha_2: getattr(country, "common_name", country.name) for country in pycountry.countries}
    return dict(sorted(names.items(), key=lambda code_and_name: without_accents(code_and_name[1])))


def without_accents(name: str) -> str:
    """Return *name* without accents and case, so that Åland Islands come before Albania."""
    characters = unicodedata.normalize("NFKD", name)
    return "".join(character for character in characters if not unicodedata.combining(character)).casefold()


def country_code(text: str) -> str:
    """Return the two letters of a country that is given by them or by one of its names; any other text as it is."""
    if not text.strip() or len(text) > MAX_COUNTRY_CHARACTERS:
        raise ValueError
    code = text.strip().upper()
    if code in country_names():
        return code
    return _codes().get(squeezed(text), text)


def squeezed(name: str) -> str:
    """Return *name* without case, accents, spaces and signs."""
    return "".join(character for character in without_accents(name) if character.isalnum())


@functools.cache
def _codes() -> dict[str, str]:
    """Return the codes of countries by their English and usual names; those of the standard hold against others."""
    import pycountry

    codes: dict[str, str] = {}
    for code, aliases in COUNTRIES.items():
        for alias in aliases.split():
            codes[squeezed(alias)] = code
    for country in pycountry.countries:
        official_name = getattr(country, "official_name", "")
        for name in (country.alpha_3, country.name, official_name, country_names()[country.alpha_2]):
            if name:
                codes[squeezed(name)] = country.alpha_2
    return codes
