"""Compare a published document with everything that the published file says about it."""

import sqlite3
from typing import Any, Final, NamedTuple

import msgspec

from muniment.kernel.ids import digest
from muniment.store.published_document import PublishedDocument
from muniment.store.search.text_index import Columns
from muniment.store.search_text import fold
from muniment.store.writing.documents import columns_of, provenance_member

_COLUMNS: Final = (
    *("position", "sort_name", "updated_at", "raising", "treasury_minor", "team_size", "company_count", "provenance"),
    *("texts_digest", "etag", "body", "facets"),
)


class RowFaults(NamedTuple):
    """
    What the file says differently about a document.

    Args:
        names: the parts that differ: ``body``, ``item``, ``filters``, …; ``missing`` if there is no row.
        is_intact: the stored body is the one that was published, by its own digest.
        is_structural: parts differ that other rows depend on, so that a single row cannot be replaced.
        is_outdated: an earlier version rendered the document, during a rolling upgrade.
    """

    names: tuple[str, ...]
    is_intact: bool = False
    is_structural: bool = False
    is_outdated: bool = False


def stored_body(connection: sqlite3.Connection, kind: str, key: str) -> bytes | None:
    row = connection.execute("SELECT body FROM published_document WHERE kind = ? AND key = ?", (kind, key)).fetchone()
    return None if row is None else row[0]


def faults_of(connection: sqlite3.Connection, document: PublishedDocument) -> RowFaults:
    """Return how the file differs from *document*; ``names`` is empty if it does not."""
    row = connection.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM published_document WHERE kind = ? AND key = ?",
        (document.kind, document.key),
    ).fetchone()
    if row is None:
        return RowFaults(("missing",), is_structural=True)  # other tables may still have its rows
    stored: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    expected: dict[str, Any] = {
        "position": document.position,
        "sort_name": fold(document.name),
        "updated_at": document.updated_at,
        "raising": int(document.raising),
        "treasury_minor": document.treasury_minor,
        "team_size": document.team_size,
        "company_count": document.company_count,
        "provenance": provenance_member(document),
        "texts_digest": columns_of(document).digest,
        "etag": digest(document.body),
        "body": document.body,
    }
    names = [name for name, value in expected.items() if stored[name] != value]
    names += _item_faults(connection, document)
    facets = _numbers(stored["facets"])
    if not _has_filters(connection, document, facets):
        names.append("filters")
    has_words = _has_words(connection, document)
    if not has_words:
        names.append("search text")
    body = stored["body"]
    is_intact = isinstance(body, bytes) and digest(body) == stored["etag"]
    is_structural = not _is_consistent(connection, stored, facets)
    # A row with the digest of the present texts would be left as it is.
    is_structural = is_structural or not (has_words or "texts_digest" in names)
    return RowFaults(tuple(names), is_intact, is_structural)


def _is_consistent(connection: sqlite3.Connection, stored: dict[str, Any], facets: list[int]) -> bool:
    """Return whether a row can be replaced alone: its numbers are numbers, and its filter entries are there."""
    if not all(isinstance(stored[name], int) for name in ("position", "raising")):
        return False
    if not isinstance(stored["treasury_minor"], int | None):
        return False
    (entries,) = connection.execute(
        "SELECT count(*) FROM json_each(?) s JOIN published_facet f ON f.value_id = s.value AND f.position = ?",
        (msgspec.json.encode(facets).decode(), stored["position"]),
    ).fetchone()
    return bool(entries == len(facets))


def _item_faults(connection: sqlite3.Connection, document: PublishedDocument) -> list[str]:
    row = connection.execute(
        f"SELECT item, provenance FROM published_item_{document.kind} WHERE position = ?", (document.position,)
    ).fetchone()
    return [] if row == (document.item, provenance_member(document)) else ["item"]


def _has_filters(connection: sqlite3.Connection, document: PublishedDocument, facets: list[int]) -> bool:
    """Return whether the row names the values of *document*, and no others."""
    wanted = sorted((name, value) for name, values in document.facets.items() for value in dict.fromkeys(values))
    rows = connection.execute(
        "SELECT v.name, v.value FROM json_each(?) s JOIN published_value v ON v.id = s.value AND v.kind = ?",
        (msgspec.json.encode(facets).decode(), document.kind),
    )
    return sorted(rows.fetchall()) == wanted


def _numbers(stored: Any) -> list[int]:
    """Return the stored list of numbers; one that no row has if it is no such list."""
    try:
        return msgspec.json.decode(stored, type=list[int])
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError):
        return [-1]


def _has_words(connection: sqlite3.Connection, document: PublishedDocument) -> bool:
    row = connection.execute(
        f"SELECT {', '.join(Columns._fields)} FROM published_text_{document.kind} WHERE rowid = ?", (document.position,)
    ).fetchone()
    return bool(row == columns_of(document))
