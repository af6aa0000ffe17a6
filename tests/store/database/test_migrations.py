"""Whether the database has this version's form is found out quickly, and from the database alone."""

import pytest
from django.db import connection
from django.db.migrations import executor
from django.db.migrations.recorder import MigrationRecorder

from muniment.store.database.migrations import migrate, pending

pytestmark = pytest.mark.django_db


def test_an_up_to_date_database_is_recognized_without_reading_a_migration(monkeypatch):
    monkeypatch.setattr(executor, "MigrationExecutor", None)
    assert migrate() == 0


def test_a_restored_database_that_lacks_a_migration_is_reported():
    rows = MigrationRecorder.Migration.objects.filter(app="jobs")
    lacking = rows.count()
    rows.delete()
    assert pending() == lacking > 0


def test_migrations_of_a_newer_version_are_not_reported_as_missing(monkeypatch):
    monkeypatch.setattr(executor, "MigrationExecutor", None)
    MigrationRecorder(connection).record_applied("registry", "9999_from_tomorrow")
    assert pending() == 0


def test_a_database_without_any_table_lacks_everything(monkeypatch):
    monkeypatch.setattr(type(connection.introspection), "table_names", lambda *_: [])
    monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda _: {})
    assert pending() > 20
