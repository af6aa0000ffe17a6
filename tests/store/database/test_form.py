"""The database names the oldest version that may open it; contracting migrations raise it, and others do not."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from django.db import connection
from django.db.migrations import DeleteModel, RemoveField
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from muniment import __version__, config
from muniment.cli.command import main
from muniment.server import doctor
from muniment.server.process.exit_status import REFUSED
from muniment.store.database import form
from muniment.store.database.form import NewerDatabase, RequireForm, UnreleasedDatabase

pytestmark = pytest.mark.django_db
UNIT = Path(__file__).parents[3] / "deploy" / "systemd" / "muniment.service"


def run(operation):
    with connection.schema_editor() as editor:
        operation.database_forwards("accounts", editor, None, None)


def test_a_database_that_no_migration_has_contracted_opens():
    form.require_known()


def test_a_version_that_does_not_know_the_form_refuses_with_the_reason():
    form.record(connection, form.FORM, __version__)
    form.require_known()
    form.record(connection, form.FORM + 1, "9.1.0")
    with pytest.raises(NewerDatabase, match=r"needs Muniment 9\.1\.0 or later .* restore a backup"):
        form.require_known()


def test_the_newest_form_stays_when_an_older_migration_is_applied_later():
    form.record(connection, form.FORM + 2, "9.2.0")
    form.record(connection, form.FORM + 1, "9.1.0")
    with pytest.raises(NewerDatabase, match=r"9\.2\.0"):
        form.require_known()


def test_a_contracting_migration_raises_the_form(monkeypatch):
    seen = []
    monkeypatch.setattr(form, "record", lambda on, *values: seen.append(values))
    operation = RequireForm(2, "9.1.0")
    operation.code(None, type("Editor", (), {"connection": connection}))
    assert seen == [(2, "9.1.0")]


def test_a_database_from_before_the_first_release_is_refused_with_the_way_out():
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied(*form.FIRST)
    recorder.record_applied("accounts", "0001_first")
    with pytest.raises(UnreleasedDatabase, match=r"before 0\.1\.0.*muniment export FOLDER.*muniment import FOLDER"):
        form.require_known()
    done = CliRunner().invoke(main, ["user", "list"])
    assert (done.exit_code, "Traceback" in done.output) == (REFUSED, False)
    assert "Run `muniment export FOLDER` with the version that made it" in done.stderr
    finding = doctor._database(config.current())
    assert (finding.is_good, "before 0.1.0" in finding.says) == (False, True)


def test_a_command_refuses_with_the_status_that_systemd_does_not_restart():
    form.record(connection, form.FORM + 1, "9.1.0")
    done = CliRunner().invoke(main, ["user", "list"])
    assert done.exit_code == REFUSED
    assert "needs Muniment 9.1.0" in done.stderr
    assert f"RestartPreventExitStatus={REFUSED}" in UNIT.read_text()


def test_every_migration_that_takes_something_away_requires_a_form():
    loader = MigrationLoader(connection)
    for (app, name), migration in loader.disk_migrations.items():
        if not migration.__module__.startswith("muniment."):
            continue
        if any(isinstance(each, DeleteModel | RemoveField) for each in migration.operations):
            required = [each for each in migration.operations if isinstance(each, RequireForm)]
            assert required, f"{app}.{name} contracts; end it with RequireForm, and raise FORM"
            assert all(each.form <= form.FORM for each in required)
