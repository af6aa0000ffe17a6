"""
Turn the text of a cell into a value of the import form, by the decisions about its column. Pure.

A cell gives a value, nothing, or a :class:`Lost`: a value is never guessed from a part of a cell.
"""

import functools
import gettext
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.wire import number
from muniment.registry.declared.stored import fault_of
from muniment.registry.tables.amounts import amount_in, plain_number
from muniment.registry.tables.catalogue import catalogue, key
from muniment.registry.tables.dates import day_of, is_year, month_of, year_of
from muniment.registry.tables.fields import ASK, EXTRA, Column, TableField, field_named
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
ZIP_CITY: Final = re.compile(r"((?:[A-Z]{1,2}-)?(?:\d{4} ?[A-Z]{2}|\d{3} \d{2}|\d{2}-\d{3}|\d{4,6}))[\s,]++(\D{2,})")
_CLOSING: Final = ")]）"
_BRACKET: Final = re.compile(r"[(\[（)\]）]")
_SEPARATORS: Final = (
    *(";", "；", "\n", "|", "、", " / ", "，", ",", " & ", " + "),
    *(" und ", " and ", " et ", " y ", " e ", " i ", " og ", " och ", " en "),
)


def separator_of(values: Sequence[str]) -> str:
    """Return the separator of several values in a cell, of a list of words; "" if cells have one value."""
    counts = Counter(each for each in (";", "\n", "|", "、", "，", "；", ",") for value in values if each in value)
    return max(counts, key=lambda each: counts[each]) if counts else ""


def separator_of_people(values: Sequence[str]) -> str:
    """Return the separator of several people in a cell; ``?`` where a comma may also part last and first name."""
    for separator in _SEPARATORS:
        cells = [value for value in values if separator in value]
        if not cells:
            continue
        are_full_names = [_has_full_names(cell, separator) for cell in cells]
        if separator.strip().isalpha():  # "Ortega y Gasset" is one name
            if all(are_full_names):
                return separator
            continue
        if separator != "," or all(are_full_names):
            return separator
        if any(map(_has_titles, cells)):
            return ""  # "Jane Doe, Chair"
        has_several_commas = any(cell.count(",") > 1 for cell in cells)
        if has_several_commas or any(are_full_names):
            return ASK
    return ""


def _has_full_names(cell: str, separator: str) -> bool:
    """Return whether every part of a cell has two words, as names of people have."""
    return all(len(part.split()) > 1 for part in _parts(cell, separator))


def _has_titles(cell: str) -> bool:
    parts = _parts(cell, ",")
    return len(parts) == 2 and is_title(parts[1])


def split(text: str, separator: str) -> list[str]:
    """Return the values in a cell; line breaks part them too."""
    if not separator:
        return [" ".join(text.split())] if text.strip() else []
    return [part for line in text.split("\n") for part in _parts(line, separator)]


def _parts(text: str, separator: str) -> list[str]:
    """Return the parts between separators that are not in brackets."""
    pieces = text.split(separator)
    found: list[list[str]] = [[]]
    is_inside = False
    for piece in reversed(pieces):  # a separator is in brackets if the next bracket after it is a closing one
        found[-1].append(piece)
        if bracket := _BRACKET.search(piece):
            is_inside = bracket[0] in _CLOSING
        if not is_inside:
            found.append([])
    parts = [separator.join(reversed(each)) for each in reversed(found)]
    return [" ".join(each.split()) for each in parts if each.strip()]


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
    if plate := _PLATES.get(key(bare)):
        return plate
    try:
        found = country_code(bare)
    except ValueError:
        return ""
    return found if found in country_names() else _foreign_names().get(key(bare), "")


@functools.cache
def _foreign_names() -> dict[str, str]:
    """Return countries by their three letters, official names, and names in all languages."""
    import pycountry

    places = Path(pycountry.LOCALES_DIR)
    languages = sorted(each.name for each in places.iterdir() if (each / "LC_MESSAGES" / "iso3166-1.mo").is_file())
    translations = [gettext.translation("iso3166-1", places, languages=[each]) for each in languages]
    codes: dict[str, str] = {}
    doubtful: set[str] = set()
    for country in pycountry.countries:
        own = {country.name, getattr(country, "official_name", ""), getattr(country, "common_name", "")} - {""}
        names = {country.alpha_3, *own}
        for translation in translations:
            names.update(map(translation.gettext, own))
        for name in map(key, names):
            if codes.setdefault(name, country.alpha_2) != country.alpha_2:
                doubtful.add(name)
    for name in doubtful | {""}:
        codes.pop(name, None)
    return codes


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


class Cell(NamedTuple):
    """A cell that is not blank, the decisions about its column, and what it must become."""

    text: str
    column: Column
    currency: str
    kind: Any = None


def is_blank(text: str) -> bool:
    """Return whether a cell says that there is no value."""
    return not text.strip() or text.strip().casefold() in catalogue().blanks


def value_of(column: Column, text: str, currency: str) -> Any:
    """Return the value of a cell; None if it has none, Lost if it cannot be used."""
    if _FORMULA.match(text):
        return Lost("is a formula, not a value", "Save the table with values; formulas are never calculated.")
    if is_blank(text):
        return None
    field = field_named(column.field)
    meaning = _meaning_in(column.words, text)
    if meaning == "":
        return None
    if meaning is not None:
        value: Any = meaning
    elif column.order and column.field.startswith(EXTRA):
        value = _date_text(Cell(text, column, currency))
    else:
        value = _read(field, Cell(text, column, currency, field.kind if field else None))
    if isinstance(value, Lost) or field is None or field.declaration is None:
        return value
    return _within_limits(field.declaration, value)


def _meaning_in(words: Mapping[str, str], text: str) -> str | None:
    """Return what a mapping says that *text* means: "" for nothing, None if the mapping does not say it."""
    for word, meaning in words.items():
        if word.casefold() == text.casefold() or (key(word) and key(word) == key(text)):
            return meaning
    return None


def _read(field: TableField | None, cell: Cell) -> Any:
    """Read a cell by the rule of its field's name, or else of its kind."""
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
    return "".join(each for each in text if each in "\n\t" or unicodedata.category(each) != "Cc").strip()


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
    plain = _plain_number(cell, cell.text)
    return number(float(plain)) if plain else Lost("is not a number", "Correct the cells.")


def _plain_number(cell: Cell, text: str) -> str:
    """Return a number with a decimal point; "" if *text* is none, also because it is too long for one."""
    if len(cell.text) > _MAX_CHARACTERS:
        return ""
    return plain_number(text, cell.column.decimal or ".")


def _money(cell: Cell) -> JSONObject | Lost:
    found = amount_in(cell.text, cell.column.decimal or ".")
    if found is None:
        return _NO_RANGE if _is_range(cell.text) else _NO_AMOUNT
    if found.number < 0:
        return Lost("is negative", "Correct the cells.")
    given = found.currency or cell.column.currency
    if given in {"", ASK}:
        return Lost("has no currency", 'Set currency = "EUR", for example, on the column.')
    if given != cell.currency:
        return Lost(
            Phrase("is in {given}; this registry uses {currency}", given=given, currency=cell.currency),
            "Convert the column first; rates are not invented.",
        )
    return _amount(found.number * (cell.column.unit or 1), cell.currency)


def _money_on_wire(cell: Cell) -> Any:
    found = _money(cell)
    return found if isinstance(found, Lost) else cell.kind.wire(int(Decimal(found["amount"]) * 100))


def _amount(amount: Decimal, currency: str) -> JSONObject | Lost:
    if amount >= _MAX_AMOUNT:
        return Lost("is too large for an amount", "Correct the cells.")
    if amount != round(amount, 2):
        return Lost("has more than two decimals", "Round the column first.")
    return {"amount": f"{amount:.2f}", "currency": currency}


def _status(cell: Cell) -> str | Lost:
    if found := catalogue().statuses.get(key(cell.text)):
        return found
    return Lost(
        Phrase('"{text}" is not a known status', text=cell.text.strip()[:40]),
        'Add it under words on the column: "the word" = "active".',
    )


def _link(cell: Cell) -> str | Lost:
    bare = _clean(cell.text)
    if match := re.fullmatch(r"\[?([^\]()]*)\]?\((https?://[^)\s]+)\)", bare):  # Markdown
        bare = match[2]
    if re.match(r"https?://\S+$", bare, re.IGNORECASE):
        return bare
    if re.fullmatch(r"(?:[\w-]+\.)+[^\W\d_]{2,}(?:/\S*)?", bare):
        return f"https://{bare}"
    return Lost("is not a web address", "Correct the cells.")


def _email(cell: Cell) -> str | Lost:
    bare = re.sub(r"^mailto:", "", _clean(cell.text), flags=re.IGNORECASE)
    if match := re.fullmatch(r".*<([^<>\s@]++@[^<>\s@]++)>", bare):
        bare = match[1]
    if bare.count("@") == 1 and " " not in bare:
        return bare
    return Lost("is not one email address", "Keep one address in each cell.")


def _day(cell: Cell) -> str | Lost:
    if found := day_of(cell.text, cell.column.order):
        return found.isoformat()
    if cell.column.order == ASK:
        return Lost("has a date whose order is unclear", 'Set order = "DMY" or "MDY" on the column.')
    if is_year(cell.text) or month_of(cell.text):
        return Lost("names no day", 'To keep such texts, map the column to "extra:since".')
    return Lost("is not a date", "Correct the cells.")


def _date_text(cell: Cell) -> str | Lost:
    """Return a date of an additional member: as a day, month or year, whatever the cell has."""
    if is_year(cell.text):
        return year_of(cell.text)
    if month := month_of(cell.text):
        return f"{month:%Y-%m}"
    return _day(cell)


def _month(cell: Cell) -> str | Lost:
    found = month_of(cell.text)
    return f"{found:%B %Y}" if found else Lost("is not a month and a year", "Correct the cells.")


def _zip_city(cell: Cell) -> JSONObject | Lost:
    found = ZIP_CITY.fullmatch(_clean(cell.text))
    if not found:
        return Lost("is not a postal code and a city", "Correct the cells, or map the column to City.")
    return {"zip": found[1], "city": found[2].strip()}


def _list(cell: Cell) -> list[str]:
    return list(dict.fromkeys(split(_clean(cell.text), cell.column.separator)))


def _country(cell: Cell) -> str | Lost:
    return code_of_country(cell.text) or Lost("is not a known country", "Use its two letters, such as FR, or its name.")


def address_of(text: str) -> JSONObject:
    """Return the parts of an address in one cell; what is not surely a part stays in the street."""
    lines = list(filter(None, map(str.strip, re.split(r"[,;\n]", _clean(text)))))
    if not lines:
        return {}
    members: JSONObject = {}
    country = _country_of_address(lines)
    if country:
        members["country"] = country
        lines.pop()
    zip_city = _ZIP_CITY_LINE.fullmatch(lines[-1])
    if zip_city and len(lines) > 1:
        members |= {"zip": zip_city[1], "city": zip_city[2].strip()}
        lines.pop()
    return {"address_1": ", ".join(lines), **members}


_ZIP_CITY_LINE: Final = re.compile(r"(?:[A-Z]{1,2}-)?(\d{4,5}|\d{3} \d{2}|\d{2}-\d{3})\s++(\D+)")


def _country_of_address(lines: Sequence[str]) -> str:
    """Return the code of the country that the last line of an address is; "" if it is none."""
    last = lines[-1]
    if len(lines) == 1:
        return ""
    if len(last) != 2:
        return code_of_country(last)
    # Two letters after the street alone can be a state: "1 Main Street, CA".
    is_code = len(lines) > 2 and bool(re.fullmatch(r"[A-Z]{2}", last)) and last in country_names()
    return last if is_code else ""


def people_in(column: Column, text: str) -> list[PersonInCell] | Lost | None:
    """Return the people in a cell; None if it has none."""
    if _FORMULA.match(text):
        return Lost("is a formula, not a value", "Save the table with values; formulas are never calculated.")
    if is_blank(text):
        return None
    if column.separator == ASK and "," in text:
        said = 'Set separator = "," for several people, or separator = "" for "Last, First".'
        return Lost("has commas that may part people, or last and first names", said)
    found = []
    names = split(_clean(text), column.separator) if column.separator else [_one_line(text)]
    for part in names:
        person = None if is_blank(part) else person_in(part, column.title)
        if person is None:
            return Lost("is not a list of names", "Correct the cells, or map the column to another field.")
        found.append(person)
    return found


def _choice(cell: Cell) -> str | Lost:
    for value in cell.kind.values:
        if key(cell.text) and key(value) == key(cell.text):
            return str(value)
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
    word = key(cell.text)
    if word in YES or word in NO:
        return word in YES
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
