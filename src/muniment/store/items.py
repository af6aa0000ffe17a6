"""The items of lists as they are stored: each with a checksum, with which it is compared whenever it is read."""

import sqlite3
from typing import Final
from zlib import crc32

from muniment.store.database.faults import DamagedDocument, damages_read

ITEM: Final = "CAST(item AS BLOB)"
"""The column, as statements read it: a checksum is no UTF-8, so an item that has become text could not be read."""
_SEALED: Final = b"\x01"
"""Begins an item with a checksum. It differs in several bits from the first one of JSON."""
_UNSEALED: Final = b'{"'
"""Begins an item of the versions 10 and 11 of the tables, which had no checksums."""
_WHOLE: Final = 0x2144DF1C
"""The CRC-32 of any bytes that their own CRC-32 follows: one call compares them, without a copy."""


def sealed(item: bytes) -> bytes:
    """Return *item* as it is stored."""
    marked = _SEALED + item
    return marked + crc32(marked).to_bytes(4, "little")


def item_at(connection: sqlite3.Connection, kind: str, position: int, stored: object) -> bytes:
    """
    Return the item that is *stored* at *position*: a disk may have changed it since it was published.

    This takes 1.3 µs a KB, of which the checksum is half. Answers that are kept are not read again.

    Raises:
        DamagedDocument: it does not have its checksum; its document is noted, to be published again.
    """
    if isinstance(stored, bytes):
        if crc32(stored) == _WHOLE:
            return stored[1:-4]
        if stored.startswith(_UNSEALED):
            return stored
    raise _damaged(connection, kind, position)


def _damaged(connection: sqlite3.Connection, kind: str, position: int) -> DamagedDocument:
    """Note the document of a damaged item, and return the error."""
    error = DamagedDocument()
    statement = "SELECT key FROM published_document WHERE kind = ? AND position = ?"
    for (key,) in connection.execute(statement, (kind, position)).fetchall():
        error = damages_read.document(kind, key)
    return error
