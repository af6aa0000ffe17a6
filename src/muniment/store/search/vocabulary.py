"""
The registry's own words, which forgiving search corrects a query by: a table of words, and one of their parts.

A word is held as long as a published document contains it, so that nothing of an erased or unlisted document remains.
"""

import sqlite3
from collections import Counter
from typing import Final

from muniment.store.search.keys import NAMES, plain
from muniment.store.search.parts import parts_of

MIN_CHARACTERS: Final = 4
"""Shorter words are not corrected: each would have too many neighbours."""
MAX_WAITING: Final = 5_000
"""Documents whose words are counted in memory before they are written."""


def tables(kind: str) -> tuple[str, ...]:
    return (
        f"""CREATE TABLE IF NOT EXISTS published_word_{kind} (
        id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE, n INTEGER NOT NULL)""",
        f"""CREATE TABLE IF NOT EXISTS published_part_{kind} (
        part INTEGER NOT NULL, word INTEGER NOT NULL, PRIMARY KEY (part, word)) WITHOUT ROWID""",
    )


def words_of(name: str, label: str, themes: str, place: str, keys: str) -> frozenset[str]:
    """
    Return the words of a document's indexed columns that a query is corrected by, and its names without spaces.

    A name of one word is held once, as a key.
    """
    names = {key for key in keys.split() if key.startswith(NAMES)}
    known = set(map(plain, names))
    words = {word for text in (name, label, themes, place) for word in text.split() if len(word) >= MIN_CHARACTERS}
    return frozenset(names | {word for word in words if word not in known and not word.isdigit()})


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
            new: list[tuple[int, int]] = []
            gone: list[tuple[int, int]] = []
            for word, n in sorted(added.items()):
                if n:
                    self._count(kind, word, n, new, gone)
            # A new word may have the number of one that is gone. Sorted, a large change is written faster.
            self._connection.executemany(f"DELETE FROM published_part_{kind} WHERE part = ? AND word = ?", sorted(gone))
            self._connection.executemany(f"INSERT INTO published_part_{kind} VALUES (?, ?)", sorted(new))
        self._added.clear()
        self._waiting = 0

    def _count(self, kind: str, word: str, n: int, new: list[tuple[int, int]], gone: list[tuple[int, int]]) -> None:
        """Change the number of documents that have *word*; *new* and *gone* receive its parts if it comes or goes."""
        execute = self._connection.execute
        row = execute(f"SELECT id, n FROM published_word_{kind} WHERE word = ?", (word,)).fetchone()
        if row is None and n < 0:  # its document was damaged in the index
            return
        if row is None:
            (number,) = execute(
                f"INSERT INTO published_word_{kind} (word, n) VALUES (?, ?) RETURNING id", (word, n)
            ).fetchone()
            new += [(part, number) for part in parts_of(plain(word))]
        elif row[1] + n > 0:
            execute(f"UPDATE published_word_{kind} SET n = ? WHERE id = ?", (row[1] + n, row[0]))
        else:
            gone += [(part, row[0]) for part in parts_of(plain(word))]
            execute(f"DELETE FROM published_word_{kind} WHERE id = ?", (row[0],))
