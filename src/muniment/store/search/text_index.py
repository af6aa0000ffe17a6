"""
The full-text indexes of each kind: the columns of a document, its entry and its removal.

Besides the texts, the facts have an index of their own: the words of names, themes and places, and those of names once
more with a mark. It has no positions, and reads its words from the texts, so that it is small; lists of documents are
short there, even of words that very many texts have.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from muniment.kernel.http.representations import digest
from muniment.store.search.vocabulary import Words, words_of
from muniment.store.search_text import FORMER, NAME, NAMED, indexed, marked, squeeze

WEIGHTS: Final = "10.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0, 0.0"
"""The weights of the columns, in their order."""

OF_A_LEVEL: Final = 4
"""Segments of about one size that a writer merges at once."""
FEW: Final = 3
"""Segments that are not worth a merge."""
MAX_WAITING: Final = 1_000
"""Documents whose texts are held in memory before they are written."""
STEP_PAGES: Final = 1_000
"""Pages of 4 KB that one step of a merge writes: some 50 ms."""
_NO_WORDS: Final = frozenset[str]()
_Worded = tuple[str, str, str, str, str]


class SearchTexts(msgspec.Struct, frozen=True, kw_only=True):
    """
    The words that find a document besides its name, slug and ``texts``.

    Args:
        keys: marked keys, as of :mod:`muniment.store.search_text`; those of name and slug are added.
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
    def worded(self) -> _Worded:
        """The columns that the words of the vocabulary and of the facts are in."""
        return self.name, self.label, self.themes, self.place, self.keys

    @property
    def words(self) -> frozenset[str]:
        return words_of(*self.worded)


_ENTERED: Final = f"(rowid, {', '.join(Columns._fields)}) VALUES (?, {', '.join('?' * len(Columns._fields))})"
_CHANGED: Final = ", ".join(f"{each} = ?" for each in Columns._fields)


def tables(kind: str) -> tuple[str, ...]:
    """Return the statements that create the indexes; the numbers of columns in the view are theirs in the texts."""
    name, themes, place = (f"c{Columns._fields.index(each)}" for each in ("name", "themes", "place"))
    texts, facts, source = f"published_text_{kind}", f"published_fact_{kind}", f"published_fact_{kind}_of"
    words = f"replace(' ' || {name}, ' ', ' {NAMED}') || ' ' || {name} || ' ' || {themes} || ' ' || {place}"
    columns = ", ".join(Columns._fields)
    kept = f"content = '{source}', content_rowid = 'id', columnsize = 0, detail = none"
    return (
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {texts} USING fts5 ({columns}, tokenize = 'ascii', prefix = '2')",
        f"CREATE VIEW IF NOT EXISTS {source} (id, words) AS SELECT id, {words} FROM {texts}_content",
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {facts} USING fts5 (words, tokenize = 'ascii', {kept})",
    )


def indexes(kinds: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"published_{each}_{kind}" for kind in kinds for each in ("text", "fact"))


def settle(connection: sqlite3.Connection, kind: str) -> None:
    """Make writers keep the indexes in few segments: a search looks up each of its words in every one."""
    for table in indexes([kind]):
        if not connection.execute(f"SELECT 1 FROM {table}_config WHERE k = 'crisismerge'").fetchone():
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('crisismerge', {OF_A_LEVEL})")


def merge(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    """Merge each index into one segment if it has many; each step may be a transaction of its own."""
    for table in indexes([kind]):
        yield from _merge(connection, table)


def _merge(connection: sqlite3.Connection, table: str) -> Iterator[None]:
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
    former = marked(FORMER, search.former)
    # A slug that is of a former name says no more than that name: what is called so now comes first.
    own = (name,) if former and FORMER + squeeze(key) in former else (name, key)
    keys = dict.fromkeys((*marked(NAME, own), *search.keys, *former))
    return Columns(indexed(name), label, themes, place, people, summary, body, " ".join(keys))


def _facts(entered: Columns) -> str:
    """Return the words of the index of facts, as the view of :func:`tables` does."""
    named = f" {entered.name}".replace(" ", f" {NAMED}")
    return f"{named} {entered.name} {entered.themes} {entered.place}"


def enter(connection: sqlite3.Connection, kind: str, position: int, entered: Columns) -> frozenset[str]:
    """Index a document and return its words of the vocabulary."""
    connection.execute(f"INSERT INTO published_text_{kind} {_ENTERED}", (position, *entered))
    # Not from the view: a statement that reads and writes makes FTS5 write all that it holds in memory.
    connection.execute(f"INSERT INTO published_fact_{kind} (rowid, words) VALUES (?, ?)", (position, _facts(entered)))
    return entered.words


def change(
    connection: sqlite3.Connection, kind: str, position: int, entered: Columns
) -> tuple[frozenset[str], frozenset[str]]:
    """Index a document again and return the words of the vocabulary that it had, and has."""
    if _worded(connection, kind, position) != entered.worded:
        return leave(connection, kind, position), enter(connection, kind, position, entered)
    # The facts, too, are as they were.
    connection.execute(f"UPDATE published_text_{kind} SET {_CHANGED} WHERE rowid = ?", (*entered, position))
    return _NO_WORDS, _NO_WORDS


def leave(connection: sqlite3.Connection, kind: str, position: int) -> frozenset[str]:
    """Remove a document from the index and return the words of the vocabulary that it had."""
    worded = _worded(connection, kind, position)
    if worded is None:
        return _NO_WORDS
    connection.execute(f"DELETE FROM published_fact_{kind} WHERE rowid = ?", (position,))  # reads the texts
    connection.execute(f"DELETE FROM published_text_{kind} WHERE rowid = ?", (position,))
    return words_of(*worded)


def _worded(connection: sqlite3.Connection, kind: str, position: int) -> _Worded | None:
    """Return the columns of a document as they are indexed."""
    statement = f"SELECT name, label, themes, place, keys FROM published_text_{kind} WHERE rowid = ?"
    found: _Worded | None = connection.execute(statement, (position,)).fetchone()
    return found


class Replacements:
    """
    Changes to the indexes, accumulated and written in the order of positions.

    FTS5 writes what it holds in memory as a segment of its own whenever a position is lower than the one before, and
    before statements on other tables that can be undone by themselves.
    """

    def __init__(self, connection: sqlite3.Connection, words: Words) -> None:
        self._connection = connection
        self._words = words
        self._waiting: dict[str, list[tuple[int | None, int | None, Columns | None]]] = {}
        self._entered: set[tuple[str, int]] = set()

    def add(self, kind: str, former: int | None, present: int | None = None, entered: Columns | None = None) -> None:
        """Move a document from position *former*, if it has one, to position *present*, if it is to have one."""
        if (kind, former) in self._entered or len(self._entered) >= MAX_WAITING:
            self.write()
        self._waiting.setdefault(kind, []).append((former, present, entered))
        if present is not None:
            self._entered.add((kind, present))

    def write(self) -> None:
        for kind, waiting in self._waiting.items():
            steps = []
            for number, (former, present, _) in enumerate(waiting):
                if former is not None:
                    steps.append((former, former == present, number))
                if present is not None and present != former:
                    steps.append((present, True, number))
            steps.sort()  # so that a document leaves a position before another one enters it
            words = [(_NO_WORDS, _NO_WORDS)] * len(waiting)
            for position, is_present, number in steps:
                former, _, entered = waiting[number]
                if entered is None or not is_present:
                    words[number] = leave(self._connection, kind, position), words[number][1]
                elif position == former:
                    words[number] = change(self._connection, kind, position, entered)
                else:
                    words[number] = words[number][0], enter(self._connection, kind, position, entered)
            for had, has in words:
                self._words.replace(kind, had, has)
        self._waiting.clear()
        self._entered.clear()
