"""A living instance as a stream of parts, as it stood at one moment."""

import hashlib
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from django.db import connections

from muniment import __version__
from muniment.backup import rows
from muniment.backup.contents import (
    BLOBS,
    FORMAT,
    HEADER,
    KEYS,
    MANIFEST,
    ROWS,
    Header,
    Manifest,
    Part,
    Tally,
    blob_line,
    hashed,
    key_check,
    part,
)
from muniment.config import Config
from muniment.documents.care import blobs_held
from muniment.documents.storage import Storage
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, Unavailable
from muniment.kernel.wire import timestamp
from muniment.registry import publishing
from muniment.store.snapshots import snapshot

HOLDS: Final = ("documents", "0002_blob_hold")
"""From this migration on, an instance can be asked to leave its blobs alone for a while."""


@dataclass(slots=True)
class Living:
    """
    An instance.

    Args:
        using: the name of its database among Django's.
        storage: where its blobs are; None leaves them out, because the other side has the same store.
    """

    config: Config
    using: str
    storage: Storage | None
    _lost: list[str] = field(default_factory=list)
    _damaged: list[str] = field(default_factory=list)
    _blobs: Tally = field(default_factory=Tally)
    _blob_bytes: int = 0

    def parts(self) -> Generator[Part]:
        """
        Give everything that makes the instance up but its settings.

        Raises:
            Conflict: the database is of a newer version, or empty.
            Unavailable: the store of documents gave less of a blob than it has.
        """
        with ExitStack() as stack:
            migrations = rows.applied(self.using)
            if not migrations:
                raise Conflict(
                    "There is no instance here.",
                    "Check MUNIMENT_DATA and MUNIMENT_DATABASE_URL; muniment doctor shows them.",
                )
            if newer := rows.unknown(migrations):
                raise Conflict(
                    f"The database is of a newer version of Muniment: it has {', '.join(newer[:5])}.",
                    "Use the version that serves it.",
                )
            if self.storage is not None and self.using == "default" and HOLDS in migrations:
                stack.enter_context(blobs_held())
            stack.enter_context(snapshot(self.using))
            yield from self._snapshot(migrations)

    def _snapshot(self, migrations: set[tuple[str, str]]) -> Iterator[Part]:
        found = rows.tables(migrations)
        edition, _, at = publishing.head(self.using)
        keys = {file.name: file.read_bytes() for file in _files(self.config.data / "keys")}
        header = Header(
            format=FORMAT,
            made_at=timestamp(now()),
            version=__version__,
            database=connections[self.using].vendor,
            currency=self.config.currency,
            migrations=sorted(migrations),
            tables={table.name: list(table.types) for table in found.values()},
            next_ids=rows.next_ids(self.using, found),
            edition=edition,
            edition_at=at,
            key_check=key_check(self.config.secret_key or keys.get("django.key", b"").decode()),
        )
        yield part(HEADER, msgspec.json.encode(header))
        for name, content in keys.items():
            yield part(f"{KEYS}{name}", content)
        tallies = {name: Tally() for name in found}
        for table in found.values():
            for number, chunk in enumerate(rows.chunks(rows.read(self.using, table), tallies[table.name]), 1):
                yield part(f"{ROWS}{table.name}/{number:06}.jsonl", chunk)
        published = published_tally(self.using)
        yield from self._documents()
        manifest = Manifest(
            tables={name: tally.count() for name, tally in tallies.items()},
            published=published.count(),
            blobs=self._blobs.count(),
            blob_bytes=self._blob_bytes,
            lost=self._lost,
            damaged=self._damaged,
        )
        yield part(MANIFEST, msgspec.json.encode(manifest))

    def _documents(self) -> Iterator[Part]:
        if self.storage is None:
            return
        for number, key, size_bytes, sha256 in blobs(self.using):
            there = self.storage.size_bytes(key)
            if there is None:
                self._lost.append(number)
                continue
            digest = hashlib.sha256()
            yield Part(f"{BLOBS}{key}", there, hashed(_exactly(self.storage, key, there), digest))
            self._blobs.add(blob_line(key, there, digest.hexdigest()))
            self._blob_bytes += there
            if (there, digest.hexdigest()) != (size_bytes, sha256):
                self._damaged.append(number)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*") if file.is_file())


def _exactly(storage: Storage, key: str, size_bytes: int) -> Iterator[bytes]:
    given = 0
    for piece in storage.stream(key):
        given += len(piece)
        yield piece
    if given != size_bytes:
        raise Unavailable(f"The store gave {given:,} bytes of {key}, which has {size_bytes:,}.", "Try again.")


def blobs(using: str) -> Iterator[tuple[str, str, int, str]]:
    """Give id, key, size and SHA-256 of each document that has a blob, a batch at a time."""
    after = ""
    while True:
        with connections[using].cursor() as cursor:
            cursor.execute(
                "SELECT id, blob_key, size_bytes, sha256 FROM documents_document"
                f" WHERE blob_key <> '' AND id > %s ORDER BY id LIMIT {rows.BATCH}",
                [after],
            )
            found: list[Any] = cursor.fetchall()
        yield from found
        if len(found) < rows.BATCH:
            return
        after = found[-1][0]


def published_tally(using: str) -> Tally:
    """Count and digest the public answers as they stand."""
    tally = Tally()
    for kind, key, etag in publishing.etags(using):
        tally.add(f"{kind}\0{key}\0{etag}".encode())
    return tally
