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
    RunPython,
    RunSQL,
)
from django.db.migrations.loader import MigrationLoader

from make.registry import draft, owner
from make.reports import framework
from muniment.kernel.ids import now
from muniment.registry.models import Company, Framework
from muniment.store.database.form import RequireForm

pytestmark = pytest.mark.django_db
FIRST = {"accounts": 6, "assessments": 3, "credits": 2, "documents": 3, "jobs": 1, "oauth": 2, "registry": 15, "web": 1}
"""The last migration of each app in the oldest version that tests/upgrades/test_rolling_upgrade.py upgrades from."""
ADDING = CreateModel | AddField | AddIndex | AlterField | AlterModelOptions | RunPython | RunSQL


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
    return [each for each in found if int(each[1][:4]) > FIRST.get(each[0], 0)]


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
            assert is_new or was_new or isinstance(each, ADDING), (
                f"{app}.{name}: a former version does not know {each.describe()}"
            )


def as_of(loader, app, migration, model):
    """Return *model* as the version knew it whose last migration of *app* was *migration*."""
    return loader.project_state((app, migration)).apps.get_model(app, model)


def test_a_version_before_languages_creates_accounts(loader):
    former = as_of(loader, "accounts", "0009_former_defaults", "Account")
    made = former.objects.create(email="late@harbour.example", password="!")
    now_read = as_of(loader, "accounts", "0012_defaults_for_former_versions", "Account").objects.get(pk=made.pk)
    assert (now_read.email, now_read.language) == ("late@harbour.example", "")


def test_a_version_before_evaluators_publishes_scores(loader):
    number = Framework.objects.get(slug=framework()).pk
    values = {"company_id": Company.objects.get(slug=draft(owner()).slug).pk, "framework_id": number}
    values |= {"report_id": "r" * 26, "score": 1.0, "specification_version": 1, "assessed_at": now()}
    made = as_of(loader, "registry", "0026_program_dates", "Score").objects.create(**values)
    now_read = as_of(loader, "registry", "0030_defaults_for_former_versions", "Score").objects.get(pk=made.pk)
    assert (now_read.score, now_read.evaluator) == (1.0, "")
