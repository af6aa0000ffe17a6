"""Dates, times and numbers as the current language writes them."""

import re
from datetime import date, datetime
from typing import Final

from django.utils import formats
from django.utils.translation import gettext

from muniment.kernel.csv_text import COMMA, SEMICOLON
from muniment.languages.catalogues import SOURCE
from muniment.languages.speaking import language

DAY: Final = "j F Y"
"""A day in English, as Django writes formats."""
MONTH: Final = "F Y"
_AMOUNT: Final = re.compile(r"([^\d.,-]*)(\d[\d,]*(?:\.\d+)?)([KMBT]?)")


def number(value: float) -> str:
    """Return a number with separators: 1,234."""
    if language() == SOURCE:
        return f"{value:,}"
    return formats.number_format(value, use_l10n=True, force_grouping=True)


def delimiter() -> str:
    """Return what spreadsheets of the language expect between the cells of CSV."""
    return SEMICOLON if formats.get_format("DECIMAL_SEPARATOR") == "," else COMMA


def digits(text: str) -> str:
    """Return a number that is written in English, such as 1,234.5, with the separators of the language."""
    code = language()
    if code == SOURCE:
        return text
    thousands, point = (str(formats.get_format(name, code)) for name in ("THOUSAND_SEPARATOR", "DECIMAL_SEPARATOR"))
    return text.translate({ord(","): thousands, ord("."): point})


def amount(text: str) -> str:
    """Return an amount of the wire, such as $2.5B, as the language writes it: 2,5 Mrd. $ in German."""
    parts = _AMOUNT.fullmatch(text)
    if parts is None or language() == SOURCE:
        return text
    sign, figures, magnitude = parts.groups()
    shown = {"sign": sign.strip(), "number": digits(figures)}
    return _magnitudes()[magnitude] % shown


def _magnitudes() -> dict[str, str]:
    """Return how the language writes amounts, by the suffix of the wire; the sign may come last."""
    return {
        "": gettext("%(sign)s%(number)s"),
        "K": gettext("%(sign)s%(number)sK"),
        "M": gettext("%(sign)s%(number)sM"),
        "B": gettext("%(sign)s%(number)sB"),
        "T": gettext("%(sign)s%(number)sT"),
    }


def day(at: date) -> str:
    """Return a day: 21 November 2026."""
    return f"{at:%-d %B %Y}" if language() == SOURCE else dated(at, DAY)


def month(at: date) -> str:
    """Return a month: November 2026."""
    return f"{at:%B %Y}" if language() == SOURCE else dated(at, MONTH)


def moment(at: datetime) -> str:
    """Return a time: 21 November 2026, 09:30."""
    return f"{day(at)}, {at:%H:%M}"


def dated(at: date, style: str) -> str:
    """Return *at* in a format of Django's, whose day or month is as the language writes it."""
    return str(formats.date_format(at, local_style(style)))


def local_style(style: str) -> str:
    """Return a format with its day or month as the language writes it."""
    code = language()
    if code == SOURCE:
        return style
    if DAY in style:
        return style.replace(DAY, str(formats.get_format("DATE_FORMAT", code)))
    if MONTH in style:
        return style.replace(MONTH, str(formats.get_format("YEAR_MONTH_FORMAT", code)))
    return style
