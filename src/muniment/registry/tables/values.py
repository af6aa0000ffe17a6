"""
Turn the text of a cell into a value of the import form, by the decisions about its column. Pure.

A cell gives a value, nothing, or a :class:`Lost`: a value is never guessed from a part of a cell.
"""

import re
import unicodedata
from decimal import Decimal
from typing import Any, Final, NamedTuple

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry.tables.cells.amounts import amount_in
from muniment.registry.tables.cells.countries import code_of_country
from muniment.registry.tables.cells.dates import day_of, is_year, month_of, year_of
from muniment.registry.tables.cells.people import PersonInCell, person_in
from muniment.registry.tables.cells.profiles import ZIP_CITY
from muniment.registry.tables.columns import ASK, Column, plain_number, split
from muniment.registry.tables.headings import EXTRA
from muniment.registry.tables.words.catalogue import catalogue, key
from muniment.schema.kinds import country_names

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


def is_blank(text: str) -> bool:
    """Return whether a cell says that there is no value."""
    return not text.strip() or text.strip().casefold() in catalogue().blanks


def value_of(column: Column, text: str, currency: str) -> Any:
    """Return the value of a cell; None if it has none, Lost if it cannot be used."""
    if _FORMULA.match(text):
        return Lost("is a formula, not a value", "Save the table with values; formulas are never calculated.")
    if is_blank(text):
        return None
    meaning = next((found for word, found in column.words.items() if word.casefold() == text.casefold()), None)
    if meaning is not None:
        return meaning or None
    if column.order and column.field.startswith(EXTRA):
        return _date_text(column, text)
    reader = _READERS.get(column.field.removeprefix("socials."), _as_it_is)
    return reader(column, text, currency)


def _clean(text: str) -> str:
    """Return text without control characters, which no program shows."""
    return "".join(each for each in text if each in "\n\t" or unicodedata.category(each) != "Cc").strip()


def _as_it_is(_column: Column, text: str, _currency: str) -> str:
    return _clean(text)


def _line(_column: Column, text: str, _currency: str) -> str:
    return " ".join(_clean(text).split())


_NO_RANGE: Final = Lost("is a range, not one amount", "Correct the cells, or map the column to another field.")
_NO_AMOUNT: Final = Lost("is not an amount", "Correct the cells, or map the column to another field.")


_COUNTED: Final = re.compile(
    r"(?<=\d)\s*(?:人|名|명|p(?:ax|ers)\.?|fte|personen|employees|mitarbeiter)$", re.IGNORECASE
)


def _is_range(text: str) -> bool:
    return len(text) <= _MAX_CHARACTERS and bool(_RANGE.fullmatch(text.strip()))


def _count(column: Column, text: str, _currency: str) -> int | Lost:
    number = plain_number(_COUNTED.sub("", text), column.decimal or ".") if len(text) <= _MAX_CHARACTERS else ""
    if number and "." in number:
        number = number.rstrip("0").rstrip(".")
    if number.isdigit():
        return (
            int(number)
            if len(number) <= _MOST_DIGITS
            else Lost("has more digits than a number may have", "Correct the cells.")
        )
    if _is_range(text):
        return Lost("is a range, not one number", 'To keep such texts, set field = "extra:teamSizeRange".')
    return Lost("is not a whole number", "Correct the cells, or map the column to another field.")


def _money(column: Column, text: str, currency: str) -> JSONObject | Lost:
    found = amount_in(text, column.decimal or ".")
    if found is None:
        return _NO_RANGE if _is_range(text) else _NO_AMOUNT
    if found.number < 0:
        return Lost("is negative", "Correct the cells.")
    given = found.currency or column.currency
    if given in {"", ASK}:
        return Lost("has no currency", 'Set currency = "EUR", for example, on the column.')
    if given != currency:
        return Lost(
            Phrase("is in {given}; this registry uses {currency}", given=given, currency=currency),
            "Convert the column first; rates are not invented.",
        )
    return _amount(found.number * (column.unit or 1), currency)


def _amount(amount: Decimal, currency: str) -> JSONObject | Lost:
    if amount >= _MAX_AMOUNT:
        return Lost("is too large for an amount", "Correct the cells.")
    if amount != round(amount, 2):
        return Lost("has more than two decimals", "Round the column first.")
    return {"amount": f"{amount:.2f}", "currency": currency}


def _status(_column: Column, text: str, _currency: str) -> str | Lost:
    if found := catalogue().statuses.get(key(text)):
        return found
    return Lost(
        Phrase('"{text}" is not a known status', text=text.strip()[:40]),
        'Add it under words on the column: "the word" = "active".',
    )


def _link(_column: Column, text: str, _currency: str) -> str | Lost:
    bare = _clean(text)
    if match := re.fullmatch(r"\[?([^\]()]*)\]?\((https?://[^)\s]+)\)", bare):  # Markdown
        bare = match[2]
    if re.match(r"https?://\S+$", bare, re.IGNORECASE):
        return bare
    if re.fullmatch(r"(?:[\w-]+\.)+[^\W\d_]{2,}(?:/\S*)?", bare):
        return f"https://{bare}"
    return Lost("is not a web address", "Correct the cells.")


def _email(_column: Column, text: str, _currency: str) -> str | Lost:
    bare = re.sub(r"^mailto:", "", _clean(text), flags=re.IGNORECASE)
    if match := re.fullmatch(r".*<([^<>\s@]++@[^<>\s@]++)>", bare):
        bare = match[1]
    if bare.count("@") == 1 and " " not in bare:
        return bare
    return Lost("is not one email address", "Keep one address in each cell.")


def _day(column: Column, text: str, _currency: str) -> str | Lost:
    if found := day_of(text, column.order):
        return found.isoformat()
    if column.order == ASK:
        return Lost("has a date whose order is unclear", 'Set order = "DMY" or "MDY" on the column.')
    if is_year(text) or month_of(text):
        return Lost("names no day", 'To keep such texts, map the column to "extra:since".')
    return Lost("is not a date", "Correct the cells.")


def _date_text(column: Column, text: str) -> str | Lost:
    """Return a date of an additional member: as a day, month or year, whatever the cell has."""
    if is_year(text):
        return year_of(text)
    if month := month_of(text):
        return f"{month:%Y-%m}"
    return _day(column, text, "")


def _month(_column: Column, text: str, _currency: str) -> str | Lost:
    found = month_of(text)
    return f"{found:%B %Y}" if found else Lost("is not a month and a year", "Correct the cells.")


def _zip_city(_column: Column, text: str, _currency: str) -> JSONObject | Lost:
    found = ZIP_CITY.fullmatch(_clean(text))
    if not found:
        return Lost("is not a postal code and a city", "Correct the cells, or map the column to City.")
    return {"zip": found[1], "city": found[2].strip()}


def _list(column: Column, text: str, _currency: str) -> list[str]:
    return list(dict.fromkeys(split(_clean(text), column.separator)))


def _country(_column: Column, text: str, _currency: str) -> str | Lost:
    return code_of_country(text) or Lost("is not a known country", "Use its two letters, such as FR, or its name.")


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
    for part in split(_clean(text), column.separator) if column.separator else [_line(column, text, "")]:
        person = None if is_blank(part) else person_in(part, column.title)
        if person is None:
            return Lost("is not a list of names", "Correct the cells, or map the column to another field.")
        found.append(person)
    return found


_READERS: Final[dict[str, Any]] = {
    **dict.fromkeys(
        ("name", "name.first", "name.last", "symbol", "type", "industry", "orgKind", "position.title"), _line
    ),
    **dict.fromkeys(("people.first", "people.last", "people.title", "address.state", "address.address_2"), _line),
    **dict.fromkeys(("position.company", "phone_number", "address.city", "address.zip", "address.address_1"), _line),
    "teamSize": _count,
    "treasury": _money,
    "status": _status,
    "website": _link,
    "dao_website": _link,
    "email": _email,
    "listedAt": _day,
    "createdAt": _month,
    "themes": _list,
    "address.country": _country,
    "address.zip_city": _zip_city,
}
