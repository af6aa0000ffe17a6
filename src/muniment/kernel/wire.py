"""Format and parse money, dates and numbers as the API shows them; UNSET for absent values."""

import re
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum
from typing import Final, Literal
from urllib.parse import quote

from muniment.kernel.phrases.phrase import Phrase


class Unset(Enum):
    """The type of :data:`UNSET`, so that signatures distinguish absent from null."""

    UNSET = "unset"

    def __bool__(self) -> Literal[False]:
        return False


UNSET: Final = Unset.UNSET

_SUFFIXES = ("", "K", "M", "B", "T")
_MAGNITUDES = {"": 0, "K": 3, "M": 6, "B": 9, "T": 12}
_WORDS = {"THOUSAND": "K", "MILLION": "M", "MM": "M", "MN": "M", "BILLION": "B", "BN": "B", "TRILLION": "T", "TN": "T"}
_MONEY = re.compile(r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)\s*(?P<suffix>[A-Za-z]*)")
_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CHF": "CHF ", "INR": "₹", "BRL": "R$", "KRW": "₩"}
_WHOLE = frozenset("BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF".split())  # noqa: SIM905 - easier to read as one text
_THOUSANDTHS = frozenset({"BHD", "JOD", "KWD", "OMR", "TND"})
MAX_PARSED: Final = 100
"""Characters of a text that is parsed; a longer one is refused unread."""
MAX_MINOR_UNITS = 10**17
"""The largest amount that one company may hold; fits in 64 bits."""


def currency_sign(currency: str) -> str:
    """Return the symbol that precedes an amount in *currency* (an ISO 4217 code)."""
    return _SIGNS.get(currency, f"{currency} ")


def format_money(minor_units: int, currency: str = "USD") -> str:
    """
    Format an amount with its magnitude suffix: ``$1.2M``.

    At most one decimal, rounded half up, a trailing ``.0`` dropped, promoted when rounding reaches 1000.

    Source: decisions, section 2, treasury.
    """
    amount = Decimal(minor_units) / 100
    for index, suffix in enumerate(_SUFFIXES):  # noqa: B007 - the last suffix is the one shown
        rounded = (amount / 10 ** (3 * index)).quantize(Decimal("0.1"), ROUND_HALF_UP)
        if rounded < 1000 or index == len(_SUFFIXES) - 1:
            break
    text = f"{rounded:f}".removesuffix(".0")
    return f"{currency_sign(currency)}{text}{suffix}"


def format_price(minor_units: int, currency: str = "USD") -> str:
    """Format an amount to its minor unit: ``$9.00``, ``¥900``; UGX and ISK have two decimals."""
    places = 2
    if currency in _WHOLE:
        places = 0
    elif currency in _THOUSANDTHS:
        places = 3
    return f"{currency_sign(currency)}{Decimal(minor_units).scaleb(-places):,f}"


def parse_money(text: str, currency: str = "USD") -> int:
    """Parse ``$1.2M``, ``1,200,000`` or ``USD 1.2 million`` into minor units, rounded half up, or raise ValueError."""
    rest = text.strip() if len(text) <= MAX_PARSED else ""
    for sign in (currency_sign(currency).strip(), currency):
        rest = rest.removeprefix(sign).strip()
    rest = rest.removesuffix(currency).strip()
    match = _MONEY.fullmatch(rest)
    suffix = match["suffix"].upper() if match else ""
    suffix = _WORDS.get(suffix, suffix)
    if match is None or suffix not in _MAGNITUDES:
        message = Phrase("is not an amount such as {sign}1.2M", sign=currency_sign(currency))
        raise ValueError(message)
    amount = Decimal(match["number"].replace(",", "")) * 10 ** _MAGNITUDES[suffix] * 100
    minor_units = int(amount.to_integral_value(ROUND_HALF_UP))
    if minor_units > MAX_MINOR_UNITS:
        message = Phrase("is more than {limit:,}, the largest amount allowed", limit=MAX_MINOR_UNITS // 100)
        raise ValueError(message)
    return minor_units


def format_amount(minor_units: int) -> str:
    """Format an exact amount as a decimal number of major units: ``1249999.99``."""
    return f"{minor_units // 100}.{minor_units % 100:02d}"


def parse_amount(text: str) -> int:
    """Parse ``1249999.99``, with up to two decimals, into minor units, or raise ValueError."""
    if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,2})?", text):
        message = Phrase("must be a decimal number in text such as 1249999.99")
        raise ValueError(message)
    minor_units = int(Decimal(text) * 100)
    if minor_units > MAX_MINOR_UNITS:
        message = Phrase("must be at most {limit}, the largest amount allowed", limit=MAX_MINOR_UNITS // 100)
        raise ValueError(message)
    return minor_units


def timestamp(moment: datetime) -> str:
    """Format an aware time as RFC 3339 in UTC with microseconds: sorts as text, round-trips exactly."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_timestamp(text: str) -> datetime:
    """Parse an RFC 3339 date and time with its UTC offset, or raise ValueError."""
    message = "is not an RFC 3339 date and time such as 2026-11-21T10:00:00Z"
    if len(text) > MAX_PARSED or not re.fullmatch(
        r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", text
    ):
        raise ValueError(message)
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):  # 31 February; the year 0 after conversion to UTC
        raise ValueError(message) from None


def number(value: float) -> int | float:
    """Return a whole number without its ``.0``, so that 5 and 5.0 look alike."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


PICTURE_PATH: Final = re.compile(r"/pictures/(?P<digest>[0-9a-f]{32})-(?P<size>144|512)\.webp")
_PICTURE_MARK: Final = b'"/pictures/'
_PICTURE_VALUE: Final = re.compile(rb'(?<!\\)"(?=/pictures/[0-9a-f]{32}-(?:144|512)\.webp")')
"""The beginning of a JSON string that is such a path; within a string, a quotation mark has a backslash."""


def picture_address(path: str, base_url: str) -> str:
    """Return the URL of a stored picture; other addresses stay as they are."""
    return base_url + path if PICTURE_PATH.fullmatch(path) else path


def summary_path(company: str, framework_id: str) -> str:
    """Return the path of the page of a published score."""
    return f"/companies/{quote(company, safe='')}/assessments/{quote(framework_id, safe='')}"


def proof_path(kind: str, key: str) -> str:
    """Return the path of the proof that a published document is in the public log."""
    return f"/api/v1/log/proof?kind={kind}&id={quote(key, safe='')}"


_SUMMARY_MARK: Final = b'"url":"/companies/'
_SUMMARY_VALUE: Final = re.compile(rb'(?<="url":)"(?=/companies/[^"/\\]+/assessments/[^"/\\]+")')
"""The same of the path of a published summary."""


def with_picture_addresses(content: bytes, base_url: str) -> bytes:
    """Return encoded JSON with URLs in place of the paths of stored pictures and of published summaries."""
    if not base_url:
        return content
    start = b'"' + base_url.encode()
    if _PICTURE_MARK in content:
        content = _PICTURE_VALUE.sub(start, content)
    return _SUMMARY_VALUE.sub(start, content) if _SUMMARY_MARK in content else content
