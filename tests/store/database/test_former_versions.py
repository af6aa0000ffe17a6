"""
Former versions write the database while nodes are upgraded one by one, and after a step back.

They name the columns that they know: any other must have a default in the database, or may be NULL.
"""

import pytest
from django.db import connection
from django.db.migrations import (
    AddField,
    AddIndex,
    AlterField,
    AlterModelOptions,
    CreateModel,
    RemoveField,
    RemoveIndex,
    RunPython,
    RunSQL,
)
from django.db.migrations.loader import MigrationLoader

from muniment.store.database.form import RequireForm

pytestmark = pytest.mark.django_db
FIRST = 1
"""The migration of each app in 0.1.0, the first version that was released."""
ADDING = CreateModel | AddField | AddIndex | AlterField | AlterModelOptions | RunPython | RunSQL
HARMLESS = ADDING | RemoveIndex
"""A former version names no index of Django's tables: without one, it answers the same."""


@pytest.fixture(scope="module")
def loader():
    return MigrationLoader(None)


def columns(loader, operation):
    """Return the columns that were added or removed since that version, by app, model and name."""
    return {
        (app, each.model_name_lower, each.name)
        for app, _, migration in later(loader)
        for each in migration.operations
        if isinstance(each, operation)
    }


def later(loader):
    """Return the migrations since that version, with their app and name."""
    found = [(*key, each) for key, each in loader.disk_migrations.items() if each.__module__.startswith("muniment.")]
    return [each for each in found if int(each[1][:4]) > FIRST]


def test_a_column_that_a_table_got_later_need_not_be_named(loader):
    missing = []
    gone = columns(loader, RemoveField)
    for app, name, migration in later(loader):
        created = {each.name_lower for each in migration.operations if isinstance(each, CreateModel)}
        for each in migration.operations:
            is_column = isinstance(each, AddField | AlterField) and each.model_name_lower not in created
            if is_column and (app, each.model_name_lower, each.name) not in gone:
                model = loader.project_state().apps.get_model(app, each.model_name)
                column = model._meta.get_field(each.name).column
                with connection.cursor() as cursor:
                    told = connection.introspection.get_table_description(cursor, model._meta.db_table)
                (stored,) = [each for each in told if each.name == column]
                if not stored.null_ok and stored.default is None:
                    missing.append(f"{app}.{name}: {model._meta.db_table}.{column}")
    assert missing == [], "give them a db_default"


def test_a_table_that_a_former_version_writes_gets_no_further_rule(loader):
    added = columns(loader, AddField)
    for app, name, migration in later(loader):
        if any(isinstance(each, RequireForm) for each in migration.operations):
            continue
        created = {each.name_lower for each in migration.operations if isinstance(each, CreateModel)}
        for each in migration.operations:
            is_new = getattr(each, "model_name_lower", "") in created
            was_new = isinstance(each, RemoveField) and (app, each.model_name_lower, each.name) in added
            assert is_new or was_new or isinstance(each, HARMLESS), (
                f"{app}.{name}: a former version does not know {each.describe()}"
            )
