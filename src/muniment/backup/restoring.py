"""
Restore a backup: verify it, and load its parts into an empty instance, all or nothing.

One transaction writes everything, including the schema and the published documents, and counts it again before the
commit. Blobs and keys are written before it: an empty instance that has some still counts as empty.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import obstore
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from muniment import __version__
from muniment.accounts.keys import key_file
from muniment.accounts.keys.key_file import candidates, fingerprint
from muniment.accounts.models import SecretKey
from muniment.backup import container, rows
from muniment.backup.container import Damaged, Header, Manifest, Part, Tally, hashed, header_of, manifest_of, verify
from muniment.backup.snapshot import Tell, published_tally
from muniment.config import Config
from muniment.documents.models import Document
from muniment.documents.records import storage
from muniment.documents.storage import Storage
from muniment.durable_files import replacing, sync
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry.names.former import remove_suppressed
from muniment.registry.people import suppression
from muniment.registry.people.erasing import erase_suppressed
from muniment.registry.publishing import publisher
from muniment.registry.publishing.redaction import compact_database
from muniment.store.database.creation import create
from muniment.store.database.migrations import migration_lock, pending
from muniment.store.sqlite import lost
from muniment.store.sqlite.bulk_writes import bulk_write_settings

HERE: Final = "default"


@dataclass(slots=True)
class Loaded:
    """The result of loading."""

    header: Header
    rows: int = 0
    blobs: int = 0
    erased: int = 0
    notes: list[str] = field(default_factory=list)


class Mismatch(Exception):  # noqa: N818 - its message names the difference
    """The written data differs from the data read."""


def restore(config: Config, path: Path, *, tell: Tell = lambda _: None) -> Loaded:
    """
    Restore the backup at *path* into an empty instance.

    People on the suppression list beside the backup or in the data folder are erased again.

    Raises:
        Damaged: a byte of the backup differs (:func:`muniment.backup.container.verify`), and nothing was created.
        Conflict: the instance is not empty.
        Exception: the errors of :func:`load`, which writes all or nothing.
    """
    with empty_instance(config):
        tell("proving")
        verify(path)
        config.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        with closing(container.read(path)) as parts:
            return load(parts, config, storage(), suppressed=(path.parent, config.data), tell=tell)


@contextmanager
def empty_instance(config: Config) -> Iterator[None]:
    """Reserve the database file of an instance for a restore; raise Conflict unless the instance is unused."""
    if config.on_postgresql:
        require_empty()
        yield
        return
    with lost.restoring(config.database_file):
        if config.database_file.exists():  # connecting would create the file
            require_empty()
        yield


def require_empty() -> None:
    """Raise Conflict unless the instance is unused."""
    filled = rows.filled(HERE)
    if filled:
        named = ", ".join(filled[:6])
        if len(filled) > 6:
            named += ", …"
        raise Conflict(
            f"The instance is not empty: there are rows in {named}.",
            "Point MUNIMENT_DATA at another folder, or MUNIMENT_DATABASE_URL at another database."
            " If a move or restore filled it, it is complete and ready to serve.",
        )


def load(
    parts: Iterator[Part],
    config: Config,
    storage: Storage | None,
    *,
    suppressed: Sequence[Path] = (),
    tell: Tell = lambda _: None,
) -> Loaded:
    """
    Load an instance into the empty one of *config*.

    Args:
        storage: the store for its blobs; None if the parts contain none because the store is shared.
        suppressed: folders whose suppression lists name people who were erased after the parts were made.
        tell: called with the name of each part before it is written.

    Raises:
        Conflict: the instance is not empty, or the parts come from a newer version or use another currency.
        Damaged: the parts do not match their manifest.
        Mismatch: the database or the store returned different data than was written.
    """
    first = next(parts, None)
    header = header_of(first)
    _check(header, config)
    loading = _Loading(header, config, storage, suppressed, tell)
    # SQLite cannot change a schema while it checks references; all of them are checked before the commit.
    connection.disable_constraint_checking()
    try:
        # A starting server waits. Rows arrive by table, so that pages of every index are written again and again.
        with migration_lock(), bulk_write_settings(connection), transaction.atomic():
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
    if loading.loaded.erased:
        compact_database()
    suppression.write_beside(config.data)
    return loading.loaded


def _check(header: Header, config: Config) -> None:
    newer = rows.unknown(header.migrations)
    if newer:
        raise Conflict(
            f"The data comes from a newer version, Muniment {header.version}; missing here: {', '.join(newer[:5])}.",
            "Use that version or a later one.",
        )
    if header.currency != config.currency:
        raise Conflict(
            f"Its amounts are in {header.currency}, but MUNIMENT_CURRENCY is {config.currency} here.",
            f"Set MUNIMENT_CURRENCY={header.currency}.",
        )


class _Loading:
    """One run of :func:`load`."""

    def __init__(
        self, header: Header, config: Config, storage: Storage | None, suppressed: Sequence[Path], tell: Tell
    ) -> None:
        self.loaded = Loaded(header)
        self._suppressed = suppressed
        self._config = config
        self._storage = storage
        self._tell = tell
        self._tables: dict[str, rows.Table] = {}
        self._keys: dict[str, bytes] = {}
        self._blobs = Tally()
        self._written: list[str] = []
        self._manifest: Manifest | None = None

    def prepare(self) -> None:
        require_empty()
        wanted = frozenset(self.loaded.header.migrations)
        if rows.applied(HERE) != wanted:
            self._tell("database schema")
            _drop_everything()
            if not create(only=wanted, fills=False):
                _migrate_to(wanted)
            if connection.vendor == "postgresql":  # Django makes foreign keys that it adds to a table immediate
                connection.cursor().execute("SET CONSTRAINTS ALL DEFERRED")
            publisher.create_tables()
        self._tables = rows.tables(wanted)
        for name, columns in self.loaded.header.tables.items():
            if name not in self._tables or not set(columns) <= set(self._tables[name].types):
                message = f"This version does not support this form of the table {name}."
                raise BadRequest(message, "Use another version.")
        publisher.clear(edition=self.loaded.header.edition)
        for table in self._tables.values():
            rows.delete_all(HERE, table)

    def take(self, part: Part) -> None:
        if part.name == container.MANIFEST:
            self._manifest = manifest_of(part)
        elif part.name.startswith(container.KEYS):
            self._keys[Path(part.name).name] = part.read()
        elif part.name.startswith(container.ROWS):
            table = container.table_of(part.name)
            lines = part.read().splitlines()
            rows.insert(HERE, self._tables[table], self.loaded.header.tables[table], lines)
            self.loaded.rows += len(lines)
        elif part.name.startswith(container.BLOBS):
            self._blob(part)

    def _blob(self, part: Part) -> None:
        assert self._storage is not None  # noqa: S101 - without a store there are no blobs
        key = part.name.removeprefix(container.BLOBS)
        number = key.split("/")[1] if key.count("/") == 2 else ""
        expected = Document.objects.filter(pk=number, blob_key=key).values_list("size_bytes", "sha256").first()
        if expected is None:
            raise Damaged(f"The backup contains the file {key}, which belongs to no document.")
        self.loaded.blobs += 1
        digest = hashlib.sha256()
        pieces = hashed(part.pieces, digest)
        size_bytes, sha256 = expected
        is_there = self._storage.size_bytes(key) == size_bytes
        if is_there and container.digest_of(self._storage.stream(key)) == sha256:  # from an earlier run
            for _ in pieces:
                pass
        else:
            self._written.append(key)
            self._storage.remove_unfinished(key)  # from a killed run
            self._storage.write(key, pieces)
            if container.digest_of(self._storage.stream(key)) != digest.hexdigest():
                raise Mismatch(f"the document store returned different content for {key}")
        self._blobs.add(container.blob_line(key, part.size_bytes, digest.hexdigest()))

    def finish(self) -> None:
        """Count everything again, migrate to this version's schema, publish, and put the keys in place."""
        manifest = self._manifest
        if manifest is None:
            raise Damaged("The backup has no manifest.")
        self._tell("counting")
        for name in self.loaded.header.tables:
            restored, backed_up = rows.count(HERE, self._tables[name]).count(), manifest.tables[name]
            if restored != backed_up:
                raise Mismatch(f"{name} has {restored.n:,} rows instead of {backed_up.n:,}, or their content differs")
        if self._storage is not None and self._blobs.count() != manifest.blobs:
            raise Mismatch("the document files do not match the manifest")
        rows.set_next_ids(HERE, self._tables, self.loaded.header.next_ids)
        connection.check_constraints()
        if pending():
            self._tell("migrations")
            _migrate()
        self._erase_again()
        self._tell("publishing")
        publisher.publish_all(at=self.loaded.header.edition_at)
        is_same = not self.loaded.erased and published_tally(HERE).count() == manifest.published
        publisher.continue_log(is_same=is_same)
        self._note(manifest, is_same=is_same)
        self._keep_keys()

    def _erase_again(self) -> None:
        """Erase the people who were erased, and the former names that were removed, after the backup was made."""
        keys = suppression.keys_in_use(candidates(self._secret_text()))
        suppression.add_from(*self._suppressed)
        self.loaded.erased = erase_suppressed(keys)
        if self.loaded.erased:
            self.loaded.notes.append(f"{self.loaded.erased:,} people who were erased since then were erased again.")
        names = remove_suppressed(keys)
        if names:
            self.loaded.erased += names
            self.loaded.notes.append(f"{names:,} former names that were removed since then were removed again.")
        self.loaded.notes += [f"{message}." for message in suppression.warnings(keys)]

    def _note(self, manifest: Manifest, *, is_same: bool) -> None:
        notes, header = self.loaded.notes, self.loaded.header
        if not (self.loaded.erased or is_same):
            notes.append(
                f"Published documents differ from those of Muniment {header.version};"
                f" version {__version__} has rendered them again."
            )
        for documents, what in ((manifest.lost, "missing"), (manifest.damaged, "damaged")):
            if documents:
                notes.append(f"Files of {len(documents):,} documents were already {what}: {', '.join(documents[:5])}.")

    def _keep_keys(self) -> None:
        folder = self._config.data / "keys"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in self._keys.items():
            with replacing(folder / name) as out:
                out.write(content)
        sync(folder.parent)
        self._note_keys()

    def _secret_text(self) -> str:
        """Return the secret keys with which the instance will start."""
        if self._config.secret_key:
            return self._config.secret_key
        if key_file.NAME in self._keys:
            return self._keys[key_file.NAME].decode()
        file = key_file.path_of(self._config)
        return file.read_text() if file.exists() else ""

    def _note_keys(self) -> None:
        text = self._secret_text()
        own = {fingerprint(key) for key in candidates(text)}
        lacking = SecretKey.objects.exclude(fingerprint__in=own).order_by("state").first()
        if lacking is not None and lacking.state == SecretKey.State.CURRENT:
            self.loaded.notes.append(
                f"The secret key with the fingerprint {lacking.fingerprint} is missing here, and servers will not start"
                f" without it: set it in MUNIMENT_SECRET_KEY, or as keys/{key_file.NAME} in the data folder. If it is"
                " lost, run muniment keys adopt --replace: everybody then signs in again, and second factors must be"
                " set up again."
            )
        elif lacking is not None:
            self.loaded.notes.append(
                f"The former secret key {lacking.fingerprint} is missing here; what is still sealed under it does not"
                " open. See muniment keys."
            )
        elif not SecretKey.objects.exists() and self.loaded.header.key_check not in {"", container.key_check(text)}:
            self.loaded.notes.append(
                "The other instance used a different secret key, set in MUNIMENT_SECRET_KEY there or here."
                " Set the same key here to keep people signed in and apps connected."
            )

    def undo(self) -> None:
        for key in self._written:
            try:
                assert self._storage is not None  # noqa: S101 - it wrote them
                self._storage.delete(key)
            except (OSError, obstore.exceptions.BaseError):
                return  # an unavailable store keeps them for the next run


def _drop_everything() -> None:
    """Drop the tables of an unused instance: their schema is of another version."""
    present: Any = connection.introspection.table_names()
    known = rows.tables(rows.applied(HERE) & set(rows.loader().disk_migrations or ()))
    how = "CASCADE" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        for name in sorted({*known, *rows.LEFT_OUT, *rows.CACHES, "django_migrations"} & set(present)):
            cursor.execute(f"DROP TABLE {connection.ops.quote_name(name)} {how}")


def _migrate_to(wanted: frozenset[tuple[str, str]]) -> None:
    """Apply the migrations of an earlier version."""
    executor = MigrationExecutor(connection)
    nodes = executor.loader.graph.node_map
    last_migrations = []
    for key in sorted(wanted):
        children = {child.key for child in nodes[key].children}
        if children.isdisjoint(wanted):
            last_migrations.append(key)
    executor.migrate(last_migrations)


def _migrate() -> None:
    """
    Migrate within the one transaction of a restore.

    PostgreSQL alters no table with changed rows whose references are still unchecked, so it checks each statement.
    """
    on_postgresql = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        if on_postgresql:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
        if on_postgresql:
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
