"""Compare the index tables of the published file with its documents: totals, blocks, filters, search texts."""

import sqlite3
from typing import Final

from muniment.store.published_document import KINDS

_PLACE: Final = "SELECT position FROM published_document WHERE kind = '{kind}'"


def faults_of_indexes(connection: sqlite3.Connection) -> list[str]:
    """Return which index tables do not match the documents. Call it in one snapshot."""
    found = [fault for kind in KINDS for fault in _of_kind(connection, kind)]
    lost = connection.execute(
        "SELECT count(*) FROM published_facet f WHERE NOT EXISTS (SELECT 1 FROM published_value v"
        " JOIN published_document d ON d.kind = v.kind AND d.position = f.position WHERE v.id = f.value_id)"
    ).fetchone()[0]
    if lost:
        found.append(f"{lost:,} filter entries belong to no document")
    miscounted = connection.execute(
        "SELECT count(*) FROM published_value v WHERE n <> (SELECT count(*) FROM published_facet WHERE value_id = v.id)"
    ).fetchone()[0]
    if miscounted:
        found.append(f"{miscounted:,} filter values have a wrong count")
    return found


def _of_kind(connection: sqlite3.Connection, kind: str) -> list[str]:
    found = []
    documents = connection.execute(f"SELECT count(*) FROM ({_PLACE.format(kind=kind)})").fetchone()[0]
    tables = (
        ("items of lists", f"published_item_{kind}", "position"),
        ("search texts", f"published_text_{kind}_content", "id"),
    )
    for words, table, column in tables:
        rows, strays = connection.execute(
            f"SELECT count(*), count(*) FILTER (WHERE {column} NOT IN ({_PLACE.format(kind=kind)})) FROM {table}"
        ).fetchone()
        if rows != documents or strays:
            found.append(f"{rows:,} {words} for {documents:,} documents of kind {kind}, {strays:,} of none")
    total = connection.execute("SELECT n, raising, treasury_minor FROM published_total WHERE kind = ?", (kind,))
    if total.fetchone() != _totals(connection, kind):
        found.append(f"the totals of kind {kind} do not match its documents")
    if not _blocks_match(connection, kind):
        found.append(f"the blocks of kind {kind} do not match its documents")
    return found


def _totals(connection: sqlite3.Connection, kind: str) -> tuple[int, int, str]:
    """Add in Python: the sum of a million treasuries may exceed 64 bits."""
    n = raising = treasury = 0
    rows = connection.execute("SELECT raising, treasury_minor FROM published_document WHERE kind = ?", (kind,))
    for is_raising, minor in rows:
        if not isinstance(minor, int | None) or not isinstance(is_raising, int):
            return -1, 0, ""  # a damaged value
        n, raising, treasury = n + 1, raising + is_raising, treasury + (minor or 0)
    return n, raising, str(treasury)


def _blocks_match(connection: sqlite3.Connection, kind: str) -> bool:
    rows = connection.execute(
        "WITH b AS (SELECT first, n, lead(first, 1, 9223372036854775807) OVER (ORDER BY first) AS following"
        " FROM published_block WHERE kind = ?1) SELECT n, (SELECT count(*) FROM published_document d"
        " WHERE d.kind = ?1 AND d.position >= b.first AND d.position < b.following) FROM b",
        (kind,),
    ).fetchall()
    return bool(rows) and all(n == counted for n, counted in rows)
