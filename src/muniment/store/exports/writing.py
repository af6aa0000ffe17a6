"""Write the export files of one edition."""

import csv
import gzip
import hashlib
import io
import sqlite3
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from muniment.durable_files import sync
from muniment.kernel.http.representations import digest
from muniment.kernel.json import JSONObject
from muniment.kernel.texts import spreadsheet_cell
from muniment.kernel.wire import with_picture_addresses
from muniment.schema.objects import Schema
from muniment.store.database.faults import damages_read
from muniment.store.database.handles import open_counted
from muniment.store.exports.files import ExportFile, file_name
from muniment.store.published import chain_after, feed_of

BATCH: Final = 50
"""Rows between two pauses."""
_PUBLICATION_NUMBER: Final = (1 << 40) - 1


class Writer:
    """
    Writes export files into *folder*.

    Args:
        pause: called after each batch of rows; may raise, which discards the file.
    """

    def __init__(self, folder: Path, schema: Schema, base_url: str, pause: Callable[[], None]) -> None:
        self._folder = folder
        self._columns = {"company": schema.company.csv, "person": schema.person.csv, "framework": schema.framework.csv}
        self._base_url = base_url
        self._pause = pause

    def write(
        self, connection: sqlite3.Connection, kind: str, form: str, *, edition: int, epoch: str, at: str
    ) -> ExportFile:
        part = self._folder / f"{kind}.{form}.part"
        rows = 0
        with part.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, 0) as packed:
            if form == "csv":
                lines = _csv_lines(connection, kind, self._columns[kind], self._base_url)
            else:
                lines = _json_lines(connection, kind, self._base_url)
            for rows, line in enumerate(lines):
                packed.write(line)
                if rows % BATCH == 0:
                    self._pause()
        if form == "jsonl":
            (rows,) = connection.execute("SELECT n FROM published_total WHERE kind = ?", (kind,)).fetchone()
        sha256 = sha256_of(part)
        size_bytes = part.stat().st_size
        name = file_name(kind, form, edition, sha256)
        sync(part)  # its name is kept with the manifest's
        part.replace(self._folder / name)
        chain = chain_after(connection, edition) or ""
        return ExportFile(name, rows, size_bytes, sha256, edition, at, self._base_url, epoch, chain=chain)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def reading(path: Path) -> Iterator[tuple[sqlite3.Connection, int, str]]:
    """Provide a snapshot of the published file, its edition and its feed."""
    connection = open_counted(path, "mode=ro", isolation_level=None, timeout=20)
    try:
        connection.execute("BEGIN")
        edition, epoch = connection.execute("SELECT edition, epoch FROM published_meta").fetchone()
        yield connection, edition, feed_of(epoch)
    finally:
        connection.close()


def _positions(connection: sqlite3.Connection, kind: str) -> "array[int]":
    rows = connection.execute(
        "SELECT position FROM published_document WHERE kind = ? ORDER BY position & ?", (kind, _PUBLICATION_NUMBER)
    )
    return array("q", (row[0] for row in rows))


def _json_lines(connection: sqlite3.Connection, kind: str, base_url: str) -> Iterator[bytes]:
    for position in _positions(connection, kind):
        key, etag, body = connection.execute(
            "SELECT key, etag, body FROM published_document WHERE kind = ? AND position = ?", (kind, position)
        ).fetchone()
        if digest(body) != etag:
            raise damages_read.document(kind, key)
        shown = with_picture_addresses(body, base_url)
        data = bytes(msgspec.json.decode(shown, type=dict[str, msgspec.Raw])["data"])
        yield b'{"framework":%s}\n' % data if kind == "framework" else data + b"\n"


def _csv_lines(connection: sqlite3.Connection, kind: str, columns: tuple[str, ...], base_url: str) -> Iterator[bytes]:
    yield _csv_line(columns)
    for position in _positions(connection, kind):
        (item,) = connection.execute(
            f"SELECT item FROM published_item_{kind} WHERE position = ?", (position,)
        ).fetchone()
        members = msgspec.json.decode(with_picture_addresses(item, base_url), type=JSONObject)
        yield _csv_line([_cell(_value(members, column)) for column in columns])


def _value(members: JSONObject, column: str) -> Any:
    """Return the member that *column* names; a dot leads to a member of a member."""
    name, _, inner = column.partition(".")
    value = members.get(name)
    return (value or {}).get(inner) if inner else value


def _csv_line(cells: "tuple[str, ...] | list[str]") -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        value = "; ".join(map(str, value))
    return spreadsheet_cell(str(value))
