"""
Marks and state pills as HTML, and the monograms in marks and on cards.

They are in every row of a list, where templates of their own would cost most.
"""

import hashlib
import re
import unicodedata
from html import escape
from typing import Final

from django.utils.safestring import SafeString, mark_safe

from muniment.web.context import own_address
from muniment.web.wording.states import state

_GOOD = (
    *("active", "published", "passed", "open", "raising", "approved", "accepted", "succeeded", "ready", "verified"),
    "confirmed",
)
_WAIT = (
    *("uploaded", "upcoming", "pending", "submitted", "changes_requested", "waiting", "created", "queued", "running"),
    "requested",
)
_BAD = ("declined", "expired", "failed", "rejected")
TONES: Final = dict.fromkeys(_GOOD, "good") | dict.fromkeys(_WAIT, "wait") | dict.fromkeys(_BAD, "bad")


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


def mark_html(name: str, logo: object = None, size: str = "", *, is_round: bool = False, key: str = "") -> SafeString:
    """
    Return a logo that this instance serves, or a monogram of *name*.

    Args:
        logo: the wire form of a logo, or the address of a picture; those of other sites are not shown.
        key: decides the colour of the monogram, by default the name.
    """
    address = own_address(logo)
    classes = f" {escape(size)}" if size else ""
    if address:
        pixels = 72 if size == "large" else 40
        image = f'<img class="mark{classes}" src="{address}" alt="" width="{pixels}" height="{pixels}" loading="lazy">'
        return mark_safe(image)  # noqa: S308 - our own address
    if is_round:
        classes += " round"
        # The menu of an account names it by its email address, whose host says nothing about the person.
        letters = initials(name.partition("@")[0] or name, is_person=True)
    else:
        letters = initials(name)
    if len(letters) > 1:
        classes += " two"
    monogram = f'<span class="mark m{colour(key or name)}{classes}" aria-hidden="true">{letters}</span>'
    return mark_safe(monogram)  # noqa: S308 - letters, digits and their signs, or a dot


def pill_html(word: str, shown: str = "") -> SafeString:
    """Return a state as a word with its tone; *shown* in place of the usual word."""
    shown = escape(shown or state(word))
    return mark_safe(f'<span class="pill {TONES.get(word, "")}">{shown}</span>')  # noqa: S308 - escaped


def initials(name: str, *, is_person: bool = False) -> str:
    """
    Return one or two initials of *name*; "·" if it has neither letters nor digits.

    Names of several words have the initials of the first two that matter, those of people of the first and the last, in
    scripts where initials are usual.
    """
    letters, letters_of_small_words = [], []
    for word in _WORDS.split(_composed(name)):
        initial = _initial(word)
        if initial and word.lower() in _SMALL_WORDS:
            letters_of_small_words.append(initial)
        elif initial:
            letters.append(initial)
    if not letters:
        letters = letters_of_small_words  # a name of small words alone
    if not letters:
        return "·"
    first = letters[0]
    if len(letters) == 1 or _script(first).startswith(_ONE_LETTER):
        return first
    second = letters[1]
    if is_person:
        second = _family(name) or second
    if _script(second).startswith(_ONE_LETTER):
        return first
    return first + second


def colour(key: str) -> int:
    """Return the number of the colour that belongs to *key*, the same on every page and in every version."""
    return hashlib.blake2s(key.encode(), digest_size=1).digest()[0] % COLOURS


def _family(name: str) -> str:
    """Return the initial of a person's last name, without the title or generation behind it; "" if there is none."""
    for part in reversed(_ASIDE.sub(" ", _composed(name)).split()[1:]):
        word = part.strip(".,()")
        if word.casefold() in _BEHIND:
            continue
        for piece in _WORDS.split(word):
            initial = _initial(piece)
            if initial:
                return initial
    return ""


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
            # The capital of "ß" is "SS"; an initial is one letter.
            capital = upper if len(upper) == 1 else character
            return capital + word[index + 1 : end]
    return ""


def _script(initial: str) -> str:
    return "LATIN" if initial.isascii() else unicodedata.name(initial[0], "")
