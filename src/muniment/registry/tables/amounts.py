"""Read numbers and amounts of money: their decimal sign, currency and unit. Pure."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
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
    minus = "-" if compact.startswith("-") else ""
    digits = compact[1:] if compact.startswith(("-", "+")) else compact
    whole, point, decimals = digits.partition(decimal)
    if group in whole:
        first, *thousands = whole.split(group)
        if not 1 <= len(first) <= 3 or any(len(three) != 3 for three in thousands):
            return ""
        whole = first + "".join(thousands)
    if not _is_digits(whole):
        return ""
    if not point:
        return minus + whole
    return f"{minus}{whole}.{decimals}" if _is_digits(decimals) else ""


def _is_digits(text: str) -> bool:
    """Return whether a text is digits, all of ASCII: those of other scripts are not read."""
    return text.isascii() and text.isdigit()


def decimal_sign(values: Iterable[str], *, is_count: bool = False) -> str:
    """
    Return the decimal sign of a column; ``?`` if both fit equally and differ, "." if no value has a sign.

    Args:
        is_count: the numbers are whole, so that 1.200 is 1200.
    """
    numbers: list[str] = []
    for value in values:
        numbers += [match[0].strip() for match in _NUMBER.finditer(value)]
    by_point = [plain_number(text, ".") for text in numbers]
    by_comma = [plain_number(text, ",") for text in numbers]
    fit_point, fit_comma = _fitting(by_point, is_count=is_count), _fitting(by_comma, is_count=is_count)
    if fit_point != fit_comma:
        return "." if fit_point > fit_comma else ","
    return "." if by_point == by_comma else ASK


def _fitting(numbers: Sequence[str], *, is_count: bool) -> int:
    """Return how many texts are numbers as they were read, and whole ones if the column has counts."""
    if is_count:
        return sum(bool(plain) and "." not in plain for plain in numbers)
    return sum(map(bool, numbers))


class Amount(NamedTuple):
    """An amount as a cell says it: the currency is empty if the cell names none."""

    number: Decimal
    currency: str


def amount_in(text: str, decimal: str) -> Amount | None:
    """Return the amount that all of *text* is; None if it is none."""
    if len(text) > _MAX_CHARACTERS or sum(map(str.isdigit, text)) > _MAX_DIGITS:
        return None
    plain = unicodedata.normalize("NFKC", text).strip()
    if re.match(r"[-−]\s*[^\d\s+−-]", plain):  # "-$5"
        positive = amount_in(plain[1:], decimal)
        if positive is None or positive.number < 0:
            return None
        return Amount(-positive.number, positive.currency)
    return _east_asian(plain, decimal) or _amount_with_unit(plain, decimal)


def _amount_with_unit(text: str, decimal: str) -> Amount | None:
    """Return the amount that a number and the texts before and after it are."""
    match = _MONEY.fullmatch(text)
    number = plain_number(match["number"], decimal) if match else ""
    if not match or not number:
        return None
    before, after = match["before"].strip().casefold(), match["after"].strip().casefold()
    # "1.200,-" has no cents.
    unit = _unit_beside(before, re.sub(r"^[.,]?-+$|^[.,]-+\s*", "", after).strip())
    return Amount(Decimal(number) * unit.scale, unit.currency) if unit else None


def unit_of_numbers(heading: str, values: Sequence[str]) -> str:
    """
    Return the unit that all values of a column are written with: a currency or "%"; "" if they have none in common.

    A heading that names another unit, such as "Assets (k€)" over "€ 12", leaves it open what the numbers mean.
    """
    if all(map(is_percentage, values)):
        return "%"
    currency = _currency_of_all(values)
    currency_of_heading, scale = currency_in_heading(heading)
    if scale != 1 or currency_of_heading not in {"", currency}:
        return ""
    # Dollars and yen or yuan share a sign, so that only the sign itself names them without an error.
    for sign, is_alone in _SHARED_SIGNS.items():
        if currency == CURRENCIES[sign] and all(is_alone.search(value) for value in values):
            return sign
    return currency


def _currency_of_all(values: Sequence[str]) -> str:
    """Return the currency that every value of a column names; "" if one names none or another one."""
    decimal = decimal_sign(values)
    if decimal == ASK:
        decimal = decimal_sign(values, is_count=True)
    currencies: set[str] = set()
    for value in values:
        amount = amount_in(value, decimal)
        if amount is None or not amount.currency:
            return ""
        currencies.add(amount.currency)
    return currencies.pop() if len(currencies) == 1 else ""


_SHARED_SIGNS: Final = {
    "$": re.compile(r"^[^A-Za-z]*\$"),
    "¥": re.compile(r"^[^A-Za-z]*[¥￥]"),
}


def is_percentage(text: str) -> bool:
    """Return whether a text is a number of percents."""
    bare = text.strip()
    return bare.endswith("%") and any(plain_number(bare[:-1], decimal) for decimal in (".", ","))


class _Unit(NamedTuple):
    """The currency and the scale that are beside a number."""

    currency: str
    scale: int


def _unit_beside(before: str, after: str) -> _Unit | None:
    """Return the unit of a number by the texts before and after it; None if one says something else."""
    unit_before, unit_after = _unit_of(before), _unit_of(after)
    # A scale is after a number, never before it: "M 5" is not five millions.
    if unit_before is None or unit_after is None or unit_before.scale != 1:
        return None
    currencies = {unit_before.currency, unit_after.currency} - {""}
    return _Unit("".join(currencies), unit_after.scale) if len(currencies) <= 1 else None


def _unit_of(text: str) -> _Unit | None:
    """Return the unit that all of *text* says; None if it says something else."""
    currency = currency_in(text)
    rest = " ".join(_without_currency(text).split())
    if rest.casefold() in _FILLERS:
        return _Unit(currency, 1)
    words = [word for word in rest.split() if word not in {"de", "di", "of"}]
    scale = catalogue().scales.get(" ".join(words))
    if scale is None and words == ["t"] and currency:
        scale = 10**3  # "5 T€"; alone, it may be tons
    return _Unit(currency, scale) if scale else None


_FILLERS: Final = frozenset({"", "de", "d'", "di", "von", "of", "."})


def _without_currency(text: str) -> str:
    """Return a text without the code and the signs of its currency."""
    rest = text
    code = _CODE.search(rest)
    if code:
        rest = rest[: code.start()] + " " + rest[code.end() :]
    for sign in _SIGNS:
        # Letters, such as "zl", are a sign only if they stand alone, and not within a word.
        is_of_letters = sign.isascii() and sign.isalpha()
        if not is_of_letters or rest.strip() == sign:
            rest = rest.replace(sign, " ")
    return rest


def _east_asian(text: str, decimal: str) -> Amount | None:
    """Return an amount in the Chinese, Japanese and Korean scales: 1億2000万円."""
    bare = text
    for sign in _SIGNS:
        bare = bare.replace(sign, "")
    thousands = "." if decimal == "," else ","
    bare = bare.replace(thousands, "").replace(" ", "").removesuffix("元")
    match = _EAST_ASIAN.fullmatch(bare)
    if not match or not (match[1] or match[2]):
        return None
    number = Decimal(match[1] or 0) * 10**8 + Decimal(match[2] or 0) * 10**4 + Decimal(match[3] or 0)
    return Amount(number, currency_in(text))


def currency_in(text: str) -> str:
    """Return the currency that a text names by its sign or its code; empty if none."""
    text = text.casefold()
    for name in (text.strip(" ."), text.strip()):
        if name in CURRENCIES:
            return CURRENCIES[name]
    code_in_text = _CODE.search(text.replace("_", " "))
    if code_in_text:
        code = code_in_text[1].upper()
        return _SAME.get(code, code)
    for sign in _SIGNS:
        # Other signs, such as "fr.", are parts of words.
        if sign in text and (sign.endswith("$") or not sign.isascii()):
            return CURRENCIES[sign]
    return ""


def currency_in_heading(heading: str) -> tuple[str, int]:
    """
    Return the currency and the unit that a heading names, such as "Treasury (kEUR)".

    "" and 1 if it names none; a unit of 0 if it is unclear, such as that of "Assets (M)".
    """
    text = unicodedata.normalize("NFKC", heading[:_MAX_CHARACTERS]).casefold()
    marked = re.search(r"[(\[](.*?)[)\]]|\b(?:in|en|w|i|v|em)\s+(.*)$", text)
    said = (marked[1] or marked[2] or "") if marked else ""
    if not said:
        _, *words_after_first = re.split(r"[\s_]+", text, maxsplit=1)
        said = "".join(words_after_first)
    said = said.replace("_", " ").strip()
    if not marked and not currency_in(said):
        return currency_in(text), 1
    unit = _unit_in(said, is_marked=bool(marked))
    return currency_in(_without_multiple(said)) or currency_in(said), unit


def _without_multiple(said: str) -> str:
    return _MULTIPLE.sub(" ", said)


def _unit_in(said: str, *, is_marked: bool) -> int:
    """
    Return the unit of amounts that a part of a heading says; 0 if it is unclear.

    Args:
        is_marked: the part is in brackets or behind "in", so that a single letter may be meant as a unit.
    """
    multiple = _MULTIPLE.search(said)
    if multiple:
        return _MULTIPLES[next(filter(None, multiple.groups()))]
    words = [word.strip(".") for word in re.split(r"[\s,;/]+", said)]
    for word in words:
        if word in _SURE_UNITS:
            return _SURE_UNITS[word]
    if is_marked and not _UNSURE_UNITS.isdisjoint(words):
        return 0
    return 1
