"""Compare the tables of a node with the published documents, row by row."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from muniment.store import published
from muniment.store.tables.copying import FEED, followed, row_of_change
from muniment.store.tables.form import CHANGES, Form, Row, Table
from muniment.store.verifying.sqlite_file import open_to_read

_TRIES: Final = 50
_PAUSE_S: Final = 0.1
_SOME: Final = "SELECT kind, key, body FROM published_document WHERE (kind, key) > (?, ?) ORDER BY kind, key LIMIT ?"


class Compared(NamedTuple):
    """
    A part of the comparison.

    Args:
        examined: the number of documents.
        faults: what differs, by document or table.
        after: where the next part continues; None at the end, or if the tables do not follow now.
    """

    examined: int
    faults: list[tuple[str, str]]
    after: str | None


def count(documents: Path) -> int:
    with contextlib.closing(open_to_read(documents)) as source:
        (number,) = source.execute("SELECT count(*) FROM published_document").fetchone()
    return int(number) + 1


def compare(documents: Path, tables: Path, form: Form, after: str, limit: int) -> Compared:
    """Compare at most *limit* documents after a place with their rows, and at the end what no document has."""
    kind, _, key = after.partition(" ")
    with _same_edition(documents, tables, form) as opened:
        if opened is None:
            return Compared(0, [], None)  # nothing follows: the server of this node does, when it starts
        source, own = opened
        examined = source.execute(_SOME, (kind, key, limit)).fetchall()
        faults = []
        for kind, key, body in examined:
            names = _differing(own, form, kind, key, body)
            if names:
                faults.append((f"{kind} {key}", f"rows of {', '.join(names)} not as published"))
        if len(examined) == limit:
            return Compared(limit, faults, f"{kind} {key}")
        faults += _rows_of_nothing(source, own, form)
    return Compared(len(examined) + 1, faults, None)


def _differing(own: sqlite3.Connection, form: Form, kind: str, key: str, body: bytes) -> list[str]:
    """Return the tables in which the rows of a document are not those that it gives."""
    differing = []
    for table, rows in zip(form.of_kind[kind], form.rows(kind, key, body, None), strict=True):
        stored = own.execute(f'SELECT * FROM "{table.name}" WHERE "{table.key[0]}" = ?', (key,)).fetchall()
        expected = [_as_stored(table, row, stored) for row in rows]
        # As texts, because None and numbers have no order, and 1 is not 1.0.
        if sorted(map(repr, stored)) != sorted(map(repr, expected)):
            differing.append(table.name)
    return differing


def _as_stored(table: Table, row: Row, stored: list[Row]) -> Row:
    """Return *row* with the stored time of its first change, to which the feed may not go back any more."""
    for place, column in enumerate(table.columns):
        if column.name == "first_change" and stored:
            return (*row[:place], stored[0][place], *row[place + 1 :])
    return row


def _rows_of_nothing(source: sqlite3.Connection, own: sqlite3.Connection, form: Form) -> Iterator[tuple[str, str]]:
    """Yield the rows of documents that are not published, and a feed that is another one."""
    for kind, tables in form.of_kind.items():
        keys = {key for (key,) in source.execute("SELECT key FROM published_document WHERE kind = ?", (kind,))}
        for table in tables:
            stored = {key for (key,) in own.execute(f'SELECT DISTINCT "{table.key[0]}" FROM "{table.name}"')}
            if stored - keys:
                yield table.name, f"rows of {len(stored - keys):,} documents that are not published"
    feed = [row_of_change(change) for change in source.execute(FEED, (0, -1))]
    first = feed[0][0] if feed else 0
    stored_feed = own.execute(
        f"SELECT * FROM {CHANGES.name} WHERE sequence >= ? ORDER BY sequence", (first,)
    ).fetchall()
    if feed != stored_feed:
        yield CHANGES.name, "not the change feed"


@contextlib.contextmanager
def _same_edition(
    documents: Path, tables: Path, form: Form
) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection] | None]:
    """Provide a snapshot of each at one edition; None if the tables do not reach it within 5 s."""
    with (
        contextlib.closing(open_to_read(documents)) as source,
        contextlib.closing(open_to_read(tables)) as own,
    ):
        for _ in range(_TRIES):
            source.execute("BEGIN")
            own.execute("BEGIN")
            edition, epoch, _at = published.head(source)
            held = followed(own)
            if held is not None and held[:3] == (edition, epoch, form.id):
                yield source, own
                return
            source.execute("ROLLBACK")
            own.execute("ROLLBACK")
            time.sleep(_PAUSE_S)
        yield None
