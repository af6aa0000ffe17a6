"""Turn the text of a cell into a value of a declared field, by its kind and the decisions about its column."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.wire import number
from muniment.registry.declared.columns import field_named, fields_of
from muniment.registry.declared.stored import fault_of
from muniment.registry.tables import columns as decide
from muniment.registry.tables import values
from muniment.registry.tables.cells import profiles
from muniment.registry.tables.cells.amounts import currency_in_heading
from muniment.registry.tables.columns import ASK, Column, plain_number
from muniment.registry.tables.headings import EXTRA, key
from muniment.registry.tables.values import Lost
from muniment.schema.declared.identifiers import CHECKS, Identifier
from muniment.schema.kinds import Choice, Country, Date, Kind, Link, Money, Number
from muniment.schema.record import Field

OPTIONS: Final[tuple[tuple[type[Kind], tuple[str, ...]], ...]] = (
    (Date, ("order",)),
    (Money, ("decimal", "currency", "unit")),
    (Number, ("decimal",)),
    (Choice, ("words",)),
)
"""What can be decided about a column, by the kind of its values."""
_MAX_CHARACTERS: Final = 100
"""Longer texts are no numbers."""


def field_in(column: Column) -> Field | None:
    """Return the declared field that a column holds, also by the name of an additional member."""
    return field_named(column.field.removeprefix(EXTRA))


def options_of(field: Field) -> tuple[str, ...]:
    return next((names for kind, names in OPTIONS if isinstance(field.kind, kind)), ())


def decided_options() -> dict[str, tuple[str, ...]]:
    """Return the options that depend on a column's values, by the declared field that they are for."""
    every = {**fields_of("companies"), **fields_of("people")}
    found = {name: tuple(each for each in options_of(field) if each != "words") for name, field in every.items()}
    return {name: options for name, options in found.items() if options}


def value_of(column: Column, text: str, currency: str) -> Any:
    """Return the value of a cell; None if it has none, Lost if it cannot be used."""
    field = field_in(column)
    if field is None:
        return values.value_of(column, text, currency)
    plain = values.value_of(Column(column.heading, "name"), text, currency)
    if not isinstance(plain, str):
        return plain  # it is blank, or a formula
    said = next((meaning for word, meaning in column.words.items() if key(word) == key(text)), None)
    if said is not None:
        return _judged(field, said) if said else None
    reader = next((each for kind, each in _READERS if isinstance(field.kind, kind)), _text)
    found = reader(field, column, text, currency)
    return found if isinstance(found, Lost) else _judged(field, found)


def decide_options(field: Field, column: Column, given: Sequence[str]) -> None:
    """Decide how the values of a column are written; blank values are left out of *given*."""
    if isinstance(field.kind, Date):
        column.order = column.order or decide.order_of_dates(given) or "YMD"
    elif isinstance(field.kind, Number | Money):
        column.decimal = decide.decimal_sign(given)
    if isinstance(field.kind, Money):
        column.currency, column.unit = currency_in_heading(column.heading)
        if not column.currency and any(each.strip("+-−.,'’ 0123456789\u00a0\u202f") == "" for each in given):
            column.currency = ASK


def fits(field: Field, given: Sequence[str]) -> bool:
    """Return whether the values of a column can be those of a field that its heading names."""
    if isinstance(field.kind, Date):
        return profiles.fits("listedAt", given)
    if isinstance(field.kind, Number | Money):
        return profiles.fits("treasury", given)
    if isinstance(field.kind, Link):
        return 2 * sum("." in each or "/" in each for each in given) >= len(given)
    return True


def _judged(field: Field, value: Any) -> Any:
    """Return a value in wire form, or why it is none of the field."""
    fault = fault_of(field, value)
    if fault:
        return Lost(fault, "Correct the cells, or keep them as they are under another name: extra:NAME.")
    breach = next(iter(field.kind.breaches(value, ())), None)
    if breach is not None:
        return Lost(breach.reason, "Correct the cells, or change the limits of the field.")
    return value


def _text(_field: Field, _column: Column, text: str, _currency: str) -> str:
    return " ".join(text.split())


def _number(_field: Field, column: Column, text: str, _currency: str) -> Any:
    found = plain_number(text, column.decimal or ".") if len(text) <= _MAX_CHARACTERS else ""
    return number(float(found)) if found else Lost("is not a number", "Correct the cells.")


def _money(field: Field, column: Column, text: str, currency: str) -> Any:
    found = values.value_of(_as(column, "treasury"), text, currency)
    return found if not isinstance(found, dict) else field.kind.wire(int(Decimal(found["amount"]) * 100))


def _choice(field: Field, _column: Column, text: str, _currency: str) -> str | Lost:
    kind: Any = field.kind
    meant = next((each for each in kind.values if key(each) == key(text)), None) if key(text) else None
    if meant is None:
        shown = text.strip()[:40]
        return Lost(
            Phrase('"{text}" is none of the choices', text=shown),
            'Add it under words on the column: "the word" = "the choice".',
        )
    return str(meant)


def _identifier(field: Field, _column: Column, text: str, _currency: str) -> str:
    kind: Any = field.kind
    plain = " ".join(text.split())
    check = CHECKS[kind.check]
    compact = "".join(plain.split()) if kind.check else plain
    return compact.upper() if check.is_upper else compact


def _by(name: str) -> Callable[[Field, Column, str, str], Any]:
    return lambda _, column, text, currency: values.value_of(_as(column, name), text, currency)


def _as(column: Column, field: str) -> Column:
    """Return a column as it would be for a built-in field."""
    return Column(
        column.heading, field, order=column.order, decimal=column.decimal, currency=column.currency, unit=column.unit
    )


_READERS: Final[tuple[tuple[type[Kind], Callable[[Field, Column, str, str], Any]], ...]] = (
    (Date, _by("listedAt")),
    (Money, _money),
    (Number, _number),
    (Choice, _choice),
    (Country, _by("address.country")),
    (Link, _by("website")),
    (Identifier, _identifier),
)
