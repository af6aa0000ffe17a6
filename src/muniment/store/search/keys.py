"""
Keys: what names one document by itself, without spaces or signs, marked so that no word of a text equals it.

``North Haven``, ``north-haven`` and ``northhaven`` are one key; so are ``https://www.example.org/about`` and
``example.org``.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from muniment.store.search_text import pieces

NAME: Final = "\u2261"
SYMBOL: Final = "\u2237"
SITE: Final = "\u2234"
MARKS: Final = (NAME, SYMBOL, SITE)
"""The marks of slugs and names, of symbols, and of domains, handles and identifiers; a sign is never part of a word."""
FORMER: Final = "\u2235"
"""The mark of former names, whose documents come after those that have the name now."""
NAMES: Final = (NAME, FORMER)
"""The marks of keys that a query is corrected by."""
NAMED: Final = "\u2299"
"""Marks each word of a name in the index of facts: few names have it, even of a word that many themes have."""
MAX_KEY_CHARACTERS: Final = 100

_ADDRESS: Final = re.compile(r"https?://(?:www\.)?+((?:[a-z0-9-]+\.)+[a-z]{2,})(?:/[!-~]*)?")
"""Most web addresses, which need not be parsed; the host without ``www.`` is the group."""
_DOMAIN: Final = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}", re.IGNORECASE)


def squeeze(text: str) -> str:
    return "".join(pieces(text))[:MAX_KEY_CHARACTERS]


def host_of(text: str) -> str:
    """Return the host of a web address or a bare domain without ``www.``; empty if the text is neither."""
    text = text.strip().lower()
    if plain := _ADDRESS.fullmatch(text):
        return plain[1]
    try:
        host = urlsplit(text).hostname if "://" in text else text.partition("/")[0]
    except ValueError:
        return ""
    host = (host or "").removeprefix("www.")
    return host if _DOMAIN.fullmatch(host) or ("://" in text and "." in host) else ""


def handle_of(profile: str) -> str:
    """Return the name of a profile: the last part of its address, or the name itself without its sign."""
    if "://" in profile:
        try:
            profile = urlsplit(profile).path.rstrip("/").rpartition("/")[2]
        except ValueError:
            return ""
    return profile.strip().lstrip("@")


def marked(mark: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of *texts*; one character or none names nothing."""
    found = dict.fromkeys([squeeze(text) for text in texts if text])
    return tuple([mark + key for key in found if len(key) > 1 or (key and mark == SYMBOL)])


def plain(word: str) -> str:
    """Return a word of the vocabulary without the mark of a name."""
    return word.removeprefix(NAME).removeprefix(FORMER)


def asked(query: str) -> str:
    """Return what *query* is as a key: an address means its host."""
    return squeeze(host_of(query) or query)
