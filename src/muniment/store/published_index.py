"""The tables of the published file, and those of its index: totals, facet values, and blocks of positions."""

import sqlite3
from collections import Counter
from collections.abc import Collection
from typing import Final

from muniment.store.chain import links
from muniment.store.search import text_index, vocabulary
from muniment.store.search.values import singular

BLOCK_SPLIT: Final = 2_000
"""A block with more items is split in two."""

NUMBERS: Final = {"treasury_minor": "company", "team_size": "company", "company_count": "person"}
"""Columns by which documents are sorted and bounded, each with the only kind that has it."""


def statements(kinds: Collection[str]) -> tuple[str, ...]:
    """Return the statements that create the tables of the published file."""
    return (
        """CREATE TABLE IF NOT EXISTS published_meta (
            id INTEGER PRIMARY KEY CHECK (id = 1), schema INTEGER NOT NULL, edition INTEGER NOT NULL,
            epoch TEXT NOT NULL, at TEXT NOT NULL)""",
        """CREATE TABLE IF NOT EXISTS published_total (
            kind TEXT PRIMARY KEY, n INTEGER NOT NULL, raising INTEGER NOT NULL, treasury_minor TEXT NOT NULL)""",
        # The body is last, so that reading the other columns skips its overflow pages.
        """CREATE TABLE IF NOT EXISTS published_document (
            id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, position INTEGER NOT NULL,
            sort_name TEXT NOT NULL, updated_at TEXT NOT NULL, raising INTEGER NOT NULL,
            treasury_minor INTEGER, team_size INTEGER, company_count INTEGER, modified_at TEXT NOT NULL DEFAULT '',
            provenance TEXT NOT NULL, facets BLOB NOT NULL, texts_digest TEXT NOT NULL,
            etag TEXT NOT NULL, body BLOB NOT NULL)""",
        "CREATE UNIQUE INDEX IF NOT EXISTS published_document_key ON published_document (kind, key)",
        "CREATE INDEX IF NOT EXISTS published_document_name ON published_document (kind, sort_name, position)",
        "CREATE INDEX IF NOT EXISTS published_document_updated ON published_document (kind, updated_at, position)",
        # With the columns that orders and ranges look up for each match: the row itself is on a page of its own.
        f"""CREATE INDEX IF NOT EXISTS published_document_position ON published_document (
            kind, position, {", ".join(NUMBERS)}, updated_at, sort_name)""",
        *(
            f"CREATE INDEX IF NOT EXISTS published_document_{column} ON published_document (kind, {column}, position)"
            f" WHERE kind = '{kind}'"
            for column, kind in NUMBERS.items()
        ),
        *(
            f"CREATE TABLE IF NOT EXISTS published_item_{kind} (position INTEGER PRIMARY KEY,"
            " provenance TEXT NOT NULL, item BLOB NOT NULL)"
            for kind in kinds
        ),
        """CREATE TABLE IF NOT EXISTS published_block (
            kind TEXT NOT NULL, first INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (kind, first)) WITHOUT ROWID""",
        """CREATE TABLE IF NOT EXISTS published_value (
            id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, n INTEGER NOT NULL,
            folded TEXT NOT NULL, changed INTEGER NOT NULL DEFAULT 0, UNIQUE (kind, name, value))""",
        "CREATE INDEX IF NOT EXISTS published_value_folded ON published_value (kind, name, folded)",
        "CREATE INDEX IF NOT EXISTS published_value_used ON published_value (kind, name, n)",
        """CREATE TABLE IF NOT EXISTS published_facet (
            value_id INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (value_id, position)) WITHOUT ROWID""",
        *(statement for kind in kinds for statement in text_index.tables(kind)),
        *(statement for kind in kinds for statement in vocabulary.tables(kind)),
        """CREATE TABLE IF NOT EXISTS published_change (
            sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, change TEXT NOT NULL, at TEXT NOT NULL,
            fields TEXT)""",
        "CREATE INDEX IF NOT EXISTS published_change_key ON published_change (kind, key, sequence)",
        # The condition as in muniment.store.database.erasure.
        """CREATE INDEX IF NOT EXISTS published_change_erased ON published_change (sequence)
            WHERE key >= 'erased:' AND key < 'erased;'""",
        links.SQLITE_TABLE,
    )


class Totals:
    """Changes to each kind's totals, accumulated and written once."""

    def __init__(self) -> None:
        self._added: dict[str, list[int]] = {}

    def add(self, kind: str, n: int, raising: int, treasury_minor: int) -> None:
        added = self._added.setdefault(kind, [0, 0, 0])
        added[0] += n
        added[1] += raising
        added[2] += treasury_minor

    def write(self, connection: sqlite3.Connection) -> None:
        for kind, (n, raising, treasury_minor) in self._added.items():
            # The sum of a million treasuries may exceed 64 bits, so it is added here and stored as text.
            stored = "SELECT treasury_minor FROM published_total WHERE kind = ?"
            (before,) = connection.execute(stored, (kind,)).fetchone()
            connection.execute(
                "UPDATE published_total SET n = n + ?, raising = raising + ?, treasury_minor = ? WHERE kind = ?",
                (n, raising, str(int(before) + treasury_minor), kind),
            )


class Values:
    """Facet values: each is looked up once, and their counts are written once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ids: dict[tuple[str, str, str], int] = {}
        self._added: Counter[int] = Counter()
        self._entered: list[tuple[int, int]] = []

    def id_of(self, kind: str, name: str, value: str) -> int:
        known = (kind, name, value)
        found = self._ids.get(known)
        if found is None:
            row = self._connection.execute(
                "SELECT id FROM published_value WHERE kind = ? AND name = ? AND value = ?", known
            ).fetchone()
            if row is None:
                row = self._connection.execute(
                    "INSERT INTO published_value (kind, name, value, n, folded) VALUES (?, ?, ?, 0, ?) RETURNING id",
                    (*known, singular(value)),
                ).fetchone()
            found = self._ids[known] = int(row[0])
        return found

    def enter(self, values: list[int], position: int) -> None:
        self._entered += [(value, position) for value in values]
        self._added.update(values)

    def leave(self, values: list[int], position: int) -> None:
        if not values:
            return
        self._write_entered()  # of which these may be some
        rows = [(value, position) for value in values]
        self._connection.executemany("DELETE FROM published_facet WHERE value_id = ? AND position = ?", rows)
        self._added.subtract(values)

    def _write_entered(self) -> None:
        self._connection.executemany("INSERT INTO published_facet VALUES (?, ?)", sorted(self._entered))
        self._entered.clear()

    def write(self, sequence: int) -> None:
        """Write the counts of the values whose documents changed with *sequence*; unused values are deleted."""
        self._write_entered()
        self._connection.executemany(
            "UPDATE published_value SET n = n + ?, changed = ? WHERE id = ?",
            [(added, sequence, value) for value, added in self._added.items()],
        )
        self._connection.executemany(
            "DELETE FROM published_value WHERE id = ? AND n <= 0",
            [(value,) for value, added in self._added.items() if added < 0],
        )


def _block(connection: sqlite3.Connection, kind: str, position: int) -> tuple[int, int]:
    statement = "SELECT first, n FROM published_block WHERE kind = ? AND first <= ? ORDER BY first DESC LIMIT 1"
    first, n = connection.execute(statement, (kind, position)).fetchone()
    return first, n


def enter_block(connection: sqlite3.Connection, kind: str, position: int) -> None:
    first, n = _block(connection, kind, position)
    connection.execute("UPDATE published_block SET n = n + 1 WHERE kind = ? AND first = ?", (kind, first))
    if n < BLOCK_SPLIT:
        return
    half = BLOCK_SPLIT // 2
    (middle,) = connection.execute(
        f"SELECT position FROM published_item_{kind} WHERE position >= ? ORDER BY position LIMIT 1 OFFSET ?",
        (first, half),
    ).fetchone()
    connection.execute("UPDATE published_block SET n = ? WHERE kind = ? AND first = ?", (half, kind, first))
    connection.execute("INSERT INTO published_block VALUES (?, ?, ?)", (kind, middle, n + 1 - half))


def leave_block(connection: sqlite3.Connection, kind: str, position: int) -> None:
    first, n = _block(connection, kind, position)
    if n == 1 and first:
        connection.execute("DELETE FROM published_block WHERE kind = ? AND first = ?", (kind, first))
    else:
        connection.execute("UPDATE published_block SET n = n - 1 WHERE kind = ? AND first = ?", (kind, first))
