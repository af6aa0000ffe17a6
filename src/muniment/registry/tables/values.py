"""
Turn the text of a cell into a value of the import form, by the decisions about its column. Pure.

A cell gives a value, nothing, or a :class:`Lost`: a value is never guessed from a part of a cell.
"""

import functools
import gettext
import re
import unicodedata
from decimal import Decimal
from typing import Any, Final, NamedTuple

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry.tables.columns import ASK, Column, day_of, is_year, month_of, plain_number, split
from muniment.registry.tables.headings import EXTRA
from muniment.schema.company import STATUSES
from muniment.schema.standard_kinds import country_code, country_names

STATUS_WORDS: Final = {
    "active": "active aktiv laufend bestehend registered eingetragen live operating ordentlich vollmitglied issued"
    " true yes ja current open good trading activo actif attivo",
    "upcoming": "upcoming geplant planned pending angemeldet beantragt infounding ingrundung prelaunch",
    "inactive": "inactive inaktiv dissolved aufgelost closed geschlossen geloscht ceased ausgetreten ehemalig former"
    " liquidation inliquidation insolvent insolvenz retired expired ruhend false no nein ended lapsed merged annulled"
    " convertedclosed removed administration receivership inactivo inactif cancelled",
}
_BLANK: Final = frozenset(
    [
        "n/a",
        "na",
        "n.a.",
        "-",
        "--",
        "–",
        "—",
        "k.a.",
        "k.",
        "a.",
        "keine",
        "angabe",
        "none",
        "null",
        "nil",
        "unknown",
        "unbekannt",
        "not",
        "available",
        "#n/a",
        "?",
        "nicht",
        "bekannt",
        "#ref!",
        "#value!",
        "#div/0!",
        "#name?",
        "nan",
        "k. a.",
        "keine angabe",
        "not available",
        "nicht bekannt",
        "not specified",
        "n. a.",
    ]
)
_SCALES: Final = {
    "": 1,
    **dict.fromkeys(("k", "tsd", "tsd.", "thousand", "t€"), 10**3),
    **dict.fromkeys(("m", "mn", "mio", "mio.", "mill.", "million", "millions", "millionen"), 10**6),
    **dict.fromkeys(("b", "bn", "mrd", "mrd.", "billion", "milliarden", "milliarde"), 10**9),
}
CURRENCIES: Final = {
    "€": "EUR",
    "$": "USD",
    "£": "GBP",
    "us$": "USD",
    "usd$": "USD",
    "fr.": "CHF",
    "sfr": "CHF",
    "¥": "JPY",
    "zł": "PLN",
}
_MONEY: Final = re.compile(
    r"(?P<before>[^\d\s+−-]{0,4})\s*(?P<number>[-+−]?[\d.,'’\s\u00a0\u202f]*\d)\s*(?P<after>.*)", re.DOTALL
)
_RANGE: Final = re.compile(
    r"(?:ca\.?|ab|bis|up to|over|über|>|<|~|about)?\s*[\d.,]+\s*(?:[-–—+]|to|bis)\s*[\d.,]*", re.IGNORECASE
)
_ALIASES: Final = {
    "uk": "GB",
    "england": "GB",
    "scotland": "GB",
    "wales": "GB",
    "schottland": "GB",
    "grossbritannien": "GB",
    "great britain": "GB",
    "united kingdom of great britain and northern ireland": "GB",
    "usa": "US",
    "u.s.a.": "US",
    "u.s.": "US",
    "united states of america": "US",
    "vereinigte staaten von amerika": "US",
    "holland": "NL",
    "the netherlands": "NL",
    "d": "DE",
    "brd": "DE",
    "a": "AT",
    "russia": "RU",
    "russland": "RU",
    "south korea": "KR",
    "südkorea": "KR",
    "czech republic": "CZ",
    "tschechien": "CZ",
    "turkey": "TR",
}
_LANGUAGES: Final = ("de", "fr", "es", "it", "nl", "pl", "pt")
_FORMULA: Final = re.compile(r"=[+\-@(]*[A-Za-z_.]+[\w.]*[(!|]|=[A-Z]{1,3}\d+\b")


class Lost(NamedTuple):
    """A cell that gives no value, why, and what to do about it."""

    reason: str
    fix: str = ""


def is_blank(text: str) -> bool:
    """Return whether a cell says that there is no value."""
    return not text.strip() or text.strip().casefold() in _BLANK


def is_given(text: str) -> bool:
    """Return whether a cell has a value that may be read: it is neither blank nor a formula."""
    return not is_blank(text) and not _FORMULA.match(text)


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


_NO_AMOUNT: Final = Lost("is not an amount", "Correct the cells, or map the column to another field.")


def _count(column: Column, text: str, _currency: str) -> int | Lost:
    number = plain_number(text, column.decimal or ".")
    if number and "." in number:
        number = number.rstrip("0").rstrip(".")
    if number.isdigit():
        return int(number)
    if _RANGE.fullmatch(text.strip()):
        return Lost("is a range, not one number", 'To keep such texts, set field = "extra:teamSizeRange".')
    return Lost("is not a whole number", "Correct the cells, or map the column to another field.")


def _money(column: Column, text: str, currency: str) -> JSONObject | Lost:
    match = _MONEY.fullmatch(text.strip())
    number = plain_number(match["number"], column.decimal or ".") if match else ""
    if not match or not number:
        return _NO_AMOUNT
    if number.startswith("-"):
        return Lost("is negative", "Correct the cells.")
    rest = re.sub(r"[.,]?-+$", "", match["after"].strip().casefold())
    named = [_currency_in(each) for each in (match["before"].casefold(), rest)]
    scale_text = rest
    for sign in (*CURRENCIES, *(each.casefold() for each in named if each)):
        scale_text = scale_text.replace(sign, "")
    scale = _SCALES.get(scale_text.strip())
    if scale is None or (match["before"].strip() and not named[0]):
        return _NO_AMOUNT
    given = named[0] or named[1] or column.currency
    if given in {"", ASK}:
        return Lost("has no currency", 'Set currency = "EUR", for example, on the column.')
    if given != currency:
        return Lost(
            Phrase("is in {given}; this registry uses {currency}", given=given, currency=currency),
            "Convert the column first; rates are not invented.",
        )
    return _amount(Decimal(number) * scale * (column.unit or 1), currency)


def _amount(amount: Decimal, currency: str) -> JSONObject | Lost:
    if amount != round(amount, 2):
        return Lost("has more than two decimals", "Round the column first.")
    return {"amount": f"{amount:.2f}", "currency": currency}


def _currency_in(text: str) -> str:
    bare = text.strip(" .")
    if bare in CURRENCIES or text.strip() in CURRENCIES:
        return CURRENCIES.get(bare) or CURRENCIES[text.strip()]
    if found := re.search(r"\b(eur|usd|gbp|chf|sek|nok|dkk|pln|czk|jpy|cad|aud|huf|inr|brl)\b", text):
        return found[1].upper()
    return next((code for sign, code in CURRENCIES.items() if len(sign) == 1 and sign in text), "")


def currency_in_heading(heading: str) -> tuple[str, int]:
    """Return the currency and the unit that a heading names, such as "Treasury (kEUR)"; "" and 1 if none."""
    text = heading.casefold()
    inner = re.search(r"[(\[](.*?)[)\]]|\bin\s+(.*)$", text)
    said = next((each for each in inner.groups() if each), "") if inner else text
    unit = 1
    if inner and (match := re.match(r"(k|tsd\.?|mio\.?|mn|m|t)\s*(?=eur|usd|chf|gbp|€|\$|£|$)", said)):
        unit = {"k": 10**3, "t": 10**3, "tsd": 10**3}.get(match[1].strip("."), 10**6)
        said = said[match.end() :]
    return _currency_in(said), unit


def _status(_column: Column, text: str, _currency: str) -> str | Lost:
    word = _key(text)
    for status in STATUSES:
        if word in STATUS_WORDS[status].split():
            return status
    return Lost(
        Phrase('"{text}" is not a known status', text=text.strip()[:40]),
        'Add it under words on the column: "the word" = "active".',
    )


def _key(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in plain if each.isalnum())


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
    if match := re.fullmatch(r".*<([^<>\s]+@[^<>\s]+)>", bare):
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
        return text.strip()
    if month := month_of(text):
        return f"{month:%Y-%m}"
    return _day(column, text, "")


def _month(_column: Column, text: str, _currency: str) -> str | Lost:
    found = month_of(text)
    return f"{found:%B %Y}" if found else Lost("is not a month and a year", "Correct the cells.")


def _list(column: Column, text: str, _currency: str) -> list[str]:
    return list(dict.fromkeys(split(_clean(text), column.separator)))


def _country(_column: Column, text: str, _currency: str) -> str | Lost:
    return code_of_country(text) or Lost("is not a known country", "Use its two letters, such as FR, or its name.")


@functools.cache
def code_of_country(text: str) -> str:
    """Return the two letters of a country by its code or name in one of several languages; "" if there is none."""
    bare = text.strip().casefold()
    if bare in _ALIASES:
        return _ALIASES[bare]
    try:
        found = country_code(text)
    except ValueError:
        return ""
    return found if found in country_names() else _foreign_names().get(_key(text), "")


@functools.cache
def _foreign_names() -> dict[str, str]:
    """Return countries by their three letters, official names, and names in other languages."""
    import pycountry

    found: dict[str, str] = {}
    for country in pycountry.countries:
        names = {
            country.name,
            country.alpha_3,
            getattr(country, "official_name", ""),
            getattr(country, "common_name", ""),
        }
        for language in _LANGUAGES:
            texts = gettext.translation("iso3166-1", pycountry.LOCALES_DIR, languages=[language], fallback=True)
            names |= {texts.gettext(name) for name in (country.name, getattr(country, "common_name", "")) if name}
        for name in filter(None, names):
            found.setdefault(_key(name), country.alpha_2)
    return found


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
        match := re.fullmatch(r"(?:[A-Z]{1,2}-)?(\d{4,5}|\d{3} \d{2}|\d{2}-\d{3})\s+(\D+)", lines[-1])
    ):
        found |= {"zip": match[1], "city": match[2].strip()}
        lines.pop()
    return {"address_1": ", ".join(lines), **found} if lines else found


class PersonInCell(NamedTuple):
    """A person in a cell, with the position that the cell or the heading says."""

    name: str
    title: str


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
        name, title = part, column.title
        if match := re.fullmatch(r"(.+?)\s*[(\[]([^()\[\]]+)[)\]]", part):
            name, title = match[1], match[2].strip()
        elif match := re.fullmatch(r"([^:,]{2,40}):\s*(.+)", part):
            title, name = match[1].strip(), match[2]
        if "@" in name or not re.search(r"[^\W\d_]{2}", name) or is_blank(name):
            return Lost("is not a list of names", "Correct the cells, or map the column to another field.")
        found.append(PersonInCell(full_name(name), title))
    return found


def full_name(text: str) -> str:
    """Return a name with the first name first; other names stay as they are."""
    last, comma, first = text.partition(",")
    is_turned = (
        bool(comma)
        and "," not in first
        and first.strip()
        and not re.search(r"\b(?:jr|sr|phd|md)\b", first, re.IGNORECASE)
    )
    return " ".join((f"{first} {last}" if is_turned else text).split())


_READERS: Final[dict[str, Any]] = {
    **dict.fromkeys(
        ("name", "name.first", "name.last", "symbol", "type", "industry", "orgKind", "position.title"), _line
    ),
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
}
