"""
Decide what the values of a column are: the order of dates, the decimal sign, the separator of several values. Pure.

A decision is made for the whole column and never for a cell. If two readings fit equally well and differ, there is no
decision: the mapping asks.
"""

import dataclasses
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from muniment.registry.tables.cells.dates import ISO, NUMERIC_DATE, ORDERS, day_of, is_serial, without_time
from muniment.registry.tables.cells.people import is_title

JUDGED: Final = 300
"""Characters of a cell by which its column is judged."""
ASK: Final = "?"
"""The value of an option that a person must choose."""
_NUMBER: Final = re.compile(r"[-+]?\d[\d.,'’\u00a0\u202f\u2009 ]*")
_CLOSING: Final = ")]）"
_BRACKET: Final = re.compile(r"[(\[（)\]）]")
_SEPARATORS: Final = (
    *(";", "；", "\n", "|", "、", " / ", "，", ",", " & ", " + "),
    *(" und ", " and ", " et ", " y ", " e ", " i ", " og ", " och ", " en "),
)


@dataclass(slots=True)
class Column:
    """
    A column and how its values are written; ``?`` in an option asks for a choice.

    Args:
        field: the field that it holds; "" leaves it out; ``extra:name`` keeps it as an additional member.
        order: the order of dates: DMY, MDY or YMD; EXCEL for days since 1900, UNIX for seconds since 1970.
        decimal: the decimal sign of numbers.
        separator: the separator of several values in a cell.
        currency: the currency of amounts whose cells name none.
        unit: what an amount is multiplied by; 0 asks.
        title: the position of people in the column.
        words: values by the words that mean them; "" leaves a word out.
        check: the field is a guess that a person should check.
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
    check: bool = False


def order_of_dates(values: Sequence[str]) -> str:
    """
    Return the order that fits most dates of a column; "" if there are none in numbers.

    It is ``?`` if two fit equally and differ, or if most values are numbers that count days or seconds.
    """
    texts = map(without_time, values)
    numeric = [text for text in texts if NUMERIC_DATE.fullmatch(text) and not ISO.fullmatch(text)]
    if not numeric:
        return ASK if 2 * sum(map(is_serial, values)) > len(values) else ""
    fits = {order: [day_of(text, order) for text in numeric] for order in ORDERS}
    counts = {order: sum(day is not None for day in days) for order, days in fits.items()}
    most = max(counts.values())
    if not most:
        return ""
    best = [order for order in ORDERS if counts[order] == most]
    if any(fits[each] != fits[best[0]] for each in best):
        return ASK
    return best[0]


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


def separator_of(values: Sequence[str]) -> str:
    """Return the separator of several values in a cell, of a list of words; "" if cells have one value."""
    counts = Counter(each for each in (";", "\n", "|", "、", "，", "；", ",") for value in values if each in value)
    return max(counts, key=lambda each: counts[each]) if counts else ""


def separator_of_people(values: Sequence[str]) -> str:
    """Return the separator of several people in a cell; ``?`` where a comma may also part last and first name."""
    for each in _SEPARATORS:
        cells = [value for value in values if each in value]
        if not cells:
            continue
        if each.strip().isalpha():  # "Ortega y Gasset" is one name
            if all(len(part.split()) > 1 for cell in cells for part in _parts(cell, each)):
                return each
            continue
        if each != ",":
            return each
        whole = [all(len(part.split()) > 1 for part in _parts(cell, ",")) for cell in cells]
        if all(whole):
            return ","
        if any(map(_has_titles, cells)):
            return ""  # "Jane Doe, Chair"
        if any(whole) or any(cell.count(",") > 1 for cell in cells):
            return ASK
    return ""


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
