"""
Parts become an instance: an empty one only, all or nothing.

Everything is written in one transaction, the database's form and what is published included, and is counted
again before the commit. Blobs and keys come before it: an empty instance that holds some is empty still.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import obstore
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from muniment import __version__
from muniment.backup import rows
from muniment.backup.contents import (
    BLOBS,
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
    table_of,
)
from muniment.backup.proof import header_of, manifest_of
from muniment.backup.snapshot import blob_of, published_tally
from muniment.config import Config
from muniment.documents.storage import Storage
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry.publishing import publisher
from muniment.store.database.migrations import alone, pending

HERE: Final = "default"


@dataclass(slots=True)
class Loaded:
    """
    What came.

    Args:
        blobs_there: how many of the blobs stood in the store already.
        notes: what the operator should know.
    """

    header: Header
    rows: int = 0
    blobs: int = 0
    blobs_there: int = 0
    notes: list[str] = field(default_factory=list)


class Differs(Exception):  # noqa: N818 - told with what differs
    """What was written is not what was read."""


def load(
    parts: Iterator[Part], config: Config, storage: Storage | None, *, tell: Callable[[str], object] = lambda _: None
) -> Loaded:
    """
    Write an instance into the empty one that *config* names.

    Args:
        storage: where its blobs go; None when the parts bring none, because they stand where they belong.
        tell: called with the name of each part before it is written.

    Raises:
        Conflict: the instance is not empty; or the parts are of a newer version or another currency.
        Damaged: the parts are not what their manifest counts.
        Differs: the database or the store gave back something else than it was given.
    """
    first = next(parts, None)
    header = header_of(first)
    _check(header, config)
    loading = _Loading(header, config, storage, tell)
    # SQLite cannot change its form while it checks references; all of them are checked before the commit.
    connection.disable_constraint_checking()
    try:
        with alone(), transaction.atomic():  # a server that starts meanwhile waits
            loading.prepare()
            for part in parts:
                tell(part.name)
                loading.take(part)
            loading.finish()
    except BaseException:
        loading.undo()
        raise
    finally:
        connection.enable_constraint_checking()
    return loading.loaded


def _check(header: Header, config: Config) -> None:
    if newer := rows.unknown(header.migrations):
        raise Conflict(
            f"This was made by Muniment {header.version}, which is newer: this version lacks {', '.join(newer[:5])}.",
            "Use that version or a later one.",
        )
    if header.currency != config.currency:
        raise Conflict(
            f"Its amounts are in {header.currency}, and MUNIMENT_CURRENCY is {config.currency} here.",
            f"Set MUNIMENT_CURRENCY={header.currency}.",
        )


def refuse_unless_empty() -> None:
    """
    Look whether anybody has used the instance.

    Raises:
        Conflict: somebody has.
    """
    found = rows.filled(HERE)
    if found:
        raise Conflict(
            f"The instance is not empty: there are rows in {', '.join(found[:6])}{', …' if len(found) > 6 else ''}.",
            "Point MUNIMENT_DATA at another folder, or MUNIMENT_DATABASE_URL at another database."
            " If a move or a restore has filled it, it is complete: serve it.",
        )


class _Loading:
    """One run of :func:`load`."""

    def __init__(self, header: Header, config: Config, storage: Storage | None, tell: Callable[[str], object]) -> None:
        self.loaded = Loaded(header)
        self._config = config
        self._storage = storage
        self._tell = tell
        self._tables: dict[str, rows.Table] = {}
        self._keys: dict[str, bytes] = {}
        self._blobs = Tally()
        self._written: list[str] = []
        self._manifest: Manifest | None = None

    def prepare(self) -> None:
        """Bring the empty database to the form that the parts have."""
        refuse_unless_empty()
        wanted = set(self.loaded.header.migrations)
        if rows.applied(HERE) != wanted:
            self._tell("the database's form")
            _drop_everything()
            executor = MigrationExecutor(connection)
            nodes = executor.loader.graph.node_map
            executor.migrate(
                [key for key in sorted(wanted) if not wanted & {child.key for child in nodes[key].children}]
            )
            publisher.create_tables()
        self._tables = rows.tables(wanted)
        for name, columns in self.loaded.header.tables.items():
            if name not in self._tables or not set(columns) <= set(self._tables[name].types):
                raise BadRequest(f"This version does not know the table {name} in this form.", "Use another version.")
        publisher.clear(edition=self.loaded.header.edition)
        for table in self._tables.values():
            rows.delete_all(HERE, table)

    def take(self, part: Part) -> None:
        """Write one part."""
        if part.name == MANIFEST:
            self._manifest = manifest_of(part)
        elif part.name.startswith(KEYS):
            self._keys[Path(part.name).name] = part.read()
        elif part.name.startswith(ROWS):
            table = table_of(part.name)
            lines = part.read().splitlines()
            rows.insert(HERE, self._tables[table], self.loaded.header.tables[table], lines)
            self.loaded.rows += len(lines)
        elif part.name.startswith(BLOBS):
            self._blob(part)

    def _blob(self, part: Part) -> None:
        assert self._storage is not None  # noqa: S101 - who has no store asks for no blobs
        key = part.name.removeprefix(BLOBS)
        expected = blob_of(HERE, key)
        if expected is None:
            raise BadRequest(f"The backup holds the file {key}, which no document names.", "Use another backup.")
        self.loaded.blobs += 1
        digest = hashlib.sha256()
        pieces = hashed(part.pieces, digest)
        # From a run before, or from all time.
        if self._storage.size_bytes(key) == expected[0] and _digest(self._storage, key) == expected[1]:
            for _ in pieces:
                pass
            self.loaded.blobs_there += 1
        else:
            self._written.append(key)
            self._storage.remove_unfinished(key)  # of a run that was killed
            self._storage.write(key, pieces)
            if _digest(self._storage, key) != digest.hexdigest():
                raise Differs(f"the store of documents gave back other bytes of {key}")
        self._blobs.add(blob_line(key, part.size_bytes, digest.hexdigest()))

    def finish(self) -> None:
        """Count everything again, bring it to this version's form, publish, and put the keys in place."""
        manifest = self._manifest
        if manifest is None:
            raise BadRequest("The backup has no manifest.", "Use another backup.")
        self._tell("counting")
        for name in self.loaded.header.tables:
            found, wanted = rows.count(HERE, self._tables[name]).count(), manifest.tables[name]
            if found != wanted:
                raise Differs(f"{name} has {found.n:,} rows where {wanted.n:,} were read, or they differ")
        if self._storage is not None and self._blobs.count() != manifest.blobs:
            raise Differs("the documents' files are not those that the manifest counts")
        rows.set_next_ids(HERE, self._tables, self.loaded.header.next_ids)
        connection.check_constraints()
        if pending():
            self._tell("this version's form")
            call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
        self._tell("publishing")
        publisher.publish_all(at=self.loaded.header.edition_at)
        self._note(manifest)
        self._keep_keys()

    def _note(self, manifest: Manifest) -> None:
        notes, header = self.loaded.notes, self.loaded.header
        if published_tally(HERE).count() != manifest.published:
            notes.append(
                f"Public answers differ from those that Muniment {header.version} had published;"
                f" they were made anew from the rows by {__version__}."
            )
        for documents, what in ((manifest.lost, "had lost their file"), (manifest.damaged, "had a damaged file")):
            if documents:
                notes.append(f"{len(documents):,} documents {what} before: {', '.join(documents[:5])}.")

    def _keep_keys(self) -> None:
        folder = self._config.data / "keys"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in self._keys.items():
            draft = folder / f".{name}.{os.getpid()}"
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            draft.replace(folder / name)
        file = folder / "django.key"
        secret = self._config.secret_key or (file.read_text() if file.exists() else "")
        if self.loaded.header.key_check not in {"", key_check(secret)}:
            self.loaded.notes.append(
                "It signed with another secret key, which came from MUNIMENT_SECRET_KEY there or is set here: with"
                " that one set here too, people stay signed in and apps keep their access."
            )

    def undo(self) -> None:
        """Take back the blobs that were written: the rows that name them never came."""
        for key in self._written:
            try:
                assert self._storage is not None  # noqa: S101 - it has written them
                self._storage.delete(key)
            except (OSError, obstore.exceptions.BaseError):
                return  # a store that is away keeps them, and the next run finds them


def _digest(storage: Storage, key: str) -> str:
    digest = hashlib.sha256()
    for piece in storage.stream(key):
        digest.update(piece)
    return digest.hexdigest()


def _drop_everything() -> None:
    """Remove the tables of an instance that nobody has used: they have another version's form."""
    present: Any = connection.introspection.table_names()
    ours = {*rows.tables(rows.applied(HERE) & set(rows.loader().disk_migrations or ())), *rows.LEFT_OUT}
    names = [name for name in present if name in {*ours, "accounts_cache", "django_migrations"}]
    how = "CASCADE" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"DROP TABLE {connection.ops.quote_name(name)} {how}")
