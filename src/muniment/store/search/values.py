"""Values of filters: one is meant by any form that differs in case, accents, signs or number."""

import functools
import sqlite3
from collections.abc import Sequence
from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import OSA

from muniment.schema.filters import Bounds, Chosen
from muniment.schema.other_names import SAME
from muniment.store.search_text import pieces

_KEPT: Final = ("ss", "us", "is")
"""Endings in which an s is no plural."""
_DOUBLE: Final = ("sses", "xes", "ches", "shes")
NAMED: Final = 8
"""Values that a hint names."""
MAX_LISTED: Final = 200
"""Characters of the values in a hint."""
MAX_COMPARED: Final = 2_000
"""Values in use, the most frequent ones, that an unknown one is compared with."""
MAX_SHOWN: Final = 60
"""Characters of a query or value in a hint."""
KEY: Final = ".key"
"""Ends the name of a filter's exact keys, beside its values."""
BOUND: Final = ".bound"
"""Ends the name of the numbers by which a declared field is bounded."""


def singular(text: str) -> str:
    """Return *text* as its filter compares it: folded words in the singular."""
    return " ".join(map(_singular, pieces(text)))


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(_KEPT):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(_DOUBLE) else word[:-1]


def same_names(name: str, text: str) -> tuple[str, ...]:
    """Return every form that the filter *name* takes for the same value as *text*: its own first."""
    folded = singular(text)
    return tuple(dict.fromkeys((folded, *_groups().get((name, folded), ()))))


_HAS: Final = "instr(folded, ?)"
"""Rules out most values at half the cost of a comparison that minds where words begin and end."""


def has_beginnings(text: str, words: Sequence[str]) -> bool:
    """Return whether each of the folded *words* begins a word of *text*, or is its plural."""
    words_of_text = pieces(text)
    for word in words:
        is_begun = any(held.startswith(word) or held == _singular(word) for held in words_of_text)
        if not is_begun:
            return False
    return True


def with_beginnings(
    connection: sqlite3.Connection, kind: str, name: str, words: Sequence[str], limit: int
) -> list[tuple[str, int, str]]:
    """
    Return values in use of a filter that have a word beginning with each of *words*, folded, the most frequent first.

    Returns:
        each value, the number of its documents, and its folded form. Of a filter with very many values, only those are
        looked at that begin with the words, so that the cost has a bound.
    """
    one_beyond = "SELECT 1 FROM published_value WHERE kind = ? AND name = ? LIMIT 1 OFFSET ?"
    has_many = connection.execute(one_beyond, (kind, name, MAX_COMPARED)).fetchone() is not None
    texts: list[str] = []
    if has_many:
        start = " ".join(words)
        condition, texts = "folded >= ? AND folded < ?", [start, f"{start}\U0010ffff"]
    else:
        conditions = []
        for word in words:
            begun = [f"({_HAS} AND instr(' ' || folded, ' ' || ?))"]
            texts += [word, word]
            one = _singular(word)
            if one != word:
                # The folded forms are in the singular, so that a plural begins none of their words.
                begun.append(f"({_HAS} AND instr(' ' || folded || ' ', ' ' || ? || ' '))")
                texts += [one, one]
            conditions.append(f"({' OR '.join(begun)})")
        condition = " AND ".join(conditions)
    other_names: list[str] = []
    for group in _groups_of(name):
        if _any_begins(group, words):
            other_names += group
    if other_names:
        condition = f"({condition}) OR folded IN ({', '.join('?' * len(other_names))})"
    # This index has the folded forms, so that rows are read of those alone that match.
    statement = (
        "SELECT value, n, folded FROM published_value INDEXED BY published_value_folded"
        f" WHERE kind = ? AND name = ? AND ({condition}) AND n > 0 AND value <> '' ORDER BY n DESC, value LIMIT ?"
    )
    return connection.execute(statement, (kind, name, *texts, *other_names, limit)).fetchall()


def _any_begins(names: Sequence[str], words: Sequence[str]) -> bool:
    return any(has_beginnings(name, words) for name in names)


def first_name(name: str, folded: str) -> str:
    """Return the form by which all names of a value are counted as one."""
    return _groups().get((name, folded), (folded,))[0]


@functools.cache
def _groups() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the forms of each group of names, by the filter and by each of them."""
    groups: dict[tuple[str, str], tuple[str, ...]] = {}
    for name in SAME:
        for group in _groups_of(name):
            for form in group:
                groups[name, form] = group
    return groups


@functools.cache
def _groups_of(name: str) -> tuple[tuple[str, ...], ...]:
    """Return the groups of names for the same value of a filter, in the form by which filters compare."""
    return tuple(tuple(map(singular, group)) for group in SAME.get(name, ()))


def meant_by(connection: sqlite3.Connection, kind: str, chosen: Chosen) -> list[tuple[int, int]]:
    """Return the number of documents and the id of each value in use that a filter means."""
    values: dict[tuple[int, int], None] = {}
    for value in chosen.values:
        values |= dict.fromkeys(meant(connection, kind, chosen, value))
    return list(values)


def meant(connection: sqlite3.Connection, kind: str, chosen: Chosen, value: str) -> list[tuple[int, int]]:
    """Return the number of documents and the id of each value in use that *value* of a filter means."""
    name = chosen.name
    keyed = _rows(connection, "name = ? AND value = ?", kind, name + KEY, value)
    if keyed:
        return keyed
    forms = same_names(name, value)
    if chosen.in_text and any(forms):
        within = " OR ".join([f"({_HAS} AND instr(' ' || folded || ' ', ' ' || ? || ' '))"] * len(forms))
        texts: list[str] = []
        for form in forms:
            texts += [form, form]
        return _rows(connection, f"name = ? AND ({within})", kind, name, *texts)
    marks = ", ".join("?" * len(forms))
    return _rows(connection, f"name = ? AND folded IN ({marks})", kind, name, *forms)


def bounded(connection: sqlite3.Connection, kind: str, bounds: Bounds) -> list[tuple[int, int]]:
    """Return the number of documents and the id of each number in use within the bounds of a declared field."""
    condition = "name = ?"
    limits = []
    if bounds.low is not None:
        condition += " AND CAST(value AS NUMERIC) >= ?"
        limits.append(bounds.low)
    if bounds.high is not None:
        condition += " AND CAST(value AS NUMERIC) <= ?"
        limits.append(bounds.high)
    return _rows(connection, condition, kind, bounds.name + BOUND, *limits)


def _rows(connection: sqlite3.Connection, condition: str, *parameters: object) -> list[tuple[int, int]]:
    statement = f"SELECT n, id FROM published_value WHERE kind = ? AND {condition} AND n > 0"
    return connection.execute(statement, parameters).fetchall()


def in_use(connection: sqlite3.Connection, kind: str, name: str, like: str) -> list[tuple[str, int]]:
    """Return values in use with their counts: of many only those like *like*, if any; else the most frequent."""
    rows = connection.execute(
        "SELECT value, n FROM published_value WHERE kind = ? AND name = ? AND n > 0 AND value <> ''"
        f" ORDER BY n DESC, value LIMIT {MAX_COMPARED}",
        (kind, name),
    ).fetchall()
    folded = [singular(value) for value, _ in rows]
    close = process.extract(singular(like), folded, scorer=OSA.normalized_similarity, score_cutoff=0.6, limit=3)
    first = [rows[place] for _, _, place in close]
    if first and len(rows) > NAMED:
        return first
    others = [row for row in rows if row not in first]
    return [*first, *others][:NAMED]


def listed(values: Sequence[tuple[str, int]]) -> str:
    """Return *values* with their counts, as many as a line has room for."""
    texts = [f"{value[:MAX_SHOWN]} ({n:,})" for value, n in values]
    while len(texts) > 1 and len(", ".join(texts)) > MAX_LISTED:
        texts.pop()
    return ", ".join(texts)
