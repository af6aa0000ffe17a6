"""
The registry's own words, which forgiving search corrects a query by: a table of words, and one of their parts.

A word is held as long as a published document contains it, so that nothing of an erased or unlisted document remains.
"""

import sqlite3
from collections import Counter
from operator import itemgetter
from typing import Final

from muniment.store.search.keys import NAMES, plain
from muniment.store.search.parts import parts_of
from muniment.store.writing import rows

MIN_CHARACTERS: Final = 4
"""Shorter words are not corrected: each would have too many neighbours."""
MAX_WAITING: Final = 5_000
"""Documents whose words are counted in memory before they are written."""
AT_ONCE: Final = 500
"""Words that one statement looks up."""


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
    words = {*name.split(), *label.split(), *themes.split(), *place.split()}.difference(map(plain, names))
    return names.union([word for word in words if len(word) >= MIN_CHARACTERS and not word.isdigit()])


def _parts_of(word: str) -> frozenset[int]:
    return parts_of(plain(word), is_name=word.startswith(NAMES))


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
            self._write(kind, [(word, n) for word in sorted(added) if (n := added[word])])
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
                new += [(part, number) for part in _parts_of(word)]
            elif before + n > 0:
                counted.append((before + n, number))
            else:
                gone += [(part, number) for part in _parts_of(word)]
                unused.append((number,))
        rows.insert(connection, f"published_word_{kind} (id, word, n)", added)
        connection.executemany(f"UPDATE published_word_{kind} SET n = ? WHERE id = ?", counted)
        connection.executemany(f"DELETE FROM published_word_{kind} WHERE id = ?", unused)
        # Sorted, a large change is written faster.
        connection.executemany(f"DELETE FROM published_part_{kind} WHERE part = ? AND word = ?", sorted(gone))
        new.sort(key=itemgetter(0))  # those of one part are in order
        rows.insert(connection, f"published_part_{kind}", new)

    def _stored(self, kind: str, words: list[str]) -> dict[str, tuple[int, int]]:
        """Return the numbers of those words that are stored, and how many documents have them."""
        found = {}
        for first in range(0, len(words), AT_ONCE):
            some = words[first : first + AT_ONCE]
            statement = f"SELECT word, id, n FROM published_word_{kind} WHERE word IN ({', '.join('?' * len(some))})"
            found.update({word: (number, n) for word, number, n in self._connection.execute(statement, some)})
        return found
