"""
Create a new database as the migrations leave it, in place of applying one after another.

Tables, rows and the list of applied migrations are the same, so that upgrades, backups and other versions see no
difference. The ids of content types and permissions may differ, and the order of columns on SQLite.
"""

from collections.abc import Collection
from typing import Final

from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import Migration, RunPython, RunSQL
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ProjectState

COMPARED: Final = {
    "account": "0009_emailaddress_unique_primary_email",
    "auth": "0012_alter_user_first_name_max_length",
    "contenttypes": "0002_remove_content_type_name",
    "mfa": "0003_authenticator_type_uniq",
    "sessions": "0001_initial",
    "sites": "0002_alter_domain_unique",
    "socialaccount": "0006_alter_socialaccount_extra_data",
    "usersessions": "0001_initial",
}
"""The last migration of each library's app when both ways were compared. With any other, every migration is applied."""

_AS_ALTERED: Final = """
ALTER TABLE django_site RENAME CONSTRAINT django_site_domain_key TO django_site_domain_a2e37b91_uniq
"""
"""PostgreSQL names the constraint of a column that is created unique, Django that of one that becomes unique later."""


def create(*, only: Collection[tuple[str, str]] | None = None, fills: bool = True) -> bool:
    """
    Create in one transaction what all migrations would, and record them as applied.

    Args:
        only: the migrations, as (app, name), if the database must have exactly these.
        fills: whether to announce the migrations as Django does, which adds the site, content types and permissions.

    Returns:
        False, with nothing done, if the migrations must be applied instead.
    """
    executor = MigrationExecutor(connection)
    plan = [migration for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes(), clean_start=True)]
    names = [(migration.app_label, migration.name) for migration in plan]
    if not _are_compared(plan) or (only is not None and set(only) != set(names)):
        return False
    state = executor.loader.project_state()
    with connection.schema_editor() as editor:
        _create_tables(editor, state)
        _run_operations(editor, state, plan)
        executor.recorder.ensure_schema()
        record = executor.recorder.Migration
        executor.recorder.migration_qs.bulk_create([record(app=label, name=name) for label, name in names])
        if fills:
            emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)
    return True


def _is_ours(migration: Migration) -> bool:
    return migration.__module__.startswith("muniment.")


def _create_tables(editor: BaseDatabaseSchemaEditor, state: ProjectState) -> None:
    """Create the tables of all models as they are after the last migration."""
    for model in state.apps.get_models():
        if model._meta.can_migrate(connection):  # noqa: SLF001 - documented by Django
            editor.create_model(model)
    if connection.vendor == "postgresql":
        editor.execute(_AS_ALTERED)


def _run_operations(editor: BaseDatabaseSchemaEditor, state: ProjectState, plan: list[Migration]) -> None:
    """Run what our migrations add to the tables of models: rows, and objects that Django does not know."""
    for migration in filter(_is_ours, plan):
        for operation in migration.operations:
            # An elidable one changes rows of earlier versions, which a new database does not have.
            if isinstance(operation, RunPython | RunSQL) and not operation.elidable:
                operation.database_forwards(migration.app_label, editor, state, state)


def _are_compared(plan: list[Migration]) -> bool:
    """Return whether the migrations of libraries are those with which both ways gave the same."""
    last = {migration.app_label: migration.name for migration in plan if not _is_ours(migration)}
    return last.items() <= COMPARED.items()
