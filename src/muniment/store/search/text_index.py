"""The full-text index of each kind: the columns of a document, its entry and its removal."""

import sqlite3
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from muniment.kernel.ids import digest
from muniment.store.search.keys import FACT, FORMER, NAME, marked
from muniment.store.search.vocabulary import words_of
from muniment.store.search_text import indexed

WEIGHTS: Final = "10.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0, 0.0"
"""Of the columns, in their order."""

OF_A_LEVEL: Final = 4
"""Segments of about one size that a writer merges at once."""
FEW: Final = 3
"""Segments that are not worth a merge."""
STEP_PAGES: Final = 1_000
"""Pages of 4 KB that one step of a merge writes: some 50 ms."""


class SearchTexts(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a document is found by besides its name, slug and ``texts``.

    Args:
        keys: marked keys, as of :mod:`muniment.store.search.keys`; those of name and slug are added.
        people: names and titles of the people of a company.
        former: names that it had.
    """

    keys: tuple[str, ...] = ()
    themes: str = ""
    place: str = ""
    people: str = ""
    former: tuple[str, ...] = ()


class Columns(NamedTuple):
    """The columns of one document: words separated by spaces, and its keys."""

    name: str
    label: str
    themes: str
    place: str
    people: str
    summary: str
    body: str
    keys: str

    @property
    def digest(self) -> str:
        return digest("\0".join(self).encode("utf-8", "surrogatepass"))

    @property
    def words(self) -> frozenset[str]:
        return words_of(self.name, self.label, self.themes, self.place, self.keys)


def table(kind: str) -> str:
    return (
        f"CREATE VIRTUAL TABLE IF NOT EXISTS published_text_{kind} USING fts5"
        f" ({', '.join(Columns._fields)}, tokenize = 'ascii', prefix = '2')"
    )


def settle(connection: sqlite3.Connection, kind: str) -> None:
    """Make writers keep the index in few segments: a search looks up each of its words in every one."""
    table = f"published_text_{kind}"
    if not connection.execute(f"SELECT 1 FROM {table}_config WHERE k = 'crisismerge'").fetchone():
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('crisismerge', {OF_A_LEVEL})")


def merge(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    """Merge the index into one segment if it has many; each step may be a transaction of its own."""
    table = f"published_text_{kind}"
    (segments,) = connection.execute(f"SELECT count(DISTINCT segid) FROM {table}_idx").fetchone()
    pages = -STEP_PAGES  # all segments; a positive number continues
    while segments > FEW:
        before = connection.total_changes
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', {pages})")
        if connection.total_changes - before < 2:  # nothing is left, as the documentation of FTS5 says
            return
        pages = STEP_PAGES
        yield


def columns(name: str, key: str, texts: tuple[str, str, str], search: SearchTexts) -> Columns:
    label, summary, body = map(indexed, ("\n".join((texts[0], *search.former)), *texts[1:]))
    themes, place, people = map(indexed, (search.themes, search.place, search.people))
    words = indexed(name)
    facts = (FACT + word for text in (words, indexed(" ".join(search.former)), themes, place) for word in text.split())
    former = marked(FORMER, search.former)
    # A slug that is of a former name says no more than that name: what is called so now comes first.
    own = (name,) if {FORMER + each[1:] for each in marked(NAME, (key,))} & {*former} else (name, key)
    keys = dict.fromkeys((*marked(NAME, own), *search.keys, *former, *facts))
    return Columns(words, label, themes, place, people, summary, body, " ".join(keys))


def enter(connection: sqlite3.Connection, kind: str, position: int, entered: Columns) -> frozenset[str]:
    """Index a document and return its words of the vocabulary."""
    statement = f"INSERT INTO published_text_{kind} (rowid, {', '.join(Columns._fields)})"
    connection.execute(f"{statement} VALUES ({', '.join('?' * (1 + len(entered)))})", (position, *entered))
    return entered.words


def leave(connection: sqlite3.Connection, kind: str, position: int) -> frozenset[str]:
    """Remove a document from the index and return the words of the vocabulary that it had."""
    chosen = f"FROM published_text_{kind} WHERE rowid = ?"
    row = connection.execute(f"SELECT name, label, themes, place, keys {chosen}", (position,)).fetchone()
    if row is None:
        return frozenset()
    connection.execute(f"DELETE {chosen}", (position,))
    return words_of(*row)
