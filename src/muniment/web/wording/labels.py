"""Labels for values that people enter in small letters or with hyphens, such as types and themes."""

import re
from functools import lru_cache
from typing import Final

_HYPHENATED: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_HUMP: Final = re.compile(r"(?<=[a-z])[A-Z](?=[a-z])")
_ACRONYMS: Final = frozenset({"api", "dao", "ein", "id", "isin", "lei", "url", "usd", "vat"})
_SHORT: Final = 3
"""A word of fewer letters than this or as many, such as a country code, stays as it is."""


@lru_cache(maxsize=4096)
def label(value: str) -> str:
    """Return a type, a subtype or an industry with a capital letter: ``open source project`` begins a line."""
    return value[:1].upper() + value[1:] if value == value.lower() else value


@lru_cache(maxsize=4096)
def theme(value: str) -> str:
    """Return a theme in words: ``public-goods`` as ``Public goods``."""
    if len(value) <= _SHORT:
        return value
    return label(value.replace("-", " ") if _HYPHENATED.fullmatch(value) else value)


WORDS: Final = {"type": label, "industry": label, "orgKind": label, "theme": theme, "themes": theme}
"""The functions that write the values of these members and filters."""


def labelled(name: str, value: str) -> str:
    """Return a value of the member or filter *name* as pages write it."""
    words = WORDS.get(name)
    return words(value) if words and value else value


def words_of(name: str) -> str:
    """Return the name of a member as words: ``treasuryNote`` as ``Treasury note``."""
    words = _HUMP.sub(lambda hump: f" {hump[0].lower()}", name.replace("_", " ")).split()
    for place, word in enumerate(words):
        if word in _ACRONYMS:
            words[place] = word.upper()
    text = " ".join(words)
    return text[:1].upper() + text[1:]
