"""
Texts as they are stored: a phrase keeps its template and its values, so that it is translated when it is shown.

A packed phrase is a JSON object with the single member ``$text``. Plain texts stay as they are. An object that has
only this member already, such as one that a person sent, is wrapped, and is never read as a phrase.
"""

import re
from datetime import date
from string import Formatter
from typing import Any, Final

import msgspec

from muniment.kernel.phrases.phrase import Counted, Joined, Phrase, Verbatim

_MARK: Final = "$text"
_WIDE: Final = re.compile(r"\d{3}|[{}]")
"""A format with a width of hundreds, or one that takes it from a value, could fill the memory."""
_ENGLISH: Final = Formatter()


def packed(value: Any) -> Any:
    """Return a JSON value in which every phrase is an object with its template and its values."""
    if isinstance(value, str):
        return _packed_text(value)
    if isinstance(value, dict):
        members = {name: packed(member) for name, member in value.items()}
        return {_MARK: {"object": members}} if members.keys() == {_MARK} else members
    if isinstance(value, list | tuple):
        return [packed(item) for item in value]
    return value


def _packed_text(text: str) -> Any:
    if isinstance(text, Verbatim):
        return {_MARK: {"verbatim": str(text)}}
    if isinstance(text, Joined):
        return {_MARK: {"separator": text.template, "parts": packed(text.parts)}}
    if isinstance(text, Phrase):
        members = {
            "template": text.template,
            "values": {name: _packed_value(each) for name, each in text.values.items()},
        }
        if isinstance(text, Counted):
            members["several"] = text.several
        return {_MARK: members}
    return str(text)


def _packed_value(value: Any) -> Any:
    # A translation may format a date, so it has to be a date again.
    return {_MARK: {"date": value.isoformat()}} if isinstance(value, date) else packed(value)


def unpacked(value: Any) -> Any:
    """Return what :func:`packed` was given; an object that it did not make stays as it is."""
    if isinstance(value, dict):
        members = value.get(_MARK) if len(value) == 1 else None
        if isinstance(members, dict):
            try:
                return _unpacked_text(members)
            except (LookupError, ValueError, TypeError, AttributeError):
                return value
        return {name: unpacked(member) for name, member in value.items()}
    if isinstance(value, list):
        return [unpacked(item) for item in value]
    return value


def _unpacked_text(members: dict[str, Any]) -> Any:
    if "object" in members:
        return {name: unpacked(member) for name, member in members["object"].items()}
    if "verbatim" in members:
        return Verbatim(members["verbatim"])
    if "date" in members:
        return date.fromisoformat(members["date"])
    if "parts" in members:
        return Joined(members["separator"], unpacked(members["parts"]))
    values = unpacked(members["values"])
    if "several" in members:
        return Counted(_template(members["template"]), _template(members["several"]), **values)
    template = members["template"]
    return Phrase(_template(template) if values else template, **values)


def _template(stored: str) -> str:
    """Return a stored template, which only names its values: ``str.format`` would let it reach into them."""
    for _, name, form, _ in _ENGLISH.parse(stored):
        if name is not None and not (name.isidentifier() and not _WIDE.search(form or "")):
            raise ValueError(stored)
    return stored


def plain_json(value: Any) -> Any:
    """Return a packed JSON value with every phrase as plain text in English."""
    found = unpacked(value)
    if isinstance(found, str):
        return str(found)
    if isinstance(found, dict):
        return {name: plain_json(member) for name, member in found.items()}
    if isinstance(found, list):
        return [plain_json(item) for item in found]
    return found


def text_of(stored: str) -> str:
    """Return a text of :func:`stored_text`."""
    if not stored.startswith(('{"', '"')):
        return stored
    try:
        found = unpacked(msgspec.json.decode(stored))
    except msgspec.DecodeError:
        return stored
    return found if isinstance(found, str) else stored


def stored_text(text: str) -> str:
    """Return a text as a column keeps it: a phrase as JSON, and a plain text as it is unless it looks like JSON."""
    form = packed(text)
    if isinstance(form, str) and not form.startswith(('{"', '"')):
        return form
    return msgspec.json.encode(form).decode()


def shortened(text: str, characters: int) -> str:
    """Return a text that is cut to its first *characters*; a phrase that has to be cut becomes plain text."""
    return text if len(text) <= characters else str(text)[:characters]
