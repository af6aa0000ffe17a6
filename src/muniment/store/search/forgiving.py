"""
Forgiving search: the words and names of the registry that are nearest to what was typed.

Words are corrected, not documents: candidates share trigrams with a word (or, for short words, its first letter) and
are compared by edit distance.
"""

import sqlite3
from typing import Final, NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import OSA

from muniment.store.search.keys import NAME
from muniment.store.search.vocabulary import MIN_CHARACTERS

MAX_CANDIDATES: Final = 3_000
MAX_GRAMS: Final = 8
SHORT: Final = 6
"""A slip in a word of at most so many letters may leave none of its trigrams."""
SIMILAR: Final = 0.6
NEAR_NAMES: Final = 8
NEAR_WORDS: Final = 4


class Near(NamedTuple):
    """A word of the vocabulary, and how similar it is: 1 when equal."""

    word: str
    similarity: float

    @property
    def plain(self) -> str:
        return self.word.removeprefix(NAME)


def names_like(connection: sqlite3.Connection, kind: str, key: str) -> list[Near]:
    """Return the names, as keys, that are most similar to *key*."""
    if len(key) < MIN_CHARACTERS - 1:
        return []
    found = [word for word in _candidates(connection, kind, key) if word[0] == NAME]
    return _nearest(key, found, NEAR_NAMES)


def words_like(connection: sqlite3.Connection, kind: str, word: str) -> list[Near]:
    """Return the words, or names of one word, that are most similar to *word*."""
    if len(word) < MIN_CHARACTERS:
        return []
    return _nearest(word, _candidates(connection, kind, word), NEAR_WORDS)


def _nearest(word: str, candidates: list[str], limit: int) -> list[Near]:
    plain = [each.removeprefix(NAME) for each in candidates]
    scorer = OSA.normalized_similarity
    found = process.extract(word, plain, scorer=scorer, score_cutoff=SIMILAR, limit=limit, processor=None)
    return [Near(candidates[place], similarity) for _, similarity, place in found]


def _candidates(connection: sqlite3.Connection, kind: str, word: str) -> list[str]:
    grams = [word[start : start + 3] for start in range(len(word) - 2)]
    # Every slip spoils at most three neighbours; grams spread over a long word leave enough whole.
    step = max(1, len(grams) // MAX_GRAMS)
    chosen = dict.fromkeys(grams[::step])
    match = " OR ".join(f'"{gram}"' for gram in chosen)
    rows = connection.execute(
        f"SELECT word FROM published_word_{kind} WHERE id IN"
        f" (SELECT rowid FROM published_gram_{kind} WHERE published_gram_{kind} MATCH ? LIMIT {MAX_CANDIDATES})"
        " AND length(word) BETWEEN ? AND ?",
        (match, len(word) * 3 // 5, len(word) * 5 // 3 + 1),
    )
    found = {row[0] for row in rows}
    if len(word) <= SHORT:
        for start in (word[0], NAME + word[0]):
            rows = connection.execute(
                f"SELECT word FROM published_word_{kind} WHERE word >= ? AND word < ? AND length(word) BETWEEN ? AND ?",
                (start, start + "\U0010ffff", len(word) - 1, len(word) + 2),
            )
            found.update(row[0] for row in rows)
    return list(found)
