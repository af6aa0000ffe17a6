"""Apply pending database migrations, with a fast check when there are none."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.apps import apps
from django.db import connection

_LOCK: Final = 0x6D756E696D656E74
"""PostgreSQL's advisory lock for migrations and for loading initial data."""


def pending() -> int:
    # Compared with the database's own list: a restored backup brings its list along, and migrations that a newer
    # version has applied are not pending here.
    applied, on_disk = _applied(), _on_disk()
    if on_disk <= applied:
        return 0
    if not applied:
        return len(on_disk)
    from django.db.migrations.executor import MigrationExecutor  # importing it takes half a second

    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def has_begun() -> bool:
    return bool(_applied())


def migrate() -> int:
    """
    Apply pending migrations, after waiting for any other process that does, and return their number.

    A new database is created as if they had been applied.
    """
    if not pending():
        return 0
    with migration_lock():
        missing = pending()
        if missing and (has_begun() or not _create()):
            from django.core.management import call_command

            call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
    return missing


def _create() -> bool:
    from muniment.store.database.creation import create  # imports the executor

    return create()


@contextmanager
def migration_lock() -> Iterator[None]:
    """Hold the lock for migrations and initial data, also behind a pooler in transaction mode."""
    if connection.vendor == "sqlite":
        with Path(f"{connection.settings_dict['NAME']}.migrating").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        return
    guard = connection.copy()
    try:
        guard.set_autocommit(False)
        with guard.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        yield
    finally:
        guard.close()


def _applied() -> set[tuple[str, str]]:
    with connection.cursor() as cursor:
        if "django_migrations" not in connection.introspection.table_names(cursor):
            return set()
        cursor.execute("SELECT app, name FROM django_migrations")
        return set(cursor.fetchall())


def _on_disk() -> set[tuple[str, str]]:
    """Return the migrations of every installed app without importing them."""
    return {
        (app.label, file.stem)
        for app in apps.get_app_configs()
        for file in (Path(app.path) / "migrations").glob("[!_]*.py")
    }
