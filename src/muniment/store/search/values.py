"""Values of filters: one is meant by any form that differs in case, accents, signs or number."""

import sqlite3
from collections.abc import Sequence
from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import OSA

from muniment.store.search_text import pieces

_KEPT: Final = ("ss", "us", "is")
"""Endings in which an s is no plural."""
_DOUBLE: Final = ("sses", "xes", "ches", "shes")
NAMED: Final = 8
"""Values that a hint names."""


def singular(text: str) -> str:
    """Return *text* as its filter compares it: folded words in the singular."""
    return " ".join(map(_singular, pieces(text)))


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(_KEPT):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(_DOUBLE) else word[:-1]


def meant(connection: sqlite3.Connection, kind: str, name: str, value: str) -> list[tuple[int, int]]:
    """Return the number of documents and the id of each value in use that *value* means."""
    try:
        rows = connection.execute(
            "SELECT n, id FROM published_value WHERE kind = ? AND name = ? AND folded = ? AND n > 0",
            (kind, name, singular(value)),
        ).fetchall()
    except sqlite3.OperationalError:  # a file of an earlier version, until its documents are rendered again
        rows = connection.execute(
            "SELECT n, id FROM published_value WHERE kind = ? AND name = ? AND value = ? AND n > 0", (kind, name, value)
        ).fetchall()
    return rows


def in_use(connection: sqlite3.Connection, kind: str, name: str, like: str = "") -> list[tuple[str, int]]:
    """Return values in use with their counts: those like *like* first, then the most frequent."""
    rows = connection.execute(
        "SELECT value, n FROM published_value WHERE kind = ? AND name = ? AND n > 0 AND value <> '' ORDER BY n DESC",
        (kind, name),
    ).fetchall()
    if not like:
        return rows[:NAMED]
    folded = [singular(value) for value, _ in rows]
    close = process.extract(singular(like), folded, scorer=OSA.normalized_similarity, score_cutoff=0.6, limit=3)
    first = [rows[place] for _, _, place in close]
    return [*first, *(row for row in rows[:NAMED] if row not in first)][:NAMED]


def listed(values: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{value} ({n:,})" for value, n in values)
