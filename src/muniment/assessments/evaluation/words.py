"""Text matching: normalize text, split it into passages and terms, and quote from it."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

MAX_PASSAGE: Final = 600
MAX_QUOTE: Final = 300
_OVERLAP: Final = 100
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_WORD = re.compile(r"\w+")
_STOP = frozenset(
    """a about above all also an and any are as at be because been being both but by can could do does each for from
    had has have her his how however if in into is it its may more most must no not of on one only or other our out
    over own shall she should so some such suggested than that the their them then there these they this those through
    to too under until up use used uses using via was were what when where which while who whose why will with within
    without would you your e g i verify ensure example
    company organization organisation project software application""".split()  # noqa: SIM905 - more readable than a list
)


def collapse(text: str) -> str:
    """Return *text* with each run of white space collapsed to one space."""
    return " ".join(text.split())


def fold(text: str) -> str:
    """Return *text* normalized for comparison: compatibility forms, case and white space."""
    return collapse(unicodedata.normalize("NFKC", text).casefold())


def sentences(text: str) -> list[str]:
    return [piece for piece in _SENTENCE.split(text) if piece.strip()]


def passages(text: str) -> Iterator[str]:
    """
    Split *text* at sentence ends into passages of at most :data:`MAX_PASSAGE` characters.

    A longer sentence is split between words, with an overlap so that no phrase is lost at the boundary.
    """
    held = ""
    for sentence in sentences(collapse(text)):
        for piece in _short(sentence):
            if held and len(held) + 1 + len(piece) > MAX_PASSAGE:
                yield held
                held = piece
            else:
                held = f"{held} {piece}" if held else piece
    if held:
        yield held


def _short(sentence: str) -> Iterator[str]:
    while len(sentence) > MAX_PASSAGE:
        end = sentence.rfind(" ", _OVERLAP + 1, MAX_PASSAGE)
        if end <= 0:
            end = MAX_PASSAGE
        yield sentence[:end]
        space = sentence.find(" ", end - _OVERLAP, end)
        next_start = space + 1 if space > 0 else end - _OVERLAP
        sentence = sentence[next_start:]
    yield sentence


def holds_phrase(folded: str, phrase: str) -> bool:
    """Return whether the folded text contains the folded phrase as whole words."""
    return phrase in folded and _pattern(phrase).search(folded) is not None


@lru_cache(maxsize=4096)
def _pattern(phrase: str) -> re.Pattern[str]:
    def edge(character: str, guard: str) -> str:
        # Scripts without spaces between words have no word boundaries.
        spaced = (character.isalnum() or character == "_") and unicodedata.category(character) != "Lo"
        return guard if spaced else ""

    return re.compile(edge(phrase[0], r"(?<!\w)") + re.escape(phrase) + edge(phrase[-1], r"(?!\w)"))


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return a folded word without the most common English endings."""
    for ending, rest in (("ies", "y"), ("ments", "ment"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) + len(rest) >= 4:
            return word[: -len(ending)] + rest
    return word


def words_of(folded: str) -> list[str]:
    return _WORD.findall(folded)


def terms(text: str) -> list[str]:
    """Return the distinct meaningful terms of a text, in order."""
    meaningful = []
    for word in words_of(fold(text)):
        if len(word) > 2 and not word.isdigit() and word not in _STOP:
            meaningful.append(stem(word))
    return list(dict.fromkeys(meaningful))


def quote_with(text: str, phrase: str) -> str:
    """Return the sentence of *text* that contains the folded *phrase*, shortened to a quote."""
    for sentence in sentences(text):
        folded = fold(sentence)
        if holds_phrase(folded, phrase):
            return _around(sentence, folded.find(phrase), len(phrase))
    folded = fold(text)  # the phrase spans sentences
    return _around(text, max(0, folded.find(phrase)), len(phrase))


def quote(text: str) -> str:
    """Return the beginning of *text*, shortened between words."""
    return _around(text, 0, 0)


def _around(text: str, at: int, length: int) -> str:
    """Shorten *text* around a position, which folding may have shifted a little; the result is still a true quote."""
    if len(text) <= MAX_QUOTE:
        return text
    start = max(0, min(at - (MAX_QUOTE - length) // 2, len(text) - MAX_QUOTE))
    piece = text[start : start + MAX_QUOTE]
    if start and " " in piece[:60]:
        piece = piece[piece.find(" ") + 1 :]
    if start + MAX_QUOTE < len(text) and " " in piece[-60:]:
        piece = piece[: piece.rfind(" ")]
    return piece.strip()
