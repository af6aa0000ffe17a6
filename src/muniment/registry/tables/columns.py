"""
Decide what the values of a column are: the order of dates, the decimal sign, the separator of several values. Pure.

A decision is made for the whole column and never for a cell. If two readings fit equally well and differ, there is no
decision: the mapping asks.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

ORDERS: Final = ("DMY", "MDY", "YMD")
ASK: Final = "?"
"""The value of an option that a person must choose."""
_NUMERIC_DATE: Final = re.compile(r"(\d{1,4})\s?[./\-]\s?(\d{1,2})\s?[./\-]\s?(\d{2,4})")
_ISO: Final = re.compile(r"([12]\d{3})-(\d{2})-(\d{2})(?:[T ]\d{2}:\d{2}.*)?")
_COMPACT: Final = re.compile(r"([12]\d{3})(\d{2})(\d{2})")
_TIME: Final = re.compile(
    r"[ T,]+\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s?(?:Z|UTC|AM|PM|[+-]\d{2}:?\d{2}|Uhr))?$", re.IGNORECASE
)
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            *("jan january januar jänner jaenner janvier enero gennaio", "feb february februar feber fevrier febrero"),
            *("mar march märz maerz mrz mär mars marzo", "apr april avril abril", "may mai mayo maggio"),
            *("jun june juni juin junio", "jul july juli juillet julio", "aug august août aout agosto"),
            *("sep sept september septembre septiembre", "oct okt october oktober octobre octubre"),
            *("nov november novembre noviembre", "dec dez december dezember décembre decembre diciembre"),
        ),
        1,
    )
    for name in names.split()
}
_DAY_MONTH_YEAR: Final = re.compile(r"(\d{1,2})\.?(?:st|nd|rd|th)?[\s\-]*([^\W\d_]+)\.?,?[\s\-]*(\d{4})")
_MONTH_DAY_YEAR: Final = re.compile(r"([^\W\d_]+)\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})")
_MONTH_YEAR: Final = re.compile(r"([^\W\d_]+)\.?,?[\s\-]+(\d{4})")
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d{2}")
_NUMBER: Final = re.compile(r"[-+]?\d[\d.,'’\u00a0\u202f ]*")
_SEPARATORS: Final = (";", "\n", "|", " / ", ",", " & ", " und ", " and ")


@dataclass(slots=True)
class Column:
    """
    A column and how its values are written; ``?`` in an option asks for a choice.

    Args:
        field: the field that it holds; "" leaves it out; ``extra:name`` keeps it as an additional member.
        order: of dates: DMY, MDY or YMD.
        decimal: the decimal sign of numbers.
        separator: of several values in a cell.
        currency: of amounts whose cells name none.
        unit: what an amount is multiplied by.
        title: the position of people in the column.
        words: values by the words that mean them; "" leaves a word out.
    """

    heading: str
    field: str = ""
    order: str = ""
    decimal: str = ""
    separator: str = ""
    currency: str = ""
    unit: int = 1
    title: str = ""
    words: dict[str, str] = dataclasses.field(default_factory=dict)


def day_of(text: str, order: str) -> date | None:
    """Return the day that *text* means when numbers are in *order* (DMY, MDY or YMD); None if it means none."""
    text = _TIME.sub("", text.strip())
    try:
        if match := _ISO.fullmatch(text) or _COMPACT.fullmatch(text):
            return date(int(match[1]), int(match[2]), int(match[3]))
        if match := _NUMERIC_DATE.fullmatch(text):
            if order not in ORDERS or (len(match[1]) == 4) != (order == "YMD"):
                return None
            parts = dict(zip(order, match.groups(), strict=True))
            return date(int(parts["Y"]), int(parts["M"]), int(parts["D"])) if len(parts["Y"]) == 4 else None
        if match := _DAY_MONTH_YEAR.fullmatch(text):
            return date(int(match[3]), _MONTHS[match[2].casefold()], int(match[1]))
        if match := _MONTH_DAY_YEAR.fullmatch(text):
            return date(int(match[3]), _MONTHS[match[1].casefold()], int(match[2]))
    except (ValueError, KeyError):
        pass
    return None


def month_of(text: str) -> date | None:
    """Return the first day of the month that *text* names without a day; None for anything else."""
    text = text.strip()
    if (match := _MONTH_YEAR.fullmatch(text)) and match[1].casefold() in _MONTHS:
        return date(int(match[2]), _MONTHS[match[1].casefold()], 1)
    for pattern, year, month in ((r"(\d{1,2})[./](\d{4})", 2, 1), (r"(\d{4})[-/](\d{1,2})", 1, 2)):
        if (match := re.fullmatch(pattern, text)) and 1 <= int(match[month]) <= 12:
            return date(int(match[year]), int(match[month]), 1)
    return None


def is_year(text: str) -> bool:
    return bool(_YEAR.fullmatch(text.strip()))


def order_of_dates(values: Iterable[str]) -> str:
    """Return the order that fits most dates of a column; ``?`` if two fit equally and differ, "" if there are none."""
    numeric = [text for value in values if _NUMERIC_DATE.fullmatch(text := _TIME.sub("", value.strip()))]
    numeric = [text for text in numeric if not _ISO.fullmatch(text)]
    if not numeric:
        return ""
    fits = {order: [day_of(text, order) for text in numeric] for order in ORDERS}
    counts = {order: sum(day is not None for day in days) for order, days in fits.items()}
    most = max(counts.values())
    if not most:
        return ""
    best = [order for order in ORDERS if counts[order] == most]
    if any(fits[each] != fits[best[0]] for each in best):
        return ASK
    return best[0]


def share_of_dates(values: Sequence[str]) -> float:
    """Return the share of a column's values that are days, months or years."""
    return _share(
        values, lambda text: any(day_of(text, order) for order in ORDERS) or bool(month_of(text)) or is_year(text)
    )


def share_of_numbers(values: Sequence[str]) -> float:
    return _share(values, lambda text: bool(re.match(r"^\D{0,6}\d[\d.,'’\s\u00a0\u202f]*", text)))


def _share(values: Sequence[str], is_one: Callable[[str], bool]) -> float:
    return sum(map(is_one, values)) / len(values) if values else 0.0


def plain_number(text: str, decimal: str) -> str:
    """Return a number with a decimal point and no thousands; "" unless all of *text* is one number."""
    compact = re.sub(r"(?<=\d)[\s\u00a0\u202f'’](?=\d{3}(?!\d))", "", text.strip()).replace("−", "-")
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


def separator_of(values: Sequence[str]) -> str:
    """Return the separator of several values in a cell, of a list of words; "" if cells have one value."""
    counts = Counter(each for each in (";", "\n", "|", ",") for value in values if each in value)
    return max(counts, key=lambda each: counts[each]) if counts else ""


def separator_of_people(values: Sequence[str]) -> str:
    """Return the separator of several people in a cell; ``?`` where a comma may also part last and first name."""
    for each in _SEPARATORS:
        cells = [value for value in values if each in value]
        if not cells:
            continue
        if each != ",":
            return each
        whole = [all(len(part.split()) > 1 for part in _parts(cell, ",")) for cell in cells]
        if all(whole):
            return ","
        if any(whole) or any(cell.count(",") > 1 for cell in cells):
            return ASK
    return ""


def split(text: str, separator: str) -> list[str]:
    """Return the values in a cell; line breaks part them too."""
    if not separator:
        return [" ".join(text.split())] if text.strip() else []
    return [part for line in text.split("\n") for part in _parts(line, separator)]


def _parts(text: str, separator: str) -> list[str]:
    return [" ".join(each.split()) for each in text.split(separator) if each.strip()]
