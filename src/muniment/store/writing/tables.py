"""The tables of the published file, and those of its index."""

from collections.abc import Collection
from typing import Final

from muniment.store.chain import links
from muniment.store.search import text_index, vocabulary

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
