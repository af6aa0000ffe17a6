"""
Propose the mapping of a file: what its headings mean and its values fit, and how the values of a column are written.

A heading that the values contradict means nothing. A column without a known heading may be guessed by its values. A
decision counts for the whole column and never for a cell: if two readings fit equally well and differ, the mapping
asks.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from muniment.registry.tables.amounts import currency_in_heading, decimal_sign
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE, catalogue, key
from muniment.registry.tables.dates import ORDERS, day_of, is_serial, is_year, month_of, order_of_dates
from muniment.registry.tables.fields import ASK, PEOPLE_FIELD, SKIP, Column, field_named
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.headings import Match, header_row, headings_of, kind_of_table, meaning_of
from muniment.registry.tables.mapping import NAMES, FileMapping, TableMapping
from muniment.registry.tables.presets import Preset, preset_of
from muniment.registry.tables.values import (
    NO,
    YES,
    ZIP_CITY,
    code_of_country,
    is_blank,
    separator_of,
    separator_of_people,
)
from muniment.schema.kinds import Country, Email, Integer, Kind, Link, Money, Number, PictureLink, Profile, Slug, Text

JUDGED: Final = 300
"""Characters of a cell by which its column is judged."""
_PROFILE_ROWS: Final = 5_000
_NO_HEADERS: Final[Mapping[str, int]] = {}


def propose(sheets: Sequence[Sheet], file_name: str, headers: Mapping[str, int] = _NO_HEADERS) -> FileMapping:
    """
    Return a mapping of *sheets* by their headings and values.

    Args:
        headers: the numbers of rows with headings that a person chose, by the name of the table.
    """
    tables = [
        _propose_table(sheet, file_name, headers.get(sheet.name, 0), is_only=len(sheets) == 1) for sheet in sheets
    ]
    first = sheets[0]
    return FileMapping(tables, first.encoding, first.delimiter)


def _propose_table(sheet: Sheet, file_name: str, header: int, *, is_only: bool) -> TableMapping:
    at = header - 1 if 0 < header <= len(sheet.rows) else header_row(sheet.rows)
    headings = headings_of(sheet.rows, at)
    body = sheet.rows[at + 1 : at + 1 + _PROFILE_ROWS]
    preset = preset_of(headings)
    kind = preset.kind if preset else kind_of_table(headings, f"{sheet.name} {file_name}", is_only=is_only)
    values = [[row[n][:JUDGED] for row in body if not is_blank(row[n])] for n in range(len(headings))]
    found = _preset_columns(headings, values, preset) if preset else _columns(headings, values, kind)
    table = TableMapping(sheet.name, kind, at + 1, found)
    if not any(each.field in NAMES for each in found):
        table.kind = SKIP
    return table


def _preset_columns(headings: Sequence[str], values: Sequence[list[str]], preset: Preset) -> list[Column]:
    """Return the columns of a public format: its fields, unless the values contradict or another column has them."""
    columns: list[Column] = []
    for heading, cells in zip(headings, values, strict=True):
        column = Column(heading, **preset.options_of(heading))
        if column.field.startswith(f"{PEOPLE_FIELD}:"):  # people with the position that the heading says
            column.field, _, title = column.field.partition(":")
            column.title = column.title or title
        is_taken = any(other.field == column.field for other in columns)
        # Several columns can hold people; for any other field, only the first column counts.
        if (is_taken and column.field != PEOPLE_FIELD) or not fits(column.field, cells):
            column.field = ""
        decide_options(column, cells)
        columns.append(column)
    return columns


def _columns(headings: Sequence[str], values: Sequence[list[str]], kind: str) -> list[Column]:
    """Return the columns of a table: what headings mean and values fit, then guesses by values alone."""
    matches = [meaning_of(each, kind) for each in headings]
    found = [Column(each) for each in headings]
    taken: dict[str, int] = {}
    for n in sorted(range(len(found)), key=lambda n: (matches[n].is_guess, _is_general(headings[n]), n)):
        _take(found[n], matches[n], values[n], taken, n)
    if kind == COMPANIES:
        _people_of_two_columns(found, matches, taken)
    for n, column in enumerate(found):
        if not (column.field or matches[n].is_left_out or matches[n].fields or kind != COMPANIES):
            column.field = looks_like(values[n], lambda field: field not in taken)
            column.check = bool(column.field)
            taken.setdefault(column.field, n)
    if not {*NAMES} & taken.keys():
        _guess_name(found, matches, values)
    for column, cells in zip(found, values, strict=True):
        decide_options(column, cells)
    return found


def _is_general(heading: str) -> bool:
    """Return whether a heading gives way to others of its field: "Name" can be that of a person, too."""
    company, person = meaning_of(heading, COMPANIES).fields, meaning_of(heading, PEOPLE).fields
    is_name = bool(company) and company[0] == "name" and bool({*person} & {"name", "name.first", "name.last"})
    return is_name or heading.casefold().strip() in _BETTER_LAST


_BETTER_LAST: Final = ("title", "titel", "titre", "título", "titolo", "label", "bezeichnung", "contact", "kontakt")


def _take(column: Column, found: Match, values: Sequence[str], taken: dict[str, int], n: int) -> None:
    """Let a column hold the first field that it can mean, that is free, and that its values fit."""
    free = [meaning for meaning in found.fields if meaning.startswith(_PEOPLE_AS) or meaning not in taken]
    if not free and PEOPLE_FIELD in found.fields:
        free = [PEOPLE_FIELD]
    # People with a position, "people:Founder", are tried as people; of several positions, the first counts.
    meanings: dict[str, str] = {}
    for meaning in reversed(free):
        name = PEOPLE_FIELD if meaning.startswith(_PEOPLE_AS) else meaning
        meanings[name] = meaning
    field = fits_best([*reversed(meanings)], values)
    is_of_people = field == PEOPLE_FIELD
    # Several columns can hold people; any other field has one column.
    if not field or (field in taken and not is_of_people):
        return
    column.field, column.check = field, found.is_guess
    if is_of_people:
        column.title = meanings.get(field, "").partition(":")[2]
    taken.setdefault(field, n)


_PEOPLE_AS: Final = f"{PEOPLE_FIELD}:"


def _people_of_two_columns(found: Sequence[Column], matches: Sequence[Match], taken: Mapping[str, int]) -> None:
    """Let a general heading be the other part of a name: "Nom" beside "Prénom" and "Société"."""
    for one, other in (("people.first", "people.last"), ("people.last", "people.first")):
        if one in taken and other not in taken:
            for column, said in zip(found, matches, strict=True):
                parts = {*meaning_of(column.heading, PEOPLE).fields} & {"name", "name.first", "name.last"}
                if not column.field and parts and not said.is_left_out:
                    column.field = other
                    break


def _guess_name(found: Sequence[Column], matches: Sequence[Match], values: Sequence[list[str]]) -> None:
    """Let the first column of mostly different short texts be the name, for a person to check."""
    for column, said, cells in zip(found, matches, values, strict=True):
        if not (column.field or said.is_left_out) and looks_like_names(cells):
            column.field, column.check = "name", True
            return


def decide_options(column: Column, values: Sequence[str]) -> None:
    """Decide how the values of a column are written, for the field that it holds; blank values do not count."""
    values = [each[:JUDGED] for each in values if not is_blank(each)]
    field = field_named(column.field)
    if field is None:
        return
    if "separator" in field.options:
        is_of_people = column.field == PEOPLE_FIELD
        column.separator = separator_of_people(values) if is_of_people else separator_of(values)
    if "order" in field.options:
        column.order = column.order or order_of_dates(values) or "YMD"
    if "decimal" in field.options:
        column.decimal = decimal_sign(values, is_count=isinstance(field.kind, Integer))
    if "currency" in field.options:
        column.currency, column.unit = currency_in_heading(column.heading)
        if not column.currency and any(map(_names_no_currency, values)):
            column.currency = ASK


def _names_no_currency(text: str) -> bool:
    return not any(each.isalpha() or each in "€$£¥" for each in text)


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
_LEI: Final = re.compile(r"[A-Z0-9]{18}\d{2}", re.IGNORECASE)
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
    sample = values[:SAMPLED]
    if len(fields) > 1:
        field = _field_of_known_words(fields, sample)
        if field:
            return field
        if sample:  # whose words are no statuses
            fields = [field for field in fields if field != "status"]
    for field in fields:
        if field == "address" and "address.city" in fields:
            if share(sample, _is_like_an_address) >= _HALF:
                return field
            continue  # a city has neither commas nor numbers
        better = _better_part_of_address(field, sample)
        if better or fits(field, values):
            return better or field
    return ""


def _better_part_of_address(field: str, sample: Sequence[str]) -> str:
    """Return the part of an address that values are instead of *field*; "" if they are none."""
    if field in {"address.city", "address.zip"} and share(sample, _is_zip_city) >= _HALF:
        return "address.zip_city"
    if field in {"address", "address.city"} and share(sample, _is_country) >= _MOST:
        return "address.country"
    return ""


def _field_of_known_words(fields: Sequence[str], sample: Sequence[str]) -> str:
    for field, is_known in (("address.country", _is_country), ("status", is_status)):
        if field in fields and share(sample, is_known) >= _HALF:
            return field
    return ""


def _is_like_an_address(text: str) -> bool:
    return bool(re.search(r"[,\n]|\d", text))


def _is_zip_city(text: str) -> bool:
    return bool(ZIP_CITY.fullmatch(text))


def _is_country(text: str) -> bool:
    return bool(code_of_country(text))


def is_status(text: str) -> bool:
    return key(text) in catalogue().statuses


def looks_like(values: Sequence[str], free: Callable[[str], bool]) -> str:
    """
    Return the field that the values of a column without a known heading look like; empty if none.

    Args:
        free: whether no other column holds a field.
    """
    values = values[:SAMPLED]
    if not values:
        return ""
    hosts = list(map(_host, values))
    for host, field in _HOSTS.items():
        if free(field) and hosts.count(host) >= _MOST * len(values):
            return field
    for field, fits_surely in _SURE_LOOKS.items():
        if free(field) and fits_surely(values):
            return field
    return ""


def _are_email_addresses(values: Sequence[str]) -> bool:
    return share(values, lambda text: bool(_EMAIL.fullmatch(text))) >= _MOST


def _are_websites(values: Sequence[str]) -> bool:
    """Return whether values are home pages of different hosts, and not pages of one site."""
    return share(values, _is_home) >= _MOST and len({*map(_host, values)}) >= _MOST * len(values)


def _are_countries(values: Sequence[str]) -> bool:
    """Return whether values are names of countries, and not only codes, which languages and states have too."""
    return share(values, _is_country) >= _MOST and any(len(text) > _FEW for text in values)


def _are_phone_numbers(values: Sequence[str]) -> bool:
    return share(values, lambda text: bool(_SURE_PHONE.fullmatch(text))) >= _MOST


_SURE_LOOKS: Final[Mapping[str, Callable[[Sequence[str]], bool]]] = {
    "socials.email": _are_email_addresses,
    "website": _are_websites,
    "address.country": _are_countries,
    "socials.phone_number": _are_phone_numbers,
}
"""Fields that values show without a heading, in the order in which they are tried."""


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
