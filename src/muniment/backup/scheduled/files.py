"""The files of documents beside scheduled backups: copied once, read back, and joined with a backup for a restore."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from muniment.backup import contents
from muniment.backup.contents import Header, Part, Tally, digest_of, hashed, part
from muniment.backup.proof import header_of, manifest_of
from muniment.backup.scheduled.pace import Pace
from muniment.backup.scheduled.place import FILES, Index, Place, StoredFile
from muniment.backup.snapshot import pieces_of
from muniment.documents.storage import Storage
from muniment.kernel.ids import now
from muniment.kernel.problems import Unavailable

DOCUMENTS: Final = "documents_document"


class Beside:
    """
    Stores the files of documents beside a backup.

    Args:
        name: the backup that is being made.
    """

    def __init__(self, place: Place, index: Index, source: Storage, name: str, pace: Pace) -> None:
        self._place, self._index, self._source, self._name, self._pace = place, index, source, name, pace
        self._there = {blob.key.removeprefix(FILES): blob.size_bytes for blob in place.store.blobs(FILES.rstrip("/"))}
        self.copied = 0

    def keep(self, key: str, size_bytes: int, sha256: str) -> tuple[int, str]:
        """
        Copy a file unless it is there. Return the size and SHA-256 of its content.

        Raises:
            FileNotFoundError: the instance does not have the file, and neither has the place.
            Unavailable: the place lacks room, or returned other content than was written.
        """
        known = self._index.files.get(key)
        if known is not None and self._there.get(key) == known.size_bytes and known.sha256 == sha256:
            known.last = max(known.last, self._name)
            return known.size_bytes, known.sha256
        self._place.require_room(size_bytes)
        digest = hashlib.sha256()
        with self._source.local(key) as file:
            self._place.put(f"{FILES}{key}", self._pace.through(hashed(pieces_of(file), digest)))
            found = file.stat().st_size, digest.hexdigest()
        if digest_of(self._place.store.stream(f"{FILES}{key}")) != found[1]:
            message = f"{self._place.shown} returned other content than was written."
            raise Unavailable(message, "Check its disk or store, or use another place (MUNIMENT_BACKUPS).")
        self._index.files[key] = StoredFile(
            size_bytes=found[0], sha256=found[1], last=self._name, checked_at=now().isoformat()
        )
        self._there[key] = found[0]
        self.copied += 1
        return found

    def collect(self, oldest: str) -> int:
        """Remove the files that no backup since *oldest* needs, and return their number."""
        removed = 0
        for key in self._there.keys() - self._index.files.keys():  # the index was lost
            entry = StoredFile(size_bytes=self._there[key], sha256="", last=self._name, checked_at="")
            self._index.files[key] = entry
        for key, entry in list(self._index.files.items()):
            if entry.last < oldest:
                self._place.store.delete(f"{FILES}{key}")
                del self._index.files[key]
                removed += 1
        return removed


@dataclass(slots=True)
class Joined:
    """
    A backup and the files beside it, as one stream.

    Args:
        missing: filled while reading: documents whose file the place lacks, or has with other content.
    """

    place: Place
    missing: list[str] = field(default_factory=list)
    _tally: Tally = field(default_factory=Tally)
    _bytes: int = 0

    def parts(self, parts: Iterator[Part]) -> Iterator[Part]:
        first = next(parts, None)
        header = header_of(first)
        yield part(contents.HEADER, msgspec.json.encode(msgspec.structs.replace(header, files="")))
        if header.files != contents.BESIDE:
            yield from parts
            return
        documents: list[tuple[str, str, str]] = []
        for each in parts:
            if each.name == contents.MANIFEST:
                manifest = manifest_of(each)
                known = {*manifest.lost, *manifest.damaged}
                yield from self._files([found for found in documents if found[0] not in manifest.lost], known)
                complete = msgspec.structs.replace(
                    manifest,
                    blobs=self._tally.count(),
                    blob_bytes=self._bytes,
                    lost=[*manifest.lost, *self.missing],
                )
                yield part(contents.MANIFEST, msgspec.json.encode(complete))
            elif each.name.startswith(contents.ROWS) and contents.table_of(each.name) == DOCUMENTS:
                content = each.read()
                documents += _documents(header, content)
                yield part(each.name, content)
            else:
                yield each

    def _files(self, documents: list[tuple[str, str, str]], as_found: set[str]) -> Iterator[Part]:
        for number, key, sha256 in documents:
            try:
                with self.place.store.local(f"{FILES}{key}") as file:
                    found = digest_of(pieces_of(file))
                    if found != sha256 and number not in as_found:
                        self.missing.append(number)
                        continue
                    size_bytes = file.stat().st_size
                    yield Part(f"{contents.BLOBS}{key}", size_bytes, pieces_of(file))
            except FileNotFoundError:
                self.missing.append(number)
                continue
            self._tally.add(contents.blob_line(key, size_bytes, found))
            self._bytes += size_bytes


def _documents(header: Header, content: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield the id of each document that has a file, with the key and SHA-256 of the file."""
    columns = header.tables[DOCUMENTS]
    places = [columns.index(name) for name in ("id", "blob_key", "sha256")]
    for line in content.splitlines():
        row = msgspec.json.decode(line)
        number, key, sha256 = (row[each] for each in places)
        if key:
            yield number, key, sha256


def local_archive(place: Place, name: str, scratch: Path) -> Path:
    """Return the archive of a backup as a local file: copied into *scratch* from an S3 store."""
    if place.folder is not None:
        return place.folder / name
    file = scratch / name
    with file.open("xb") as out:
        for piece in place.store.stream(name):
            out.write(piece)
    return file
