"""
Turn the text of a cell into a value of the import form, by the decisions about its column. Pure.

A cell gives a value, nothing, or a :class:`Lost`: a value is never guessed from a part of a cell.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.wire import number
from muniment.registry.declared.stored import fault_of
from muniment.registry.tables.cells.amounts import amount_in
from muniment.registry.tables.cells.countries import code_of_country
from muniment.registry.tables.cells.dates import day_of, is_year, month_of, year_of
from muniment.registry.tables.cells.people import PersonInCell, person_in
from muniment.registry.tables.cells.profiles import NO, YES, ZIP_CITY
from muniment.registry.tables.columns import ASK, Column, plain_number, split
from muniment.registry.tables.fields import EXTRA, TableField, field_named
from muniment.registry.tables.words.catalogue import catalogue, key
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
    country_names,
)
from muniment.schema.record import Field

_RANGE: Final = re.compile(
    r"(?:ca\.?|ab|bis|up to|over|über|>|<|~|about)?\D{0,4}"
    r"[\d.,\s]+\D{0,4}(?:[-–—+~〜]|to|bis)\s*\D{0,4}[\d.,\s]*\D{0,6}",
    re.IGNORECASE,
)
_MAX_AMOUNT: Final = 10**15
_MOST_DIGITS: Final = 15
_MAX_CHARACTERS: Final = 100
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
    lines = [part.strip() for part in re.split(r"[,;\n]", _clean(text)) if part.strip()]
    found: JSONObject = {}
    if len(lines) > 1 and (code := code_of_country(lines[-1])) and len(lines[-1]) != 2:
        found["country"] = code
        lines.pop()
    elif len(lines) > 1 and re.fullmatch(r"[A-Z]{2}", lines[-1]) and lines[-1] in country_names() and len(lines) > 2:
        found["country"] = lines.pop()
    if len(lines) > 1 and (
        match := re.fullmatch(r"(?:[A-Z]{1,2}-)?(\d{4,5}|\d{3} \d{2}|\d{2}-\d{3})\s++(\D+)", lines[-1])
    ):
        found |= {"zip": match[1], "city": match[2].strip()}
        lines.pop()
    return {"address_1": ", ".join(lines), **found} if lines else found


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
