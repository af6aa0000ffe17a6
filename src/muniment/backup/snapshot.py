"""A living instance as a stream of parts, as it stood at one moment."""

import hashlib
from collections.abc import Callable, Generator, Iterator
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
from muniment.documents.cleanup import blobs_held
from muniment.documents.storage import Storage
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict
from muniment.kernel.wire import timestamp
from muniment.registry.publishing import publisher
from muniment.store.database.snapshots import snapshot

PIECE_BYTES: Final = 1 << 20
HOLDS: Final = ("documents", "0002_blob_hold")
"""From this migration on, an instance can be asked to leave its blobs alone for a while."""


@dataclass(slots=True)
class Living:
    """
    An instance.

    Args:
        using: the name of its database among Django's.
        storage: where its blobs are; None leaves them out, because the other side has the same store.
        check: called before the first part and before the last one; what it raises ends the stream.
    """

    config: Config
    using: str
    storage: Storage | None
    check: Callable[[], object] = lambda: None
    _lost: list[str] = field(default_factory=list)
    _damaged: list[str] = field(default_factory=list)
    _blobs: Tally = field(default_factory=Tally)
    _blob_bytes: int = 0

    def parts(self) -> Generator[Part]:
        """
        Give everything that makes the instance up but its settings.

        Raises:
            Conflict: the database is of a newer version, or empty.
            Unavailable: it took so long that blobs may have gone.
        OSError: the store of documents cannot be read.
        """
        with ExitStack() as stack:
            self.check()
            migrations = rows.applied(self.using)
            if not migrations:
                raise no_instance()
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
        edition, _, at = publisher.head(self.using)
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
        self.check()
        yield part(MANIFEST, msgspec.json.encode(manifest))

    def _documents(self) -> Iterator[Part]:
        if self.storage is None:
            return
        for number, key, size_bytes, sha256 in blobs(self.using):
            with ExitStack() as stack:
                try:
                    # A file of this machine: a store cannot be read from within another one's writing.
                    file = stack.enter_context(self.storage.local(key))
                except FileNotFoundError:
                    self._lost.append(number)
                    continue
                there, digest = file.stat().st_size, hashlib.sha256()
                yield Part(f"{BLOBS}{key}", there, hashed(_pieces(file), digest))
            self._blobs.add(blob_line(key, there, digest.hexdigest()))
            self._blob_bytes += there
            if (there, digest.hexdigest()) != (size_bytes, sha256):
                self._damaged.append(number)


def no_instance() -> Conflict:
    """Give the refusal of those who look for an instance where there is none."""
    return Conflict(
        "There is no instance here.", "Check MUNIMENT_DATA and MUNIMENT_DATABASE_URL; muniment doctor shows them."
    )


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*") if file.is_file())


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while piece := content.read(PIECE_BYTES):
            yield piece


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


def blob_of(using: str, key: str) -> tuple[int, str] | None:
    """Give size and SHA-256 of what a document says that stands under *key*; None when none names it."""
    number = key.split("/")[1] if key.count("/") == 2 else ""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT size_bytes, sha256 FROM documents_document WHERE id = %s AND blob_key = %s", [number, key]
        )
        found: tuple[int, str] | None = cursor.fetchone()
    return found


def published_tally(using: str) -> Tally:
    """Count and digest the public answers as they stand."""
    tally = Tally()
    for kind, key, etag in publisher.etags(using):
        tally.add(f"{kind}\0{key}\0{etag}".encode())
    return tally
