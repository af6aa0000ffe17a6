"""
Text as the search index holds it: folded words, and bigrams where a script writes no spaces.

The same folding is applied to what is published and to what is asked, so the tokenizer of the index
has only to split at spaces and the Unicode tables of the SQLite library do not matter.
"""

import re
import unicodedata

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_UNSPACED = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u0f00-\u0fff"  # Tibetan
    "\u1000-\u109f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana and iteration marks
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uac00-\ud7af"  # Hangul: spaced, yet its compounds are not
    "\U00020000-\U0003ffff"  # Han, further planes
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
    """What each character becomes: itself in a word, a word of its own when a symbol, else a space."""

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


def fold(text: str) -> str:
    """Give *text* without case, width and Latin diacritics, in normalization form C: what sorting by name compares."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold()).translate(_COMBINING)
    return unicodedata.normalize("NFC", decomposed.casefold().translate(_PLAIN))


def _pieces(text: str) -> list[str]:
    """Cut *text* into words; a run without spaces between its words is one piece."""
    folded = fold(text)
    if folded.isascii():
        return _ASCII_WORD.findall(folded)
    return _UNSPACED.sub(r" \g<0> ", folded.translate(_characters)).split()


def _bigrams(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(len(run) - 1)]


def indexed(text: str) -> str:
    """
    Give the words of *text* as the index holds them, separated by spaces.

    A run of a script without spaces becomes its bigrams and its last character, so that each of its
    characters begins some word.
    """
    words: list[str] = []
    for piece in _pieces(text):
        if _UNSPACED.match(piece):
            words += _bigrams(piece)
            words.append(piece[-1])
        else:
            words.append(piece)
    return " ".join(words)


def match_expression(query: str) -> str | None:
    """
    Give the FTS5 expression that finds every word of *query*, the last one as a prefix.

    Every word is quoted and holds only letters, marks, digits and symbols, so no text makes a syntax error.

    Returns:
        None when nothing in the text can be searched for.
    """
    pieces = _pieces(query)
    terms: list[str] = []
    for index, piece in enumerate(pieces):
        if _UNSPACED.match(piece):
            terms.append(f'"{" ".join(_bigrams(piece))}"' if len(piece) > 1 else f'"{piece}"*')
        else:
            terms.append(f'"{piece}"*' if index == len(pieces) - 1 else f'"{piece}"')
    return " AND ".join(terms) or None


_SLUG_SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789-"


def one_slip_from(word: str) -> list[str]:
    """Give every slug that one slip of the hand lies from *word*: a sign left out, doubled, swapped or mistaken."""
    halves = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    left_out = [before + sign + after for before, after in halves for sign in _SLUG_SIGNS]
    too_many = [before + after[1:] for before, after in halves if after]
    swapped = [before + after[1] + after[0] + after[2:] for before, after in halves if len(after) > 1]
    mistaken = [before + sign + after[1:] for before, after in halves if after for sign in _SLUG_SIGNS]
    return list({*left_out, *too_many, *swapped, *mistaken} - {word})
