"""Read numbers and amounts of money: their decimal sign, currency and unit. Pure."""

import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from typing import Final, NamedTuple

from muniment.registry.tables.catalogue import catalogue
from muniment.registry.tables.fields import ASK

CURRENCIES: Final = {
    "€": "EUR",
    "$": "USD",
    "£": "GBP",
    "us$": "USD",
    "usd$": "USD",
    "u$s": "USD",
    "r$": "BRL",
    "c$": "CAD",
    "a$": "AUD",
    "hk$": "HKD",
    "nt$": "TWD",
    "fr.": "CHF",
    "sfr": "CHF",
    "sfr.": "CHF",
    "¥": "JPY",
    "zł": "PLN",
    "zl": "PLN",
    "kč": "CZK",
    "₩": "KRW",
    "₹": "INR",
    "₽": "RUB",
    "₺": "TRY",
    "euro": "EUR",
    "euros": "EUR",
    "円": "JPY",
    "日元": "JPY",
    "人民币": "CNY",
    "人民幣": "CNY",
    "新台币": "TWD",
    "新台幣": "TWD",
    "美元": "USD",
    "欧元": "EUR",
    "歐元": "EUR",
    "ユーロ": "EUR",
    "ドル": "USD",
    "米ドル": "USD",
    "원": "KRW",
    "유로": "EUR",
    "달러": "USD",
}
_CODES: Final = (
    "eur|usd|gbp|chf|sek|nok|dkk|pln|czk|jpy|cad|aud|huf|inr|brl|cny|rmb|krw|twd|hkd|sgd|mxn|zar|try|rub|uah|ron|bgn"
    "|isk|ils|nzd|thb|clp|cop|ars"
)
_SAME: Final = {"RMB": "CNY"}
_CODE: Final = re.compile(rf"(?<![a-z])({_CODES})(?![a-z])")
_MONEY: Final = re.compile(
    r"(?P<before>[^\d+−-]{0,12}?)\s*(?P<number>[-+−]?[\d.,'’\s\u00a0\u202f\u2009]*\d)\s*(?P<after>[^\d]*)", re.DOTALL
)
_EAST_ASIAN: Final = re.compile(r"(?:(\d+(?:\.\d+)?)[億亿억])?\s*(?:(\d+(?:\.\d+)?)[万萬만])?\s*(\d+)?")
_SIGNS: Final = sorted(CURRENCIES, key=len, reverse=True)
_MULTIPLES: Final = {"k": 10**3, "t": 10**3, "m": 10**6, "mn": 10**6, "mm": 10**6, "mio": 10**6, "mrd": 10**9}
_SURE_UNITS: Final = {
    word: factor
    for factor, words in (
        (10**3, "k tsd thousand thousands 000s '000 tys 000 tis tkr 千円 千元 천원 millares"),
        (10**4, "万円 万元 萬元 만원"),
        (10**6, "mio mn mln mill million millions mkr millionen millones milioni 百万円 百万元 백만원 mm"),
        (10**8, "億円 亿元 億元 억원"),
        (10**9, "mrd bn billion milliarden mld"),
    )
    for word in words.split()
}
_UNSURE_UNITS: Final = frozenset({"m", "t", "b"})
_MAX_CHARACTERS: Final = 100
_MAX_DIGITS: Final = 20
_MULTIPLE: Final = re.compile(
    rf"(?<![^\W\d_])(mio|mrd|mn|mm|k|t|m)\.?\s*(?=(?:{_CODES}|[€$£¥])(?![a-z]))"
    rf"|(?<=[€$£¥])\s*(k|mn|mm|m)(?![a-z])|(?<=\b(?:eur|usd|gbp|chf))\s+(k|mn|mm|mio|m)(?![a-z])"
)
_NUMBER: Final = re.compile(r"[-+]?\d[\d.,'’\u00a0\u202f\u2009 ]*")


def plain_number(text: str, decimal: str) -> str:
    """Return a number with a decimal point and no thousands; "" unless all of *text* is one number."""
    plain = unicodedata.normalize("NFKC", text.strip())
    compact = re.sub(r"(?<=\d)[\s'’](?=\d{3}(?!\d))", "", plain).replace("−", "-")
    group = "." if decimal == "," else ","
    sign, digits = (compact[0], compact[1:]) if compact[:1] in {"-", "+"} else ("", compact)
    whole, point, rest = digits.partition(decimal)
    if group in whole:
        first, *groups = whole.split(group)
        if not 1 <= len(first) <= 3 or any(len(each) != 3 for each in groups):
            return ""
        whole = first + "".join(groups)
    if not (whole.isascii() and whole.isdigit()) or (point and not (rest.isascii() and rest.isdigit())):
        return ""
    return f"{sign.replace('+', '')}{whole}{'.' + rest if point else ''}"


def decimal_sign(values: Iterable[str], *, is_count: bool = False) -> str:
    """
    Return the decimal sign of a column; ``?`` if both fit equally and differ, "." if no value has a sign.

    Args:
        is_count: the numbers are whole, so that 1.200 is 1200.
    """
    numbers = [match[0].strip() for value in values for match in _NUMBER.finditer(value)]
    fits = {sign: [plain_number(each, sign) for each in numbers] for sign in (".", ",")}
    counts = {sign: sum(bool(each) and not (is_count and "." in each) for each in fits[sign]) for sign in fits}
    if counts["."] != counts[","]:
        return max(counts, key=lambda each: counts[each])
    return "." if fits["."] == fits[","] else ASK


class Amount(NamedTuple):
    """An amount as a cell says it: the currency is empty if the cell names none."""

    number: Decimal
    currency: str


def amount_in(text: str, decimal: str) -> Amount | None:
    """Return the amount that all of *text* is; None if it is none."""
    if len(text) > _MAX_CHARACTERS or sum(map(str.isdigit, text)) > _MAX_DIGITS:
        return None
    plain = unicodedata.normalize("NFKC", text).strip()
    if found := _east_asian(plain, decimal):
        return found
    match = _MONEY.fullmatch(plain)
    number = plain_number(match["number"], decimal) if match else ""
    if not match or not number:
        return None
    before, after = (match[each].strip().casefold() for each in ("before", "after"))
    after = re.sub(r"^[.,]?-+$|^[.,]-+\s*", "", after).strip()
    scale = 1
    currencies = set()
    for rest in (before, after):
        said = _said(rest)
        if said is None or (rest == before and said[1] != 1):
            return None
        scale *= said[1]
        currencies |= {said[0]} - {""}
    if len(currencies) > 1:
        return None
    return Amount(Decimal(number) * scale, next(iter(currencies), ""))


def _said(text: str) -> tuple[str, int] | None:
    """Return the currency and the scale that all of *text* says; None if it says something else."""
    currency = currency_in(text)
    rest = text
    if found := _CODE.search(rest):
        rest = rest[: found.start()] + " " + rest[found.end() :]
    for sign in _SIGNS:
        if sign in rest and (not sign.isascii() or not sign.isalpha() or rest.strip() == sign):
            rest = rest.replace(sign, " ")
    rest = " ".join(rest.split())
    if rest.casefold() in {"", "de", "d'", "di", "von", "of", ".", "約", "约"} - {"約", "约"}:
        return currency, 1
    words = [each for each in rest.split() if each not in {"de", "di", "of"}]
    scale = catalogue().scales.get(" ".join(words))
    if scale is None and words == ["t"] and currency:
        scale = 10**3
    return (currency, scale) if scale else None


def _east_asian(text: str, decimal: str) -> Amount | None:
    """Return an amount in the Chinese, Japanese and Korean scales: 1億2000万円."""
    currency = currency_in(text)
    bare = text
    for sign in _SIGNS:
        bare = bare.replace(sign, "")
    bare = bare.replace("," if decimal != "," else ".", "").replace(" ", "").removesuffix("元")
    match = _EAST_ASIAN.fullmatch(bare)
    if not match or not (match[1] or match[2]):
        return None
    number = Decimal(match[1] or 0) * 10**8 + Decimal(match[2] or 0) * 10**4 + Decimal(match[3] or 0)
    return Amount(number, currency)


def currency_in(text: str) -> str:
    """Return the currency that a text names by its sign or its code; empty if none."""
    text = text.casefold()
    bare = text.strip(" .")
    if bare in CURRENCIES or text.strip() in CURRENCIES:
        return CURRENCIES.get(bare) or CURRENCIES[text.strip()]
    if found := _CODE.search(text.replace("_", " ")):
        return _SAME.get(found[1].upper(), found[1].upper())
    return next((CURRENCIES[each] for each in _SIGNS if each in text and (each[-1] == "$" or not each.isascii())), "")


def currency_in_heading(heading: str) -> tuple[str, int]:
    """
    Return the currency and the unit that a heading names, such as "Treasury (kEUR)".

    "" and 1 if it names none; a unit of 0 if it is unclear, such as that of "Assets (M)".
    """
    text = unicodedata.normalize("NFKC", heading[:_MAX_CHARACTERS]).casefold()
    inner = re.search(r"[(\[](.*?)[)\]]|\b(?:in|en|w|i|v|em)\s+(.*)$", text)
    said = next((each for each in inner.groups() if each), "") if inner else ""
    said = said or [*re.split(r"[\s_]+", text, maxsplit=1), ""][1]
    said = said.replace("_", " ").strip()
    if not inner and not currency_in(said):
        return currency_in(text), 1
    unit = _unit_in(said, is_marked=bool(inner))
    return currency_in(_without_multiple(said)) or currency_in(said), unit


def _without_multiple(said: str) -> str:
    return _MULTIPLE.sub(" ", said)


def _unit_in(said: str, *, is_marked: bool) -> int:
    if found := _MULTIPLE.search(said):
        return _MULTIPLES[next(each for each in found.groups() if each)]
    words = [each.strip(".") for each in re.split(r"[\s,;/]+", said) if each.strip(".")]
    for word in words:
        if word in _SURE_UNITS:
            return _SURE_UNITS[word]
    if is_marked and any(word in _UNSURE_UNITS for word in words):
        return 0
    return 1
