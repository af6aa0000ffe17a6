"""
Search tokenizer: folded words, bigrams for scripts that write no spaces, and keys.

Indexed text and queries are folded alike, so the index only splits at spaces, and the Unicode tables of the SQLite
library do not matter.

A key names one document by itself, without spaces or signs, marked so that no word of a text equals it: ``North
Haven``, ``north-haven`` and ``northhaven`` are one key; so are ``https://www.example.org/about`` and ``example.org``.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_UNSPACED = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u0f00-\u0fff"  # Tibetan
    "\u1000-\u109f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana and iteration marks
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uac00-\ud7af"  # Hangul: has spaces, but not inside compounds
    "\U00020000-\U0003ffff"  # Han, supplementary planes
    "]+"
)
_COMBINING = dict.fromkeys(range(0x300, 0x370))
_PLAIN = {
    ord("ø"): "o",
    ord("ł"): "l",
    ord("đ"): "d",
    ord("ð"): "d",
    ord("ħ"): "h",
    ord("ı"): "i",
    ord("þ"): "th",
    ord("æ"): "ae",
    ord("œ"): "oe",
}


class _WordCharacters(dict[int, str]):
    """Maps each character: to itself in a word, to a separate word if a symbol, else to a space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if category[0] in "LMN" or category == "Co":
            kept = character
        elif category == "So":
            kept = f" {character} "
        else:
            kept = " "
        self[code] = kept
        return kept


_characters = _WordCharacters()
_ascii = "".join(_characters[ord(chr(code).lower())] for code in range(128))
"""The same table for ASCII alone, in lower case: most texts have no other characters, and this is faster."""


def fold(text: str) -> str:
    """Remove case, width and Latin diacritics, in normalization form C; also the collation of ``sort=name``."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold()).translate(_COMBINING)
    return unicodedata.normalize("NFC", decomposed.casefold().translate(_PLAIN))


def pieces(text: str) -> list[str]:
    """Split *text* into folded words; a run of a script without spaces is one piece."""
    if text.isascii():
        return text.translate(_ascii).split()
    return _UNSPACED.sub(r" \g<0> ", fold(text).translate(_characters)).split()


def _bigrams(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(len(run) - 1)]


def indexed(text: str) -> str:
    """
    Return the words of *text* as indexed, separated by spaces.

    A run of a script without spaces becomes its bigrams and its last character, so that each of its characters starts
    some word.
    """
    if text.isascii():
        return " ".join(text.translate(_ascii).split())
    words: list[str] = []
    for piece in pieces(text):
        if _UNSPACED.match(piece):
            words += _bigrams(piece)
            words.append(piece[-1])
        else:
            words.append(piece)
    return " ".join(words)


class Term(NamedTuple):
    """A piece of a query: its words as indexed, one after the other, and whether the last is only begun."""

    words: tuple[str, ...]
    is_begun: bool

    @property
    def expression(self) -> str:
        return f'"{" ".join(self.words)}"' + ("*" if self.is_begun else "")


def terms(query: str) -> list[Term]:
    """Return the terms of *query*, of which the last is a beginning; none if it has no searchable words."""
    split = pieces(query)
    found = []
    for index, piece in enumerate(split):
        if _UNSPACED.match(piece):
            found.append(Term(tuple(_bigrams(piece)) or (piece,), len(piece) == 1))
        else:
            found.append(Term((piece,), index == len(split) - 1))
    return found


def plain_expression(found: Iterable[Term]) -> str:
    """
    Return the FTS5 expression that matches all of these terms.

    Every word is quoted and contains only letters, marks, digits and symbols, so no input causes a syntax error.
    """
    return " AND ".join(term.expression for term in found)


_SLUG_SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789-"


def single_edits(word: str) -> list[str]:
    """Return every slug one edit away from *word*: a character inserted, deleted, swapped or replaced."""
    halves = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    left_out = [before + sign + after for before, after in halves for sign in _SLUG_SIGNS]
    too_many = [before + after[1:] for before, after in halves if after]
    swapped = [before + after[1] + after[0] + after[2:] for before, after in halves if len(after) > 1]
    mistaken = [before + sign + after[1:] for before, after in halves if after for sign in _SLUG_SIGNS]
    return list({*left_out, *too_many, *swapped, *mistaken} - {word})


NAME: Final = "\u2261"
SYMBOL: Final = "\u2237"
SITE: Final = "\u2234"
MARKS: Final = (NAME, SYMBOL, SITE)
"""The marks of slugs and names, of symbols, and of domains, handles and identifiers; a sign is never part of a word."""
FORMER: Final = "\u2235"
"""The mark of former names, whose documents come after those that have the name now."""
NAMES: Final = (NAME, FORMER)
"""The marks of keys that a query is corrected by."""
NAMED: Final = "\u2299"
"""Marks each word of a name in the index of facts: few names have it, even of a word that many themes have."""
MAX_KEY_CHARACTERS: Final = 100

_ADDRESS: Final = re.compile(r"https?://(?:www\.)?+((?:[a-z0-9-]+\.)+[a-z]{2,})(?:/[!-~]*)?")
"""Most web addresses, which need not be parsed; the host without ``www.`` is the group."""
_DOMAIN: Final = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}", re.IGNORECASE)


def squeeze(text: str) -> str:
    return "".join(pieces(text))[:MAX_KEY_CHARACTERS]


def host_of(text: str) -> str:
    """Return the host of a web address or a bare domain without ``www.``; empty if the text is neither."""
    text = text.strip().lower()
    plain = _ADDRESS.fullmatch(text)
    if plain:
        return plain[1]
    has_scheme = "://" in text
    try:
        host = urlsplit(text).hostname if has_scheme else text.partition("/")[0]
    except ValueError:
        return ""
    host = (host or "").removeprefix("www.")
    is_host = _DOMAIN.fullmatch(host) or (has_scheme and "." in host)
    return host if is_host else ""


def handle_of(profile: str) -> str:
    """Return the name of a profile: the last part of its address, or the name itself without its sign."""
    if "://" in profile:
        try:
            profile = urlsplit(profile).path.rstrip("/").rpartition("/")[2]
        except ValueError:
            return ""
    return profile.strip().lstrip("@")


def marked(mark: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of *texts*; one character or none names nothing."""
    found = dict.fromkeys([squeeze(text) for text in texts if text])
    return tuple([mark + key for key in found if len(key) > 1 or (key and mark == SYMBOL)])


def without_mark(word: str) -> str:
    """Return a word of the vocabulary without the mark of a name."""
    return word.removeprefix(NAME).removeprefix(FORMER)


def key_of_query(query: str) -> str:
    """Return what *query* is as a key: an address means its host."""
    return squeeze(host_of(query) or query)
