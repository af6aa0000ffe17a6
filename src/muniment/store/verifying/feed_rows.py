"""Compare a published document with its row on PostgreSQL."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from muniment.store.published import SCHEMA_VERSION
from muniment.store.published_document import PublishedDocument
from muniment.store.verifying.published_rows import RowFaults

if TYPE_CHECKING:
    import psycopg

_decoder = msgspec.msgpack.Decoder(PublishedDocument)
_FIELDS: Final = [name for name in PublishedDocument.__struct_fields__ if name not in {"schema", "modified_at"}]
"""What rendering gives; the stamp is of the last change."""


def stored_document(connection: "psycopg.Connection[Any]", kind: str, key: str) -> PublishedDocument | None:
    """Return a row's document, or None; raise msgspec.DecodeError if it is damaged."""
    row = connection.execute(
        "SELECT document FROM published_document WHERE kind = %s AND key = %s", (kind, key)
    ).fetchone()
    return None if row is None else _decoder.decode(row[0])


def faults_of(connection: "psycopg.Connection[Any]", document: PublishedDocument) -> RowFaults:
    """Return how the row differs from *document*; ``names`` is empty if it does not."""
    try:
        stored = stored_document(connection, document.kind, document.key)
    except msgspec.DecodeError:
        return RowFaults(("body",))
    if stored is None:
        return RowFaults(("missing",))
    names = tuple(name for name in _FIELDS if getattr(stored, name) != getattr(document, name))
    return RowFaults(names, is_intact=True, is_outdated=stored.schema < SCHEMA_VERSION)
