"""Kinds of values with a form that standards or networks define: days, amounts, countries, email, profiles."""

import functools
import unicodedata
from collections.abc import Iterable
from typing import Any, Final

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.texts import is_web_address
from muniment.kernel.wire import format_amount, parse_amount, parse_timestamp
from muniment.schema.kinds import JsonSchema, Kind, Text, View
from muniment.schema.other_names import COUNTRIES
from muniment.schema.parsed_kinds import DATE_RULE, is_plausible_year
from muniment.schema.validation import Breach, Path, Validation, kind_of, shown

MAX_COUNTRY_CHARACTERS: Final = 200


class Day(Text, frozen=True):
    """A day, or a moment of it, that is stored as it was given."""

    def schema(self, view: View) -> JsonSchema:
        return {**super().schema(view), **({"format": "date"} if view.change else {})}

    def form_fault(self, text: str) -> str:
        try:
            parse_timestamp(text if len(text) != 10 else f"{text}T00:00:00Z")
        except ValueError:
            is_real = False
        else:
            is_real = is_plausible_year(text)
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
        found = tuple(super().own_breaches(value, path))
        if found or type(value) is not str or len(value.split()) <= 1:
            return found
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
        if view.change:
            return {"type": "object", "properties": {"amount": {"type": "string"}, "currency": {"type": "string"}}}
        amount = {"type": "string", **({"pattern": r"^\d+\.\d\d$"} if view.described else {})}
        schema: JsonSchema = {"type": "object", "properties": {"amount": amount, "currency": {"type": "string"}}}
        return {**schema, "required": ["amount", "currency"]} if view.described else schema

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
        return {"type": "string", **({"pattern": "^[A-Z]{2}$"} if view.described and not view.change else {})}

    def read(self, value: Any, path: Path, validation: Validation) -> str | None:
        if type(value) is not str:
            validation.refuse(path, Phrase("must be text, not {kind}", kind=kind_of(value)))
        elif value and value.upper() not in country_names():
            validation.refuse(
                path, Phrase("must be a country by its two letters such as FR, not {value}", value=shown(value))
            )
        return value.upper() or None if type(value) is str else None


@functools.cache
def country_names() -> JSONObject:
    """Return the English names of all countries by code, sorted by name."""
    import pycountry  # when a country is first read or shown: the package takes 50 ms to load

    names = {each.alpha_2: getattr(each, "common_name", each.name) for each in pycountry.countries}
    return dict(sorted(names.items(), key=lambda each: without_accents(each[1])))


def without_accents(name: str) -> str:
    """Return *name* without accents, so that Åland Islands come before Albania."""
    return "".join(each for each in unicodedata.normalize("NFKD", name) if not unicodedata.combining(each)).casefold()


def country_code(text: str) -> str:
    """Return the two letters of a country that is given by them or by one of its names; any other text as it is."""
    if not text.strip() or len(text) > MAX_COUNTRY_CHARACTERS:
        raise ValueError
    wanted = text.strip().upper()
    return wanted if wanted in country_names() else _codes().get(_squeezed(text), text)


def _squeezed(name: str) -> str:
    """Return *name* without case, accents, spaces and signs."""
    return "".join(each for each in without_accents(name) if each.isalnum())


@functools.cache
def _codes() -> dict[str, str]:
    """Return the codes of countries by their English and usual names; those of the standard hold against others."""
    import pycountry

    codes = {_squeezed(alias): code for code, aliases in COUNTRIES.items() for alias in aliases.split()}
    for each in pycountry.countries:
        names = (each.alpha_3, each.name, getattr(each, "official_name", ""), country_names()[each.alpha_2])
        codes |= {_squeezed(name): each.alpha_2 for name in names if name}
    return codes
