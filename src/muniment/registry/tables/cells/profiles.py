"""
Whether the values of a column can be those of a field, and which field a column without a known heading may hold. Pure.

The first is a gate: a heading that the values contradict means nothing. The second only proposes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from muniment.registry.tables.cells.countries import code_of_country
from muniment.registry.tables.cells.dates import ORDERS, day_of, is_serial, is_year, month_of
from muniment.registry.tables.fields import field_named
from muniment.registry.tables.words.catalogue import catalogue, key
from muniment.schema.kinds import Country, Email, Integer, Kind, Link, Money, Number, PictureLink, Profile, Slug, Text

SAMPLED: Final = 300
_HALF: Final = 0.5
_MOST: Final = 0.8
_LINK: Final = re.compile(r"(?:https?://)?(?:[\w-]+\.)+[^\W\d_]{2,}(?::\d+)?(?:[/?#]\S*)?", re.IGNORECASE)
_MARKDOWN: Final = re.compile(r"\[?[^\]()]*\]?\(https?://[^)\s]+\)")
_EMAIL: Final = re.compile(r"(?<![^\s@<>,;])[^\s@<>,;]++@[^\s@<>,;]+\.[^\W\d_]{2,}")
_PHONE: Final = re.compile(r"(?:tel\.?:?\s*)?[+(\d][\d\s()./\-–+]{4,}\d(?:\s*(?:x|ext\.?|-)\s*\d+)?", re.IGNORECASE)
_SURE_PHONE: Final = re.compile(r"(?:\+|00)\d[\d\s()./\-]{6,}\d")
_NUMBER: Final = re.compile(r"^\D{0,8}\d[\d.,'’\s\u00a0\u202f\u2009]*")
_ONLY_NUMBER: Final = re.compile(r"[-+−]?[\d.,'’\s\u00a0\u202f\u2009%]+")
_ZIP: Final = re.compile(r"(?:[A-Z]{1,3}[- ]?)?[\dA-Z][\dA-Z\- ]{1,9}|〒?\d{3}-?\d{4}", re.IGNORECASE)
_SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
ZIP_CITY: Final = re.compile(r"((?:[A-Z]{1,2}-)?(?:\d{4} ?[A-Z]{2}|\d{3} \d{2}|\d{2}-\d{3}|\d{4,6}))[\s,]++(\D{2,})")
_LEI: Final = re.compile(r"[A-Z0-9]{18}\d{2}", re.IGNORECASE)
YES: Final = frozenset({"true", "yes", "y", "ja", "oui", "si", "sim", "tak", "ano", "x", "1"})
NO: Final = frozenset({"false", "no", "n", "nein", "non", "nao", "nie", "ne", "nee", "nej", "0"})
_BOOLEANS: Final = YES | NO
_LETTER: Final = re.compile(r"[^\W\d_]")
_HOSTS: Final[Mapping[str, str]] = {
    "linkedin.com": "socials.linkedin",
    "facebook.com": "socials.facebook",
    "fb.com": "socials.facebook",
    "instagram.com": "socials.instagram",
    "youtube.com": "socials.youtube",
    "tiktok.com": "socials.tiktok",
    "twitter.com": "socials.twitter",
    "x.com": "socials.twitter",
}
_MAX_NAME: Final = 100
_MAX_WORDS: Final = 12
_FEW: Final = 3


def _is_slug(text: str) -> bool:
    """Return whether a text is a slug; numbers and identifiers of other systems are none."""
    return bool(_SLUG.fullmatch(text)) and 3 * sum(map(str.isdigit, text)) < len(text)


def _is_link(text: str) -> bool:
    return bool(_LINK.fullmatch(text) or _MARKDOWN.fullmatch(text))


def _is_email(text: str) -> bool:
    return bool(_EMAIL.search(text))


def _is_date(text: str) -> bool:
    return any(day_of(text, order) for order in ORDERS) or bool(month_of(text)) or is_year(text)


def _is_numeric(text: str) -> bool:
    return bool(_ONLY_NUMBER.fullmatch(text))


def _is_text(text: str) -> bool:
    """Return whether a cell has letters and is no address of something, no date and no yes or no."""
    return bool(_LETTER.search(text)) and not (
        _is_link(text) or _EMAIL.fullmatch(text) or _is_date(text) or key(text) in _BOOLEANS
    )


def _is_name_of_person(text: str) -> bool:
    return _is_text(text) and "@" not in text and not re.fullmatch(r"[A-Z_\-]*\d[A-Z0-9_\-]*", text)


def _is_place(text: str) -> bool:
    return bool(_LETTER.search(text)) and not _is_link(text) and "@" not in text and not _is_date(text)


def _is_profile(text: str) -> bool:
    return " " not in text.strip() and "@" not in text[1:] and not _is_numeric(text) and key(text) not in _BOOLEANS


def _is_count(text: str) -> bool:
    return bool(_NUMBER.match(text)) and not _is_date_and_no_year(text) and sum(map(str.isdigit, text)) <= _MAX_WORDS


def _is_date_and_no_year(text: str) -> bool:
    return not is_year(text) and not _is_numeric(text) and _is_date(text)


def _is_amount(text: str) -> bool:
    return bool(_NUMBER.match(text)) and not _is_date_and_no_year(text)


def _has_digit(text: str) -> bool:
    return bool(re.search(r"\d", text))


_LOOKS: Final[dict[str, Callable[[str], bool]]] = {
    "symbol": lambda text: len(text) <= _MAX_WORDS and " " not in text and bool(_LETTER.search(text)),
    "socials.phone_number": lambda text: bool(_PHONE.match(text)) and not _is_date(text),
    "address.zip": lambda text: bool(_ZIP.fullmatch(text)) and _has_digit(text),
    **dict.fromkeys(("address", "address.address_1", "address.city", "address.state"), _is_place),
    "address.zip_city": lambda text: bool(ZIP_CITY.fullmatch(text)),
    "status": lambda text: not (_is_link(text) or "@" in text or _is_date(text)),
    "themes": _is_text,
    "name": lambda text: _is_place(text) and key(text) not in _BOOLEANS,
    **dict.fromkeys(("people", "people.first", "people.last", "name.first", "name.last"), _is_name_of_person),
    **dict.fromkeys(("people.title", "position.title", "position.company"), _is_text),
    "extra:lei": lambda text: bool(_LEI.fullmatch(text)),
    "extra:registrationNumber": _has_digit,
}
"""Fields whose values look like something that their kind does not say."""
_LOOKS_OF_KINDS: Final[tuple[tuple[type[Kind], Callable[[str], bool]], ...]] = (
    (Slug, _is_slug),
    (Integer, _is_count),
    (Number, _is_amount),
    (Money, _is_amount),
    (Email, _is_email),
    (Profile, _is_profile),
    (PictureLink, lambda text: "/" in text),
    (Link, _is_link),
    (Country, lambda text: bool(code_of_country(text))),
)


def _look_of(name: str) -> Callable[[str], bool] | None:
    """Return what the values of a field look like; None if they can be any text."""
    field = field_named(name)
    if name in _LOOKS or field is None:
        return _LOOKS.get(name)
    if field.is_date:
        return lambda text: _is_date(text) or is_serial(text)
    for kind, looks_right in _LOOKS_OF_KINDS:
        if isinstance(field.kind, kind):
            return looks_right
    is_prose = isinstance(field.kind, Text) and field.kind.lines > 1
    is_word = isinstance(field.kind, Text) and field.is_of_vocabulary
    return _is_text if is_prose or is_word else None


_LEAST: Final = {"address.country": 0.3, "extra:registrationNumber": 0.3}
"""Shares of values that must fit, where they are not half."""


def share(values: Sequence[str], is_one: Callable[[str], bool]) -> float:
    return sum(map(is_one, values)) / len(values) if values else 0.0


def fits(field: str, values: Sequence[str]) -> bool:
    """Return whether the values of a column can be those of *field*; a column without values fits."""
    looks_right = _look_of(field)
    if not values or looks_right is None:
        return True
    return share(values[:SAMPLED], looks_right) >= _LEAST.get(field, _HALF)


def fits_best(fields: Sequence[str], values: Sequence[str]) -> str:
    """Return the first of *fields* that the values fit; those with known words before others."""
    for field, is_known in (("address.country", _is_country), ("status", is_status)):
        if len(fields) > 1 and field in fields and share(values[:SAMPLED], is_known) >= _HALF:
            return field
    for field in fields:
        if field == "status" and len(fields) > 1 and values:
            continue
        if field in {"address.city", "address.zip"} and share(values[:SAMPLED], _is_zip_city) >= _HALF:
            return "address.zip_city"
        if field == "address" and "address.city" in fields:
            if share(values[:SAMPLED], lambda text: bool(re.search(r"[,\n]|\d", text))) >= _HALF:
                return field
        elif field in {"address", "address.city"} and share(values[:SAMPLED], _is_country) >= _MOST:
            return "address.country"
        elif fits(field, values):
            return field
    return ""


def _is_zip_city(text: str) -> bool:
    return bool(ZIP_CITY.fullmatch(text))


def _is_country(text: str) -> bool:
    return bool(code_of_country(text))


def is_status(text: str) -> bool:
    return key(text) in catalogue().statuses


def looks_like(values: Sequence[str], free: Callable[[str], bool]) -> str:  # noqa: PLR0911 - one for each field
    """
    Return the field that the values of a column without a known heading look like; empty if none.

    Args:
        free: whether no other column holds a field.
    """
    values = values[:SAMPLED]
    if not values:
        return ""
    for host, field in _HOSTS.items():
        if free(field) and [*map(_host, values)].count(host) >= _MOST * len(values):
            return field
    distinct = {*values}
    if free("socials.email") and share(values, lambda text: bool(_EMAIL.fullmatch(text))) >= _MOST:
        return "socials.email"
    if free("website") and share(values, _is_home) >= _MOST and len({*map(_host, values)}) >= _MOST * len(values):
        return "website"
    if free("address.country") and share(values, _is_country) >= _MOST and _is_surely_of_countries(distinct):
        return "address.country"
    if free("socials.phone_number") and share(values, lambda text: bool(_SURE_PHONE.fullmatch(text))) >= _MOST:
        return "socials.phone_number"
    return ""


def _is_surely_of_countries(distinct: set[str]) -> bool:
    """Return whether texts are names of countries, and not codes that languages and states have too."""
    return any(len(each) > _FEW for each in distinct)


def _host(text: str) -> str:
    try:
        host = urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:
        return ""
    parts = host.removeprefix("www.").split(".")
    return ".".join(parts[-2:]) if ".".join(parts[-2:]) in _HOSTS else ".".join(parts)


def _is_home(text: str) -> bool:
    return bool(_LINK.fullmatch(text)) and text.rstrip("/").count("/") <= _FEW and _host(text) not in _HOSTS


def looks_like_names(values: Sequence[str]) -> bool:
    """Return whether values are mostly different short texts of letters, as names are."""
    values = values[:SAMPLED]
    if len(values) < 2 or len({*values}) < _MOST * len(values):
        return False
    return share(values, _is_like_a_name) >= _MOST


def _is_like_a_name(text: str) -> bool:
    letters = sum(map(str.isalpha, text))
    is_short = len(text) <= _MAX_NAME and len(text.split()) <= _MAX_WORDS
    return is_short and 2 * letters > len(text) and letters > 1 and _is_place(text) and not _is_country(text)
