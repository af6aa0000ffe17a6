"""Check text for what storage rejects (NUL, unpaired surrogates), and names for what would mislead their readers."""

import re
import unicodedata
from typing import Final
from urllib.parse import urlsplit

from muniment.kernel.phrases.phrase import Phrase

_BIDIRECTIONAL: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Unicode's property Bidi_Control."""
_PLAIN_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(?:/[!#-;=?-~]*)?")
"""Most web addresses; parsing one takes ten times as long."""


def line_fault(text: str) -> str | None:
    """Return why *text* cannot be a name or title, or None: a control or bidirectional character."""
    if text.isprintable():
        return None
    for character in text:
        if character in _BIDIRECTIONAL:
            return Phrase("contains the bidirectional character U+{code:04X}", code=ord(character))
        if unicodedata.category(character) in {"Cc", "Zl", "Zp"}:
            return Phrase("contains the control character U+{code:04X}", code=ord(character))
    return None


def spreadsheet_cell(text: str) -> str:
    """Return *text* for a cell of a CSV file, with an apostrophe before what a spreadsheet would run as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def without_controls(text: str) -> str:
    """Return *text* without the characters that change how the text around it is shown."""
    if text.isprintable():
        return text
    return "".join(each for each in text if line_fault(each) is None)


def printable(text: str) -> str:
    """Return *text* with a space in place of each character that is not printable."""
    unprintable = {character for character in text if not character.isprintable()}
    return text.translate(dict.fromkeys(map(ord, unprintable), " "))


def text_fault(text: str) -> str | None:
    """Return why *text* cannot be stored, or None."""
    if "\0" in text:
        return Phrase("contains the character U+0000")
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return Phrase("contains an unpaired surrogate")
    return None


def first_text_fault(value: object, path: str = "") -> tuple[str, str] | None:
    """Return the path and the fault of the first text in *value* (JSON) that cannot be stored, or None."""
    if isinstance(value, str):
        fault = text_fault(value)
        return (path, fault) if fault else None
    if isinstance(value, dict):
        for key, member in value.items():
            if fault := text_fault(key):
                return path, Phrase("has a key that {fault}", fault=fault)
            if found := first_text_fault(member, f"{path}.{key}" if path else key):
                return found
    elif isinstance(value, list):
        for index, member in enumerate(value):
            if found := first_text_fault(member, f"{path}[{index}]"):
                return found
    return None


def is_web_address(text: str) -> bool:
    """Return whether *text* is a whole http(s) address, which a page may link to."""
    if _PLAIN_ADDRESS.fullmatch(text):
        return True
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # also of a port beyond 65,535
        return False
    # Other white space than spaces is not printable.
    return is_whole and text.isprintable() and not any(sign in text for sign in ' "<>')
