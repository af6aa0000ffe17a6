"""The words of a question, folded, each with its place in the text."""

import re
from contextlib import suppress
from datetime import date
from typing import Final

import msgspec
from msgspec import structs

from muniment.store.search.values import singular
from muniment.store.search_text import fold, pieces

MAX_CHARACTERS: Final = 300
MAX_TOKENS: Final = 40
"""A longer text is no question."""

_CHUNK: Final = re.compile(r"\S+")
_EDGES: Final = "()[]{}<>\"'`.,;:!?¿¡…«»„“”‘’*_~|、。・？！（）「」"
_ENDS: Final = tuple(",;/|、")
_JOINS: Final = frozenset({"&", "+"})
_SIGNS: Final = frozenset({">", ">=", "≥", "<", "<=", "≤"})
_NUMBER: Final = re.compile(r"([$€£¥]?)(\d[\d.,'’]{0,30})([^\W\d_]{0,4})([$€£¥]?)(\+?)")
_DAY: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)|(\d{1,2})\.(\d{1,2})\.(\d{4})", re.ASCII)


class Token(msgspec.Struct, frozen=True, gc=False):
    """
    A word, number or day of a question.

    Args:
        one: the word in the singular, as values are compared.
        start: where its part of the text begins; words joined by a hyphen share it.
        digits: of a number, its digits with the signs between them.
        suffix: of a number, the letters behind it.
        has_currency: the number has the sign of a currency.
        has_plus: the number has a plus sign behind it.
        day: of a day in digits.
        closes: a comma, a slash or an ampersand follows.
    """

    word: str
    one: str
    start: int
    end: int
    digits: str = ""
    suffix: str = ""
    has_currency: bool = False
    has_plus: bool = False
    day: date | None = None
    closes: bool = False


def split(text: str) -> list[Token]:
    """Return the tokens of *text*; none if it is too long for a question."""
    found: list[Token] = []
    if len(text) > MAX_CHARACTERS:
        return found
    for chunk in _CHUNK.finditer(text):
        if found and chunk.group() in _JOINS:
            found[-1] = structs.replace(found[-1], closes=True)
        found += _tokens(chunk.group(), chunk.start())
        if len(found) > MAX_TOKENS:
            return []
    return found


def _tokens(chunk: str, start: int) -> list[Token]:
    if chunk in _SIGNS:
        return [Token(chunk, chunk, start, start + len(chunk))]
    bare = chunk.strip(_EDGES)
    if not bare:
        return []
    start += chunk.index(bare)
    end, closes = start + len(bare), chunk.endswith(_ENDS)
    if day := _day(bare):
        return [Token(bare, bare, start, end, day=day, closes=closes)]
    if number := _NUMBER.fullmatch(bare):
        before, digits, suffix, after, plus = number.groups()
        return [
            Token(
                fold(bare),
                singular(bare),
                start,
                end,
                digits=digits,
                suffix=fold(suffix),
                has_currency=bool(before or after),
                has_plus=bool(plus),
                closes=closes,
            )
        ]
    words = pieces(bare)
    last = len(words) - 1
    return [
        Token(word, singular(word), start, end, closes=closes and place == last) for place, word in enumerate(words)
    ]


def _day(text: str) -> date | None:
    found = _DAY.fullmatch(text)
    if found is None:
        return None
    year, month, day, first, second, last = found.groups()
    with suppress(ValueError):
        return date(int(year or last), int(month or second), int(day or first))
    return None
