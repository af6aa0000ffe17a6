"""A copy of a registry in one SQLite file: its documents, and how far it has read the change feed."""

import gzip
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Self

import msgspec

from muniment_client._wire import Place
from muniment_client.errors import HistoryChangedError, MalformedResponseError
from muniment_client.models import Export

KIND_OF_FILE: Final = {"companies": "company", "people": "person", "frameworks": "framework"}
PATHS: Final = {kind: name for name, kind in KIND_OF_FILE.items()}
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS documents (kind TEXT, id TEXT, document TEXT NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS place (
    one INTEGER PRIMARY KEY CHECK (one = 1), registry TEXT NOT NULL, after INTEGER NOT NULL, chain TEXT, feed_id TEXT
);
"""


class Entry(NamedTuple):
    """A document as published, or None if it is not public any more."""

    kind: str
    id: str
    document: bytes | None


class ChangedDocument(msgspec.Struct, rename="camel"):
    """A change with its document as it came; unset if it is too large to be sent along."""

    kind: str
    id: str
    sequence: int
    document: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ChangedDocuments(msgspec.Struct, rename="camel"):
    data: list[ChangedDocument]
    next_after: int
    chain: str | None = None
    feed_id: str | None = None
    head: int = 0


class _Company(msgspec.Struct):
    id: str


class _Bundle(msgspec.Struct):
    company: _Company


class _Person(msgspec.Struct):
    slug: str


class _Framework(msgspec.Struct, rename="camel"):
    framework_id: str


class _FrameworkRow(msgspec.Struct):
    framework: msgspec.Raw


class Copy:
    """
    A copy of a registry.

    Documents and place are stored in one transaction, so a program that is killed goes on where it was.

    Args:
        registry: the URL; a file has the copy of one registry.
    """

    def __init__(self, file: str | Path, registry: str = "") -> None:
        self._database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._database.executescript(_TABLES)
        row = self._database.execute("SELECT registry FROM place").fetchone()
        if row is not None and registry and row[0] != registry:
            self._database.close()
            raise ValueError(f"{file} has the copy of {row[0]}; name another file for {registry}.")
        self._registry = registry

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    @property
    def place(self) -> Place | None:
        """How far the copy has read the feed; None before it is complete."""
        row = self._database.execute("SELECT after, chain, feed_id FROM place").fetchone()
        return None if row is None else Place(*row)

    def replace(self, entries: Iterable[Entry], place: Place) -> None:
        """Store *entries* as all that there is."""
        self._store(entries, place, is_all=True)

    def apply(self, entries: Iterable[Entry], place: Place) -> None:
        """Store changes, and the place after them."""
        self._store(entries, place, is_all=False)

    def _store(self, entries: Iterable[Entry], place: Place, *, is_all: bool) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            if is_all:
                self._database.execute("DELETE FROM documents")
            for kind, key, document in entries:
                if document is None:
                    self._database.execute("DELETE FROM documents WHERE kind = ? AND id = ?", (kind, key))
                else:
                    values = kind, key, document.decode()
                    self._database.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", values)
            self._database.execute("INSERT OR REPLACE INTO place VALUES (1, ?, ?, ?, ?)", (self._registry, *place))
            self._database.execute("COMMIT")
        except BaseException:
            self._database.execute("ROLLBACK")
            raise

    def document(self, kind: str, key: str) -> bytes | None:
        """Return a document as published, None if there is none; *kind* is company, person or framework."""
        statement = "SELECT document FROM documents WHERE kind = ? AND id = ?"
        row = self._database.execute(statement, (kind, key)).fetchone()
        return None if row is None else str(row[0]).encode()

    def documents(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Iterate over ids and documents of a kind."""
        statement = "SELECT id, document FROM documents WHERE kind = ? ORDER BY id"
        for key, document in self._database.execute(statement, (kind,)):
            yield key, document.encode()


def newest(exports: Iterable[Export]) -> dict[str, Export]:
    """Return by kind the files of the latest edition that has all kinds; none if there is no such edition."""
    editions: dict[int, dict[str, Export]] = {}
    for export in exports:
        kind = KIND_OF_FILE.get(export.name.partition("-")[0])
        if kind and export.name.endswith(".jsonl.gz"):
            editions.setdefault(export.edition, {})[kind] = export
    whole = [edition for edition, files in editions.items() if len(files) == len(KIND_OF_FILE)]
    return editions[max(whole)] if whole else {}


def sha256_of(file: IO[bytes]) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # a binary file, opened for reading


def rows(kind: str, export: Export, file: IO[bytes]) -> Iterator[Entry]:
    """
    Yield the documents of an export file.

    Raises:
        MalformedResponseError: it is not the file that the registry has listed.
    """
    if sha256_of(file) != export.sha256:
        raise MalformedResponseError(f"{export.name} does not have the SHA-256 that the registry lists.")
    file.seek(0)
    with gzip.open(file, "rb") as lines:
        for line in lines:
            try:
                yield _entry(kind, line.rstrip(b"\n"))
            except msgspec.MsgspecError as error:
                raise MalformedResponseError(f"{export.name} has a row that is no {kind}: {error}") from error


def _entry(kind: str, row: bytes) -> Entry:
    if kind == "company":
        return Entry(kind, msgspec.json.decode(row, type=_Bundle).company.id, row)
    if kind == "person":
        return Entry(kind, msgspec.json.decode(row, type=_Person).slug, row)
    document = bytes(msgspec.json.decode(row, type=_FrameworkRow).framework)  # in the form that an import takes
    return Entry(kind, msgspec.json.decode(document, type=_Framework).framework_id, document)


def same_feed(place: Place, feed_id: str | None) -> None:
    """
    Check that a response belongs to the feed that was read before.

    Raises:
        HistoryChangedError: it is of another feed.
    """
    if place.feed_id and feed_id and place.feed_id != feed_id:
        raise HistoryChangedError("The registry has another change feed than the one that was read before.")


def is_equal(document: bytes | Any, published: msgspec.Raw) -> bool:
    """Return whether a document is the published one: bytes exactly, a decoded one by its members."""
    if isinstance(document, bytes | bytearray):
        return bytes(document) == bytes(published)
    return bool(document == msgspec.json.decode(published))
