"""Bring the database to this version's form, quickly when it has it already."""

from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor


def pending() -> int:
    """Give the number of migrations that the database lacks."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def migrate() -> int:
    """
    Apply what is missing.

    Returns:
        The number of migrations applied.
    """
    missing = pending()
    if missing:
        call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
    return missing
