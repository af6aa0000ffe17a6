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
        wire: JSONObject = {}
        for member in structs.fields(self):
            value = getattr(self, member.name)
            # A required member has no default, which no value equals.
            if value != member.default:
                wire[member.name] = list(value) if isinstance(value, tuple) else value
        return wire

    def is_kept_by(self, other: "Declaration") -> bool:
        """Return whether every value of this declaration is one of *other*, as far as the declarations tell."""
        for name in ("kind", "check", "min", "max"):
            if getattr(self, name) != getattr(other, name):
                return False
        return set(self.choices) <= set(other.choices)


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
    if not isinstance(given, list):
        raise FieldsError([DeclarationFault(0, "", marked('fields must be tables that begin with "[[fields]]"'))])
    declarations: list[Declaration] = []
    faults: list[DeclarationFault] = []
    for number, table in enumerate(given, 1):
        faults_of_table = list(_faults_of(table))
        for member, says in faults_of_table:
            faults.append(DeclarationFault(number, member, says, _label_of(table)))
        if not faults_of_table:
            declarations.append(_declaration(table))
    if not faults:  # the number of a declaration is that of its table only if each table made one
        for number, says in _clashes(declarations, schema):
            # A clash with the number 0 is of all declarations together.
            member, key = ("key", declarations[number - 1].key) if number else ("", "")
            faults.append(DeclarationFault(number, member, says, key))
    if faults:
        raise FieldsError(faults)
    return tuple(declarations)


def _label_of(table: Any) -> str:
    """Return the key of a declaration as messages show it, which can be of any type and length."""
    if not isinstance(table, Mapping):
        return ""
    key = table.get("key", table.get("preset"))
    return key[:60] if isinstance(key, str) else ""


def declare(schema: Schema, declarations: Iterable[Declaration], currency: str) -> Schema:
    """Return *schema* with the declared fields."""
    fields: dict[str, list[Field]] = {place: [] for place in _PLACES}
    for declaration in declarations:
        fields[declaration.of].append(field_of(declaration, currency))
    if not any(fields.values()):
        return schema
    return schema.declare(company=tuple(fields["company"]), person=tuple(fields["person"]))


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
    made = KINDS[declared.kind](declared, "USD")  # of any currency, since no parameter is named after it
    names = [filter_.name or declared.key for filter_ in made.filters]
    if made.range:
        names += (made.range.low, made.range.high)
    return tuple(names)


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
    name = f"has{declared.key[0].upper()}{declared.key[1:]}"  # hasTokenContract
    return Filter(f"{declared.label}: whether there is a value.", name, presence=True)


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
    """Return what a table declares; what it says itself replaces what its preset says."""
    given: dict[str, Any] = {"of": "company"}
    preset = table.get("preset")
    if isinstance(preset, str):
        given |= PRESETS.get(preset, {})
    given |= table
    given.pop("preset", None)
    return given


def _declaration(table: Mapping[str, Any]) -> Declaration:
    given = _with_preset(table)
    return Declaration(**{**given, "choices": tuple(given.get("choices", ()))})


_Fault = tuple[str, str]
"""The member of a declaration, and what is wrong with it."""


def _faults_of(table: Any) -> Iterable[_Fault]:
    if not isinstance(table, Mapping):
        yield "", Phrase("must be a table, not {value}", value=shown(table))
        return
    names = [member.name for member in structs.fields(Declaration)]
    for name in sorted(table.keys() - {*names, "preset"}):
        yield "", Phrase("{name} is not one of preset, {names}", name=name, names=", ".join(names))
    preset = table.get("preset", "")
    if "preset" in table and (not isinstance(preset, str) or preset not in PRESETS):
        presets = ", ".join(PRESETS)
        yield "preset", Phrase("preset must be one of {presets}, not {value}", presets=presets, value=shown(preset))
        return  # what the preset would have declared cannot be judged
    given = _with_preset(table)
    if given["of"] not in _PLACES:
        yield "of", Phrase("of must be company or person, not {value}", value=shown(given["of"]))
    for name, most in (("key", 40), ("label", 60), ("kind", 20), ("help", 200), ("check", 20)):
        for fault in _text_faults(given, name, most):
            yield name, fault
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
        for fault in _choice_faults(given.get("choices")):
            yield "choices", fault
    check = given.get("check", "")
    if kind == "identifier" and isinstance(check, str) and check not in CHECKS:
        checks = ", ".join(filter(None, CHECKS))  # "" is that of an identifier without a check
        yield "check", Phrase("check must be one of {checks}, not {value}", checks=checks, value=shown(check))
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
        if not isinstance(most, int) or not 1 <= most <= MAX_CHARACTERS:
            says = Phrase(
                "max of a text must be a whole number from 1 to {limit:,}, not {value}",
                limit=MAX_CHARACTERS,
                value=shown(most),
            )
            yield "max", says


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _choice_faults(choices: Any) -> Iterable[str]:
    if not isinstance(choices, list) or not 1 <= len(choices) <= MAX_CHOICES:
        yield Phrase("choices must be a list of 1 to {limit} texts", limit=MAX_CHOICES)
    elif not all(map(_is_choice, choices)):
        yield Phrase("choices must be texts of one line and at most 100 characters")
    elif len({choice.casefold() for choice in choices}) < len(choices):
        yield Phrase("choices has a text twice")


def _is_choice(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= 100 and not line_fault(value)


def _clashes(declarations: Sequence[Declaration], schema: Schema) -> Iterable[tuple[int, str]]:
    """Yield the names that two fields would have, and those that are taken, by the number of the declaration, or 0."""
    taken = {name.casefold() for name in _RESERVED | _names_of(schema)}
    by_key: dict[str, Declaration] = {}
    for place in _PLACES:
        of_place = [(number, each) for number, each in enumerate(declarations, 1) if each.of == place]
        if len(of_place) > MAX_FIELDS:
            says = Phrase(
                "there are {count} fields of a {place}; at most {limit} are allowed",
                count=len(of_place),
                place=Phrase(place),
                limit=MAX_FIELDS,
            )
            yield 0, says
        seen: set[str] = set()
        for number, declaration in of_place:
            key = declaration.key
            names = {key, *parameters_of(declaration)}
            for name in sorted(names):
                if name.casefold() in taken:
                    says = Phrase(
                        "{key}: the name {name} is taken by a built-in field or parameter; choose another key",
                        key=key,
                        name=name,
                    )
                    yield number, says
                elif name.casefold() in seen:
                    says = Phrase(
                        "{key}: a field of a {place} with the name {name} is declared already",
                        key=key,
                        place=Phrase(place),
                        name=name,
                    )
                    yield number, says
            seen |= {name.casefold() for name in names}
            other = by_key.setdefault(key, declaration)
            if (other.kind, other.choices, other.check) != (declaration.kind, declaration.choices, declaration.check):
                says = Phrase(
                    "{key}: the fields of this name of companies and people must be of the same kind", key=key
                )
                yield number, says


def _names_of(schema: Schema) -> set[str]:
    """Return the names of all built-in members, orders and parameters."""
    names: set[str] = set()
    for record in (schema.company, schema.bundle, schema.person, schema.framework, DISTRIBUTION):
        names.update(record.by_name)
        names.update(field.order for field in record.fields if field.order)
    for listing in schema.listings.values():
        names.update(listing.criteria)
    return names
