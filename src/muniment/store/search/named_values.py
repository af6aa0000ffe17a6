"""Values of filters that words of a search name: the type that "DAOs" is in "DAOs in Zug"."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from muniment.schema.filters import Chosen, Filter, Listing
from muniment.store.search.values import meant
from muniment.store.search_text import pieces

MAX_WORDS: Final = 6
"""Words of a search that are compared with values: at most 15 look-ups in each list."""
MAX_WORDS_OF_VALUE: Final = 3
_LEAST_CHARACTERS: Final = 3
PUNCTUATION: Final = "?!.,:;\"'()"
"""Signs around a word that are no part of it."""


class NamedValue(NamedTuple):
    """
    A value in use of a filter, and the words of a search that name it.

    Args:
        value: as the filter takes it.
    """

    name: str
    value: str
    words: str


def spans(words: Sequence[str]) -> Iterator[tuple[range, str]]:
    """Yield words that follow one another, with their places, the most words first: "New York" before "York"."""
    for length in range(min(len(words), MAX_WORDS_OF_VALUE), 0, -1):
        for start in range(len(words) - length + 1):
            yield range(start, start + length), " ".join(words[start : start + length])


def may_be_value(text: str) -> bool:
    """Return whether words can be a value: "in" and "of" are none, "CA" and "UK" may be."""
    return len(text) >= _LEAST_CHARACTERS or text.isupper()


def named_values(connection: sqlite3.Connection, listing: Listing, total: int, q: str) -> list[NamedValue]:
    """
    Return the values of different filters of a list that words of a search name as a whole.

    Args:
        total: the number of items of the list: a value that all of them have selects nothing.
    """
    found: list[NamedValue] = []
    used_places: set[int] = set()
    for places, text in spans(q.split()[:MAX_WORDS]):
        if used_places.isdisjoint(places) and may_be_value(text):
            value = _most_frequent(connection, listing, total, text)
            if value and all(value.name != other.name for other in found):
                found.append(value)
                used_places.update(places)
    return found


def is_value(connection: sqlite3.Connection, kind: str, name: str, text: str) -> bool:
    """Return whether a value in use is *text* as a whole: a word within a title, such as "the", is no title."""
    return bool(meant(connection, kind, Chosen(name, (text,)), text))


def words_of(values: Sequence[NamedValue]) -> set[str]:
    """Return the folded words that values explain."""
    explained: set[str] = set()
    for value in values:
        explained.update(pieces(value.words))
    return explained


def _most_frequent(connection: sqlite3.Connection, listing: Listing, total: int, text: str) -> NamedValue | None:
    """Return the value of a filter that is *text*, in any form that its filter takes for the same."""
    most = 0
    found = None
    for name, (_, by) in listing.filters.items():
        value = _value_of(listing, name, by, text)
        if not value or not is_value(connection, listing.kind, name, value):
            continue
        rows = meant(connection, listing.kind, Chosen(name, (value,), by.in_text), value)
        items = sum(n for n, _ in rows)  # at most: an item may have several values that are taken for the same
        if most < items < total:
            most = items
            if not by.in_text:
                value = _as_stored(connection, rows)
            found = NamedValue(name, value, text)
    return found


def _as_stored(connection: sqlite3.Connection, rows: Sequence[tuple[int, int]]) -> str:
    """Return the most frequent of several values, each by its number of items and its id."""
    _, value_id = max(rows)
    (value,) = connection.execute("SELECT value FROM published_value WHERE id = ?", (value_id,)).fetchone()
    return str(value)


def _value_of(listing: Listing, name: str, by: Filter, text: str) -> str:
    """Return *text* as a filter takes it; "" where it takes no such words."""
    if by.key or by.presence:  # names, which the search itself finds, and yes or no
        return ""
    try:
        value = listing.criteria[name].parse(text.strip(PUNCTUATION))
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
