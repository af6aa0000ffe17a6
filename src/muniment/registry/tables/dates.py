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


def day_of(text: str, order: str) -> date | None:  # noqa: PLR0911 - one for each form
    """
    Return the day that *text* means; None if it means none.

    Args:
        order: the order of numbers: DMY, MDY or YMD; EXCEL and UNIX count days and seconds.
    """
    if order in SERIALS:
        return _counted(text.strip(), order)
    text = _plain(text)
    try:
        if match := ISO.fullmatch(text) or _COMPACT.fullmatch(text) or _EAST_ASIAN.fullmatch(text):
            return date(int(match[1]), int(match[2]), int(match[3]))
        if match := NUMERIC_DATE.fullmatch(text):
            if order not in ORDERS or (len(match[1]) == 4) != (order == "YMD"):
                return None
            parts = dict(zip(order, match.groups(), strict=True))
            return date(int(parts["Y"]), int(parts["M"]), int(parts["D"])) if len(parts["Y"]) == 4 else None
        if match := _DAY_MONTH_YEAR.fullmatch(text):
            return date(int(match[3]), _month(match[2]), int(match[1]))
        if match := _MONTH_DAY_YEAR.fullmatch(text):
            return date(int(match[3]), _month(match[1]), int(match[2]))
    except (ValueError, KeyError):
        pass
    return None


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
    if (match := _MONTH_YEAR.fullmatch(text)) and key(match[1]) in catalogue().months:
        return date(int(match[2]), _month(match[1]), 1)
    patterns = ((r"(\d{1,2})[./](\d{4})", 2, 1), (r"(\d{4})[-/.](\d{1,2})", 1, 2), (_EAST_ASIAN_MONTH, 1, 2))
    for pattern, year, month in patterns:
        if (match := re.fullmatch(pattern, text)) and 1 <= int(match[month]) <= 12:
            return date(int(match[year]), int(match[month]), 1)
    return None


def is_year(text: str) -> bool:
    return bool(year_of(text))


def year_of(text: str) -> str:
    """Return the year if *text* is one and nothing else; empty for anything else."""
    if len(text) > _MAX_CHARACTERS:
        return ""
    plain = unicodedata.normalize("NFKC", text).strip()
    if match := _EAST_ASIAN_YEAR.fullmatch(plain):
        return match[1]
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
    most = 0
    best_orders: list[str] = []
    days_of_best: list[list[date | None]] = []
    for order in ORDERS:
        days = [day_of(text, order) for text in dates]
        count = len(days) - days.count(None)
        if count > most:
            most, best_orders, days_of_best = count, [], []
        if count and count == most:
            best_orders.append(order)
            days_of_best.append(days)
    if not best_orders:
        return ""
    # Orders that fit equally are one if every date is the same day in all of them, such as 05/05/2020.
    is_clear = all(days == days_of_best[0] for days in days_of_best)
    return best_orders[0] if is_clear else ASK


def _needs_order(text: str) -> bool:
    """Return whether a text is a date in numbers that is not in the order of ISO 8601."""
    return bool(NUMERIC_DATE.fullmatch(text)) and not ISO.fullmatch(text)
