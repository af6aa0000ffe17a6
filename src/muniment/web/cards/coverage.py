"""The choice of a bundled font that can draw a text."""

import functools
import json
import unicodedata
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "fonts"
HEADING: Final = "zilla-slab-600.ttf"
TEXT: Final = "source-sans-3-400.ttf"
STRONG: Final = "source-sans-3-600.ttf"
FAMILIES: Final = {
    HEADING: "Zilla Slab",
    STRONG: "Source Sans 3",
    "noto-sans-arabic-600.ttf": "Noto Sans Arabic",
    "noto-sans-hebrew-600.ttf": "Noto Sans Hebrew",
    "noto-sans-devanagari-600.ttf": "Noto Sans Devanagari",
    "noto-sans-thai-600.ttf": "Noto Sans Thai",
}
"""The family of each file that can draw a name, in the order in which they are tried."""
_REORDERED: Final = frozenset({"noto-sans-devanagari-600.ttf", "noto-sans-thai-600.ttf"})
"""Fonts of scripts whose signs are placed by the letters around them."""
_DROPPED: Final = frozenset({"So", "Sk", "Cf", "Cc", "Co", "Cs", "Cn"})
"""Emoji, their modifiers, and what has no form: a text is the same to its reader without them."""
_JOINERS: Final = "\u200c\u200d"
"""Characters that decide the form of letters and are not drawn."""


@functools.cache
def _covered() -> dict[str, frozenset[int]]:
    found = json.loads((FOLDER / "coverage.json").read_text(encoding="ascii"))
    return {file: frozenset(_numbers(ranges)) for file, ranges in found.items()}


def _numbers(ranges: str) -> list[int]:
    numbers: list[int] = []
    for each in ranges.split():
        first, _, last = each.partition("-")
        numbers += range(int(first, 16), int(last or first, 16) + 1)
    return numbers


def drawable(text: str) -> str:
    """Return *text* in one line, without emoji and characters that have no form."""
    composed = unicodedata.normalize("NFC", text)
    kept = (
        each for each in composed if each in _JOINERS or unicodedata.category(each) not in _DROPPED or each in "\n\t"
    )
    return " ".join("".join(kept).split())


def font_for(text: str, *, heading: bool = False) -> str:
    """
    Return the file of the one font that can draw all of *text*; "" if none can.

    The renderer misplaces vowel signs when it takes the characters of a line from several fonts, so each font of a
    script has the Latin letters too; and when the first letter is of another script, so such a line is not drawn.

    Args:
        heading: try the typeface of headings first.
    """
    characters = {ord(each) for each in text if each not in _JOINERS}
    first = next((each for each in text if each.isalpha()), "")
    for file in FAMILIES if heading else (each for each in FAMILIES if each != HEADING):
        if characters <= _covered()[file]:
            return "" if file in _REORDERED and first.isascii() and first else file
    return ""
