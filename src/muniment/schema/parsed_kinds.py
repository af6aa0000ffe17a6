"""Kinds of values that are text on the wire and something else when stored: days, months, moments and money."""

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, Final

from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.kernel.wire import (
    MAX_PARSED,
    currency_sign,
    format_amount,
    format_money,
    month_and_year,
    parse_money,
    parse_month_and_year,
    parse_timestamp,
    timestamp,
)
from muniment.schema.kinds import JsonSchema, Kind, View, length_fault
from muniment.schema.validation import Breach, Path, Validation, kind_of, shown


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
        return {"type": "string", **({"format": self.format} if self.format and view.described else {})}

    def read(self, value: Any, path: Path, validation: Validation) -> Any:
        if type(value) is not str:
            validation.refuse(path, Phrase("must be text, not {kind}", kind=kind_of(value)))
        elif value:
            try:
                return self._parse_short(value)
            except ValueError:
                validation.refuse(
                    path, Phrase("must be {rule}, not {value}", rule=Phrase(self.rule), value=shown(value))
                )
        return None

    def _parse_short(self, text: str) -> Any:
        if len(text) > MAX_PARSED:
            raise ValueError
        return self.parse(text)

    def wire(self, value: Any) -> Any:
        return None if value is None else self.write(value)


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
        return {"type": "string", **({"maxLength": self.max} if view.change else {})}

    def read(self, value: Any, path: Path, validation: Validation) -> int | None:
        if type(value) is not str:
            validation.refuse(path, Phrase("must be text, not {kind}", kind=kind_of(value)))
        elif len(value) > self.max:
            validation.refuse(path, length_fault(value, self.max))
        elif value:
            try:
                return parse_money(value, self.currency)
            except ValueError:
                sign = currency_sign(self.currency)
                validation.refuse(
                    path,
                    Phrase(
                        "must be an amount such as {sign}1.2M, of at most {sign}1000T, not {value}",
                        sign=sign,
                        value=shown(value),
                    ),
                )
        return None

    def wire(self, value: Any) -> Any:
        if value is None:
            return None
        short = format_money(value, self.currency)
        if parse_money(short, self.currency) == value:
            return short
        return f"{currency_sign(self.currency)}{format_amount(value)}"

    def show(self, value: Any) -> Any:
        return None if value is None else format_money(value, self.currency)
