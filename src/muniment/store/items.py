"""Read the items of lists, each compared with the checksum that it was written with (`writing.with_checksum`)."""

import sqlite3
from typing import Final
from zlib import crc32

from muniment.store.database.faults import DamagedDocument, damages_read

ITEM: Final = "CAST(item AS BLOB)"
"""The column, as statements read it: a checksum is no UTF-8, so an item that has become text could not be read."""
_WHOLE: Final = 0x2144DF1C
"""The CRC-32 of any bytes that their own CRC-32 follows: one call compares them, without a copy."""


def item_at(connection: sqlite3.Connection, kind: str, position: int, stored: object) -> bytes:
    """
    Return the item that is *stored* at *position*: a disk may have changed it since it was published.

    This takes 1.3 µs a KB, of which the checksum is half. Answers that are kept are not read again.

    Raises:
        DamagedDocument: it does not have its checksum; its document is noted, to be published again.
    """
    if isinstance(stored, bytes) and crc32(stored) == _WHOLE:
        return stored[1:-4]
    raise _damaged(connection, kind, position)


def _damaged(connection: sqlite3.Connection, kind: str, position: int) -> DamagedDocument:
    """Note the document of a damaged item, and return the error."""
    error = DamagedDocument()
    statement = "SELECT key FROM published_document WHERE kind = ? AND position = ?"
    for (key,) in connection.execute(statement, (kind, position)).fetchall():
        error = damages_read.document(kind, key)
    return error
