"""
Copy published documents into tables: their rows, and the place in the feed that the tables show.

The tables of a node are filled and kept at each edition by :mod:`muniment.store.tables.following`; those of a download
are written whole, from the snapshot of an export.
"""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from muniment.kernel.http.representations import digest
from muniment.store.database import erasure
from muniment.store.database.faults import damages_read
from muniment.store.database.handles import open_counted
from muniment.store.published_document import KINDS
from muniment.store.snapshot_state import SnapshotState
from muniment.store.tables.form import CHANGES, Form, Row

PAGE_BYTES: Final = 8192
"""In the usual 4,096, a ninth of the pages of companies and of bios is empty, and statements are a tenth slower."""
AT_ONCE: Final = 200
"""Documents, or changes, between two pauses."""
FOLLOWED: Final = """CREATE TABLE IF NOT EXISTS _followed (
    id INTEGER PRIMARY KEY CHECK (id = 1), edition INTEGER NOT NULL, epoch TEXT NOT NULL, form TEXT NOT NULL,
    erased INTEGER NOT NULL) STRICT"""
SOME: Final = "SELECT key FROM published_document WHERE kind = ? AND key > ? ORDER BY key LIMIT ?"
"""In the order of an index, and of the rows of the tables: by their number, each step would sort all of the kind."""
_CHOSEN: Final = "WHERE kind = ? AND key IN (SELECT value FROM json_each(?))"
_BODIES: Final = f"SELECT key, body, etag FROM published_document {_CHOSEN}"
_TIMES: Final = f"SELECT key, min(at) FROM published_change {_CHOSEN} GROUP BY key"
FEED: Final = (
    "SELECT sequence, kind, key, change, at, fields FROM published_change WHERE sequence > ? ORDER BY sequence LIMIT ?"
)
Change = tuple[int, str, str, str, str, str | None]


class OtherFeed(Exception):  # noqa: N818 - a state
    """The feed was replaced, or does not reach back to the tables."""


class Followed(NamedTuple):
    """
    The place of the tables in the feed.

    Args:
        erased: the latest change that tells of an erased person.
    """

    edition: int
    epoch: str
    form: str
    erased: int = 0


def followed(connection: sqlite3.Connection) -> Followed | None:
    """Return the place of the tables in the feed; None if they have not been made yet."""
    row = connection.execute("SELECT edition, epoch, form, erased FROM _followed").fetchone()
    return None if row is None else Followed(*row)


def create(own: sqlite3.Connection, form: Form) -> None:
    """Create the tables of a form, without those of a former one and without indexes."""
    names = own.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'").fetchall()
    for (name,) in names:
        if name != "_followed":
            own.execute(f'DROP TABLE "{name}"')
    for table in form.tables:
        own.execute(table.statement)


def finish(own: sqlite3.Connection, form: Form) -> None:
    """Index the tables after all their rows, which makes dense indexes, and note sizes for the planner."""
    for table in form.tables:
        for statement in table.indexes:
            own.execute(statement)
    own.execute("PRAGMA analysis_limit = 400")
    own.execute("ANALYZE")


class Unwritten(NamedTuple):
    """A document to be written; without a body, it is not published any more."""

    key: str
    body: bytes | None
    first_change: str | None


def read(source: sqlite3.Connection, kind: str, keys: list[str]) -> list[Unwritten]:
    """
    Read documents, and when they changed first.

    Raises:
        DamagedDocument: one of them does not have its digest.
    """
    if not keys:
        return []
    chosen = msgspec.json.encode(keys).decode()
    bodies = {}
    for key, body, etag in source.execute(_BODIES, (kind, chosen)):
        if not isinstance(body, bytes) or digest(body) != etag:
            raise damages_read.document(kind, key)
        bodies[key] = body
    first_changes = dict(source.execute(_TIMES, (kind, chosen)).fetchall())
    return [Unwritten(key, bodies.get(key), first_changes.get(key)) for key in keys]


def changes_after(
    source: sqlite3.Connection, state: SnapshotState, held: Followed, after: int, limit: int
) -> list[Change]:
    """
    Return the next changes after a number.

    Raises:
        OtherFeed: the feed is another one than that of *held*, or no longer goes back that far.
    """
    rows: list[Change] = source.execute(FEED, (after, limit)).fetchall()
    is_other = state.epoch != held.epoch or state.edition < after
    has_next = bool(rows) and rows[0][0] == after + 1
    if is_other or (state.edition > after and not has_next):
        raise OtherFeed("the change feed does not continue the tables")
    return rows


def row_of_change(change: Change) -> Row:
    """
    Return the row of an entry of the feed.

    A person who is not published any more is not named: the feed keeps the slug of an erased one for 30 days, so that
    copies know whom to delete, and tables are no such copy.
    """
    sequence, kind, key, what, at, fields = change
    slug = None if (kind, what) == ("person", "unlisted") else key
    return sequence, kind, slug, what, at, fields


def insert(own: sqlite3.Connection, form: Form, kind: str, documents: list[Unwritten]) -> None:
    """Insert the rows of documents."""
    tables = form.of_kind[kind]
    rows: list[list[Row]] = [[] for _ in tables]
    for key, body, first_change in documents:
        if body is not None:
            for of_table, found in zip(rows, form.rows(kind, key, body, first_change), strict=True):
                of_table.extend(found)
    for table, of_table in zip(tables, rows, strict=True):
        if of_table:
            own.executemany(table.insert, of_table)


def write(
    path: Path, source: sqlite3.Connection, there: Followed, form: Form, pause: Callable[[], None]
) -> dict[str, int]:
    """
    Write the tables of one snapshot of the published documents to a new file; return the number of rows of each.

    They are made from the documents and not copied from the tables of the node, which may be at another edition, hold
    free pages, and differ in their bytes from those of another node.

    Args:
        pause: called after each batch; may raise.

    Raises:
        DamagedDocument: a document does not have its digest.
    """
    path.unlink(missing_ok=True)
    with contextlib.closing(open_counted(path, isolation_level=None)) as own:
        own.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        own.execute("PRAGMA journal_mode = OFF")  # a file that is not whole is removed
        own.execute("PRAGMA synchronous = OFF")
        own.execute(FOLLOWED)
        own.execute("BEGIN")
        create(own, form)
        for kind in KINDS:
            after = ""
            while keys := [key for (key,) in source.execute(SOME, (kind, after, AT_ONCE))]:
                insert(own, form, kind, read(source, kind, keys))
                after = keys[-1]
                pause()
        sequence = 0
        while changes := source.execute(FEED, (sequence, AT_ONCE)).fetchall():
            own.executemany(CHANGES.insert, map(row_of_change, changes))
            sequence = changes[-1][0]
            pause()
        finish(own, form)
        own.execute("INSERT INTO _followed VALUES (1, ?, ?, ?, ?)", there)
        own.execute("COMMIT")
        erasure.compact(own)
        names = [table.name for table in form.tables]
        return {name: own.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}
