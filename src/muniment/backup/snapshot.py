"""Back up a running instance: a consistent snapshot of it as a stream of parts, or as one file."""

import hashlib
from collections.abc import Callable, Container, Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from django.db import connections

from muniment import __version__
from muniment.backup import container, rows
from muniment.backup.container import Header, Manifest, Part, Tally, VerifiedBackup, hashed, part
from muniment.config import Config
from muniment.documents.cleanup import blobs_held
from muniment.documents.models import Document
from muniment.documents.records import storage
from muniment.documents.storage import Storage
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict
from muniment.kernel.wire import timestamp
from muniment.registry.people import suppression
from muniment.registry.publishing import publisher
from muniment.store.database.form import UNRELEASED, WAY_OUT, is_unreleased
from muniment.store.database.snapshots import snapshot

_TOMBSTONES: Final = "registry_feedtombstone"
Tell = Callable[[str], object]
"""Gets the progress of a long operation."""


def back_up(config: Config, path: Path, *, tell: Tell = lambda _: None) -> VerifiedBackup:
    """
    Write the instance into one file while it stays in use.

    The file contains everything except the settings, including the secret key and the digests of passwords and tokens.
    The suppression list of erased people is also written beside it, now and after each later erasure.

    Raises:
        Conflict: *path* exists, or there is no instance.
        Damaged: the written file cannot be read back; it is removed.
        OSError: no space, no such folder. Nothing is left behind.
    """
    if not config.on_postgresql and not config.database_file.exists():
        raise no_instance()
    verified: list[VerifiedBackup] = []

    def verify_draft(draft: Path) -> None:
        tell("proving")
        verified.append(container.verify(draft))

    if rows.applied("default"):
        suppression.write_beside(path.parent)
        suppression.remember_folder(config.data, path.parent)
    with closing(RunningInstance(config, "default", storage()).parts()) as parts:
        container.write(path, _reporting(parts, tell), verify=verify_draft)
    return verified[0]


def _reporting(parts: Iterator[Part], tell: Tell) -> Iterator[Part]:
    for each in parts:
        tell(each.name)
        yield each


@dataclass(slots=True)
class RunningInstance:
    """
    A running instance.

    Args:
        using: the Django alias of its database.
        storage: the store of its blobs; None leaves them out because both sides share the store.
        check: called before the first and before the last part; an exception ends the stream.
        beside: stores a blob next to the backup instead of in it; given its key, size and SHA-256 by its row, it
            returns those of its content, or raises FileNotFoundError.
    """

    config: Config
    using: str
    storage: Storage | None
    check: Callable[[], object] = lambda: None
    beside: Callable[[str, int, str], tuple[int, str]] | None = None
    _lost: list[str] = field(default_factory=list)
    _damaged: list[str] = field(default_factory=list)
    _blobs: Tally = field(default_factory=Tally)
    _blob_bytes: int = 0

    def parts(self) -> Generator[Part]:
        """
        Yield everything except the settings.

        Raises:
            Conflict: the database is of a newer version, or empty.
            Unavailable: it took so long that blobs may have been deleted.
            OSError: the document store cannot be read.
        """
        self.check()
        migrations = self._migrations()
        with ExitStack() as stack:
            if self.storage is not None and self.using == "default":
                stack.enter_context(blobs_held())
            made_at = timestamp(now())  # before the snapshot, which thus has all that was acknowledged until then
            stack.enter_context(snapshot(self.using))
            yield from self._snapshot(migrations, made_at)

    def _migrations(self) -> frozenset[tuple[str, str]]:
        """Return the migrations of the database, if this version can back it up."""
        migrations = rows.applied(self.using)
        if not migrations:
            raise no_instance()
        if is_unreleased(migrations):
            raise Conflict(f"The database {UNRELEASED}.", WAY_OUT)
        newer = rows.unknown(migrations)
        if newer:
            raise Conflict(
                f"The database belongs to a newer version of Muniment; unknown migrations: {', '.join(newer[:5])}.",
                "Use that version.",
            )
        return migrations

    def _snapshot(self, migrations: frozenset[tuple[str, str]], made_at: str) -> Iterator[Part]:
        tables = rows.tables(migrations)
        keys = self._keys()
        yield part(container.HEADER, msgspec.json.encode(self._header(migrations, tables, keys, made_at)))
        for name, content in keys.items():
            yield part(f"{container.KEYS}{name}", content)
        tallies = {name: Tally() for name in tables}
        for table in tables.values():
            chunks = rows.chunks(self._lines(table, tables), tallies[table.name])
            for number, chunk in enumerate(chunks, 1):
                yield part(f"{container.ROWS}{table.name}/{number:06}.jsonl", chunk)
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
        yield part(container.MANIFEST, msgspec.json.encode(manifest))

    def _keys(self) -> dict[str, bytes]:
        files = [file for file in (self.config.data / "keys").glob("*") if file.is_file()]
        return {file.name: file.read_bytes() for file in sorted(files)}

    def _header(
        self,
        migrations: frozenset[tuple[str, str]],
        tables: dict[str, rows.Table],
        keys: dict[str, bytes],
        made_at: str,
    ) -> Header:
        edition, _, edition_at = publisher.head(self.using)
        return Header(
            format=container.FORMAT,
            made_at=made_at,
            version=__version__,
            database=connections[self.using].vendor,
            currency=self.config.currency,
            migrations=sorted(migrations),
            tables={table.name: list(table.types) for table in tables.values()},
            next_ids=rows.next_ids(self.using, tables),
            edition=edition,
            edition_at=edition_at,
            key_check=container.key_check(self.config.secret_key or keys.get("django.key", b"").decode()),
            files=container.BESIDE if self.beside else "",
        )

    def _lines(self, table: rows.Table, every: Container[str]) -> Iterator[bytes]:
        """Yield a table's rows; the change feed without the slugs of erased people, since followers start over."""
        lines = rows.read(self.using, table)
        if table.name not in {rows.CHANGES, rows.CHAIN} or _TOMBSTONES not in every:
            return lines
        with connections[self.using].cursor() as cursor:
            cursor.execute(f"SELECT sequence, replacement FROM {_TOMBSTONES}")
            replaced = dict(cursor.fetchall())
        if not replaced:
            return lines
        return _redacted(lines, replaced) if table.name == rows.CHANGES else _unsalted(lines, replaced)

    def _documents(self) -> Iterator[Part]:
        if self.storage is None:
            return
        kept = Document.objects.using(self.using).exclude(blob_key="").order_by("id")
        recorded = kept.values_list("id", "blob_key", "size_bytes", "sha256")
        for number, key, size_bytes, sha256 in recorded.iterator(rows.BATCH):
            with ExitStack() as stack:
                try:
                    if self.beside is not None:
                        there, found = self.beside(key, size_bytes, sha256)
                    else:
                        # A temporary file: reading a store inside another store's write is not possible.
                        file = stack.enter_context(self.storage.local(key))
                        there, digest = file.stat().st_size, hashlib.sha256()
                        yield Part(f"{container.BLOBS}{key}", there, hashed(pieces_of(file), digest))
                        found = digest.hexdigest()
                except FileNotFoundError:
                    self._lost.append(number)
                    continue
            self._blobs.add(container.blob_line(key, there, found))
            self._blob_bytes += there
            if (there, found) != (size_bytes, sha256):
                self._damaged.append(number)


def _redacted(lines: Iterator[bytes], replaced: dict[int, str]) -> Iterator[bytes]:
    for line in lines:
        sequence, kind, key, *rest = msgspec.json.decode(line)
        yield msgspec.json.encode([sequence, kind, replaced.get(sequence, key), *rest])


def _unsalted(lines: Iterator[bytes], replaced: Container[int]) -> Iterator[bytes]:
    for line in lines:
        sequence, chain, leaf, salt, digest = msgspec.json.decode(line)
        kept = [None, None] if sequence in replaced else [salt, digest]
        yield msgspec.json.encode([sequence, chain, leaf, *kept])


def no_instance() -> Conflict:
    hint = "Check MUNIMENT_DATA and MUNIMENT_DATABASE_URL; muniment doctor shows them."
    return Conflict("There is no instance here.", hint)


def pieces_of(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while piece := content.read(container.PIECE_BYTES):
            yield piece


def published_tally(using: str) -> Tally:
    tally = Tally()
    for kind, key, etag in publisher.etags(using):
        tally.add(f"{kind}\0{key}\0{etag}".encode())
    return tally
