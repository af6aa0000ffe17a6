"""
The full-text indexes of each kind and its vocabulary: the columns of a document, its entry and its removal.

Besides the texts, the facts have an index of their own: the words of names, themes and places, and those of names once
more with a mark. It has no positions, and reads its words from the texts, so that it is small; lists of documents are
short there, even of words that very many texts have.

The *vocabulary* are the registry's own words, which forgiving search corrects a query by: a table of words, and one of
their parts. A word is held as long as a published document contains it, so that nothing of an erased or unlisted
document remains.

A word with slips is found by its parts. These are the whole of a short word, also with any one letter left out, or any
two if it is a name, and the halves of a longer one, the first also with any one letter left out. A letter that was left
out, added, replaced or swapped with its neighbor leaves one half of a word as it was; of two slips, either both are in
one half, or one is in the first. Parts are numbers, so that a table of them is small.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from operator import itemgetter
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from muniment.kernel.http.representations import digest
from muniment.store.search_text import FORMER, NAME, NAMED, NAMES, indexed, marked, squeeze, without_mark
from muniment.store.statements import insert_rows

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
MIN_CHARACTERS: Final = 4
"""Shorter words are not corrected: each would have too many neighbours."""
MAX_WORDED: Final = 5_000
"""Documents whose words are counted in memory before they are written."""
WORDS_AT_ONCE: Final = 500
"""Words that one statement looks up."""
SHORT: Final = 7
"""Letters of a word that has no halves: too many others would share them."""
MIN_TWICE: Final = 5
"""Letters of a short word that is found in spite of two slips."""
_WHOLE: Final = "="
_FIRST: Final = "<"
_SECOND: Final = ">"
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
    """
    Return the statements that create the indexes and the vocabulary.

    The numbers of columns in the view are theirs in the texts.
    """
    name, themes, place = (f"c{Columns._fields.index(each)}" for each in ("name", "themes", "place"))
    texts, facts, source = f"published_text_{kind}", f"published_fact_{kind}", f"published_fact_{kind}_of"
    words = f"replace(' ' || {name}, ' ', ' {NAMED}') || ' ' || {name} || ' ' || {themes} || ' ' || {place}"
    columns = ", ".join(Columns._fields)
    kept = f"content = '{source}', content_rowid = 'id', columnsize = 0, detail = none"
    return (
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {texts} USING fts5 ({columns}, tokenize = 'ascii', prefix = '2')",
        f"CREATE VIEW IF NOT EXISTS {source} (id, words) AS SELECT id, {words} FROM {texts}_content",
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {facts} USING fts5 (words, tokenize = 'ascii', {kept})",
        f"""CREATE TABLE IF NOT EXISTS published_word_{kind} (
        id INTEGER PRIMARY KEY, word TEXT NOT NULL, n INTEGER NOT NULL)""",
        # With the count, which beginnings are ranked by: the row of each word is on a page of its own.
        f"CREATE UNIQUE INDEX IF NOT EXISTS published_word_{kind}_word ON published_word_{kind} (word, n)",
        f"""CREATE TABLE IF NOT EXISTS published_part_{kind} (
        part INTEGER NOT NULL, word INTEGER NOT NULL, PRIMARY KEY (part, word)) WITHOUT ROWID""",
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


def words_of(name: str, label: str, themes: str, place: str, keys: str) -> frozenset[str]:
    """
    Return the words of a document's indexed columns that a query is corrected by, and its names without spaces.

    A name of one word is held once, as a key.
    """
    names = frozenset([key for key in keys.split() if key.startswith(NAMES)])
    words = {*name.split(), *label.split(), *themes.split(), *place.split()}.difference(map(without_mark, names))
    return names.union([word for word in words if len(word) >= MIN_CHARACTERS and not word.isdigit()])


class Words:
    """Changes to the vocabulary, accumulated and written once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._added: dict[str, Counter[str]] = {}
        self._waiting = 0

    def replace(self, kind: str, former: frozenset[str], present: frozenset[str]) -> None:
        if former == present:
            return
        added = self._added.setdefault(kind, Counter())
        added.update(present - former)
        added.subtract(former - present)
        self._waiting += 1
        if self._waiting >= MAX_WORDED:
            self.write()

    def write(self) -> None:
        for kind, added in self._added.items():
            self._write(kind, [(word, added[word]) for word in sorted(added) if added[word]])
        self._added.clear()
        self._waiting = 0

    def _write(self, kind: str, changes: list[tuple[str, int]]) -> None:
        """Change the numbers of documents that have words; parts come and go with their words."""
        connection = self._connection
        stored = self._stored(kind, [word for word, _ in changes])
        counted: list[tuple[int, int]] = []
        unused: list[tuple[int]] = []
        added: list[tuple[int, str, int]] = []
        new: list[tuple[int, int]] = []
        gone: list[tuple[int, int]] = []
        (last,) = connection.execute(f"SELECT coalesce(max(id), 0) FROM published_word_{kind}").fetchone()
        for word, n in changes:
            number, before = stored.get(word, (None, 0))
            if number is None and n < 0:  # its document was damaged in the index
                continue
            if number is None:
                number = last + len(added) + 1
                added.append((number, word, n))
                new += [(part, number) for part in parts_of(word)]
            elif before + n > 0:
                counted.append((before + n, number))
            else:
                gone += [(part, number) for part in parts_of(word)]
                unused.append((number,))
        insert_rows(connection, f"published_word_{kind} (id, word, n)", added)
        connection.executemany(f"UPDATE published_word_{kind} SET n = ? WHERE id = ?", counted)
        connection.executemany(f"DELETE FROM published_word_{kind} WHERE id = ?", unused)
        # Sorted, a large change is written faster.
        connection.executemany(f"DELETE FROM published_part_{kind} WHERE part = ? AND word = ?", sorted(gone))
        new.sort(key=itemgetter(0))  # those of one part are in order
        insert_rows(connection, f"published_part_{kind}", new)

    def _stored(self, kind: str, words: list[str]) -> dict[str, tuple[int, int]]:
        """Return the numbers of those words that are stored, and how many documents have them."""
        found = {}
        for first in range(0, len(words), WORDS_AT_ONCE):
            some = words[first : first + WORDS_AT_ONCE]
            statement = f"SELECT word, id, n FROM published_word_{kind} WHERE word IN ({', '.join('?' * len(some))})"
            found.update({word: (number, n) for word, number, n in self._connection.execute(statement, some)})
        return found


class Replacements:
    """
    Changes to the indexes, accumulated and written in the order of positions.

    FTS5 writes what it holds in memory as a segment of its own whenever a position is lower than the one before, and
    before statements on other tables that can be undone by themselves.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._words = Words(connection)
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

    def finish(self) -> None:
        """Write what waits, and the words of all that was written."""
        self.write()
        self._words.write()


# ---------------------------------------------------------------- the parts of a word


def parts_of(stored_word: str) -> frozenset[int]:
    """Return the parts by which a word of the registry, or a name with its mark, is found."""
    word, is_name = without_mark(stored_word), stored_word.startswith(NAMES)
    if len(word) < MIN_TWICE or (len(word) <= SHORT and not is_name):
        return _numbers(_WHOLE, _shortened(word))
    if len(word) <= SHORT:
        return _numbers(_WHOLE, _twice_shortened(word))
    half = len(word) // 2
    return _numbers(_FIRST, _shortened(word[:half])) | _numbers(_SECOND, [word[half:]])


def of_one_slip(word: str) -> frozenset[int]:
    """Return the parts of which the right word has one, if *word* differs from it by one slip."""
    length = len(word)
    found = _numbers(_WHOLE, _shortened(word)) if length <= SHORT + 1 else frozenset()
    if length >= SHORT:
        for half in {(length - 1) // 2, length // 2, (length + 1) // 2}:
            found |= _numbers(_FIRST, [word[:half]]) | _numbers(_SECOND, [word[half:]])
    return found


def of_two_slips(word: str) -> frozenset[int]:
    """Return the parts of which the right word has one, in most cases, if *word* differs from it by two slips."""
    length = len(word)
    found: frozenset[int] = frozenset()
    if length <= SHORT + 2:
        found = _numbers(_WHOLE, _twice_shortened(word))
    if length >= SHORT - 1:
        for half in range(length // 2 - 1, length // 2 + 2):
            found |= _numbers(_FIRST, _shortened(word[:half])) | _numbers(_SECOND, [word[half:]])
    return found


def _shortened(text: str) -> list[str]:
    """Return *text*, and *text* with each of its letters left out."""
    return [text, *[text[:place] + text[place + 1 :] for place in range(len(text))]]


def _twice_shortened(text: str) -> list[str]:
    return [*_shortened(text), *map("".join, combinations(text, max(len(text) - 2, 0)))]


def _numbers(side: str, texts: list[str]) -> frozenset[int]:
    """Return the numbers of parts, which SQLite stores in three bytes."""
    begun = crc32(side.encode())
    return frozenset([(crc32(text.encode("utf-8", "surrogatepass"), begun) & 0xFFFFFF) - (1 << 23) for text in texts])
