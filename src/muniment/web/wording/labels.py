"""Labels for values that people enter in small letters or with hyphens, such as types and themes, by the language."""

import re
from functools import lru_cache
from typing import Final

from django.utils.translation import gettext, gettext_noop, pgettext

from muniment.languages.catalogues import SOURCE
from muniment.languages.speaking import language
from muniment.schema.company import INDUSTRIES, ORG_KINDS, THEMES, TYPES

_HYPHENATED: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
_HUMP: Final = re.compile(r"(?<=[a-z])[A-Z](?=[a-z])")
_ACRONYMS: Final = frozenset({"api", "dao", "ein", "id", "isin", "lei", "url", "usd", "vat"})
_SHORT: Final = 3
"""A word of fewer letters than this or as many, such as a country code, stays as it is."""


_MEMBERS: Final = {"sources": gettext_noop("Sources"), "tags": gettext_noop("Tags"), "notes": gettext_noop("Notes")}
"""Words for additional members that many registries have."""


def label(value: str) -> str:
    """Return a type, a subtype or an industry with a capital letter: ``open source project`` begins a line."""
    return _known(language()).get(value.casefold()) or _begun(value)


def theme(value: str) -> str:
    """Return a theme in words: ``public-goods`` as ``Public goods``."""
    known = _known(language()).get(value.casefold())
    if known:
        return known
    if len(value) <= _SHORT:
        return value
    if _HYPHENATED.fullmatch(value):
        value = value.replace("-", " ")
    return _begun(value)


def note(value: str) -> str:
    """Return what an amount is that is no treasury: ``sum of grants received`` begins a line."""
    said = note_within(value)
    return said[:1].upper() + said[1:]


def note_within(value: str) -> str:
    """Return what an amount is that is no treasury, within a line."""
    return _known(language()).get(value.casefold()) or value


@lru_cache(maxsize=4096)
def _begun(value: str) -> str:
    """Return a value in small letters with a capital at its beginning; one with capitals is a name, and stays."""
    if value != value.lower():
        return value
    return value[:1].upper() + value[1:]


@lru_cache(maxsize=64)
def _known(code: str) -> dict[str, str]:
    """Return the values that the schema suggests, and a note in use, in the current language, *code*."""
    if code == SOURCE:
        return {}
    known = {value.casefold(): pgettext("value", value) for value in (*TYPES, *INDUSTRIES, *ORG_KINDS, *THEMES)}
    return {**known, "sum of grants received": pgettext("value", "sum of grants received")}


WORDS: Final = {"type": label, "industry": label, "orgKind": label, "theme": theme, "themes": theme}
"""The functions that write the values of these members and filters."""


def labelled(name: str, value: str) -> str:
    """Return a value of the member or filter *name* as pages write it."""
    words = WORDS.get(name)
    return words(value) if words and value else value


def words_of(name: str) -> str:
    """Return the name of a member as words: ``treasuryNote`` as ``Treasury note``."""
    if name in _MEMBERS:
        return gettext(_MEMBERS[name])
    words = _HUMP.sub(lambda hump: f" {hump[0].lower()}", name.replace("_", " ")).split()
    for place, word in enumerate(words):
        if word in _ACRONYMS:
            words[place] = word.upper()
    text = " ".join(words)
    return text[:1].upper() + text[1:]
