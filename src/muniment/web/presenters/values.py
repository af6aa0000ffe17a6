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
    # Companies and people both have a name, a picture and declared fields, so the kind says whose field is meant.
    if kind == "person":
        records = (schema.person, schema.bundle, schema.company)
    else:
        records = (schema.company, schema.bundle, schema.person)
    for record in records:
        if name in record.by_name:
            return record.by_name[name]
    return None


def kind_of(field: Field | None) -> Kind | None:
    """Return the kind by which a member is written; None if it is unknown, or if its text is shown unchanged."""
    if field is None:
        return None
    # The choices of an operator's own field are that operator's words, even where one of them is the name of a state.
    if field.is_additional and isinstance(field.kind, Choice):
        return None
    return field.kind


def value_text(value: Any, kind: Kind | None = None) -> str:
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
            item_kind = kind.of if isinstance(kind, Items) else None
            texts = [_item_text(item, item_kind) for item in value]
            shown = "\n".join(texts)
        case dict() if isinstance(kind, Amount):
            amount = _amount(str(value.get("amount", "")))
            shown = f"{amount} {value.get('currency', '')}".strip()
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
    written = f"{int(whole):,}"
    if decimals not in {"", "00"}:
        written = f"{written}.{decimals}"
    return writing.digits(written)


def _members(value: JSONObject, kind: Kind | None) -> list[tuple[str, str]]:
    """Return the labels and texts of the members that have a value."""
    members = []
    for name, member in value.items():
        if member not in (None, "", []):
            members.append((label_of_member(name, kind), _member_text(member, name, kind)))
    return members


def label_of_member(key: str, kind: Kind | None) -> str:
    """Return what the pages call a member of an object; its own name if the schema does not declare it."""
    field = _field(key, kind)
    return gettext(field.label) if field else key


def kind_of_member(key: str, kind: Kind | None) -> Kind | None:
    field = _field(key, kind)
    return field.kind if field else None


def _field(key: str, kind: Kind | None) -> Field | None:
    return kind.by_name.get(key) if isinstance(kind, Record) else None


def _member_text(value: Any, key: str, kind: Kind | None) -> str:
    if key == "percentage" and isinstance(value, int | float) and not isinstance(value, bool):
        return percent(value)
    return value_text(value, kind_of_member(key, kind))


def _item_text(item: Any, kind: Kind | None) -> str:
    """Return an item of a list in one line: a position as the person's name and title, others as their members."""
    if not isinstance(item, dict):
        return value_text(item, kind)
    person, title = item.get("person"), item.get("title")
    if isinstance(person, dict):
        name = person.get("name", "")
        return f"{name}, {title}" if title else str(name)
    texts = []
    for name, member in item.items():
        # An id is how programs name the item; it tells readers nothing.
        if member and name != ITEM_ID.name:
            texts.append(_text_in_item(member, name, kind))
    return ", ".join(filter(None, texts))


def _text_in_item(value: Any, key: str, kind: Kind | None) -> str:
    """Return a member of an item; one that the schema does not declare, with its name."""
    if isinstance(value, dict | list):
        return _in_one_line(value, kind_of_member(key, kind))
    if not isinstance(kind, Record) or _field(key, kind):
        return _member_text(value, key, kind)
    is_day = isinstance(value, str) and len(value) == DAY_CHARACTERS
    text = day_or_text(value) if is_day else value_text(value)
    return f"{words_of(key)}: {text}"


def _in_one_line(value: Any, kind: Kind | None) -> str:
    if not isinstance(value, dict):
        return " ".join(value_text(value, kind).splitlines())
    texts = []
    for label, text in _members(value, kind):
        line = " ".join(text.splitlines())
        texts.append(f"{label} {line}")
    return ", ".join(texts)
