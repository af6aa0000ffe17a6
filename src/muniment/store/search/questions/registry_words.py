"""What the words of a question are in the registry: values of its filters, names, the company of a name."""

import functools
import gettext
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from muniment.schema.kinds import country_names
from muniment.schema.other_names import COUNTRIES
from muniment.store.search import keys
from muniment.store.search.forgiving import names_like
from muniment.store.search.questions.language import Span
from muniment.store.search.questions.tokens import Token
from muniment.store.search.values import same_names, singular
from muniment.store.search_text import fold

FIRST: Final = frozenset({"type", "theme"})
"""Of several filters with a value, those that come first if as many companies have it."""
MAX_WORDS: Final = 8
"""Words of a value or of a company's name."""
NEAR_NAME: Final = 0.85
"""A name this similar to the words after "founders of" is meant by them."""


class Value(msgspec.Struct, frozen=True, gc=False):
    """A value in use, and the number of companies that have it."""

    name: str
    value: str
    n: int


def values_of(
    connection: sqlite3.Connection,
    names: Sequence[str],
    tokens: Sequence[Token],
    translated: Collection[tuple[Span, str, str]],
    language: str,
) -> dict[Span, list[Value]]:
    """
    Return the values in use that runs of *tokens* are, most frequent first.

    Args:
        names: the filters of companies that take values of the registry.
        translated: runs that a language has as another word for a value, with its filter and the value.
    """
    asked: dict[str, list[tuple[Span, str]]] = {}
    for start in range(len(tokens)):
        for end in range(start + 1, min(len(tokens), start + MAX_WORDS) + 1):
            asked.setdefault(" ".join(token.one for token in tokens[start:end]), []).append(((start, end), ""))
    codes = _countries(connection, language)
    for folded in [folded for folded in asked if folded in codes]:
        asked.setdefault(codes[folded].lower(), []).extend((span, "country") for span, _ in asked[folded])
    for form, span, name in list(_same(asked, names)):
        asked.setdefault(form, []).append((span, name))
    for span, name, value in translated:
        asked.setdefault(singular(value), []).append((span, name))
    found: dict[Span, list[Value]] = {}
    for name, folded, value, n in _rows(connection, names, list(asked)):
        for span, only in asked[folded]:
            # A country's code alone is no word: "in" is also India.
            if only == name or (not only and name != "country"):
                found.setdefault(span, []).append(Value(name, value, n))
    return {span: _distinct(each) for span, each in found.items()}


def _same(asked: Mapping[str, list[tuple[Span, str]]], names: Sequence[str]) -> Iterator[tuple[str, Span, str]]:
    """Yield the other names of the values that filters take, each with the run that means it and its filter."""
    for folded, spans in asked.items():
        for name in names:
            for form in same_names(name, folded)[1:]:
                yield from ((form, span, name) for span, only in spans if not only)


def _rows(connection: sqlite3.Connection, names: Sequence[str], folded: list[str]) -> list[tuple[str, str, str, int]]:
    statement = (
        "SELECT name, folded, value, n FROM published_value WHERE kind = 'company'"
        f" AND name IN ({_marks(names)}) AND folded IN ({_marks(folded)}) AND +n > 0"  # not by the index of n
    )
    try:
        return connection.execute(statement, (*names, *folded)).fetchall()
    except sqlite3.OperationalError:  # a file of an earlier version, until its documents are rendered again
        return []


def _distinct(values: list[Value]) -> list[Value]:
    """Return one value for each filter, since a filter takes every form of a value."""
    ordered = sorted(values, key=lambda each: (-each.n, each.name not in FIRST, each.name, each.value))
    return list({each.name: each for each in reversed(ordered)}.values())[::-1]


def _marks(values: Sequence[str]) -> str:
    return ",".join("?" * len(values))


def _countries(connection: sqlite3.Connection, language: str) -> dict[str, str]:
    used = "SELECT 1 FROM published_value WHERE kind = 'company' AND name = 'country' AND n > 0 LIMIT 1"
    return country_codes(language) if connection.execute(used).fetchone() else {}


@functools.cache
def country_codes(language: str) -> dict[str, str]:
    """Return the codes of countries by their names in English and in *language*, folded."""
    import pycountry  # when first needed: the package takes 50 ms to load

    translate = gettext.translation("iso3166-1", pycountry.LOCALES_DIR, languages=[language], fallback=True).gettext
    plain = {each.alpha_2: each.name for each in pycountry.countries}
    names = [
        (name, code)
        for code, english in country_names().items()
        for name in (english, plain[code], translate(plain[code]))
    ]
    usual = [(name, code) for code, aliases in COUNTRIES.items() for name in aliases.split()]
    official = [(getattr(each, "official_name", each.name), each.alpha_2) for each in pycountry.countries]
    return {singular(name): code for name, code in [*usual, *official, *names]}


def is_name(connection: sqlite3.Connection, kinds: Collection[str], text: str) -> bool:
    """Return whether *text* is a present or former name, symbol, slug, domain or identifier of a document."""
    key = keys.asked(text)
    if not key:
        return False
    try:
        for kind in kinds:
            statement = f"SELECT 1 FROM published_word_{kind} WHERE word IN (?, ?)"
            if connection.execute(statement, [mark + key for mark in keys.NAMES]).fetchone():
                return True
    except sqlite3.OperationalError:  # a file of an earlier version, in which no question is read
        return True
    return _first(connection, "company", f'"{keys.SYMBOL}{key}" OR "{keys.SITE}{key}"') is not None


def begins_a_name(connection: sqlite3.Connection, kinds: Collection[str], text: str) -> bool:
    """Return whether the words of *text* are the first words of some name."""
    start = fold(" ".join(text.split()))
    statement = "SELECT 1 FROM published_document WHERE kind = ? AND sort_name > ? AND sort_name < ? LIMIT 1"
    return any(connection.execute(statement, (kind, f"{start} ", f"{start}!")).fetchone() for kind in kinds)


def company_named(connection: sqlite3.Connection, text: str) -> str | None:
    """Return the slug of the company with the name, symbol, slug, domain or identifier *text*, or that once had it."""
    key = keys.asked(text)
    if not key:
        return None
    present = _slug_at(connection, " OR ".join(f'"{mark}{key}"' for mark in keys.MARKS))
    return present or _slug_at(connection, f'"{keys.FORMER}{key}"')


def company_nearly_named(connection: sqlite3.Connection, text: str) -> str | None:
    """Return the slug of the company whose name differs from *text* by little."""
    near = names_like(connection, "company", keys.squeeze(text))[:1]
    return _slug_at(connection, f'"{near[0].word}"') if near and near[0].similarity >= NEAR_NAME else None


def _slug_at(connection: sqlite3.Connection, match: str) -> str | None:
    statement = "SELECT key FROM published_document WHERE kind = 'company' AND position = ?"
    row = connection.execute(statement, (_first(connection, "company", match),)).fetchone()
    return None if row is None else str(row[0])


def _first(connection: sqlite3.Connection, kind: str, match: str) -> int | None:
    statement = f"SELECT rowid FROM published_text_{kind} WHERE published_text_{kind} MATCH ? LIMIT 1"
    row = connection.execute(statement, (match,)).fetchone()
    return None if row is None else int(row[0])
