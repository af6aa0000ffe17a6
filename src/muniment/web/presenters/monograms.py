"""Monograms: the initials of a name and the colour of its mark, for pages and cards."""

import hashlib
import re
import unicodedata
from typing import Final

COLOURS: Final = 8
_SMALL_WORDS: Final = frozenset(
    ("a", "an", "and", "de", "del", "der", "des", "die", "du", "el", "for", "in", "la", "le", "of", "on", "the", "und")
)
_BEHIND: Final = frozenset(("jr", "sr", "ii", "iii", "iv", "phd", "md", "esq"))
"""Words behind a person's name that are no part of it."""
_ASIDE: Final = re.compile(r"\([^)]*\)")
_WORDS: Final = re.compile(r"[\s\-–—_/.,:;|()&+]+")
_ONE_LETTER: Final = ("ARABIC", "HEBREW", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "SYRIAC", "THAI", "LAO", "KHMER")
"""Scripts in which letters join, or in which one character is a whole word or syllable."""


def initials(name: str, *, is_person: bool = False) -> str:
    """
    Return one or two initials of *name*; "·" if it has neither letters nor digits.

    Names of several words have the initials of the first two that matter, those of people of the first and the last, in
    scripts where initials are usual.
    """
    words = [(word, initial) for word in _WORDS.split(_composed(name)) if (initial := _initial(word))]
    chosen = [initial for word, initial in words if word.lower() not in _SMALL_WORDS] or [each for _, each in words]
    if not chosen:
        return "·"
    first = chosen[0]
    if len(chosen) == 1 or _script(first).startswith(_ONE_LETTER):
        return first
    second = (_family(name) if is_person else "") or chosen[1]
    return first if _script(second).startswith(_ONE_LETTER) else first + second


def colour(key: str) -> int:
    """Return the number of the colour that belongs to *key*, the same on every page and in every version."""
    return hashlib.blake2s(key.encode(), digest_size=1).digest()[0] % COLOURS


def _family(name: str) -> str:
    """Return the initial of a person's last name, without the title or generation behind it; "" if there is none."""
    words = [
        word
        for each in _ASIDE.sub(" ", _composed(name)).split()[1:]
        if (word := each.strip(".,()")).casefold() not in _BEHIND
    ]
    found = (_initial(part) for word in words[::-1] for part in _WORDS.split(word))
    return next(filter(None, found), "")


def _composed(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _initial(word: str) -> str:
    """Return the first letter or digit of *word* with the vowel signs that belong to it."""
    if word.isascii() and word[:1].isalnum():
        return word[0].upper()
    for index, character in enumerate(word):
        if character.isalnum():
            end = index + 1
            while end < len(word) and unicodedata.category(word[end]) in {"Mc", "Mn"}:
                end += 1
            upper = character.upper()
            return (upper if len(upper) == 1 else character) + word[index + 1 : end]
    return ""


def _script(initial: str) -> str:
    return "LATIN" if initial.isascii() else unicodedata.name(initial[0], "")
