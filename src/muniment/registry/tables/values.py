"""
Turn the text of a cell into a value of the import form, by the decisions about its column. Pure.

A cell gives a value, nothing, or a :class:`Lost`: a value is never guessed from a part of a cell.
"""

import functools
import gettext
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.kernel.wire import number
from muniment.registry.declared.stored import fault_of
from muniment.registry.tables.amounts import amount_in, currency_in_heading, is_percentage, plain_number
from muniment.registry.tables.catalogue import catalogue, key
from muniment.registry.tables.dates import day_of, has_time, is_year, month_of, year_of
from muniment.registry.tables.fields import ASK, EXTRA, Column, TableField
from muniment.registry.tables.persons import PersonInCell, person_in, split, split_names
from muniment.schema.declared.identifiers import CHECKS, Identifier
from muniment.schema.kinds import (
    MONTH,
    Boolean,
    Choice,
    Country,
    Date,
    Email,
    Integer,
    Items,
    Kind,
    Link,
    Money,
    Number,
    PictureLink,
    Profile,
    Slug,
    Text,
    country_code,
    country_names,
)
from muniment.schema.record import Field

YES: Final = frozenset({"true", "yes", "y", "ja", "oui", "si", "sim", "tak", "ano", "x", "1"})
NO: Final = frozenset({"false", "no", "n", "nein", "non", "nao", "nie", "ne", "nee", "nej", "0"})


def is_yes_or_no(text: str) -> bool:
    """Return whether a text is a word for yes or no, without a sign: "(x)" and "x?" say less than "x"."""
    return key(text) in YES | NO and not re.search(r"[?()\[\]\\/]", text)


ZIP_CITY: Final = re.compile(r"((?:[A-Z]{1,2}-)?(?:\d{4} ?[A-Z]{2}|\d{3} \d{2}|\d{2}-\d{3}|\d{4,6}))[\s,]++(\D{2,})")


_SEPARATORS: Final = (";", "\n", "|", "、", "，", "；", ",")


def separator_of(values: Sequence[str]) -> str:
    """Return the separator that most cells of a column have; "" if each cell has one value."""
    most_frequent, most = "", 0
    for separator in _SEPARATORS:
        count = sum(separator in value for value in values)
        if count > most:
            most_frequent, most = separator, count
    return most_frequent


_LINK: Final = re.compile(r"(?:https?://)?(?:[\w-]+\.)+[^\W\d_]{2,}(?::\d+)?(?:[/?#]\S*)?", re.IGNORECASE)
_MARKDOWN: Final = re.compile(r"\[?[^\]()]*\]?\(https?://[^)\s]+\)")


_FILE_NAME: Final = re.compile(
    r"[^/:]+\.(?:jpe?g|png|gif|svg|webp|bmp|tiff?|ico|pdf|docx?|xlsx?|pptx?|csv|txt|mp[34])", re.IGNORECASE
)
"""Names of files that look like hosts: no domain ends so."""


def is_link(text: str) -> bool:
    if _FILE_NAME.fullmatch(text):
        return False
    return bool(_LINK.fullmatch(text) or _MARKDOWN.fullmatch(text))


_PLATES: Final = {"a": "AT", "b": "BE", "d": "DE", "f": "FR", "i": "IT"}
"""Codes of number plates, which are in tables of addresses."""
_MAX_CHARACTERS: Final = 100


def code_of_country(text: str) -> str:
    """Return the two letters of a country by its code or name in one of several languages; "" if there is none."""
    bare = text.strip()
    return _code_of(bare) if len(bare) <= _MAX_CHARACTERS else ""


@functools.lru_cache(maxsize=4_096)
def _code_of(bare: str) -> str:
    if len(bare) == 2 and bare.isascii() and bare.upper() in country_names():
        return bare.upper()
    country_of_plate = _PLATES.get(key(bare))
    if country_of_plate:
        return country_of_plate
    try:
        code = country_code(bare)
    except ValueError:
        return ""
    return code if code in country_names() else _foreign_names().get(key(bare), "")


@functools.cache
def _foreign_names() -> dict[str, str]:
    """Return countries by their three letters, official names, and names in all languages."""
    import pycountry

    translations = _translations_of_countries(Path(pycountry.LOCALES_DIR))
    codes: dict[str, str] = {}
    ambiguous = {""}
    for country in pycountry.countries:
        in_english = {country.name, getattr(country, "official_name", ""), getattr(country, "common_name", "")} - {""}
        names = {country.alpha_3, *in_english}
        for translation in translations:
            names.update(map(translation.gettext, in_english))
        for name in map(key, names):
            if codes.setdefault(name, country.alpha_2) != country.alpha_2:
                ambiguous.add(name)
    for name in ambiguous:
        codes.pop(name, None)
    return codes


def _translations_of_countries(folder: Path) -> list[gettext.NullTranslations]:
    """Return the names of countries in all languages that the library has."""
    languages = [place.name for place in folder.iterdir() if (place / "LC_MESSAGES" / "iso3166-1.mo").is_file()]
    return [gettext.translation("iso3166-1", folder, languages=[language]) for language in sorted(languages)]


_RANGE: Final = re.compile(
    r"(?:ca\.?|ab|bis|up to|over|über|>|<|~|about)?\D{0,4}"
    r"[\d.,\s]+\D{0,4}(?:[-–—+~〜]|to|bis)\s*\D{0,4}[\d.,\s]*\D{0,6}",
    re.IGNORECASE,
)
_MAX_AMOUNT: Final = 10**15
_MOST_DIGITS: Final = 15
"""Longer texts are no numbers."""
_FORMULA: Final = re.compile(r"=[+\-@(]*[A-Za-z_.][\w.]*+[(!|]|=[A-Z]{1,3}\d+\b")


class Lost(NamedTuple):
    """A cell that gives no value, why, and what to do about it."""

    reason: str
    fix: str = ""


class Noted(NamedTuple):
    """A value that leaves out a part of its cell, with what is left out and what to do about it."""

    value: Any
    reason: str
    fix: str = ""


class Cell(NamedTuple):
    """A cell that is not blank, the decisions about its column, and what it must become."""

    text: str
    column: Column
    currency: str
    kind: Any = None


_UNKNOWN: Final = Lost("stands for a missing value")
_UNREADABLE: Final = "\ufffd"
"""What stands for bytes that the encoding of a file does not have."""
_MANGLED: Final = re.compile(r"[+-]?\d(?:[.,]\d+)?E\+\d{1,3}|#(?:REF|VALUE|DIV/0|NAME|NULL|NUM)[!?]?|#N/A|#{3,}")
_BRACKETS: Final = "[]()<>{}\"'“”*"


def is_blank(text: str) -> bool:
    """Return whether a cell stands for a missing value, in brackets too."""
    plain = text.strip().casefold()
    return not plain or plain in catalogue().blanks or plain.strip(_BRACKETS).strip() in catalogue().blanks


_ALSO_CODES: Final = frozenset({"NC", "ND", "NB", "NR", "BD"})
"""Blanks of French, Italian, Dutch and Polish that are codes elsewhere: North Carolina, North Dakota, New Brunswick."""


def is_mangled(text: str) -> bool:
    """Return whether a spreadsheet program wrote something else than the value: 4.42E+11, #REF!, ########."""
    return bool(_MANGLED.fullmatch(text.strip().upper()))


def _no_value_of(text: str, field: TableField | None = None) -> Lost | None:
    """Return why a cell gives no value, whatever its column holds; None if it may give one."""
    if _FORMULA.match(text):
        return Lost("is a formula, not a value", "Save the table with values; formulas are never calculated.")
    if _UNREADABLE in text:
        return Lost(
            "has characters that could not be read", "Set the right encoding in the mapping, or correct the cells."
        )
    if is_mangled(text):
        return Lost("was changed by a spreadsheet program", "Format the column as text, and save the table again.")
    # A dash needs no report; a word does, because the same word may be a value in another table.
    return _UNKNOWN if _is_blank_in(text, field) and any(map(str.isalnum, text)) else None


def _is_blank_in(text: str, field: TableField | None) -> bool:
    """Return whether a cell has no value; two capitals are a code in a column of texts, or if they are a choice."""
    if not is_blank(text):
        return False
    if text.strip() not in _ALSO_CODES:
        return True
    is_of_texts = field is None or type(field.kind) is Text
    is_choice = field is not None and isinstance(field.kind, Choice) and text.strip() in field.kind.values
    return not is_of_texts and not is_choice


def values_in(texts: Sequence[str]) -> list[str]:
    """Return the cells of a column that have a value; "NC" is one among other codes of capitals."""
    values = [text for text in texts if not is_blank(text)]
    codes = sum(bool(_CODE.fullmatch(text.strip())) for text in values)
    if not values or codes < _MOST_CODES * len(values):
        return values
    return [text for text in texts if not is_blank(text) or text.strip() in _ALSO_CODES]


_CODE: Final = re.compile(r"[A-Z]{2,5}")
_MOST_CODES: Final = 0.8


def value_of(column: Column, text: str, currency: str) -> Any:
    """Return the value of a cell; Noted if a part of it is left out, None if it has none, Lost if it cannot be used."""
    field = column.table_field
    meaning = _meaning_in(column.words, text)
    if meaning == "":
        return None
    lost = _no_value_of(text, field)
    if lost is not None:
        return lost
    if _is_blank_in(text, field):
        return None
    value: Any = meaning
    if meaning is None:
        kind = field.kind if field else None
        value = _read(field, Cell(text, column, currency, kind))
    if field is None or field.declaration is None or isinstance(value, Lost):
        return value
    if isinstance(value, Noted):
        within_limits = _within_limits(field.declaration, value.value)
        return within_limits if isinstance(within_limits, Lost) else value
    return _within_limits(field.declaration, value)


def _meaning_in(words: Mapping[str, str], text: str) -> str | None:
    """Return what a mapping says that *text* means: "" for nothing, None if the mapping does not say it."""
    for word, meaning in words.items():
        if word.casefold() == text.casefold() or (key(word) and key(word) == key(text)):
            return meaning
    return None


def _read(field: TableField | None, cell: Cell) -> Any:
    """Read a cell by the rule of its field's name, or else of its kind."""
    if cell.column.order and cell.column.field.startswith(EXTRA) and not cell.column.kind:
        return _date_text(cell)
    if field is None:
        return _as_it_is(cell)  # an additional member
    if field.name in _READERS_BY_NAME:
        return _READERS_BY_NAME[field.name](cell)
    if field.kind == MONTH:
        return _month(cell)
    for kind, reader in _READERS_BY_KIND:
        if isinstance(field.kind, kind):
            return reader(cell)
    is_prose = isinstance(field.kind, Text) and field.kind.lines > 1
    return _as_it_is(cell) if is_prose else _line(cell)


def _within_limits(declaration: Field, value: Any) -> Any:
    """Return a value of a declared field, or why the field does not accept it."""
    fault = fault_of(declaration, value)
    if fault:
        return Lost(fault, "Correct the cells, or keep them as they are under another name: extra:NAME.")
    breach = next(iter(declaration.kind.breaches(value, ())), None)
    if breach is not None:
        return Lost(breach.reason, "Correct the cells, or change the limits of the field.")
    return value


def _clean(text: str) -> str:
    """Return text without control characters, which no program shows."""
    return "".join(sign for sign in text if sign in "\n\t" or unicodedata.category(sign) != "Cc").strip()


def _as_it_is(cell: Cell) -> str:
    return _clean(cell.text)


def _line(cell: Cell) -> str:
    return _one_line(cell.text)


def _one_line(text: str) -> str:
    return " ".join(_clean(text).split())


_NO_RANGE: Final = Lost("is a range, not one amount", "Correct the cells, or map the column to another field.")
_NO_AMOUNT: Final = Lost("is not an amount", "Correct the cells, or map the column to another field.")
_COUNTED: Final = re.compile(
    r"(?<=\d)\s*(?:人|名|명|p(?:ax|ers)\.?|fte|personen|employees|mitarbeiter)$", re.IGNORECASE
)


def _is_range(text: str) -> bool:
    return len(text) <= _MAX_CHARACTERS and bool(_RANGE.fullmatch(text.strip()))


def _count(cell: Cell) -> int | Lost:
    digits = _plain_number(cell, _COUNTED.sub("", cell.text))
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    if digits.isdigit() and len(digits) > _MOST_DIGITS:
        return Lost("has more digits than a number may have", "Correct the cells.")
    if digits.isdigit():
        return int(digits)
    if _is_range(cell.text):
        return Lost("is a range, not one number", 'To keep such texts, set field = "extra:teamSizeRange".')
    return Lost("is not a whole number", "Correct the cells, or map the column to another field.")


def _number(cell: Cell) -> Any:
    label = cell.column.table_field.label if cell.column.table_field else ""
    plain = _plain_number(cell, cell.text)
    if not plain and "%" in label and is_percentage(cell.text):
        plain = _plain_number(cell, cell.text.strip().removesuffix("%"))
    if plain:
        return number(float(plain))
    amount = amount_in(cell.text, cell.column.decimal or ".")
    if amount is None or not amount.currency:
        return Lost("is not a number", "Correct the cells.")
    lost = _fault_of_unit(amount.currency, label)
    return lost if lost is not None else number(float(amount.number))


def _fault_of_unit(given: str, label: str) -> Lost | None:
    """Return why an amount in a currency is no number of a field; None if the field's label names that currency."""
    currency, scale = currency_in_heading(label)
    if not currency:
        return Lost(
            Phrase("is in {given}, and the label of the field names no currency", given=given),
            'Name the currency in the label of the field, for example "Budget (EUR)".',
        )
    if currency != given:
        return Lost(
            Phrase("is in {given}; the field is in {currency}", given=given, currency=currency),
            "Convert the column first; rates are not invented.",
        )
    if scale != 1:
        reason = "names a currency, but the label of the field has another unit"
        return Lost(reason, "Write numbers in the unit of the field, without the currency.")
    return None


def _plain_number(cell: Cell, text: str) -> str:
    """Return a number with a decimal point; "" if *text* is none, also because it is too long for one."""
    if len(cell.text) > _MAX_CHARACTERS:
        return ""
    return plain_number(text, cell.column.decimal or ".")


def _money(cell: Cell) -> JSONObject | Lost:
    amount = amount_in(cell.text, cell.column.decimal or ".")
    if amount is None:
        return _NO_RANGE if _is_range(cell.text) else _NO_AMOUNT
    if amount.number < 0:
        return Lost("is negative", "Correct the cells.")
    currency = amount.currency or cell.column.currency
    if currency in {"", ASK}:
        return Lost("has no currency", 'Set currency = "EUR", for example, on the column.')
    if currency != cell.currency:
        return Lost(
            Phrase("is in {given}; this registry uses {currency}", given=currency, currency=cell.currency),
            "Convert the column first; rates are not invented.",
        )
    return _amount(amount.number * (cell.column.unit or 1), cell.currency)


def _money_on_wire(cell: Cell) -> Any:
    amount = _money(cell)
    if isinstance(amount, Lost):
        return amount
    return cell.kind.wire(int(Decimal(amount["amount"]) * 100))


def _amount(amount: Decimal, currency: str) -> JSONObject | Lost:
    if amount >= _MAX_AMOUNT:
        return Lost("is too large for an amount", "Correct the cells.")
    if amount != round(amount, 2):
        return Lost("has more than two decimals", "Round the column first.")
    return {"amount": f"{amount:.2f}", "currency": currency}


def _status(cell: Cell) -> str | Lost:
    status = catalogue().statuses.get(key(cell.text))
    if status:
        return status
    return Lost(
        Phrase('"{text}" is not a known status', text=cell.text.strip()[:40]),
        'Add it under words on the column: "the word" = "active".',
    )


_BETWEEN_LINKS: Final = re.compile(r"[;,|\s]+")
_SECOND_LINK: Final = re.compile(r"[;,|]https?://", re.IGNORECASE)


def _link(cell: Cell) -> str | Noted | Lost:
    text = _clean(cell.text)
    link = _link_in(text)
    if link and not _SECOND_LINK.search(text):
        return link
    parts = [part for part in _BETWEEN_LINKS.split(text) if part not in {"", "/"}]
    links = list(dict.fromkeys(map(_link_in, parts)))
    if not links or not all(links):
        return Lost("is not a web address", "Correct the cells.")
    return _first_of(links, marked("has several web addresses, of which the first is imported"))


def _first_of(addresses: Sequence[str], reason: str) -> str | Noted:
    """Return the first address of a cell; if it has more, with the *reason* why they are left out."""
    if len(addresses) == 1:
        return addresses[0]
    return Noted(addresses[0], reason, "Put the address that should be public at the beginning of the cell.")


def _link_in(text: str) -> str:
    """Return the web address that all of *text* is; "" if it is none."""
    bare = text
    in_markdown = re.fullmatch(r"\[?([^\]()]*)\]?\((https?://[^)\s]+)\)", bare)
    if in_markdown:
        bare = in_markdown[2]
    if re.match(r"https?://\S+$", bare, re.IGNORECASE):
        return bare
    return f"https://{bare}" if re.fullmatch(r"(?:[\w-]+\.)+[^\W\d_]{2,}(?:/\S*)?", bare) else ""


_AT: Final = re.compile(r" ?[(\[{](?:at|a|@)[)\]}] ?", re.IGNORECASE)
_MOST_OF_ADDRESSES: Final = 500
"""Characters of a cell from which on it is a text and no list of addresses."""
_WITH_NAME: Final = re.compile(r"[^<>]*<([^<>\s@]++@[^<>\s@]++)>")
_BETWEEN_ADDRESSES: Final = tuple(
    map(re.compile, (r"[;|\n]", r",", r"\s*/\s*|\s*&\s*|\s+(?:and|or|und|oder|et|ou|y|o|e|i|of|en|och|og)\s+", r"\s+"))
)
"""What parts several addresses of mail, the surest first: a comma may be within the name before an address."""


def addresses_in(text: str) -> list[str]:
    """Return the addresses of mail that a cell has, and nothing else has; none if it has other words too."""
    if len(text) > _MOST_OF_ADDRESSES:
        return []
    plain = _AT.sub("@", _clean(text))  # "info (at) alder.example"
    address = _address_in(plain)
    if address:
        return [address]
    for between in _BETWEEN_ADDRESSES:
        parts = [part for part in between.split(plain) if part.strip()]
        addresses = [_address_in(part) for part in parts]
        if len(parts) > 1 and all(addresses):
            return list(dict.fromkeys(addresses))
    return []


def _address_in(text: str) -> str:
    """Return the address of mail that all of *text* is, perhaps behind a name; "" if it is none."""
    bare = re.sub(r"^mailto:", "", text.strip(), flags=re.IGNORECASE).strip(";,. ")
    with_name = _WITH_NAME.fullmatch(bare)
    if with_name:
        bare = with_name[1]
    is_one = bare.count("@") == 1 and not re.search(r"[\s;,|<>]", bare)
    return bare if is_one else ""


def _email(cell: Cell) -> str | Noted | Lost:
    addresses = addresses_in(cell.text)
    if not addresses:
        return Lost("is not one email address", "Keep one address in each cell.")
    return _first_of(addresses, marked("has several email addresses, of which the first is imported"))


def _day(cell: Cell) -> str | Noted | Lost:
    order = cell.column.order
    day = day_of(cell.text, order)
    if day is not None:
        if not has_time(cell.text, order):
            return day.isoformat()
        return Noted(
            day.isoformat(),
            "is imported without the time of day",
            "To keep the time, map the column to an additional field of text.",
        )
    if order == ASK:
        return Lost("has a date whose order is unclear", 'Set order = "DMY" or "MDY" on the column.')
    if is_year(cell.text) or month_of(cell.text):
        return Lost("names no day", 'To keep such texts, map the column to "extra:since".')
    return Lost("is not a date", "Correct the cells.")


def _date_text(cell: Cell) -> str | Noted | Lost:
    """Return a date of an additional member: as a day, month or year, whatever the cell has."""
    if is_year(cell.text):
        return year_of(cell.text)
    month = month_of(cell.text)
    if month is not None:
        return f"{month:%Y-%m}"
    return _day(cell)


def _month(cell: Cell) -> str | Lost:
    month = month_of(cell.text)
    if month is None:
        return Lost("is not a month and a year", "Correct the cells.")
    return f"{month:%B %Y}"


def _zip_city(cell: Cell) -> JSONObject | Lost:
    zip_and_city = ZIP_CITY.fullmatch(_clean(cell.text))
    if not zip_and_city:
        return Lost("is not a postal code and a city", "Correct the cells, or map the column to City.")
    return {"zip": zip_and_city[1], "city": zip_and_city[2].strip()}


def _list(cell: Cell) -> list[str]:
    return list(dict.fromkeys(split(_clean(cell.text), cell.column.separator)))


def _country(cell: Cell) -> str | Lost:
    return code_of_country(cell.text) or Lost("is not a known country", "Use its two letters, such as FR, or its name.")


COUNTRY: Final = "country"
STATE: Final = "state"
"""What ends the addresses of a column, if it may be either: "Georgia", or "CA"."""


@functools.cache
def _states() -> frozenset[str]:
    """Return the names and codes of the states of the United States, Canada and Australia, in capitals."""
    import pycountry

    states: set[str] = set()
    subdivisions: Any = pycountry.subdivisions
    for country in ("US", "CA", "AU"):
        for state in subdivisions.get(country_code=country):
            states |= {state.name.upper(), state.code.rpartition("-")[2].upper()}
    return frozenset(states)


def is_state(text: str) -> bool:
    return text.strip(" .").upper() in _states()


def ends_with_name_of_both(text: str) -> bool:
    """Return whether an address ends with a country that has the name or code of a state: "Georgia", or "CA"."""
    lines = _lines_of_address(text)
    return bool(lines) and is_state(lines[-1])


def end_of_addresses(values: Sequence[str]) -> str:
    """Return what ends the addresses of a column: STATE or COUNTRY; "" if no cell says it clearly."""
    ends = _ends_of_addresses(values)
    # Names that are both, such as Georgia, say nothing.
    states = sum(is_state(end) and not code_of_country(end) for end in ends)
    countries = sum(bool(code_of_country(end)) and not is_state(end) for end in ends)
    codes = {end for end in ends if len(end) == 2 and end.isupper()}
    if codes and not any(map(is_state, codes)):
        countries += len(codes)
    if states > countries:
        return STATE
    if states < countries:
        return COUNTRY
    # CA and DE alone can be Canada and Germany; several codes that all are states are no coincidence.
    return STATE if len(codes) > 1 and all(map(is_state, codes)) else ""


def _ends_of_addresses(values: Sequence[str]) -> list[str]:
    """Return the last lines of addresses of several lines, without the postal code that is behind a state."""
    ends = []
    for value in values:
        lines = _lines_of_address(value)
        if len(lines) > 1:
            ends.append(_STATE_ZIP.sub(r"\1", lines[-1]))
    return ends


_STATE_ZIP: Final = re.compile(r"([A-Za-z .]+?),?\s+(\d{5}(?:-\d{4})?)")


def _lines_of_address(text: str) -> list[str]:
    return list(filter(None, map(str.strip, re.split(r"[,;\n]", _clean(text)))))


def address_of(text: str, end: str = "") -> JSONObject:
    """
    Return the parts of an address in one cell; what is not surely a part stays in the street.

    Args:
        end: what ends the addresses of the column.
    """
    lines = _lines_of_address(text)
    if not lines:
        return {}
    members: JSONObject = {}
    country = _country_of_address(lines, end)
    if country:
        members["country"] = country
        lines.pop()
    if end == STATE and len(lines) > 1:
        members = _take_state_and_zip(lines) | members
    if len(lines) > 1:
        zip_and_city = _ZIP_CITY_LINE.fullmatch(lines[-1])
        if zip_and_city:
            members |= {"zip": zip_and_city[1], "city": zip_and_city[2].strip()}
            lines.pop()
    if lines:
        members = {"address_1": ", ".join(lines)} | members
    return members


def _take_state_and_zip(lines: list[str]) -> JSONObject:
    """Take the city, the state and the postal code from the end of *lines*: "Atlanta, GA 30301"."""
    ending = _STATE_ZIP.fullmatch(lines[-1])
    state = ending[1] if ending else lines[-1]
    if not is_state(state):
        return {}
    members: JSONObject = {"state": state}
    if ending:
        members["zip"] = ending[2]
    lines.pop()
    if not any(map(str.isdigit, lines[-1])):
        members["city"] = lines.pop()
    return members


_ZIP_CITY_LINE: Final = re.compile(r"(?:[A-Z]{1,2}-)?(\d{4,5}|\d{3} \d{2}|\d{2}-\d{3})\s++(\D+)")


def _country_of_address(lines: Sequence[str], end: str) -> str:
    """Return the code of the country that the last line of an address is; "" if it is none, or may be a state."""
    last = lines[-1]
    if len(lines) == 1 or (is_state(last) and end != COUNTRY):
        return ""
    if len(last) != 2:
        return code_of_country(last)
    # Two letters after the street alone can be a state: "1 Main Street, CA".
    is_code = len(lines) > 2 and bool(re.fullmatch(r"[A-Z]{2}", last)) and last in country_names()
    return last if is_code else ""


def people_in(column: Column, text: str) -> list[PersonInCell] | Lost | None:
    """Return the people in a cell; None if it has none."""
    lost = _no_value_of(text)
    if lost is not None:
        return lost
    if is_blank(text):
        return None
    if column.separator == ASK and "," in text:
        fix = 'Set separator = "," for several people, or separator = "" for "Last, First".'
        return Lost("has commas that may separate people, or last and first names", fix)
    # Without a separator, a line break within a cell is one within a name.
    names = split_names(_clean(text) if column.separator else _one_line(text), column.separator)
    people = []
    for name in names:
        person = None if is_blank(name) else person_in(name, column.title, column.order)
        if person is None:
            return Lost("is not the name of one person", "Correct the cells, or map the column to another field.")
        people.append(person)
    return people


def _choice(cell: Cell) -> str | Lost:
    plain = " ".join(cell.text.split())
    if plain in cell.kind.values:
        return plain
    compared = key(cell.text)
    for choice in cell.kind.values:
        if compared and key(choice) == compared:
            return str(choice)
    return Lost(
        Phrase('"{text}" is none of the choices', text=cell.text.strip()[:40]),
        'Add it under words on the column: "the word" = "the choice".',
    )


def _identifier(cell: Cell) -> str:
    plain = " ".join(cell.text.split())
    if cell.kind.check:
        plain = plain.replace(" ", "")
    return plain.upper() if CHECKS[cell.kind.check].is_upper else plain


def _boolean(cell: Cell) -> bool | Lost:
    if is_yes_or_no(cell.text):
        return key(cell.text) in YES
    return Lost("is neither yes nor no", "Correct the cells.")


Reader = Callable[[Cell], Any]
_READERS_BY_NAME: Final[dict[str, Reader]] = {
    "treasury": _money,
    "status": _status,
    "address.zip_city": _zip_city,
}
"""Fields that need more than their kind: cents of the treasury, and the words of all languages for a status."""
_READERS_BY_KIND: Final[tuple[tuple[type[Kind], Reader], ...]] = (
    (Email, _email),
    (Profile, _as_it_is),
    (Identifier, _identifier),
    (PictureLink, _as_it_is),
    (Link, _link),
    (Slug, _as_it_is),
    (Integer, _count),
    (Number, _number),
    (Boolean, _boolean),
    (Date, _day),
    (Country, _country),
    (Choice, _choice),
    (Money, _money_on_wire),
    (Items, _list),
)
"""The first that applies reads the cell, so a kind comes before the one that it refines."""
