"""
The registry's own words, which forgiving search corrects a query by: a table of words, and one of their parts.

A word is held as long as a published document contains it, so that nothing of an erased or unlisted document remains.

A word with slips is found by its parts. These are the whole of a short word, also with any one letter left out, or any
two if it is a name, and the halves of a longer one, the first also with any one letter left out. A letter that was left
out, added, replaced or swapped with its neighbor leaves one half of a word as it was; of two slips, either both are in
one half, or one is in the first. Parts are numbers, so that a table of them is small.
"""

import sqlite3
from collections import Counter
from itertools import combinations
from operator import itemgetter
from typing import Final
from zlib import crc32

from muniment.store.search_text import NAMES, without_mark
from muniment.store.statements import insert_rows

MIN_CHARACTERS: Final = 4
"""Shorter words are not corrected: each would have too many neighbours."""
MAX_WAITING: Final = 5_000
"""Documents whose words are counted in memory before they are written."""
AT_ONCE: Final = 500
"""Words that one statement looks up."""


SHORT: Final = 7
"""Letters of a word that has no halves: too many others would share them."""
MIN_TWICE: Final = 5
"""Letters of a short word that is found in spite of two slips."""
_WHOLE: Final = "="
_FIRST: Final = "<"
_SECOND: Final = ">"


def tables(kind: str) -> tuple[str, ...]:
    return (
        f"""CREATE TABLE IF NOT EXISTS published_word_{kind} (
        id INTEGER PRIMARY KEY, word TEXT NOT NULL, n INTEGER NOT NULL)""",
        # With the count, which beginnings are ranked by: the row of each word is on a page of its own.
        f"CREATE UNIQUE INDEX IF NOT EXISTS published_word_{kind}_word ON published_word_{kind} (word, n)",
        f"""CREATE TABLE IF NOT EXISTS published_part_{kind} (
        part INTEGER NOT NULL, word INTEGER NOT NULL, PRIMARY KEY (part, word)) WITHOUT ROWID""",
    )


def words_of(name: str, label: str, themes: str, place: str, keys: str) -> frozenset[str]:
    """
    Return the words of a document's indexed columns that a query is corrected by, and its names without spaces.

    A name of one word is held once, as a key.
    """
    names = frozenset([key for key in keys.split() if key.startswith(NAMES)])
    words = {*name.split(), *label.split(), *themes.split(), *place.split()}.difference(map(without_mark, names))
    return names.union([word for word in words if len(word) >= MIN_CHARACTERS and not word.isdigit()])


class Words:
    """Changes to the vocabulary, accumulated and written once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._added: dict[str, Counter[str]] = {}
        self._waiting = 0

    def replace(self, kind: str, former: frozenset[str], present: frozenset[str]) -> None:
        if former == present:
            return
        added = self._added.setdefault(kind, Counter())
        added.update(present - former)
        added.subtract(former - present)
        self._waiting += 1
        if self._waiting >= MAX_WAITING:
            self.write()

    def write(self) -> None:
        for kind, added in self._added.items():
            self._write(kind, [(word, added[word]) for word in sorted(added) if added[word]])
        self._added.clear()
        self._waiting = 0

    def _write(self, kind: str, changes: list[tuple[str, int]]) -> None:
        """Change the numbers of documents that have words; parts come and go with their words."""
        connection = self._connection
        stored = self._stored(kind, [word for word, _ in changes])
        counted: list[tuple[int, int]] = []
        unused: list[tuple[int]] = []
        added: list[tuple[int, str, int]] = []
        new: list[tuple[int, int]] = []
        gone: list[tuple[int, int]] = []
        (last,) = connection.execute(f"SELECT coalesce(max(id), 0) FROM published_word_{kind}").fetchone()
        for word, n in changes:
            number, before = stored.get(word, (None, 0))
            if number is None and n < 0:  # its document was damaged in the index
                continue
            if number is None:
                number = last + len(added) + 1
                added.append((number, word, n))
                new += [(part, number) for part in parts_of(word)]
            elif before + n > 0:
                counted.append((before + n, number))
            else:
                gone += [(part, number) for part in parts_of(word)]
                unused.append((number,))
        insert_rows(connection, f"published_word_{kind} (id, word, n)", added)
        connection.executemany(f"UPDATE published_word_{kind} SET n = ? WHERE id = ?", counted)
        connection.executemany(f"DELETE FROM published_word_{kind} WHERE id = ?", unused)
        # Sorted, a large change is written faster.
        connection.executemany(f"DELETE FROM published_part_{kind} WHERE part = ? AND word = ?", sorted(gone))
        new.sort(key=itemgetter(0))  # those of one part are in order
        insert_rows(connection, f"published_part_{kind}", new)

    def _stored(self, kind: str, words: list[str]) -> dict[str, tuple[int, int]]:
        """Return the numbers of those words that are stored, and how many documents have them."""
        found = {}
        for first in range(0, len(words), AT_ONCE):
            some = words[first : first + AT_ONCE]
            statement = f"SELECT word, id, n FROM published_word_{kind} WHERE word IN ({', '.join('?' * len(some))})"
            found.update({word: (number, n) for word, number, n in self._connection.execute(statement, some)})
        return found


def parts_of(stored_word: str) -> frozenset[int]:
    """Return the parts by which a word of the registry, or a name with its mark, is found."""
    word, is_name = without_mark(stored_word), stored_word.startswith(NAMES)
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
