"""Values of the wire as the pages write them: days, states, countries, shares and amounts in the visitor's language."""

from typing import Any

from django.conf import settings
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.kernel.wire import parse_timestamp
from muniment.languages import writing
from muniment.languages.writing import number
from muniment.schema.item_lists import ITEM_ID
from muniment.schema.kinds import MOMENT, MONTH, Amount, Choice, Country, Date, Day, Items, Kind, Parsed
from muniment.schema.record import Field, Record
from muniment.web.presenters.charts import percent
from muniment.web.presenters.company import day_or_text
from muniment.web.wording.labels import words_of
from muniment.web.wording.places import country_names, month_or_text
from muniment.web.wording.states import STATES, outcome

DAY_CHARACTERS = 10
"""Characters of a day on the wire; an end date may have a time too, which is shown as it was given."""


def field_of(name: str, kind: str = "company") -> Field | None:
    """Return the member of a company or, where *kind* says so, of a person that the schema declares."""
    schema = settings.SCHEMA
    records = (schema.person, schema.bundle, schema.company)
    order = records if kind == "person" else reversed(records)
    return next((record.by_name[name] for record in order if name in record.by_name), None)


def kind_of(field: Field | None) -> Kind | None:
    """Return how a member is written; None for the choices of an operator, which are shown as they were given."""
    return None if field is None or (field.is_additional and isinstance(field.kind, Choice)) else field.kind


def said(value: Any, kind: Kind | None = None) -> str:
    """
    Return a value of the wire as readable text.

    Args:
        kind: what the schema says of it; None if it says nothing.
    """
    match value:
        case None:
            shown = ""
        case bool():
            shown = gettext("yes") if value else gettext("no")
        case int() | float():
            shown = number(value)
        case list():
            of = kind.of if isinstance(kind, Items) else None
            shown = "\n".join(_row(each, of) for each in value)
        case dict() if isinstance(kind, Amount):
            shown = f"{_amount(str(value.get('amount', '')))} {value.get('currency', '')}".strip()
        case dict():
            shown = "\n".join(f"{label}: {text}" for label, text in _members(value, kind))
        case _:
            shown = _text(str(value), kind)
    return shown


def _text(text: str, kind: Kind | None) -> str:
    match kind:
        case Choice() if text in STATES:
            shown = outcome(text)
        case Day() | Date() if len(text) == DAY_CHARACTERS:
            shown = day_or_text(text)
        case Amount():
            shown = _amount(text)
        case Country():
            shown = str(country_names().get(text, text))
        case Parsed() if kind == MONTH:
            shown = month_or_text(text)
        case Parsed() if kind == MOMENT:
            shown = _moment(text)
        case _:
            shown = text
    return shown


def _moment(text: str) -> str:
    try:
        return writing.moment(parse_timestamp(text))
    except ValueError:
        return text


def _amount(text: str) -> str:
    """Return an exact amount with separators; whole ones without decimals."""
    whole, _, decimals = text.partition(".")
    if not whole.isdecimal():
        return text
    shown = f"{int(whole):,}"
    return writing.digits(shown if decimals in {"", "00"} else f"{shown}.{decimals}")


def _members(value: JSONObject, kind: Kind | None) -> list[tuple[str, str]]:
    """Return the labels and texts of the members that have a value."""
    return [
        (label_of_member(key, kind), _member(each, key, kind))
        for key, each in value.items()
        if each not in (None, "", [])
    ]


def label_of_member(key: str, kind: Kind | None) -> str:
    """Return what the pages call a member of an object; its own name if the schema does not declare it."""
    field = _field(key, kind)
    return gettext(field.label) if field else key


def kind_of_member(key: str, kind: Kind | None) -> Kind | None:
    field = _field(key, kind)
    return field.kind if field else None


def _field(key: str, kind: Kind | None) -> Field | None:
    return kind.by_name.get(key) if isinstance(kind, Record) else None


def _member(value: Any, key: str, kind: Kind | None) -> str:
    if key == "percentage" and isinstance(value, int | float) and not isinstance(value, bool):
        return percent(value)
    return said(value, kind_of_member(key, kind))


def _row(value: Any, kind: Kind | None) -> str:
    if not isinstance(value, dict):
        return said(value, kind)
    if isinstance(value.get("person"), dict):
        title = value.get("title")
        return f"{value['person'].get('name', '')}{f', {title}' if title else ''}"
    parts = [_part(each, key, kind) for key, each in value.items() if each and key != ITEM_ID.name]
    return ", ".join(filter(None, parts))


def _part(value: Any, key: str, kind: Kind | None) -> str:
    """Return a member of a row; one that the schema does not declare with its name."""
    if isinstance(value, dict | list):
        return _inside(value, kind_of_member(key, kind))
    if not isinstance(kind, Record) or _field(key, kind):
        return _member(value, key, kind)
    is_day = isinstance(value, str) and len(value) == DAY_CHARACTERS
    return f"{words_of(key)}: {day_or_text(value) if is_day else said(value)}"


def _inside(value: Any, kind: Kind | None) -> str:
    """Return an object or a list within a row in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{label} {' '.join(text.splitlines())}" for label, text in _members(value, kind))
    return " ".join(said(value, kind).splitlines())
