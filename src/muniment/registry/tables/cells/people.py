"""Read the people in a cell: names with positions, one or several. Pure."""

import re
from typing import Final, NamedTuple

from muniment.registry.tables.words.catalogue import catalogue, key

_IN_BRACKETS: Final = re.compile(r"(.+?)\s*[(\[（［]([^()\[\]（）［］]+)[)\]）］]")
_BEFORE_COLON: Final = re.compile(r"([^:：,]{2,40})[:：]\s*(.+)")
_DASHED: Final = re.compile(r"(.+?)\s+[-–—]\s+(.+)")
_SUFFIX: Final = re.compile(r"\b(?:jr|sr|ph\.?d|md|mba|llm|esq|obe|mbe|cbe|ii|iii|iv)\b", re.IGNORECASE)
_NAME: Final = re.compile(r"[^\W\d_]{2}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class PersonInCell(NamedTuple):
    """A person in a cell, with the position that the cell or the heading says."""

    name: str
    title: str


def person_in(text: str, title: str) -> PersonInCell | None:
    """
    Return the person that a text names, with the first name first; None if it is no name.

    Args:
        title: the position if the text says none.
    """
    name = text
    if match := _IN_BRACKETS.fullmatch(text):
        name, title = match[1], match[2].strip()
    elif match := _BEFORE_COLON.fullmatch(text):
        title, name = match[1].strip(), match[2]
    elif match := _DASHED.fullmatch(text):
        if is_title(match[2]) == is_title(match[1]):
            return None
        name, title = (match[1], match[2]) if is_title(match[2]) else (match[2], match[1])
    elif (parts := [each.strip() for each in re.split(r"[,，]", text)]) and len(parts) == 2 and is_title(parts[1]):
        name, title = parts
    if "@" in name or not _NAME.search(name):
        return None
    return PersonInCell(full_name(name), title)


def is_title(text: str) -> bool:
    """Return whether a text is a position, or begins with one: "Chair", "Director of Research"."""
    titles = catalogue().titles
    words = text.split()
    return key(text) in titles or any(key(" ".join(words[:n])) in titles for n in range(1, min(4, len(words))))


def full_name(text: str) -> str:
    """Return a name with the first name first; other names stay as they are."""
    last, comma, first = text.replace("，", ",").partition(",")
    is_turned = bool(comma) and "," not in first and first.strip() and not _SUFFIX.search(first)
    return " ".join((f"{first} {last}" if is_turned else text).split())
