"""
The filters, ranges and orders of the list of one kind.

Each filter, range and order is declared on its field. Every surface derives its parameters from a :class:`Listing`, and
gives it what a client has sent.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.kernel.wire import MAX_MINOR_UNITS, format_amount, number, parse_money, parse_timestamp, timestamp

if TYPE_CHECKING:
    from muniment.schema.record import Field

MAX_VALUES: Final = 50
"""Different values of one filter."""
MAX_CHARACTERS: Final = 200
MAX_AMOUNT: Final = 40
MAX_COUNT: Final = 10**9
"""The largest bound of a range of whole numbers."""
_SIGN: Final = re.compile(r"^(?:[$€£¥₹₩]|R\$|[A-Z]{3}\b)\s*")
_HUGE: Final = re.compile(r"\d{16,30}(?:\.\d+)?")
"""More than any company can have."""
_MONEY: Final = r"^(?:[0-9]{1,15}|\$?[0-9]{1,6}(?:\.[0-9]{1,2})?[KMB]?|\$?[0-9]{1,3}(?:,[0-9]{3}){1,4})$"
"""The pattern that clients are told; currency signs and other forms of numbers are accepted too."""
_DECIMAL: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_PLAIN: Final = r"^[^\x00]*[^\s\x00][^\x00]*$"


class Filter(Struct, frozen=True):
    """
    A filter of lists by a field.

    Args:
        help: which items it selects.
        name: the parameter; "" for the name of the field.
        presence: it selects by whether the field has a value.
        several: it takes several values, any of which matches.
        member: what is compared of an object or of each object in a list; a dot leads further in.
        key: the member that identifies the same, such as a slug; it is compared exactly, and first.
        in_text: a value is also found by words in it.
        counted: the values in use are counted as facets.
        example: a value, if that of the field is none.
    """

    help: str
    name: str = ""
    presence: bool = False
    several: bool = False
    member: str = ""
    key: str = ""
    in_text: bool = False
    counted: bool = True
    example: str = ""


class Range(Struct, frozen=True):
    """
    A range of lists by a field: from *low* to *high*, both included; an item without a value is in no range.

    Args:
        low: the parameter of the lower bound.
        high: the parameter of the upper bound; "" for none.
    """

    low: str
    help: str
    high: str = ""
    high_help: str = ""


class Criterion(Struct, frozen=True):
    """
    A parameter that selects items, as every surface takes it.

    Args:
        schema: the JSON Schema of one value.
        rule: completes the sentence "it takes …".
        parse: returns the value of a text, or raises ValueError.
        example: a text that always works.
        several: it takes several values, any of which matches.
        is_amount: the text may be a number.
        write: makes a text of a value that parses as the same.
    """

    name: str
    help: str
    schema: dict[str, Any]
    rule: str
    parse: Callable[[str], Any]
    example: str
    several: bool = False
    is_amount: bool = False
    write: Callable[[Any], str] = str


class Chosen(NamedTuple):
    """A filter with its values, any of which matches."""

    name: str
    values: tuple[str, ...]
    in_text: bool = False


class Bounds(NamedTuple):
    """
    A range, named like its order; None where it is open.

    Args:
        parameters: the names by which the caller gave its bounds.
    """

    name: str
    low: Any = None
    high: Any = None
    parameters: tuple[str, ...] = ()


class Selected(NamedTuple):
    """The conditions by which a query selects items."""

    filters: tuple[Chosen, ...]
    ranges: tuple[Bounds, ...]


class ReversedRange(ValueError):  # noqa: N818 - what is wrong with two values
    """The lower bound of a range is above the upper one; has the names of both."""

    def __init__(self, low: str, high: str) -> None:
        super().__init__(Phrase("{low} is greater than {high}", low=low, high=high))
        self.low, self.high = low, high


class Listing(Struct, frozen=True, dict=True):
    """The list of one kind; *fields* are those of its items, and of the parts that it is filtered by."""

    kind: str
    fields: tuple["Field", ...]

    @cached_property
    def filters(self) -> dict[str, tuple["Field", Filter]]:
        """The fields by which the list is filtered, by the names of the parameters."""
        return {by.name or field.name: (field, by) for field in self.fields for by in field.filters}

    @cached_property
    def ranges(self) -> dict[str, tuple["Field", Range]]:
        """The fields by which the list is bounded, by the names of their orders."""
        return {field.order: (field, field.range) for field in self.fields if field.range}

    @cached_property
    def declared_bounds(self) -> tuple[tuple[str, "Field"], ...]:
        """The declared fields by which the list is bounded, each with the name of its order."""
        return tuple((name, field) for name, (field, _) in self.ranges.items() if field.is_additional)

    @cached_property
    def sorts(self) -> tuple[str, ...]:
        orders = (field.order for field in self.fields if field.order and field.is_sorted)
        return tuple(dict.fromkeys(("newest", *orders, "relevance")))

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The filters whose values are counted."""
        return tuple(name for name, (_, by) in self.filters.items() if by.counted)

    @cached_property
    def criteria(self) -> dict[str, Criterion]:
        filters = (_of_filter(name, *found) for name, found in self.filters.items())
        bounds = (each for found in self.ranges.values() for each in _of_range(*found))
        return {each.name: each for each in (*filters, *bounds)}

    def select(self, values: Mapping[str, Any]) -> Selected:
        """
        Return what *values*, parsed by the criteria, select; those that are None or no criterion are ignored.

        Raises:
            ReversedRange: the lower bound of a range is above the upper one.
        """
        filters = []
        for name, (_, by) in sorted(self.filters.items()):
            value = values.get(name)
            if value is not None:
                chosen_values = value if isinstance(value, tuple) else (value,)
                texts = set(map(self.criteria[name].write, chosen_values))
                filters.append(Chosen(name, tuple(sorted(texts)), by.in_text))
        ranges = []
        for name, (_, bounds) in sorted(self.ranges.items()):
            low, high = values.get(bounds.low), values.get(bounds.high) if bounds.high else None
            if low is not None and high is not None and low > high:
                raise ReversedRange(bounds.low, bounds.high)
            given = tuple(each for each, value in ((bounds.low, low), (bounds.high, high)) if value is not None)
            if given:
                ranges.append(Bounds(name, low, high, given))
        return Selected(tuple(filters), tuple(ranges))


def values_at(value: Any, path: str) -> Iterable[Any]:
    """Return the members at *path* of an object, or of each object in a list; without a path, the values themselves."""
    found = value if isinstance(value, list) else [value]
    for name in path.split(".") if path else ():
        found = [each[name] for each in found if isinstance(each, dict) and each.get(name) is not None]
    return [each for each in found if each is not None and each != ""]


def _of_filter(name: str, field: "Field", by: Filter) -> Criterion:
    from muniment.schema.kinds import Boolean, Choice, Country, Items, country_code
    from muniment.schema.places import state_key

    kind = field.kind
    schema: dict[str, Any]
    if by.presence or isinstance(kind, Boolean):
        rule = marked("true or false (in lower case)")
        return Criterion(name, by.help, {"type": "boolean"}, rule, _flag, "true", write=_written_flag)
    if isinstance(kind, Choice):
        values = kind.values
        schema = {"type": "string", "enum": list(values)}
        of_values = "one of: {values} (in lower case)" if all(map(str.islower, values)) else "one of: {values}"
        rule = Phrase(of_values, values=", ".join(values))
        return Criterion(name, by.help, schema, rule, _among(values), values[0], by.several)
    schema = {"type": "string", "minLength": 1, "maxLength": MAX_CHARACTERS, "pattern": _PLAIN}
    sample = field.example[0] if isinstance(kind, Items) and field.example else field.example
    example = by.example or str(sample)
    parse = country_code if by.member == "country" or isinstance(kind, Country) else _plain
    parse = state_key if by.member == "state" else parse
    return Criterion(
        name,
        by.help,
        schema,
        Phrase("a text of 1 to {limit} characters", limit=MAX_CHARACTERS),
        parse,
        example,
        by.several,
    )


def _of_range(field: "Field", by: Range) -> Iterable[Criterion]:
    from muniment.schema.kinds import MOMENT, Integer, Money, Number

    kind = field.kind
    is_amount = isinstance(kind, Money)
    schema: dict[str, Any]
    parse: Callable[[str], Any]
    write: Callable[[Any], str] = str
    if isinstance(kind, Money):
        rule, examples = marked("an amount such as 1.5M, $2,000,000 or 1500000"), ("1.5M", "2B")
        schema, parse, write = {"type": "string", "maxLength": MAX_AMOUNT, "pattern": _MONEY}, _amount, format_amount
    elif isinstance(kind, Integer):
        rule, examples = Phrase("a whole number from 0 to {limit}, in digits", limit=MAX_COUNT), ("2", "500")
        schema, parse = {"type": "integer", "minimum": 0, "maximum": MAX_COUNT}, _whole
    elif isinstance(kind, Number):
        rule, examples = marked("a number such as 12 or 2.5"), ("1", "500.5")
        schema, parse, write = {"type": "number"}, _number, _written_number
    elif kind is MOMENT:
        examples = ("2026-01-31T00:00:00Z", "2026-12-31T00:00:00Z")
        rule = Phrase("an RFC 3339 moment such as {example}, or a date such as 2026-01-31", example=examples[0])
        schema, parse = {"type": "string", "format": "date-time"}, parse_moment
    else:
        examples = ("2024-01-31", "2026-12-31")
        rule = Phrase("a date such as {example}, or an RFC 3339 moment", example=examples[0])
        schema, parse = {"type": "string", "format": "date"}, parse_day
        write = _day_of
    yield Criterion(by.low, by.help, schema, rule, parse, examples[0], is_amount=is_amount, write=write)
    if by.high:
        yield Criterion(by.high, by.high_help, schema, rule, parse, examples[1], is_amount=is_amount, write=write)


def _flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError
    return text == "true"


def _written_flag(value: Any) -> str:
    return "true" if value else "false"


def _among(values: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in values:
            raise ValueError
        return text

    return parse


def _plain(text: str) -> str:
    if not text.strip() or len(text) > MAX_CHARACTERS:
        raise ValueError
    return text


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_COUNT)) and int(text) <= MAX_COUNT):
        raise ValueError
    return int(text)


def _number(text: str) -> float:
    if len(text) > MAX_AMOUNT or not _DECIMAL.fullmatch(text):
        raise ValueError
    return number(float(text))


def _written_number(value: Any) -> str:
    return f"{value:.15g}"


def _amount(text: str) -> int:
    """Return an amount of the registry's currency, with or without its sign, in minor units."""
    if len(text) > MAX_AMOUNT:
        raise ValueError
    try:
        return parse_money(_SIGN.sub("", text.strip(), count=1))
    except ValueError:
        if _HUGE.fullmatch(text):
            return MAX_MINOR_UNITS
        raise


def parse_moment(text: str) -> str:
    """Parse an RFC 3339 moment, or the midnight (UTC) of a date, as a timestamp that can be compared."""
    # A plus sign that was not percent-encoded arrives as a space.
    plain = re.sub(r" (?=\d\d:\d\d$)", "+", text)
    return timestamp(parse_timestamp(plain if len(plain) != len("2026-01-31") else f"{plain}T00:00:00Z"))


def parse_day(text: str) -> int:
    """Parse a date, or the day (UTC) of a moment, as a proleptic ordinal."""
    return date.fromisoformat(parse_moment(text)[:10]).toordinal()


def _day_of(ordinal: int) -> str:
    return date.fromordinal(ordinal).isoformat()
