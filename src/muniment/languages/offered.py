"""The languages that a registry offers, and the choice of the one that a visitor reads."""

import re
from functools import lru_cache
from typing import Final

from muniment.languages.catalogues import installed, shipped
from muniment.registry_toml.applied import Applied, applied

COOKIE: Final = "language"
MAX_REMEMBERED_BYTES: Final = 256
"""Longer header values are not kept in memory; no common client sends them."""
VARY: Final = "Accept-Language, Cookie"
RIGHT_TO_LEFT: Final = frozenset({"ar", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"})
_CHOSEN: Final = re.compile(rb"(?:^|;)\s*language=\"?([A-Za-z]{2,3}(?:-[A-Za-z]{2,8})?)\"?\s*(?:;|$)")
_seen: tuple[Applied | None, tuple[str, ...]] = (None, ())


def offered() -> tuple[str, ...]:
    """Return the languages that visitors can choose; the first is the default. There is always one."""
    global _seen  # noqa: PLW0603 - of the process
    settings = applied()
    before, found = _seen
    if settings is not before:
        declared = settings.settings.registry.languages
        found = tuple(code for code in declared if code in installed()) or shipped()
        _seen = settings, found
    return found


def default() -> str:
    """Return the language of everything that is not for one visitor: feeds, pictures of cards, mail to strangers."""
    return offered()[0]


def base_direction(language: str) -> str:
    """Return ``rtl`` for a language that is written from right to left, else ``ltr``."""
    return "rtl" if language.partition("-")[0] in RIGHT_TO_LEFT else "ltr"


def chosen(accept_language: bytes, cookies: bytes, known: tuple[str, ...]) -> str:
    """Return which of the *known* languages a visitor reads: the chosen one, else the preferred one, else the first."""
    if cookies and b"language=" in cookies and (found := _CHOSEN.search(cookies)):
        code = found[1].decode("ascii").lower()
        if code in known:
            return code
    if not accept_language:
        return known[0]
    is_short = len(accept_language) <= MAX_REMEMBERED_BYTES
    return _remembered(accept_language, known) if is_short else preferred(accept_language, known)


def preferred(accept_language: bytes, known: tuple[str, ...]) -> str:
    """
    Return the language that an ``Accept-Language`` value prefers; the first of *known* if it names none of them.

    A region falls back to its language, so that ``de-AT`` finds ``de`` (RFC 4647, section 3.4, look-up).
    """
    best, best_weight = known[0], 0.0
    for part in accept_language[:4096].decode("latin-1").lower().split(",")[:64]:
        name, *parameters = (each.strip() for each in part.split(";"))
        code = next((each for each in (name, name.partition("-")[0]) if each in known), "")
        if name == "*":
            code = known[0]
        if not code:
            continue
        weight = _weight(parameters)
        if weight > best_weight:
            best, best_weight = code, weight
    return best


def _weight(parameters: list[str]) -> float:
    for each in parameters:
        key, _, value = each.partition("=")
        if key.strip() == "q":
            found = re.fullmatch(r"[01](?:\.\d{0,3})?", value.strip())
            return min(float(found[0]), 1.0) if found else 0.0
    return 1.0


_remembered: Final = lru_cache(maxsize=1024)(preferred)
