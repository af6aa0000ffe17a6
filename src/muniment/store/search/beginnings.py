"""
Beginnings: the words that begin with the last word of a query.

The full-text index merges the entries of every word that begins so, each time that it is asked. That costs little in a
small registry; in a large one the vocabulary supplies the words instead: those of names, symbols, themes and places.
"""

import sqlite3
from typing import Final

from muniment.store.search_text import NAME, Term

LARGE: Final = 50_000
"""Documents of a kind from which the index is not asked for beginnings."""
MAX_BEGUN: Final = 60
BEGUN_IN_LARGE: Final = 12
"""Names that begin so, the shortest ones."""
MAX_WORDS: Final = 20
"""Words that begin so, the most frequent ones."""
_INDEXED: Final = 2
"""Characters of beginnings that have an index of their own."""
_EXAMINED: Final = 1_000
_END: Final = "\U0010ffff"


def is_large(connection: sqlite3.Connection, kind: str) -> bool:
    (n,) = connection.execute("SELECT n FROM published_total WHERE kind = ?", (kind,)).fetchone()
    return bool(n > LARGE)


def most_begun(*, is_large: bool) -> int:
    return BEGUN_IN_LARGE if is_large else MAX_BEGUN


def words_with(connection: sqlite3.Connection, kind: str, term: Term) -> list[str]:
    """Return the words that a term of a query may mean, itself first."""
    found = [*term.words]
    word = found[0]
    if term.is_begun and len(word) > _INDEXED:
        rows = connection.execute(
            f"SELECT word FROM (SELECT word, n FROM published_word_{kind} WHERE word > ? AND word < ?"
            f" LIMIT {_EXAMINED}) ORDER BY n DESC LIMIT {MAX_WORDS}",
            (word, word + _END),
        )
        found += [row[0] for row in rows]
    return found


def expression(connection: sqlite3.Connection, kind: str, found: list[Term]) -> str:
    """Return the expression that matches every term in a large registry."""
    said = []
    for term in found:
        if not term.is_begun or len(term.words[0]) == _INDEXED:
            said.append(term.expression)
        else:
            said.append("(" + " OR ".join(f'"{word}"' for word in words_with(connection, kind, term)) + ")")
    return " AND ".join(said)


def names_with(connection: sqlite3.Connection, kind: str, key: str, limit: int) -> list[str]:
    """Return at most *limit* names, as keys, that begin with *key*: the shortest ones."""
    rows = connection.execute(
        f"SELECT word FROM (SELECT word FROM published_word_{kind} WHERE word >= ? AND word < ?"
        f" LIMIT {_EXAMINED}) ORDER BY length(word), word LIMIT {limit}",
        (NAME + key, NAME + key + _END),
    )
    return [row[0] for row in rows]
