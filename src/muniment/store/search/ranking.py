"""
The order of what a query finds: exact names, then names that begin with it, then text by weight.

:func:`plan` turns the words of a query into one expression of the full-text index, which filters and sorts apply to,
and the positions that come first by relevance. Texts are weighed only if there are few: of many, those come first that
have the words in their names, then those that have them in their names, themes and places, the newest first.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from rapidfuzz.distance import OSA

from muniment.store import search_text
from muniment.store.search import beginnings
from muniment.store.search.forgiving import ALIKE, Near, names_like, words_like
from muniment.store.search.text_index import WEIGHTS
from muniment.store.search_text import Term, pieces, plain_expression, terms

POOR: Final = 5
"""With fewer matches, none of them exact, an answer also names similar documents."""
FACTS: Final = "{name label themes place}"
"""The columns that say what a document is; in the others, any word may be by chance."""
MAX_EXACT: Final = 1_000
MAX_COMPARED: Final = 10
"""Documents of one name of which the fullest comes first; of more, the newest."""
MAX_CLOSE: Final = 60
COMMON: Final = 2_000
"""A word that more documents have does not tell them apart."""
MAX_NAME_WORDS: Final = 5
RAREST: Final = 3
MAX_TERMS: Final = 24
"""Words of a query that are searched for; each is one more list to join."""
MAX_WORDS: Final = 8
"""Words of a query that are left out one at a time, or corrected."""
MAX_WEIGHED: Final = 1_000
"""More matches are not weighed one by one."""
WEIGHED_OF_LARGE: Final = 100
"""Matches that are weighed in a large registry, in which each is on a page of its own."""
MAX_LISTED: Final = 10_000
"""Documents that a search lists of more than are weighed."""
LISTED_OF_LARGE: Final = 1_000
MAX_COUNTED: Final = 5_000
"""Nor are matches of a word that more documents have: weighing one counts them all."""
MAX_OF_TIER: Final = 300
"""Documents with all words in their names, and with all in their facts, that come first among many."""


class Tier(IntEnum):
    """The quality of a document as an answer to a query, the best first."""

    EXACT = 0
    """The query is its name, slug, symbol, domain, handle or identifier."""
    FORMER = 1
    """The query is a name that it had."""
    BEGUN = 2
    """Its name begins with the query."""
    TEXT = 3
    """It has all words of the query."""


class Plan(NamedTuple):
    """
    The answer to a query: *first*, and everything that *match* finds.

    Args:
        match: the expression of the full-text index; None if nothing is searchable.
        first: the positions that come first by relevance, in order, with their tiers; those that follow are TEXT.
        hits: everything that *match* finds, by relevance; of more than are weighed, the newest that are listed.
        close: what does not match but is similar, the likeliest first, with the similarity of its name.
        corrected: the query with the words of the registry that are like its own; empty if none are.
        is_wide: whether more match than are weighed: after the first, the newest follow.
        most: how many are listed then.
    """

    match: str | None
    first: Mapping[int, Tier] = MappingProxyType({})
    hits: Sequence[int] = ()
    close: Mapping[int, float] = MappingProxyType({})
    corrected: str = ""
    is_wide: bool = False
    most: int = MAX_LISTED

    @property
    def former(self) -> tuple[int, ...]:
        """Return the positions of what had the query as its name; they come before all but exact ones."""
        upto = takewhile(lambda each: each[1] <= Tier.FORMER, self.first.items())
        return tuple(position for position, tier in upto if tier == Tier.FORMER)


class _NameMatches(NamedTuple):
    """The documents that a query names: now, in the past, and with the beginning of a name."""

    exact: list[int]
    former: list[int]
    begun: list[int]

    def tiers(self, texts: Iterable[int] = ()) -> dict[int, Tier]:
        """Return these documents in order with their tiers, then those whose *texts* match."""
        names = ((Tier.EXACT, self.exact), (Tier.FORMER, self.former), (Tier.BEGUN, self.begun))
        return _tiers(*names, (Tier.TEXT, texts))


def plan(connection: sqlite3.Connection, kind: str, q: str) -> Plan:
    typed = terms(q)[:MAX_TERMS]
    if not typed:
        return Plan(None)
    is_large = beginnings.is_large(connection, kind)
    by_name = _name_matches(connection, kind, q, is_large=is_large)
    if _is_whole(connection, kind, q, typed[-1], by_name.exact):
        typed[-1] = typed[-1]._replace(is_begun=False)
    words = beginnings.expression(connection, kind, typed) if is_large else plain_expression(typed)
    most = LISTED_OF_LARGE if is_large else MAX_LISTED
    hits = _matching(connection, kind, words, most + 1, newest=True)
    if _is_poor(connection, kind, typed, words, by_name=by_name, hits=hits):
        if len(hits) > 1 and not _are_slow(connection, kind, typed, hits, is_large=is_large):
            hits = _weighed(connection, kind, words)
        return _forgiving(connection, kind, q, Plan(words, by_name.tiers(), hits))
    first = by_name.tiers()
    n_others = len(hits) - len(first.keys() & set(hits))
    is_wide = len(hits) > MAX_WEIGHED
    if is_wide or (n_others and _are_slow(connection, kind, typed, hits, is_large=is_large)):
        facts = _in_facts(connection, kind, typed, is_large=is_large)
        return Plan(words, by_name.tiers(facts), hits, is_wide=is_wide, most=most)
    if n_others > 1:  # those that a name puts first need no weight
        hits = _weighed(connection, kind, words)
    return Plan(words, first, hits)


def _name_matches(connection: sqlite3.Connection, kind: str, q: str, *, is_large: bool) -> _NameMatches:
    key = search_text.key_of_query(q)
    marks = (search_text.SITE, search_text.NAME, search_text.SYMBOL) if search_text.host_of(q) else search_text.MARKS
    exact, former = _exact(connection, kind, key, marks)
    fills_first_pages = is_large and len(exact) > WEIGHED_OF_LARGE
    begun: list[int] = []
    if not fills_first_pages:
        begun = _begun(connection, kind, key, beginnings.most_begun(is_large=is_large))
    return _NameMatches(exact, former, begun)


def _is_whole(connection: sqlite3.Connection, kind: str, q: str, last: Term, exact: list[int]) -> bool:
    """Return whether the last term of a query is searched for as a whole word, not as the beginning of one."""
    is_symbol = bool(exact) and len(last.words[0]) == 1
    return is_symbol or bool(search_text.host_of(q)) or _is_common(connection, kind, last)


def _is_poor(
    connection: sqlite3.Connection,
    kind: str,
    typed: list[Term],
    words: str,
    *,
    by_name: _NameMatches,
    hits: Sequence[int],
) -> bool:
    """Return whether a query finds so little that its answer also names similar documents."""
    if by_name.exact or by_name.former or len({*by_name.begun, *hits}) >= POOR:
        return False
    return not (hits and _facts_have_all(connection, kind, typed, words))


def _are_slow(
    connection: sqlite3.Connection, kind: str, typed: list[Term], hits: Sequence[int], *, is_large: bool
) -> bool:
    """Return whether weighing the matches takes too long."""
    if not is_large:
        return len(hits) > MAX_WEIGHED
    return len(hits) > WEIGHED_OF_LARGE or not _are_rare(connection, kind, typed)


def _facts_have_all(connection: sqlite3.Connection, kind: str, typed: list[Term], words: str) -> bool:
    """Return whether the facts of a document have all of several words."""
    return len(typed) > 1 and bool(_matching(connection, kind, f"{FACTS} : ({words})", 1))


def _forgiving(connection: sqlite3.Connection, kind: str, q: str, plain: Plan) -> Plan:
    """Return the *plain* plan with what has a name or words similar to those of a query."""
    split = pieces(q)
    without: list[int] = []
    if len(split) > 1:
        without = _without_one_word(connection, kind, split)
    words_to_correct = [] if without else split  # with a word too many, the others are right
    near, corrected = _close(connection, kind, search_text.key_of_query(q), words_to_correct)
    alike = [position for position, similarity in near.items() if similarity >= ALIKE]
    matches = {*plain.first, *plain.hits}
    similarities = {**dict.fromkeys(without, ALIKE), **near}
    close: dict[int, float] = {}
    for position in (*alike, *without, *near):
        if position not in matches:
            close.setdefault(position, similarities[position])
    return plain._replace(close=close, corrected=corrected)


def _tiers(*groups: tuple[Tier, Iterable[int]]) -> dict[int, Tier]:
    """Return positions in the order of *groups*, each with the tier of the first one that has it."""
    found: dict[int, Tier] = {}
    for tier, positions in groups:
        for position in positions:
            found.setdefault(position, tier)
    return found


def _is_common(connection: sqlite3.Connection, kind: str, term: Term) -> bool:
    """Return whether more documents have a word than are weighed, so that none is missing that only begins so."""
    return _count(connection, kind, term._replace(is_begun=False).expression, MAX_WEIGHED + 1) > MAX_WEIGHED


def _are_rare(connection: sqlite3.Connection, kind: str, typed: list[Term]) -> bool:
    for term in typed:
        expression = beginnings.expression(connection, kind, [term])
        if _count(connection, kind, expression, MAX_COUNTED + 1) > MAX_COUNTED:
            return False
    return True


def _in_facts(connection: sqlite3.Connection, kind: str, typed: list[Term], *, is_large: bool) -> list[int]:
    """Return the newest documents with all words in their names, then those with all in their facts."""
    found: list[int] = []
    for mark in (search_text.NAMED, ""):
        terms = []
        for term in typed:
            known = beginnings.words_with(connection, kind, term) if is_large else term.words
            end = "*" if term.is_begun and not is_large else ""
            joined = " AND " if len(term.words) > 1 else " OR "
            terms.append(f"({joined.join(_quoted(mark + word) + end for word in known)})")
        found += _matching(connection, kind, " AND ".join(terms), MAX_OF_TIER, newest=True, of="fact")
    return found


def _quoted(token: str) -> str:
    return f'"{token}"'


def _any_name(key: str, marks: Iterable[str] = search_text.NAMES) -> str:
    """Return the expression that finds what has or had the name *key*, or what any of *marks* gives it."""
    return " OR ".join(_quoted(mark + key) for mark in marks)


def of_name(connection: sqlite3.Connection, kind: str, marked: Iterable[str], limit: int) -> list[int]:
    """Return the positions of at most *limit* documents with one of the names *marked*, as keys; the newest first."""
    return _matching(connection, kind, " OR ".join(map(_quoted, marked)), limit, newest=True)


def _exact(connection: sqlite3.Connection, kind: str, key: str, marks: tuple[str, ...]) -> tuple[list[int], list[int]]:
    """Return what *key* names, in the order of *marks*, and what it named before; fuller documents first."""
    if not key:  # of "http://.", which has words, but is the address of nothing
        return [], []
    every = (*marks, search_text.FORMER)
    some = _matching(connection, kind, _any_name(key, every), 2)
    if len(some) < 2:
        is_present = some and _matching(connection, kind, _any_name(key, marks), 1)
        return (some, []) if is_present else ([], some)
    found: dict[str, list[int]] = {}
    for mark in every:
        rows = _matching(connection, kind, _quoted(mark + key), MAX_EXACT, newest=True)
        found[mark] = _fullest(connection, kind, rows) if 1 < len(rows) <= MAX_COMPARED else rows
    former = found.pop(search_text.FORMER)
    exact = list(dict.fromkeys(position for rows in found.values() for position in rows))
    return exact, [position for position in former if position not in exact]


def _fullest(connection: sqlite3.Connection, kind: str, positions: list[int]) -> list[int]:
    fullness = dict(_documents(connection, kind, "length(body)", positions))
    return sorted(fullness, key=lambda position: (-fullness[position], -position))


def _begun(connection: sqlite3.Connection, kind: str, key: str, limit: int) -> list[int]:
    """Return the positions of what has a name that begins with *key*, the shortest first."""
    names = beginnings.names_with(connection, kind, key, limit) if len(key) > 1 else []
    if not names:
        return []
    if len(names) < limit:
        match = f"{_quoted(search_text.NAME + key)}*"  # one range costs less than a look-up for each
    else:
        match = " OR ".join(map(_quoted, names))
    rows = _matching(connection, kind, match, limit)
    if len(rows) < 2:
        return rows
    shown = _names(connection, kind, rows)
    return sorted(rows, key=lambda position: len(shown[position]))


def _without_one_word(connection: sqlite3.Connection, kind: str, split: list[str]) -> list[int]:
    """Return what the query names exactly when one of its words is left out."""
    found: dict[int, None] = {}
    for place in range(min(len(split), MAX_WORDS)):
        token = _any_name("".join(split[:place] + split[place + 1 :]))
        found.update(dict.fromkeys(_matching(connection, kind, token, MAX_CLOSE)))
    return list(found)


def in_part(connection: sqlite3.Connection, kind: str, q: str, limit: int) -> tuple[list[int], list[int]]:
    """
    Return what a part of the words of *q* finds, for a query that finds nothing as a whole: at most *limit* positions.

    The first are those whose names the query contains, names of more words before others; the second are those whose
    facts have the rarest of the words.
    """
    split = pieces(q)[: 2 * MAX_WORDS]
    named: dict[int, None] = {}
    for length in range(min(len(split), MAX_NAME_WORDS), 1, -1):
        spans = []
        for start in range(len(split) - length + 1):
            spans.append("".join(split[start : start + length]))
        names = " OR ".join(map(_any_name, spans))
        named.update(dict.fromkeys(_matching(connection, kind, names, limit)))
    (total,) = connection.execute("SELECT n FROM published_total WHERE kind = ?", (kind,)).fetchone()
    common = min(COMMON, max(total // 4, 2))
    long_words = [word for word in split if len(word) > 2]
    counts = {word: len(_matching(connection, kind, _quoted(word), common)) for word in long_words}
    rare = [word for word, count in counts.items() if 0 < count < common]
    rare.sort(key=lambda word: counts[word])
    for word in rare:
        named.update(dict.fromkeys(_matching(connection, kind, _any_name(word), limit)))
    sharing: list[int] = []
    if rare and len(named) < limit:
        text = " OR ".join(map(_quoted, rare[:RAREST]))
        best = _best(connection, kind, f"{FACTS} : ({text})", limit)
        sharing = [position for position in best if position not in named][: limit - len(named)]
    return list(named)[:limit], sharing


def _matching(
    connection: sqlite3.Connection, kind: str, match: str, limit: int = POOR, *, newest: bool = False, of: str = "text"
) -> list[int]:
    table = f"published_{of}_{kind}"
    order = "ORDER BY rowid DESC " if newest else ""
    statement = f"SELECT rowid FROM {table} WHERE {table} MATCH ? {order}LIMIT {limit}"
    return [row[0] for row in connection.execute(statement, (match,))]


def _count(connection: sqlite3.Connection, kind: str, match: str, limit: int) -> int:
    """Return the number of matches, at most *limit*."""
    table = f"published_text_{kind}"
    statement = f"SELECT count(*) FROM (SELECT rowid FROM {table} WHERE {table} MATCH ? LIMIT {limit})"
    (n,) = connection.execute(statement, (match,)).fetchone()
    return int(n)


def _weighed(connection: sqlite3.Connection, kind: str, match: str, limit: int = -1) -> list[int]:
    table = f"published_text_{kind}"
    order = f"bm25({table}, {WEIGHTS}), rowid DESC"
    statement = f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY {order} LIMIT {limit}"
    return [row[0] for row in connection.execute(statement, (match,))]


def _best(connection: sqlite3.Connection, kind: str, match: str, limit: int) -> list[int]:
    """Return the best matches, or the newest of too many to weigh."""
    if beginnings.is_large(connection, kind) or len(_matching(connection, kind, match, MAX_WEIGHED + 1)) > MAX_WEIGHED:
        return _matching(connection, kind, match, limit, newest=True)
    return _weighed(connection, kind, match, limit)


def _names(connection: sqlite3.Connection, kind: str, positions: Iterable[int]) -> dict[int, str]:
    return dict(_documents(connection, kind, "sort_name", positions))


def _documents(
    connection: sqlite3.Connection, kind: str, column: str, positions: Iterable[int]
) -> list[tuple[int, Any]]:
    """Return a column of documents, by position."""
    wanted = msgspec.json.encode([*positions]).decode()
    # Without the index's name, SQLite scans one that has both columns.
    statement = f"SELECT d.position, {column} FROM json_each(?) AS j CROSS JOIN published_document AS d"
    statement += " INDEXED BY published_document_position ON d.kind = ? AND d.position = j.value"
    return connection.execute(statement, (wanted, kind)).fetchall()


def _close(connection: sqlite3.Connection, kind: str, key: str, split: list[str]) -> tuple[dict[int, float], str]:
    """Return similar documents, the most similar first, and the query with corrected words."""
    names = names_like(connection, kind, key)
    is_known = bool(names) and names[0].similarity >= ALIKE
    by_words = [] if is_known else split[:MAX_WORDS]
    words = [(word, _like(connection, kind, word)) for word in by_words]
    found: dict[int, float] = {}
    for near in names:
        for position in _matching(connection, kind, _quoted(near.word), MAX_CLOSE):
            found[position] = max(near.similarity, found.get(position, 0))
    has_similar = any(similar for _, similar in words)
    corrections = _corrected(words) if has_similar else ()
    for match in corrections:
        hits = _best(connection, kind, match, MAX_CLOSE)
        for position, name in _names(connection, kind, hits).items():
            found[position] = max(OSA.normalized_similarity(key, search_text.squeeze(name)), found.get(position, 0))
        if hits:
            break
    ordered = dict(sorted(found.items(), key=lambda pair: -pair[1]))
    return ordered, _corrected_query(connection, kind, words)


def _corrected_query(connection: sqlite3.Connection, kind: str, words: list[tuple[str, list[Near]]]) -> str:
    """Return the words, each unknown one replaced by the likeliest of the registry; empty if nothing has them all."""
    if not any(similar for _, similar in words):
        return ""
    tokens = []
    shown = []
    for word, similar in words:
        tokens.append(similar[0].word if similar else word)
        shown.append(similar[0].plain if similar else word)
    is_found = bool(_matching(connection, kind, " AND ".join(map(_quoted, tokens)), 1))
    return " ".join(shown) if is_found else ""


def _like(connection: sqlite3.Connection, kind: str, word: str) -> list[Near]:
    """Return words like *word*; none if some document has it."""
    if _matching(connection, kind, _quoted(word), 1):
        return []
    return words_like(connection, kind, word)


def _corrected(words: list[tuple[str, list[Near]]]) -> Iterator[str]:
    """Yield expressions: every word or one like it, then all but one word."""
    terms = []
    for word, near_words in words:
        alternatives = dict.fromkeys([_quoted(word), *(_quoted(near.word) for near in near_words)])
        terms.append(f"({' OR '.join(alternatives)})")
    yield " AND ".join(terms)
    if len(terms) < 2:
        return
    for place in range(len(terms) - 1, -1, -1):
        kept = terms[:place] + terms[place + 1 :]
        yield f"({' AND '.join(kept)})"
