"""
The order of what a query finds: exact names, then what begins with it, then text by weight, then what is close.

:func:`plan` turns the words of a query into one expression of the full-text index, which filters and sorts apply to,
and the positions that come first by relevance.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from rapidfuzz.distance import OSA

from muniment.store.search import keys
from muniment.store.search.forgiving import Near, names_like, words_like
from muniment.store.search.text_index import WEIGHTS
from muniment.store.search_text import match_expression, pieces

POOR: Final = 5
"""Fewer matches without an exact one ask for what is close."""
FACTS: Final = "{name label themes place}"
"""The columns that say what a document is; in the others, any word may be by chance."""
MAX_EXACT: Final = 100
MAX_BEGUN: Final = 60
MAX_CLOSE: Final = 60
COMMON: Final = 2_000
"""A word that more documents have does not tell them apart."""
MAX_NAME_WORDS: Final = 5
RAREST: Final = 3
MAX_WORDS: Final = 8
"""Words of a query that are left out one at a time, or corrected."""
ALIKE: Final = 0.8
"""A name this similar to the query comes before texts that have its words."""


class Tier(IntEnum):
    """How well a document answers a query, the best first."""

    EXACT = 0
    """The query is its name, slug, symbol, domain, handle or identifier."""
    BEGUN = 1
    """Its name begins with the query."""
    ALIKE = 2
    """Its name differs by a slip or a word."""
    TEXT = 3
    """It has all words of the query."""
    NEAR = 4
    """It has words like those of the query, or a name less similar."""


class Plan(NamedTuple):
    """
    How a query is answered.

    Args:
        match: the expression of the full-text index; None if nothing is searchable.
        first: the positions that come first by relevance, in order, with their tiers; those that follow are TEXT.
        close: those of similar names, the most similar first.
    """

    match: str | None
    first: Mapping[int, Tier] = MappingProxyType({})
    close: tuple[int, ...] = ()


def plan(connection: sqlite3.Connection, kind: str, q: str) -> Plan:
    words = match_expression(q)
    if words is None:
        return Plan(None)
    key = keys.asked(q)
    marks = (keys.SITE, keys.NAME, keys.SYMBOL) if keys.host_of(q) else keys.MARKS
    exact = _exact(connection, kind, key, marks)
    begun = _begun(connection, kind, key)
    parts = [f"({words})", *(_quoted(mark + key) for mark in keys.MARKS)]
    if len(key) > 1:
        parts.append(f"{_quoted(keys.NAME + key)}*")
    split = pieces(q)
    first = _tiers((Tier.EXACT, exact), (Tier.BEGUN, begun))
    close: tuple[int, ...] = ()
    if not exact and _is_poor(connection, kind, words if len(split) > 1 else "", " OR ".join(parts)):
        without = _without_one_word(connection, kind, split) if len(split) > 1 else {}
        near, corrected = _close(connection, kind, key, [] if without else split)
        alike = [position for position, similarity in near.items() if similarity >= ALIKE]
        # What begins with the query is no slip; a name that differs by a letter comes before a text.
        plain = _matching(connection, kind, f"({words})")
        first = _tiers(
            (Tier.BEGUN, begun), (Tier.ALIKE, alike), (Tier.ALIKE, without), (Tier.TEXT, plain), (Tier.NEAR, near)
        )
        close = tuple(each for each in dict.fromkeys((*without, *near)) if each not in {*begun, *plain})[:POOR]
        parts += [*without.values(), *corrected]
    return Plan(" OR ".join(dict.fromkeys(parts)), first, close)


def _tiers(*groups: tuple[Tier, Iterable[int]]) -> dict[int, Tier]:
    """Return positions in the order of *groups*, each with the tier of the first one that has it."""
    found: dict[int, Tier] = {}
    for tier, positions in groups:
        for position in positions:
            found.setdefault(position, tier)
    return found


def _quoted(token: str) -> str:
    return f'"{token}"'


def _exact(connection: sqlite3.Connection, kind: str, key: str, marks: tuple[str, ...]) -> list[int]:
    """Return the positions of what *key* names: in the order of *marks*, fuller documents first."""
    if not key:
        return []
    found: list[int] = []
    for mark in marks:
        rows = _matching(connection, kind, _quoted(mark + key), MAX_EXACT)
        found += _fullest(connection, kind, rows) if len(rows) > 1 else rows
    return list(dict.fromkeys(found))


def _fullest(connection: sqlite3.Connection, kind: str, positions: list[int]) -> list[int]:
    rows = connection.execute(
        f"SELECT position FROM published_document WHERE kind = ? AND position IN ({','.join('?' * len(positions))})"
        " ORDER BY length(body) DESC, position DESC",
        (kind, *positions),
    )
    return [row[0] for row in rows]


def _begun(connection: sqlite3.Connection, kind: str, key: str) -> list[int]:
    """Return the positions of names that begin with *key*, the shortest first."""
    if len(key) < 2:
        return []
    rows = _matching(connection, kind, f"{_quoted(keys.NAME + key)}*", MAX_BEGUN)
    names = _names(connection, kind, rows)
    return sorted(rows, key=lambda position: len(names[position]))


def _without_one_word(connection: sqlite3.Connection, kind: str, split: list[str]) -> dict[int, str]:
    """Return what the query names exactly when one of its words is left out."""
    found: dict[int, str] = {}
    for place in range(min(len(split), MAX_WORDS)):
        token = _quoted(keys.NAME + "".join(split[:place] + split[place + 1 :]))
        for position in _matching(connection, kind, token, POOR):
            found.setdefault(position, token)
    return found


def _is_poor(connection: sqlite3.Connection, kind: str, words: str, match: str) -> bool:
    """Return whether there are few matches, of which none has all words in its facts."""
    if len(_matching(connection, kind, match)) >= POOR:
        return False
    return not (words and _matching(connection, kind, f"{FACTS} : ({words})", 1))


def positions_of(connection: sqlite3.Connection, kind: str, match: str | None, limit: int) -> list[int]:
    return [] if match is None else _matching(connection, kind, match, limit)


def in_part(connection: sqlite3.Connection, kind: str, q: str, limit: int) -> list[int]:
    """
    Return what a part of the words of *q* finds, for a query that finds nothing as a whole.

    Names that the query contains come first, those of more words before others, then documents whose facts have the
    rarest of the words.
    """
    split = pieces(q)[: 2 * MAX_WORDS]
    found: dict[int, None] = {}
    for length in range(min(len(split), MAX_NAME_WORDS), 1, -1):
        spans = ("".join(split[start : start + length]) for start in range(len(split) - length + 1))
        names = " OR ".join(_quoted(keys.NAME + span) for span in spans)
        found.update(dict.fromkeys(_matching(connection, kind, names, limit)))
    (total,) = connection.execute("SELECT n FROM published_total WHERE kind = ?", (kind,)).fetchone()
    common = min(COMMON, max(total // 4, 2))
    counts = {word: len(_matching(connection, kind, _quoted(word), common)) for word in split if len(word) > 2}
    rare = sorted((word for word, count in counts.items() if 0 < count < common), key=lambda word: counts[word])
    for word in rare:
        found.update(dict.fromkeys(_matching(connection, kind, _quoted(keys.NAME + word), limit)))
    if rare and len(found) < limit:
        text = " OR ".join(map(_quoted, rare[:RAREST]))
        found.update(dict.fromkeys(_best(connection, kind, f"{FACTS} : ({text})", limit)))
    return list(found)[:limit]


def _matching(connection: sqlite3.Connection, kind: str, match: str, limit: int = POOR) -> list[int]:
    table = f"published_text_{kind}"
    return [
        row[0] for row in connection.execute(f"SELECT rowid FROM {table} WHERE {table} MATCH ? LIMIT {limit}", (match,))
    ]


def _best(connection: sqlite3.Connection, kind: str, match: str, limit: int = MAX_CLOSE) -> list[int]:
    table = f"published_text_{kind}"
    statement = f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY bm25({table}, {WEIGHTS}) LIMIT {limit}"
    return [row[0] for row in connection.execute(statement, (match,))]


def _names(connection: sqlite3.Connection, kind: str, positions: Iterable[int]) -> dict[int, str]:
    wanted = list(positions)
    marks = ",".join("?" * len(wanted))
    statement = f"SELECT position, sort_name FROM published_document WHERE kind = ? AND position IN ({marks})"
    return dict(connection.execute(statement, (kind, *wanted)).fetchall())


def _close(connection: sqlite3.Connection, kind: str, key: str, split: list[str]) -> tuple[dict[int, float], list[str]]:
    """Return similar documents, the most similar first, and the expressions that find them."""
    try:
        names = names_like(connection, kind, key)
        is_known = bool(names) and names[0].similarity >= ALIKE
        by_words = [] if is_known else split[:MAX_WORDS]
        words = [(word, _like(connection, kind, word)) for word in by_words]
    except sqlite3.OperationalError:  # a file of an earlier version, until its documents are rendered again
        return {}, []
    found: dict[int, float] = {}
    taken: list[str] = []
    for near in names:
        for position in _matching(connection, kind, _quoted(near.word), POOR):
            found[position] = max(near.similarity, found.get(position, 0))
        taken.append(_quoted(near.word))
    if words:
        for match in _corrected(words):
            hits = _best(connection, kind, match)
            for position, name in _names(connection, kind, hits).items():
                found[position] = max(OSA.normalized_similarity(key, keys.squeeze(name)), found.get(position, 0))
            if hits:
                taken.append(match)
                break
    return dict(sorted(found.items(), key=lambda pair: -pair[1])), taken


def _like(connection: sqlite3.Connection, kind: str, word: str) -> list[Near]:
    """Return words like *word*; none if some document has it."""
    return [] if _matching(connection, kind, _quoted(word), 1) else words_like(connection, kind, word)


def _corrected(words: list[tuple[str, list[Near]]]) -> Iterator[str]:
    """Yield expressions: every word or one like it, then all but one word."""
    terms = [
        " OR ".join(dict.fromkeys((_quoted(word), *(_quoted(each.word) for each in near)))) for word, near in words
    ]
    yield " AND ".join(f"({term})" for term in terms)
    for place in range(len(terms) - 1, -1, -1) if len(terms) > 1 else ():
        kept = terms[:place] + terms[place + 1 :]
        yield "(" + " AND ".join(f"({term})" for term in kept) + ")"
