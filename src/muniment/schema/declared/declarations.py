"""
Declarations of fields, as the section ``[[fields]]`` of ``registry.toml`` has them, and the fields that they make.

A declaration adds a field to an open object; its values are kept among the additional members of that object.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, structs

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Joined, Phrase, Verbatim, marked
from muniment.kernel.texts import line_fault
from muniment.schema.company_parts import DISTRIBUTION
from muniment.schema.declared.faults import DeclarationFault, FieldsError
from muniment.schema.declared.identifiers import CHECKS, Identifier
from muniment.schema.declared.presets import PRESETS
from muniment.schema.filters import Filter, Range
from muniment.schema.kinds import DATE, Boolean, Choice, Country, Items, Kind, Link, Money, Number, Text
from muniment.schema.objects import Schema
from muniment.schema.record import Field
from muniment.schema.validation import shown

MAX_FIELDS: Final = 50
"""Maximum number of declared fields, for companies and for people each."""
MAX_CHOICES: Final = 100
MAX_CHARACTERS: Final = 2_000
MAX_LINK: Final = 500
MAX_IDENTIFIER: Final = 100
MAX_MONEY: Final = 40
MAX_ENTRIES: Final = 50
"""Maximum number of texts in a list, and of characters of each."""
MAX_ENTRY: Final = 100
_DEFAULT_CHARACTERS: Final = 500
OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "choices": ("choice",),
    "check": ("identifier",),
    "min": ("number",),
    "max": ("number", "text"),
}
"""The kinds that have an option."""
_KEY: Final = re.compile(r"[a-z][A-Za-z0-9]{1,39}")
_PLACES: Final = ("company", "person")
_RESERVED: Final = frozenset(
    {
        *("page", "pageSize", "q", "sort", "fields", "cursor", "ids", "facets", "list", "kind", "limit", "full"),
        *("query", "slug", "positions", "picture", "counted", "version", "next", "step", "do", "relevance", "newest"),
        *("chain", "after", "since", "extra", "company", "person", "framework", "source", "account"),
        # What the forms of listings and profiles send, besides fields.
        *("once", "csrfmiddlewaretoken", "confirm", "confirmed", "note", "go", "reply", "different", "preset", "only"),
        *("text", "action", "answer", "seen", "to", "left"),
        # What the documents of tools and the rows of a listing have, besides fields.
        *("provenance", "detail", "changes", "parts", "dryRun", "expectedVersion", "expectedTotals", "undo", "error"),
        *("data", "total", "hint", "nextPage", "closest", "owners", "state", "published", "history"),
        # What every object of a script has, and what scripts ask forms for: a control with that name would replace it.
        *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "prototype", "toJSON"),
        *("toLocaleString", "toString", "valueOf", "then", "elements", "dataset", "classList", "method", "target"),
        *("submit", "requestSubmit", "reset", "append", "contains", "closest", "querySelector", "querySelectorAll"),
        *("matches", "addEventListener"),
    }
)
"""Parameters, form controls, members of documents and of objects that have a meaning already."""


class Declaration(Struct, frozen=True):
    """
    A declared field.

    Args:
        of: company or person.
        key: its name on the wire.
        kind: one of :data:`KINDS`.
        choices: the values of a choice.
        check: the check of an identifier; one of :data:`CHECKS`.
        min: the least number.
        max: the largest number; of a text, its most characters.
        in_lists: whether the summaries that tools list have it.
        retired: its values are kept, and neither shown nor edited.
    """

    of: str
    key: str
    label: str
    kind: str
    help: str = ""
    choices: tuple[str, ...] = ()
    check: str = ""
    min: float | None = None
    max: float | None = None
    in_lists: bool = True
    retired: bool = False

    def to_wire(self) -> JSONObject:
        """Return what was declared, without defaults."""
        given = {name: value for name, value in structs.asdict(self).items() if name in {"of", "key", "label", "kind"}}
        defaults = {each.name: each.default for each in structs.fields(self)}
        further = {name: value for name, value in structs.asdict(self).items() if value != defaults[name]}
        wire: JSONObject = {}
        for name, value in {**given, **further}.items():
            wire[name] = list(value) if isinstance(value, tuple) else value
        return wire

    def is_kept_by(self, other: "Declaration") -> bool:
        """Return whether every value of this declaration is one of *other*, as far as the declarations tell."""
        same = ("kind", "check", "min", "max")
        return all(getattr(self, name) == getattr(other, name) for name in same) and set(self.choices) <= set(
            other.choices
        )


class _Made(NamedTuple):
    """The parts of the schema that a kind makes from a declaration."""

    kind: Kind
    filters: tuple[Filter, ...]
    range: Range | None = None
    example: Any = None


def read_declarations(given: Any, schema: Schema) -> tuple[Declaration, ...]:
    """
    Read the section ``[[fields]]``.

    Args:
        schema: the built-in fields, whose names are taken.

    Raises:
        FieldsError: it has faults.
    """
    found: list[Declaration] = []
    faults: list[DeclarationFault] = []
    if not isinstance(given, list):
        raise FieldsError([DeclarationFault(0, "", marked('fields must be tables that begin with "[[fields]]"'))])
    for number, table in enumerate(given, 1):
        own = list(_faults_of(table))
        faults += [DeclarationFault(number, member, says, _label_of(table)) for member, says in own]
        if not own:
            found.append(_declaration(table))
    if not faults:
        for number, says in _clashes(found, schema):
            # A clash with the number 0 is of all declarations together.
            member, key = ("key", found[number - 1].key) if number else ("", "")
            faults.append(DeclarationFault(number, member, says, key))
    if faults:
        raise FieldsError(faults)
    return tuple(found)


def _label_of(table: Any) -> str:
    named = table.get("key", table.get("preset")) if isinstance(table, Mapping) else None
    return named[:60] if isinstance(named, str) else ""


def declare(schema: Schema, declarations: Iterable[Declaration], currency: str) -> Schema:
    """Return *schema* with the declared fields."""
    made: dict[str, list[Field]] = {place: [] for place in _PLACES}
    for each in declarations:
        made[each.of].append(field_of(each, currency))
    if not any(made.values()):
        return schema
    return schema.declare(company=tuple(made["company"]), person=tuple(made["person"]))


def field_of(declared: Declaration, currency: str) -> Field:
    """Return the field that a declaration makes; a retired one is only kept."""
    made = KINDS[declared.kind](declared, currency)
    field = Field(
        declared.key,
        made.kind,
        declared.label,
        declared.help,
        example=made.example,
        summary="all" if declared.in_lists else "item",
    )
    if declared.retired:
        return structs.replace(field, shown=False, editable=False, csv=0, summary="none")
    order = declared.key if made.range else ""
    return structs.replace(field, filters=made.filters, range=made.range, order=order, is_sorted=False)


def parameters_of(declared: Declaration) -> tuple[str, ...]:
    """Return the names of the parameters that filter lists by a declared field."""
    made = KINDS[declared.kind](declared, "USD")
    bounds = (made.range.low, made.range.high) if made.range else ()
    return (*(each.name or declared.key for each in made.filters), *bounds)


def sample_of(declared: Declaration, currency: str) -> Any:
    """Return an example of a value, in wire form."""
    match declared.kind:
        case "number":
            return declared.min if declared.min is not None else 12
        case "money":
            return Money(MAX_MONEY, currency).wire(120_000_000)
        case "link":
            return "https://example.org"
        case "text":
            return "Example"[: int(declared.max or _DEFAULT_CHARACTERS)]
    return KINDS[declared.kind](declared, currency).example


# ---------------------------------------------------------------------- kinds


def _any_of(declared: Declaration, example: str, *, counted: bool = True) -> tuple[Filter, ...]:
    help_ = f"{declared.label}: any of these values."
    return (Filter(help_, several=True, counted=counted, example=example),)


def _presence(declared: Declaration) -> Filter:
    return Filter(
        f"{declared.label}: whether there is a value.", f"has{declared.key[0].upper()}{declared.key[1:]}", presence=True
    )


def _bounds(declared: Declaration, least: str, most: str) -> Range:
    low, high = f"{declared.key}{least}", f"{declared.key}{most}"
    return Range(low, f"{declared.label}: at least this.", high, f"{declared.label}: at most this.")


def _text(declared: Declaration, _: str) -> _Made:
    most = int(declared.max) if declared.max is not None else _DEFAULT_CHARACTERS
    return _Made(Text(most, strip=True, line=True), _any_of(declared, "Example"))


def _number(declared: Declaration, _: str) -> _Made:
    number = Number(declared.min, declared.max)
    return _Made(number, (_presence(declared),), _bounds(declared, "Min", "Max"))


def _money(declared: Declaration, currency: str) -> _Made:
    return _Made(Money(MAX_MONEY, currency), (_presence(declared),), _bounds(declared, "Min", "Max"))


def _date(declared: Declaration, _: str) -> _Made:
    return _Made(DATE, (_presence(declared),), _bounds(declared, "From", "To"), "2019-05-31")


def _choice(declared: Declaration, _: str) -> _Made:
    return _Made(Choice(declared.choices), _any_of(declared, declared.choices[0]), example=declared.choices[0])


def _link(declared: Declaration, _: str) -> _Made:
    return _Made(Link(MAX_LINK, strip=True), (_presence(declared),))


def _identifier(declared: Declaration, _: str) -> _Made:
    example = CHECKS[declared.check].example
    kind = Identifier(MAX_IDENTIFIER, strip=True, line=True, check=declared.check)
    return _Made(kind, (*_any_of(declared, example, counted=False), _presence(declared)), example=example)


def _country(declared: Declaration, _: str) -> _Made:
    return _Made(Country(), _any_of(declared, "FR"), example="FR")


def _list(declared: Declaration, _: str) -> _Made:
    texts = Items(Text(MAX_ENTRY, strip=True, line=True), MAX_ENTRIES, unique=True)
    return _Made(texts, _any_of(declared, "Example"), example=["Example"])


def _yes_or_no(declared: Declaration, _: str) -> _Made:
    return _Made(Boolean(), (Filter(f"{declared.label}: yes or no."),), example=True)


KINDS: Final[dict[str, Callable[[Declaration, str], _Made]]] = {
    "text": _text,
    "number": _number,
    "money": _money,
    "date": _date,
    "choice": _choice,
    "link": _link,
    "identifier": _identifier,
    "country": _country,
    "list": _list,
    "yesno": _yes_or_no,
}

# ---------------------------------------------------------------------- faults


def _with_preset(table: Mapping[str, Any]) -> dict[str, Any]:
    preset = PRESETS.get(table["preset"], {}) if isinstance(table.get("preset"), str) else {}
    return {"of": "company", **preset, **{name: value for name, value in table.items() if name != "preset"}}


def _declaration(table: Mapping[str, Any]) -> Declaration:
    given = _with_preset(table)
    return Declaration(**{**given, "choices": tuple(given.get("choices", ()))})


_Fault = tuple[str, str]
"""The member of a declaration, and what is wrong with it."""


def _faults_of(table: Any) -> Iterable[_Fault]:
    if not isinstance(table, Mapping):
        yield "", Phrase("must be a table, not {value}", value=shown(table))
        return
    names = [each.name for each in structs.fields(Declaration)]
    for name in sorted(table.keys() - {*names, "preset"}):
        yield "", Phrase("{name} is not one of preset, {names}", name=name, names=", ".join(names))
    if "preset" in table and (not isinstance(table["preset"], str) or table["preset"] not in PRESETS):
        yield (
            "preset",
            Phrase(
                "preset must be one of {presets}, not {value}", presets=", ".join(PRESETS), value=shown(table["preset"])
            ),
        )
        return
    given = _with_preset(table)
    if given["of"] not in _PLACES:
        yield "of", Phrase("of must be company or person, not {value}", value=shown(given["of"]))
    for name, most in (("key", 40), ("label", 60), ("kind", 20), ("help", 200), ("check", 20)):
        yield from ((name, says) for says in _text_faults(given, name, most))
    for name in ("in_lists", "retired"):
        if not isinstance(given.get(name, False), bool):
            yield name, Phrase("{name} must be true or false, not {value}", name=name, value=shown(given[name]))
    yield from _kind_faults(given)


def _text_faults(given: Mapping[str, Any], name: str, most: int) -> Iterable[str]:
    value = given.get(name, "")
    if not isinstance(value, str):
        yield Phrase("{name} must be text, not {value}", name=name, value=shown(value))
    elif not value.strip() and name in {"key", "label", "kind"}:
        yield Phrase("{name} is missing", name=name)
    elif len(value) > most:
        yield Phrase(
            "{name} has {count:,} characters; at most {limit:,} are allowed", name=name, count=len(value), limit=most
        )
    elif fault := line_fault(value):
        yield Joined(" ", (Verbatim(name), fault))
    elif name == "key" and not _KEY.fullmatch(value):
        yield Phrase(
            "key must be 2 to 40 letters and digits that begin with a small letter, not {value}", value=shown(value)
        )
    elif name == "kind" and value not in KINDS:
        yield Phrase("kind must be one of {kinds}, not {value}", kinds=", ".join(KINDS), value=shown(value))


def _kind_faults(given: Mapping[str, Any]) -> Iterable[_Fault]:
    """Yield what is wrong with the options of a kind, or is no option of it."""
    kind = given.get("kind")
    for name, kinds in OPTIONS.items():
        if name in given and kind in KINDS and kind not in kinds:
            yield name, Phrase("{name} is only for the kind {kinds}", name=name, kinds=" or ".join(kinds))
    if kind == "choice":
        yield from (("choices", says) for says in _choice_faults(given.get("choices")))
    if kind == "identifier" and isinstance(given.get("check", ""), str) and given.get("check", "") not in CHECKS:
        yield (
            "check",
            Phrase(
                "check must be one of {checks}, not {value}",
                checks=", ".join(filter(None, CHECKS)),
                value=shown(given["check"]),
            ),
        )
    yield from _bound_faults(given)


def _bound_faults(given: Mapping[str, Any]) -> Iterable[_Fault]:
    kind = given.get("kind")
    bounds = {name: given[name] for name in ("min", "max") if name in given}
    wrong = [name for name, bound in bounds.items() if not _is_number(bound)]
    if wrong:
        yield wrong[0], Phrase("min and max must be numbers")
    elif len(bounds) == 2 and bounds["min"] > bounds["max"]:
        yield "min", Phrase("min is greater than max")
    elif kind == "text" and bounds:
        most = next(iter(bounds.values()))
        if not (isinstance(most, int) and 1 <= most <= MAX_CHARACTERS):
            yield (
                "max",
                Phrase(
                    "max of a text must be a whole number from 1 to {limit:,}, not {value}",
                    limit=MAX_CHARACTERS,
                    value=shown(most),
                ),
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _choice_faults(choices: Any) -> Iterable[str]:
    if not isinstance(choices, list) or not 1 <= len(choices) <= MAX_CHOICES:
        yield Phrase("choices must be a list of 1 to {limit} texts", limit=MAX_CHOICES)
    elif any(not isinstance(each, str) or not each.strip() or len(each) > 100 or line_fault(each) for each in choices):
        yield Phrase("choices must be texts of one line and at most 100 characters")
    elif len({each.casefold() for each in choices}) < len(choices):
        yield Phrase("choices has a text twice")


def _clashes(found: Sequence[Declaration], schema: Schema) -> Iterable[tuple[int, str]]:
    """Yield the names that two fields would have, and those that are taken, by the number of the declaration, or 0."""
    taken = {name.casefold() for name in _RESERVED | _names_of(schema)}
    kinds: dict[str, Declaration] = {}
    for place in _PLACES:
        own = [(number, each) for number, each in enumerate(found, 1) if each.of == place]
        if len(own) > MAX_FIELDS:
            yield (
                0,
                Phrase(
                    "there are {count} fields of a {place}; at most {limit} are allowed",
                    count=len(own),
                    place=Phrase(place),
                    limit=MAX_FIELDS,
                ),
            )
        seen: set[str] = set()
        for number, each in own:
            names = {each.key, *parameters_of(each)}
            for name in sorted(names):
                if name.casefold() in taken:
                    said = Phrase(
                        "{key}: the name {name} is taken by a built-in field or parameter; choose another key",
                        key=each.key,
                        name=name,
                    )
                    yield number, said
                elif name.casefold() in seen:
                    yield (
                        number,
                        Phrase(
                            "{key}: a field of a {place} with the name {name} is declared already",
                            key=each.key,
                            place=Phrase(place),
                            name=name,
                        ),
                    )
            seen |= {name.casefold() for name in names}
            former = kinds.setdefault(each.key, each)
            if (former.kind, former.choices, former.check) != (each.kind, each.choices, each.check):
                yield (
                    number,
                    Phrase(
                        "{key}: the fields of this name of companies and people must be of the same kind", key=each.key
                    ),
                )


def _names_of(schema: Schema) -> set[str]:
    records = (schema.company, schema.bundle, schema.person, schema.framework, DISTRIBUTION)
    listings = schema.listings.values()
    return {
        *(name for record in records for name in record.by_name),
        *(field.order for record in records for field in record.fields if field.order),
        *(name for listing in listings for name in listing.criteria),
    }
