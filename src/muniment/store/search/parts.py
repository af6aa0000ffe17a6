"""
Parts of words, by which a word with slips is found.

Parts are the whole of a short word, also with any one letter left out, or any two if it is a name, and the halves of a
longer one, the first also with any one letter left out. A letter that was left out, added, replaced or swapped with its
neighbour leaves one half of a word as it was; of two slips, either both are in one half, or one is in the first. Parts
are numbers, so that a table of them is small.
"""

from itertools import combinations
from typing import Final
from zlib import crc32

SHORT: Final = 7
"""Letters of a word that has no halves: too many others would share them."""
MIN_TWICE: Final = 5
"""Letters of a short word that is found in spite of two slips."""
_WHOLE: Final = "="
_FIRST: Final = "<"
_SECOND: Final = ">"


def parts_of(word: str, *, is_name: bool) -> frozenset[int]:
    """Return the parts by which a word of the registry is found; one of a longer name is found by that, too."""
    if len(word) < MIN_TWICE or (len(word) <= SHORT and not is_name):
        return _numbers(_WHOLE, _shortened(word))
    if len(word) <= SHORT:
        return _numbers(_WHOLE, _twice_shortened(word))
    half = len(word) // 2
    return _numbers(_FIRST, _shortened(word[:half])) | _numbers(_SECOND, [word[half:]])


def of_one_slip(word: str) -> frozenset[int]:
    """Return the parts of which the right word has one, if *word* differs from it by one slip."""
    length = len(word)
    found = _numbers(_WHOLE, _shortened(word)) if length <= SHORT + 1 else frozenset()
    if length >= SHORT:
        for half in {(length - 1) // 2, length // 2, (length + 1) // 2}:
            found |= _numbers(_FIRST, [word[:half]]) | _numbers(_SECOND, [word[half:]])
    return found


def of_two_slips(word: str) -> frozenset[int]:
    """Return the parts of which the right word has one, in most cases, if *word* differs from it by two slips."""
    length = len(word)
    found: frozenset[int] = frozenset()
    if length <= SHORT + 2:
        found = _numbers(_WHOLE, _twice_shortened(word))
    if length >= SHORT - 1:
        for half in range(length // 2 - 1, length // 2 + 2):
            found |= _numbers(_FIRST, _shortened(word[:half])) | _numbers(_SECOND, [word[half:]])
    return found


def _shortened(text: str) -> list[str]:
    """Return *text*, and *text* with each of its letters left out."""
    return [text, *[text[:place] + text[place + 1 :] for place in range(len(text))]]


def _twice_shortened(text: str) -> list[str]:
    return [*_shortened(text), *map("".join, combinations(text, max(len(text) - 2, 0)))]


def _numbers(side: str, texts: list[str]) -> frozenset[int]:
    """Return the numbers of parts, which SQLite stores in three bytes."""
    begun = crc32(side.encode())
    return frozenset([(crc32(text.encode("utf-8", "surrogatepass"), begun) & 0xFFFFFF) - (1 << 23) for text in texts])
