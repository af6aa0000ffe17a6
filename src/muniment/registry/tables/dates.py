"""Read dates as people write them in several languages, by the order of the dates of the column. Pure."""

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from muniment.registry.tables.catalogue import catalogue, key
from muniment.registry.tables.fields import ASK

ORDERS: Final = ("DMY", "MDY", "YMD")
EXCEL: Final = "EXCEL"
UNIX: Final = "UNIX"
SERIALS: Final = (EXCEL, UNIX)
"""Numbers that count days since 1900, as spreadsheets do, or seconds or milliseconds since 1970."""
NUMERIC_DATE: Final = re.compile(r"(\d{1,4})\s?[./\-]\s?(\d{1,2})\s?[./\-]\s?(\d{2,4})\.?")
ISO: Final = re.compile(r"([12]\d{3})-(\d{2})-(\d{2})(?:[T ]\d{2}:\d{2}.*)?")
_COMPACT: Final = re.compile(r"([12]\d{3})(\d{2})(\d{2})")
_EAST_ASIAN: Final = re.compile(r"([12]\d{3})\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일号號]")
_EAST_ASIAN_MONTH: Final = re.compile(r"([12]\d{3})\s?[年년]\s?(\d{1,2})\s?[月월]")
_EAST_ASIAN_YEAR: Final = re.compile(r"([12]\d{3})\s?[年년]")
_WEEKDAY: Final = re.compile(r"^[^\W\d_]{2,12}\.?,\s+(?=\d)")
_TIME: Final = re.compile(
    r"[ T,]+\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s?(?:Z|UTC|AM|PM|[+-]\d{2}:?\d{2}|Uhr))?$", re.IGNORECASE
)
_MIDNIGHT: Final = re.compile(r"[ T,]+(?:0?0:00(?::00(?:\.0+)?)?(?![\d:.]|\s?PM)|12:00(?::00)?\s?AM)", re.IGNORECASE)
_OF: Final = r"(?:\s+(?:de|del|of|d'))?"
_DAY_MONTH_YEAR: Final = re.compile(
    rf"(\d{{1,2}})\.?(?:st|nd|rd|th|er|º|°|ª)?{_OF}[\s\-]*([^\W\d_]+)\.?,?{_OF}[\s\-]*(\d{{4}})(?:\s?(?:r|г)\.?)?",
    re.IGNORECASE,
)
_MONTH_DAY_YEAR: Final = re.compile(r"([^\W\d_]+)\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})")
_MONTH_YEAR: Final = re.compile(rf"([^\W\d_]+)\.?,?{_OF}[\s\-]+(\d{{4}})", re.IGNORECASE)
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d{2}")
_EPOCH: Final = date(1899, 12, 30)
_EARLIEST_SERIAL: Final = 61  # before, spreadsheets count a day that never was
_LATEST_SERIAL: Final = 2_958_465
_SERIAL: Final = re.compile(r"\d{2,7}(?:\.\d+)?")
_MOST_DIGITS: Final = 13
_SECONDS: Final = re.compile(r"-?\d{6,13}")
_MILLISECONDS: Final = 100_000_000_000
_SECONDS_OF_DAY: Final = 86_400
_ISO_CHARACTERS: Final = len("2026-11-29")
_MAX_CHARACTERS: Final = 100
"""Longer texts are no dates."""


def _plain(text: str) -> str:
    """Return *text* with plain digits and blanks, without a time and a weekday; nothing of a long one."""
    if len(text) > _MAX_CHARACTERS:
        return ""
    return _WEEKDAY.sub("", without_time(unicodedata.normalize("NFKC", text).strip()))


def without_time(text: str) -> str:
    return _TIME.sub("", text.strip()) if len(text) <= _MAX_CHARACTERS else text.strip()


def has_time(text: str, order: str) -> bool:
    """Return whether a date has a time of day; midnight is none, which programs write behind each date."""
    plain = unicodedata.normalize("NFKC", text[:_MAX_CHARACTERS]).strip()
    if order == EXCEL and _SERIAL.fullmatch(plain):
        return not float(plain).is_integer()
    if order == UNIX and _SECONDS.fullmatch(plain):
        return _seconds_of(plain) % _SECONDS_OF_DAY != 0
    written = _TIME.search(plain)
    time = written[0] if written else ""
    if not time and ISO.fullmatch(plain):
        time = plain[_ISO_CHARACTERS:]  # "13:45 (CET)"
    return bool(time) and not _MIDNIGHT.match(time)


def _seconds_of(text: str) -> int:
    return int(text) // 1000 if abs(int(text)) >= _MILLISECONDS else int(text)


def day_of(text: str, order: str) -> date | None:
    """
    Return the day that *text* means; None if it means none.

    Args:
        order: the order of numbers: DMY, MDY or YMD; EXCEL and UNIX count days and seconds.
    """
    if order in SERIALS:
        return _counted(text.strip(), order)
    try:
        return _day_in_words_or_numbers(_plain(text), order)
    except (ValueError, KeyError):  # there is no such day, or no such month
        return None


def _day_in_words_or_numbers(text: str, order: str) -> date | None:
    year_first = ISO.fullmatch(text) or _COMPACT.fullmatch(text) or _EAST_ASIAN.fullmatch(text)
    if year_first:
        return date(int(year_first[1]), int(year_first[2]), int(year_first[3]))
    in_numbers = NUMERIC_DATE.fullmatch(text)
    if in_numbers:
        return _day_in_numbers(in_numbers.groups(), order)
    day_first = _DAY_MONTH_YEAR.fullmatch(text)
    if day_first:
        return date(int(day_first[3]), _month(day_first[2]), int(day_first[1]))
    month_first = _MONTH_DAY_YEAR.fullmatch(text)
    if month_first:
        return date(int(month_first[3]), _month(month_first[1]), int(month_first[2]))
    return None


def _day_in_numbers(numbers: Sequence[str], order: str) -> date | None:
    """Return the day of three numbers in an order; None if it does not fit them, or the year has two digits."""
    begins_with_year = len(numbers[0]) == 4
    if order not in ORDERS or begins_with_year != (order == "YMD"):
        return None
    year, month, day = (numbers[order.index(part)] for part in "YMD")
    return date(int(year), int(month), int(day)) if len(year) == 4 else None


def _counted(text: str, order: str) -> date | None:
    try:
        if order == EXCEL and _SERIAL.fullmatch(text) and _EARLIEST_SERIAL <= float(text) <= _LATEST_SERIAL:
            return _EPOCH + timedelta(days=int(float(text)))
        if order == UNIX and _SECONDS.fullmatch(text):
            return datetime.fromtimestamp(_seconds_of(text), UTC).date()
    except (ValueError, OverflowError, OSError):
        pass
    return day_of(text, "YMD") if not text.isdigit() else None


def is_serial(text: str) -> bool:
    """Return whether a number can count days since 1900 or seconds since 1970, of the last and the next decades."""
    text = text.strip()
    if len(text) > _MOST_DIGITS or not (text.isascii() and text.isdigit()):
        return False
    return 7_000 <= int(text) <= 60_000 or len(text) in {9, 10, 13}


def _month(name: str) -> int:
    return catalogue().months[key(name)]


def month_of(text: str) -> date | None:
    """Return the first day of the month that *text* names without a day; None for anything else."""
    if len(text) > _MAX_CHARACTERS:
        return None
    text = unicodedata.normalize("NFKC", text).strip()
    in_words = _MONTH_YEAR.fullmatch(text)
    if in_words and key(in_words[1]) in catalogue().months:
        return date(int(in_words[2]), _month(in_words[1]), 1)
    patterns = ((r"(\d{1,2})[./](\d{4})", 2, 1), (r"(\d{4})[-/.](\d{1,2})", 1, 2), (_EAST_ASIAN_MONTH, 1, 2))
    for pattern, year, month in patterns:
        in_numbers = re.fullmatch(pattern, text)
        if in_numbers and 1 <= int(in_numbers[month]) <= 12:
            return date(int(in_numbers[year]), int(in_numbers[month]), 1)
    return None


def is_year(text: str) -> bool:
    return bool(year_of(text))


def year_of(text: str) -> str:
    """Return the year if *text* is one and nothing else; empty for anything else."""
    if len(text) > _MAX_CHARACTERS:
        return ""
    plain = unicodedata.normalize("NFKC", text).strip()
    east_asian = _EAST_ASIAN_YEAR.fullmatch(plain)
    if east_asian:
        return east_asian[1]
    return plain if _YEAR.fullmatch(plain) else ""


def order_of_dates(values: Sequence[str]) -> str:
    """
    Return the order that fits most dates of a column; "" if there are none in numbers.

    It is ``?`` if two fit equally and differ, or if most values are numbers that count days or seconds.
    """
    dates = [text for text in map(without_time, values) if _needs_order(text)]
    if not dates:
        serials = sum(map(is_serial, values))
        return ASK if 2 * serials > len(values) else ""
    days_by_order = {order: [day_of(text, order) for text in dates] for order in ORDERS}
    most = max(map(_count_of_days, days_by_order.values()))
    if not most:
        return ""
    best_orders = [order for order in ORDERS if _count_of_days(days_by_order[order]) == most]
    # Orders that fit equally are one if every date is the same day in all of them, such as 05/05/2020.
    first = best_orders[0]
    is_clear = all(days_by_order[order] == days_by_order[first] for order in best_orders)
    return first if is_clear else ASK


def _count_of_days(days: Sequence[date | None]) -> int:
    return len(days) - days.count(None)


def _needs_order(text: str) -> bool:
    """Return whether a text is a date in numbers that is not in the order of ISO 8601."""
    return bool(NUMERIC_DATE.fullmatch(text)) and not ISO.fullmatch(text)
