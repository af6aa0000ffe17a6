"""
Declarations of query parameters, which both validate requests and document them.

Undeclared parameters are ignored. A declared one can be given once, or several times if it says so; an invalid value is
an error with its name, the value, the rule and a working example.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest
from muniment.schema.filters import MAX_VALUES, Criterion, Listing, ReversedRange
from muniment.schema.objects import registry_schema
from muniment.store.queries import ListQuery
from muniment.store.search.everything import COLLECTIONS

V1: Final = "/api/v1"
MAX_DIGITS: Final = 15
"""Numbers of this many digits are exact in every client."""
MAX_TEXT_CHARACTERS: Final = 200
MAX_SHOWN_CHARACTERS: Final = 100
_BROKEN_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Parameter:
    """
    A query parameter.

    Args:
        schema: its JSON Schema in the contract.
        rule: completes the sentence "it takes …".
        parse: returns the value, or raises ValueError.
        example: a value that always works; empty if there is none.
        required: whether a request without it is an error.
        several: it can be repeated; its values are a sorted tuple of different ones.
    """

    name: str
    description: str
    schema: JSONMapping
    rule: str
    parse: Callable[[str], Any]
    example: str
    required: bool = False
    several: bool = False


def whole_number(name: str, description: str, *, minimum: int, maximum: int | None = None, default: int) -> Parameter:
    """Declare an integer in plain digits."""
    top = 10**MAX_DIGITS - 1 if maximum is None else maximum

    def parse(text: str) -> int:
        digits = text.removeprefix("-") if minimum < 0 else text
        if not (text.isascii() and digits.isdigit() and len(text) <= MAX_DIGITS and minimum <= int(text) <= top):
            raise ValueError
        return int(text)

    schema = {"type": "integer", "minimum": minimum, "maximum": top, "default": default}
    rule = f"a whole number from {minimum} to {top}, in digits"
    return Parameter(name, description, schema, rule, parse, str(default))


def one_of(name: str, description: str, values: tuple[str, ...]) -> Parameter:
    """Declare a case-sensitive set of values."""

    def parse(text: str) -> str:
        if text not in values:
            raise ValueError
        return text

    rule = f"one of: {', '.join(values)} (in lower case)"
    return Parameter(name, description, {"type": "string", "enum": list(values)}, rule, parse, values[0])


def text(
    name: str, description: str, *, example: str, maximum: int = MAX_TEXT_CHARACTERS, blank: bool = False
) -> Parameter:
    def parse(value: str) -> str:
        if not (value if blank else value.strip()) or len(value) > maximum:
            raise ValueError
        return value

    pattern = r"^[^\x00]*$" if blank else r"^[^\x00]*[^\s\x00][^\x00]*$"
    schema = {"type": "string", "minLength": 1, "maxLength": maximum, "pattern": pattern}
    return Parameter(name, description, schema, f"a text of 1 to {maximum} characters", parse, example)


def some_of(name: str, description: str, names: tuple[str, ...]) -> Parameter:
    """Declare some of *names*, separated by commas."""

    def parse(value: str) -> tuple[str, ...]:
        parts = tuple(dict.fromkeys(value.split(",")))
        if not set(parts) <= set(names):
            raise ValueError
        return parts

    one = f"(?:{'|'.join(names)})"
    schema = {"type": "string", "pattern": f"^{one}(?:,{one})*$"}
    return Parameter(name, description, schema, f"some of: {', '.join(names)}", parse, names[0])


def words(name: str, description: str, *, maximum: int, example: str) -> Parameter:
    r"""Declare up to *maximum* words, separated by commas; a comma inside a word is written ``\,``."""

    def parse(value: str) -> tuple[str, ...]:
        parts = tuple(part.replace("\\,", ",") for part in re.split(r"(?<!\\),", value))
        if not all(parts) or len(parts) > maximum or any(len(part) > MAX_TEXT_CHARACTERS for part in parts):
            raise ValueError
        return parts

    word = r"(?:[^,\\\x00]|\\[^\x00]|\\)+"
    schema = {"type": "string", "minLength": 1, "pattern": f"^{word}(?:,{word})*$"}
    return Parameter(name, description, schema, f"1 to {maximum} names separated by commas", parse, example)


def hexadecimal(name: str, description: str, *, digits: int) -> Parameter:
    """Declare a text of so many hexadecimal digits, in lower case; no value of it works for certain."""
    pattern = f"^[0-9a-f]{{{digits}}}$"

    def parse(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError
        return value

    return Parameter(
        name, description, {"type": "string", "pattern": pattern}, f"{digits} hexadecimal digits", parse, ""
    )


def criterion(of: Criterion) -> Parameter:
    """Declare the parameter of a filter or a bound."""
    schema: JSONMapping = of.schema
    if of.several:
        schema = {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1, "maxItems": MAX_VALUES}]}
    return Parameter(of.name, of.help, schema, of.rule, of.parse, of.example, several=of.several)


def sort(listing: Listing) -> Parameter:
    words = {
        "newest": "`newest` first (the default)",
        "name": "by `name`",
        "treasury": "largest `treasury` first",
        "team": "largest `team` first",
        "companies": "most `companies` first",
        "updated": "last `updated` first",
        "relevance": "by `relevance` (only with `q`, and then the default)",
    }
    said = ", ".join(words[name] for name in listing.sorts)
    last = " Items without the value are last." if {"treasury", "team"} & {*listing.sorts} else ""
    return one_of("sort", f"{said}.{last}", listing.sorts)


def decode(raw: bytes) -> str | None:
    """Decode percent-encoding; None if it is malformed, not UTF-8, or contains NUL."""
    if b"%" not in raw:
        decoded = raw
    elif _BROKEN_PERCENT.search(raw):
        return None
    else:
        decoded = unquote_to_bytes(raw)
    try:
        plain_text = decoded.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in plain_text else plain_text


def query_items(query: bytes) -> Iterable[tuple[str, str | None, str]]:
    """Return name, value and raw value of each query parameter; the value is None if it cannot be decoded."""
    for pair in query.split(b"&"):
        name, _, value = pair.replace(b"+", b" ").partition(b"=")
        known = decode(name)
        if known:
            yield known, decode(value), value.decode("ascii", "replace")


def read(parameters: Mapping[str, Parameter], query: bytes, path: str) -> tuple[JSONObject, bool]:
    """
    Read the declared parameters of a query string.

    Returns:
        The values by name in the order of declaration, None if absent; and whether the query has no other parameters.

    Raises:
        BadRequest: an invalid value, or a required one that is missing; names the parameter and the value.
    """
    values: JSONObject = {}
    is_plain = True
    if query:
        values, is_plain = _read_items(parameters, query, path)
    for name, parameter in parameters.items():
        if parameter.required and name not in values:
            raise invalid_value(parameter, path, "is missing")
    return {name: values.get(name) for name in parameters}, is_plain


def _read_items(parameters: Mapping[str, Parameter], query: bytes, path: str) -> tuple[JSONObject, bool]:
    """Return the values that a query gives, and whether it has no parameter that is not declared."""
    single: JSONObject = {}
    several: dict[str, set[str]] = {}
    is_plain = True
    for name, value, raw in query_items(query):
        parameter = parameters.get(name)
        if parameter is None:
            is_plain = False
            continue
        if name in single:
            raise invalid_value(parameter, path, "is given more than once")
        if value is None:
            raise invalid_value(parameter, path, f"is {truncated(raw)}, which is not valid percent-encoded UTF-8")
        parsed = _parsed(parameter, value, path)
        if not parameter.several:
            single[name] = parsed
            continue
        several.setdefault(name, set()).add(parsed)
        if len(several[name]) > MAX_VALUES:
            raise invalid_value(parameter, path, f"is given with more than {MAX_VALUES} values")
    # Sorted, so that a query gives the same values in whatever order it names them.
    return single | {name: tuple(sorted(values)) for name, values in several.items()}, is_plain


def _parsed(parameter: Parameter, value: str, path: str) -> Any:
    try:
        return parameter.parse(value)
    except ValueError:
        what = f'is "{truncated(value)}"' if value else "is empty"
        raise invalid_value(parameter, path, what) from None


def truncated(value: str) -> str:
    """Truncate a client's value for a message."""
    return value if len(value) <= MAX_SHOWN_CHARACTERS else value[:MAX_SHOWN_CHARACTERS] + "…"


def invalid_value(parameter: Parameter, path: str, what: str) -> BadRequest:
    """Return the error for an invalid value."""
    example = f"{path}?{parameter.name}={quote(parameter.example)}" if parameter.example else path
    often = f"repeated for up to {MAX_VALUES} values" if parameter.several else "at most once"
    return BadRequest(f"{parameter.name} {what}; it takes {parameter.rule}, {often}.", f"For example: {example}")


MAX_IDS: Final = 100
LISTINGS: Final = registry_schema("USD").listings
"""The lists without declared fields."""
Values = JSONObject


def list_query(listing: Listing, path: str, values: Values) -> ListQuery:
    """Check the combination of a list's parameters and return its query."""
    page, size, cursor, sort = values["page"], values["pageSize"], values["cursor"], values["sort"]
    if cursor is not None and page is not None:
        raise BadRequest(
            f"page is {page} and a cursor is given; use only one of them.", f"For example: {path}?page={page}"
        )
    if sort == "relevance" and values["q"] is None:
        raise BadRequest(
            'sort is "relevance" without q; relevance needs search words.', f"For example: {path}?sort=newest"
        )
    default_size = 25
    if values["ids"] is not None:
        default_size = MAX_IDS
    return ListQuery(
        page=page or 1,
        page_size=size or default_size,
        q=values["q"] or "",
        sort=sort,
        cursor=cursor,
        ids=values["ids"],
        **selected(listing, path, values),
    )


def selected(listing: Listing, path: str, values: Values) -> JSONObject:
    """Return the filters and ranges of a query by the reader's names."""
    try:
        return listing.select(values)._asdict()
    except ReversedRange as error:
        low, high = listing.criteria[error.low], listing.criteria[error.high]
        example = f"{path}?{low.name}={quote(low.example)}&{high.name}={quote(high.example)}"
        raise BadRequest(
            f"{error}, so that nothing can be between them; both bounds are included.", f"For example: {example}"
        ) from None


def counted(listing: Listing, values: Values) -> tuple[str, ...]:
    """Return the names of the facets that a query asks for; those of other lists are ignored, like their filters."""
    return tuple(name for name in values["facets"] or () if name in listing.counted)


def of_collection(collection: str | None) -> str:
    """Return the kind of a collection; companies by default."""
    for kind, name in COLLECTIONS.items():
        if name == collection:
            return kind
    return "company"
