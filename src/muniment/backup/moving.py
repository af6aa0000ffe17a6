"""
Move an instance to another database or store.

The old instance must not be in use meanwhile, or later writes would be lost. SQLite's exclusive mode ensures this; on
PostgreSQL, other connections of the same user are checked at the start and at the end.
"""

from contextlib import closing
from typing import Final

from django.db import OperationalError, connections

from muniment.backup.restoring import Loaded, load, require_empty
from muniment.backup.snapshot import RunningInstance, Tell, no_instance
from muniment.config import Config
from muniment.documents.records import storage
from muniment.documents.storage import StorageUnavailable, storage_at
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry.people import suppression
from muniment.settings import database

SOURCE: Final = "source"


def move(source: Config, target: Config, *, tell: Tell = lambda _: None) -> Loaded:
    """
    Copy the instance of *source* into the empty one of *target*, whose settings this process uses.

    The old instance stays unchanged. After a crash, the same call starts again; blobs that have arrived are not sent
    twice.

    Raises:
        Conflict: the old instance is in use, or the new one is not empty. Nothing is written.
        BadRequest: the new document store does not work, also if there are no documents yet. Nothing is written.
        Mismatch: the new database or store returned different data than was written. Nothing is written.
    """
    if not source.on_postgresql and not source.database_file.exists():
        raise no_instance()
    require_empty()
    _connect(source)
    alike = _place(source) == _place(target)
    target.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_working_store()
    # Files of documents that both instances have in one place stay there.
    source_files = None if alike else storage_at(source.data / "blobs", source.storage_url)
    target_files = None if alike else storage()
    living = RunningInstance(source, SOURCE, source_files, check=_require_exclusive)
    try:
        with closing(living.parts()) as parts:
            loaded = load(parts, target, target_files, tell=tell)
        for folder in suppression.folders_of(source.data):
            suppression.remember_folder(target.data, folder)
        return loaded
    finally:
        connections[SOURCE].close()


def _require_working_store() -> None:
    try:
        storage().probe()
    except StorageUnavailable as error:
        hint = "Check --storage: the address, the bucket, the key pair and its rights. Nothing was moved."
        raise BadRequest(f"The new document store does not work: {error}.", hint) from error


def _place(config: Config) -> str:
    return config.storage_url or str((config.data / "blobs").resolve())


def _connect(source: Config) -> None:
    described = database(source)
    if not source.on_postgresql:
        described["OPTIONS"] = {"timeout": 2, "init_command": "PRAGMA locking_mode=EXCLUSIVE"}
    connections.databases[SOURCE] = described
    connections.configure_settings(connections.databases)


def _require_exclusive() -> None:
    """Raise Conflict if the old database has other connections."""
    connection = connections[SOURCE]
    hint = "Stop its servers and workers, then move it."
    try:
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute("SELECT count(*) FROM django_migrations")
                return
            cursor.execute(
                "SELECT count(*), min(host(client_addr)) FROM pg_stat_activity WHERE datname = current_database()"
                " AND usename = current_user AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            others, where = cursor.fetchone() or (0, None)
    except OperationalError as error:
        if connection.vendor == "sqlite" and "locked" in str(error):
            raise Conflict("The instance is in use: another process has its database open.", hint) from None
        raise
    if others:
        at = f" from {where}" if where else ""
        raise Conflict(f"The instance is in use: {others:,} other connections to its database{at}.", hint)
