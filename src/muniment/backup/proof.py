"""Verify a backup without an instance: every byte, every entry, every count, every document with its blob."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from muniment.backup import container, contents
from muniment.backup.container import Damaged
from muniment.backup.contents import Header, Manifest, Part, Tally
from muniment.kernel.problems import BadRequest
from muniment.store.database.form import UNRELEASED, WAY_OUT, is_unreleased


@dataclass(frozen=True, slots=True)
class VerifiedBackup:
    """The contents of a valid backup."""

    header: Header
    manifest: Manifest
    keys: int
    size_bytes: int

    @property
    def rows(self) -> int:
        return sum(count.n for count in self.manifest.tables.values())


def header_of(part: Part | None) -> Header:
    """Read the first part; raise Damaged if it is not a header of a known format, BadRequest if it predates 0.1.0."""
    try:
        if part is None or part.name != contents.HEADER:
            raise Damaged("The backup does not start with its header.")
        found = msgspec.json.decode(part.read(), type=Header)
    except msgspec.DecodeError as error:
        raise Damaged(f"The header of the backup cannot be read: {error}.") from error
    if found.format != contents.FORMAT:
        raise Damaged(f"The backup has the format {found.format}; this version reads {contents.FORMAT}.")
    if is_unreleased(found.migrations):
        raise BadRequest(f"The backup {UNRELEASED}.", WAY_OUT)
    return found


def manifest_of(part: Part) -> Manifest:
    try:
        return msgspec.json.decode(part.read(), type=Manifest)
    except msgspec.DecodeError as error:
        raise Damaged(f"The manifest of the backup cannot be read: {error}.") from error


def verify(path: Path) -> VerifiedBackup:
    """Verify the backup at *path* within a few megabytes of memory, or raise Damaged with what is wrong."""
    container.check_bytes(path)
    return verify_parts(container.read(path), path)


def verify_parts(parts: Iterator[Part], path: Path) -> VerifiedBackup:
    """Verify the parts that were read from *path*, or raise Damaged with what is wrong."""
    reading = _Reading(header_of(next(parts, None)))
    for each in parts:
        reading.take(each)
    return VerifiedBackup(reading.header, reading.finish(path), reading.keys, path.stat().st_size)


class _Reading:
    """The tallies made while reading."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.keys = 0
        self._tables = {name: Tally() for name in header.tables}
        self._blobs, self._wanted = Tally(), Tally()
        self._blob_bytes = 0
        self._manifest: Manifest | None = None

    def take(self, part: Part) -> None:
        if part.name == contents.MANIFEST:
            self._manifest = manifest_of(part)
        elif part.name.startswith(contents.ROWS):
            self._rows(part)
        elif part.name.startswith(contents.BLOBS):
            key, sha256 = part.name.removeprefix(contents.BLOBS), contents.digest_of(part.pieces)
            self._blob_bytes += part.size_bytes
            self._blobs.add(contents.blob_line(key, part.size_bytes, sha256))
        elif part.name.startswith(contents.KEYS):
            self.keys += 1
        else:
            raise Damaged(f"The backup contains an unexpected part, {part.name}.")

    def _rows(self, part: Part) -> None:
        table = contents.table_of(part.name)
        if table not in self._tables:
            raise Damaged(f"The backup contains rows of {table}, which its header does not list.")
        lines = part.read().splitlines()
        self._tables[table].add(*lines)
        columns = self.header.tables[table]
        for line in lines:
            row = msgspec.json.decode(line)
            if len(row) != len(columns):
                raise Damaged(f"A row of {table} has {len(row)} values instead of {len(columns)}.")
            if table == "documents_document":
                found = dict(zip(columns, row, strict=True))
                if found["blob_key"]:
                    self._wanted.add(contents.blob_line(found["blob_key"], found["size_bytes"], found["sha256"]))

    def finish(self, path: Path) -> Manifest:
        if (manifest := self._manifest) is None:
            raise Damaged(f"{path} has no manifest.")
        for table, tally in self._tables.items():
            if manifest.tables.get(table) != tally.count():
                raise Damaged(f"{path}: the rows of {table} do not match its manifest.")
        is_beside = self.header.files == contents.BESIDE
        if not is_beside and (manifest.blobs, manifest.blob_bytes) != (self._blobs.count(), self._blob_bytes):
            raise Damaged(f"{path}: the document files do not match its manifest.")
        if not (manifest.lost or manifest.damaged) and self._wanted.count() != manifest.blobs:
            raise Damaged(f"{path}: documents and files do not match.")
        return manifest
