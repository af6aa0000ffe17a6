"""Bring the database to this version's form, quickly when it has it already."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.apps import apps
from django.db import connection

_LOCK: Final = 0x6D756E696D656E74
"""The number under which PostgreSQL knows that somebody migrates, or loads what an instance begins with."""


def pending() -> int:
    """Give the number of migrations that the database lacks."""
    # The database's own list is what is compared, not a mark left beside it: a restored backup brings its list along,
    # and what a newer version has applied does not make this one lack anything.
    if _on_disk() <= _applied():
        return 0
    from django.db.migrations.executor import MigrationExecutor  # this and what it reads is half a second of a start

    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def has_begun() -> bool:
    """Tell whether anything was ever migrated here."""
    return bool(_applied())


def migrate() -> int:
    """
    Apply what is missing, unless another process or node is at it: then wait for that.

    Returns:
        The number of migrations applied.
    """
    if not pending():
        return 0
    with alone():
        missing = pending()
        if missing:
            from django.core.management import call_command

            call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
    return missing


@contextmanager
def alone() -> Iterator[None]:
    """
    Keep others from migrating, and from loading what an instance begins with.

    In a way that also holds behind a pooler that gives connections by transaction.
    """
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
    """Name the migrations of every installed app, without importing any."""
    return {
        (app.label, file.stem)
        for app in apps.get_app_configs()
        for file in (Path(app.path) / "migrations").glob("[!_]*.py")
    }
