"""Compare a node's copy of the published documents with PostgreSQL, and have it built again."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg

from muniment.store import postgres_feed, published
from muniment.store.database import node_copy as copies
from muniment.store.database.faults import is_damage
from muniment.store.database.handles import open_counted
from muniment.store.verifying import sqlite_file
from muniment.store.verifying.published_rows import faults_of, faults_of_indexes

_TRIES: Final = 50
_PAUSE_S: Final = 0.1
_PLACE: Final = "{kind} {key}"


class Copied(NamedTuple):
    """
    A part of the comparison.

    Args:
        examined: the number of documents.
        faults: what differs, by document or table.
        after: where the next part continues; None at the end.
    """

    examined: int
    faults: list[tuple[str, str]]
    after: str | None


def count(database_url: str) -> int:
    with _connected(database_url) as source:
        row = source.execute("SELECT count(*) FROM published_document").fetchone()
        return int(row[0]) + 1 if row else 1


def compare(database_url: str, file: Path, after: str, limit: int) -> Copied:
    """
    Compare at most *limit* documents after a place, and at the end the tables that lists and filters use.

    Raises:
        psycopg.OperationalError: PostgreSQL does not answer.
        OSError: the copy does not reach the edition of PostgreSQL within 5 s.
    """
    kind, _, key = after.partition(" ")
    with _same_edition(database_url, file) as (source, copy):
        rows = source.execute(
            'SELECT document FROM published_document WHERE (kind COLLATE "C", key) > (%s, %s)'
            ' ORDER BY kind COLLATE "C", key LIMIT %s',
            (kind, key, limit),
        ).fetchall()
        documents = [postgres_feed.decoded(row[0]) for row in rows]
        faults = []
        for document in documents:
            names = faults_of(copy, document).names
            if names:
                faults.append((f"{document.kind} {document.key}", f"{' and '.join(names)} not as in PostgreSQL"))
        if len(documents) == limit:
            return Copied(limit, faults, _PLACE.format(kind=documents[-1].kind, key=documents[-1].key))
        faults += [("index tables", fault) for fault in faults_of_indexes(copy)]
        there, here = (
            next(iter(each.execute("SELECT count(*) FROM published_document")))[0] for each in (source, copy)
        )
        if there != here:
            faults.append(("documents", f"{here:,} in the copy, {there:,} in PostgreSQL"))
    return Copied(len(documents) + 1, faults, None)


def build_again(file: Path) -> None:
    """
    Take the copy's place in the chain away, so that its follower builds it again while it is served.

    If the pages with that place are damaged too, the file is removed: readers keep it open until there is a new one.
    """
    former = copies.identity(file)
    try:
        with contextlib.closing(open_counted(file, isolation_level=None, timeout=20)) as own:
            own.execute("DELETE FROM published_chain")
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        copies.remove(file, former)


@contextmanager
def _connected(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url, connect_timeout=5, autocommit=True, prepare_threshold=None) as source:
        source.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        source.read_only = True
        yield source


@contextmanager
def _same_edition(database_url: str, file: Path) -> Iterator[tuple[psycopg.Connection[Any], sqlite3.Connection]]:
    """Provide a snapshot of each at one edition; the copy follows within a fraction of a second."""
    with _connected(database_url) as source, contextlib.closing(sqlite_file.open_to_read(file)) as copy:
        for _ in range(_TRIES):
            with source.transaction():
                there = postgres_feed.head(source)
                copy.execute("BEGIN")
                edition, epoch, _at = published.head(copy)
                if edition == there.edition and epoch.endswith(there.epoch):
                    yield source, copy
                    return
                copy.execute("ROLLBACK")
            time.sleep(_PAUSE_S)
    message = "the copy of this node does not follow PostgreSQL; start the server of this node"
    raise OSError(message)
