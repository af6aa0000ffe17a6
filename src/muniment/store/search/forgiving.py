"""
Forgiving search: the words and names of the registry that are nearest to what was typed.

Words are corrected, not documents: candidates share a part with a word (:mod:`muniment.store.search.text_index`), and
are compared by edit distance. What a slip would explain is looked up first, and more only if that finds nothing.
"""

import sqlite3
from typing import Final, NamedTuple

import msgspec
from rapidfuzz import process
from rapidfuzz.distance import OSA

from muniment.store.search.beginnings import is_large
from muniment.store.search.text_index import MIN_CHARACTERS, of_one_slip, of_two_slips
from muniment.store.search_text import NAMES, without_mark

MAX_CANDIDATES: Final = 4_000
CANDIDATES_OF_LARGE: Final = 1_500
"""Words that are compared in a large registry, in which each is on a page of its own."""
SIMILAR: Final = 0.6
ALIKE: Final = 0.8
"""A name this similar to the query comes before texts that have its words."""
NEAR_NAMES: Final = 8
NEAR_WORDS: Final = 4


class Near(NamedTuple):
    """A word of the vocabulary, and how similar it is: 1 when equal."""

    word: str
    similarity: float

    @property
    def plain(self) -> str:
        return without_mark(self.word)


def names_like(connection: sqlite3.Connection, kind: str, key: str) -> list[Near]:
    """Return the names, as keys, that are most similar to *key*."""
    if len(key) < MIN_CHARACTERS - 1:
        return []
    return _like(connection, kind, key, NEAR_NAMES, only_names=True)


def words_like(connection: sqlite3.Connection, kind: str, word: str) -> list[Near]:
    """Return the words, or names of one word, that are most similar to *word*."""
    if len(word) < MIN_CHARACTERS:
        return []
    return _like(connection, kind, word, NEAR_WORDS, only_names=False)


def _like(connection: sqlite3.Connection, kind: str, word: str, limit: int, *, only_names: bool) -> list[Near]:
    found: list[Near] = []
    for parts in (of_one_slip(word), of_two_slips(word)):
        candidates = _candidates(connection, kind, parts, word)
        if only_names:
            candidates = [each for each in candidates if each.startswith(NAMES)]
        found = _nearest(word, candidates, limit)
        if found and found[0].similarity >= ALIKE:
            break
    return found


def _nearest(word: str, candidates: list[str], limit: int) -> list[Near]:
    plain = [without_mark(each) for each in candidates]
    scorer = OSA.normalized_similarity
    found = process.extract(word, plain, scorer=scorer, score_cutoff=SIMILAR, limit=limit, processor=None)
    return [Near(candidates[place], similarity) for _, similarity, place in found]


def _candidates(connection: sqlite3.Connection, kind: str, parts: frozenset[int], word: str) -> list[str]:
    """Return words that share a part with *word*; of very many, those that share more parts."""
    shared = (
        f"SELECT p.word FROM json_each(?) AS j CROSS JOIN published_part_{kind} AS p ON p.part = j.value"
        f" LIMIT {MAX_CANDIDATES}"
    )
    most = CANDIDATES_OF_LARGE if is_large(connection, kind) else MAX_CANDIDATES
    rows = connection.execute(
        f"SELECT word FROM published_word_{kind} WHERE id IN"
        f" (SELECT word FROM ({shared}) GROUP BY word ORDER BY count(*) DESC LIMIT {most})"
        " AND length(word) BETWEEN ? AND ?",
        (msgspec.json.encode(sorted(parts)).decode(), len(word) * 3 // 5, len(word) * 5 // 3 + 1),
    )
    return [row[0] for row in rows]
