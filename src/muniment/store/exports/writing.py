"""Write the export files of one edition."""

import gzip
import hashlib
import sqlite3
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from muniment.durable_files import sync
from muniment.kernel.csv_text import CsvText
from muniment.kernel.http.representations import digest
from muniment.kernel.wire import with_picture_addresses
from muniment.schema.objects import Schema
from muniment.store import sheets
from muniment.store.database.faults import damages_read
from muniment.store.database.handles import open_counted
from muniment.store.exports.files import NAMES, TABLES, ExportFile, file_name
from muniment.store.published import chain_after, feed_of
from muniment.store.published_document import KINDS
from muniment.store.tables.copying import Followed, write
from muniment.store.tables.form import Form, Table

BATCH: Final = 50
"""Rows between two pauses."""
PIECE_BYTES: Final = 16 << 10
"""Of the SQLite file: about as much work as a row of a company."""
_PUBLICATION_NUMBER: Final = (1 << 40) - 1


class Writer:
    """
    Writes export files into *folder*.

    Args:
        pause: called after each batch of rows; may raise, which discards the file.
    """

    def __init__(self, folder: Path, schema: Schema, base_url: str, pause: Callable[[], None]) -> None:
        self._folder = folder
        self._columns: dict[str, tuple[str, ...]] = {kind: sheets.columns_of(schema, kind) for kind in KINDS}
        self._form = Form(schema)
        self._base_url = base_url
        self._pause = pause

    def write(
        self, connection: sqlite3.Connection, kind: str, form: str, *, edition: int, epoch: str, at: str
    ) -> ExportFile:
        """Write the documents of a kind, as JSON Lines, or as CSV with the fields of lists."""
        part = self._folder / f"{kind}.{form}.part"
        if form == "csv":
            lines = _csv_lines(connection, kind, self._columns[kind], self._base_url)
        else:
            lines = _json_lines(connection, kind, self._base_url)
        rows = self._pack(part, lines)
        if form == "jsonl":
            (rows,) = connection.execute("SELECT n FROM published_total WHERE kind = ?", (kind,)).fetchone()
        place = _Place(edition, epoch, at, chain_after(connection, edition) or "")
        return self._finished(part, NAMES[kind], form, rows, place)

    def write_tables(self, connection: sqlite3.Connection, *, edition: int, epoch: str, at: str) -> list[ExportFile]:
        """Write the public tables: all in one SQLite file, and those that are not of a kind as CSV too."""
        place = _Place(edition, epoch, at, chain_after(connection, edition) or "")
        whole = self._folder / "tables.part"
        try:
            counts = write(whole, connection, Followed(edition, epoch, self._form.id), self._form, self._pause)
            part = self._folder / "tables.sqlite.part"
            self._pack(part, _pieces(whole))
            made = [self._finished(part, TABLES, "sqlite", sum(counts.values()), place)]
            with closing(open_counted(whole, "mode=ro", isolation_level=None)) as own:
                for table in self._form.tables:
                    if table.name not in NAMES.values():
                        part = self._folder / f"{table.name}.csv.part"
                        rows = self._pack(part, _table_lines(own, table))
                        made.append(self._finished(part, table.name, "csv", rows, place))
        finally:
            whole.unlink(missing_ok=True)
        return made

    def _pack(self, part: Path, pieces: Iterator[bytes]) -> int:
        """Compress the pieces of a file; return the number of those after the first, which is the head of a CSV."""
        number = 0
        with part.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, 0) as packed:
            for number, piece in enumerate(pieces):
                packed.write(piece)
                if number % BATCH == 0:
                    self._pause()
        return number

    def _finished(self, part: Path, name: str, form: str, rows: int, place: "_Place") -> ExportFile:
        """Rename a whole file after its content."""
        sha256 = sha256_of(part)
        size_bytes = part.stat().st_size
        shown = file_name(name, form, place.edition, sha256)
        sync(part)  # its name is kept with the manifest's
        part.replace(self._folder / shown)
        return ExportFile(
            shown, rows, size_bytes, sha256, place.edition, place.at, self._base_url, place.epoch, chain=place.chain
        )


class _Place(NamedTuple):
    """The place in the feed that files are made at, and when."""

    edition: int
    epoch: str
    at: str
    chain: str


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
    text = CsvText()
    text.write(columns)
    yield text.take()
    positions = _positions(connection, kind)
    for start in range(0, len(positions), BATCH):
        for row in sheets.rows(connection, kind, positions[start : start + BATCH], columns, base_url):
            text.write(row)
            yield text.take()


def _table_lines(own: sqlite3.Connection, table: Table) -> Iterator[bytes]:
    text = CsvText()
    text.write([column.name for column in table.columns])
    yield text.take()
    key = ", ".join([f'"{name}"' for name in table.key])
    for row in own.execute(f'SELECT * FROM "{table.name}" ORDER BY {key}'):
        text.write(row)
        yield text.take()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
