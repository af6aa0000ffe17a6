"""A database that is created at once is the one that all migrations make of an empty one."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from muniment.store.database import creation
from services import former
from services.product import environment, run

DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)]
MIGRATE = "from muniment.store.database.migrations import migrate; print(migrate())"
VARIES = {
    "django_migrations": {"id", "applied"},
    "django_content_type": {"id"},
    "auth_permission": {"id", "content_type_id"},
    "published_log": {"name", "begun_at"},
    "published_meta": {"epoch"},
    "published_edition": {"epoch"},
}
"""Columns with times, random values, and the keys that Django counts in the order of its own."""
CATALOGUE = {
    "relations": "SELECT relname, relkind, relpersistence, reloptions FROM pg_class"
    " WHERE relnamespace = 'public'::regnamespace",
    "columns": "SELECT relname, row_number() OVER (PARTITION BY relname ORDER BY attnum), attname,"
    " format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,"
    " attcollation::regcollation::text, pg_get_expr(adbin, adrelid)"
    " FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
    " LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
    " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')"
    " AND attnum > 0 AND NOT attisdropped",
    "constraints": "SELECT conrelid::regclass::text, conname, condeferrable, condeferred, convalidated,"
    " pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
    "indexes": "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "triggers": "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "functions": "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "types": "SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace",
    "sequences": "SELECT sequencename, data_type::text, start_value, min_value, max_value, increment_by, cycle"
    " FROM pg_sequences WHERE schemaname = 'public'",
}


class Database:
    """A database of its own, in a file or in the cluster."""

    def __init__(self, request, folder: Path, kind: str, name: str):
        self.data = folder / name
        self.url = ""
        if kind == "postgresql":
            cluster = request.getfixturevalue("postgres")
            cluster.drop(f"form_{name}")
            self.url = cluster.create(f"form_{name}")

    def python(self, *arguments: str) -> str:
        self.data.mkdir(exist_ok=True)
        settings = environment(self.data, database_url=self.url) | {"DJANGO_SETTINGS_MODULE": "muniment.settings"}
        done = subprocess.run(
            [sys.executable, *arguments], env=settings, capture_output=True, text=True, check=False, timeout=240
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def migrate(self) -> int:
        """Migrate as the product does."""
        return int(self.python("-c", f"import django; django.setup(); {MIGRATE}"))

    def step(self, *until: str):
        """Apply one migration after another, as Django does."""
        self.python("-m", "django", "migrate", "--verbosity", "0", *until)
        return self

    def form(self):
        """Return tables with columns, keys and checks, indexes, triggers; in SQLite, the columns in no order."""
        if self.url:
            with psycopg.connect(self.url) as found:
                return {part: sorted(map(repr, found.execute(asked))) for part, asked in CATALOGUE.items()}
        with closing(sqlite3.connect(self.data / "muniment.sqlite3")) as found:
            return {
                (kind, name): _parts(sql) if kind == "table" else sql
                for kind, name, sql in found.execute("SELECT type, name, sql FROM sqlite_master")
            }

    def rows(self):
        """Return the rows of each table, without what differs between any two databases."""
        asked = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        if self.url:
            asked = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        connect = psycopg.connect(self.url) if self.url else sqlite3.connect(self.data / "muniment.sqlite3")
        with closing(connect) as found:
            return {name: self._rows(found, name) for (name,) in found.execute(asked).fetchall()}

    @staticmethod
    def _rows(found, table):
        cursor = found.execute(f'SELECT * FROM "{table}"')
        names = [each[0] for each in cursor.description]
        pairs = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        left_out = VARIES.get(table, set())
        return sorted(repr(sorted((key, row[key]) for key in row.keys() - left_out)) for row in pairs)


def _parts(sql):
    """Return the columns and constraints of a CREATE TABLE, sorted."""
    found, depth, quoted = [""], 0, ""
    for character in sql[sql.index("(") + 1 : sql.rindex(")")]:
        if quoted or character in "'\"":
            quoted = "" if character == quoted else quoted or character
        else:
            depth += {"(": 1, ")": -1}.get(character, 0)
            if character == "," and not depth:
                found.append("")
                continue
        found[-1] += character
    return sorted(each.strip() for each in found)


@pytest.fixture(scope="module", params=DATABASES)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def stepped(request, kind, tmp_path_factory):
    """Return a database to which all migrations were applied."""
    return Database(request, tmp_path_factory.mktemp("stepped"), kind, "stepped").step()


@pytest.fixture
def new(request, kind, tmp_path):
    return Database(request, tmp_path, kind, "new")


def with_step(folder: Path, step: str) -> Path:
    """Copy this version into *folder*, with one more migration of the registry, and return its source."""
    source = folder / "src"
    shutil.copytree(former.ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    migrations = source / "muniment" / "registry" / "migrations"
    last = max(each.stem for each in migrations.glob("[0-9]*.py"))
    (migrations / "9999_step.py").write_text(
        "from django.db import migrations\n"
        "def fail(apps, editor):\n"
        "    1 / 0\n"
        "class Migration(migrations.Migration):\n"
        f"    dependencies = [('registry', '{last}')]\n"
        f"    operations = [{step}]\n"
    )
    return source


CHANGES_ROWS = "migrations.RunPython(fail, elidable=True)"
CREATES_SOMETHING = "migrations.RunPython(fail)"


def test_a_new_database_has_the_form_and_rows_that_all_migrations_make(new, stepped):
    number = new.migrate()
    assert new.form() == stepped.form()
    assert new.rows() == stepped.rows()
    assert number == len(new.rows()["django_migrations"]) > 40
    assert len(new.form()) > 5


def test_a_new_database_is_made_without_what_only_changes_rows(new, tmp_path):
    with former.running(with_step(tmp_path, CHANGES_ROWS)):
        assert new.migrate() > 40


@pytest.mark.whole(keeps=0)
def test_a_database_that_stopped_at_a_former_migration_gets_the_others(new, stepped):
    new.step("accounts", "0001")
    before = len(new.rows()["django_migrations"])
    assert new.migrate() + before == len(stepped.rows()["django_migrations"])
    assert new.form() == stepped.form()
    assert new.rows() == stepped.rows()
    assert new.migrate() == 0


@pytest.mark.whole(keeps=0)
def test_with_other_migrations_of_a_library_every_migration_is_applied(new, tmp_path):
    source = with_step(tmp_path, CHANGES_ROWS)
    named = source / "muniment" / "store" / "database" / "creation.py"
    named.write_text(named.read_text().replace('"sites": "0002_alter', '"sites": "0003_alter'))
    with former.running(source):
        failed = run("migrate", data=new.data, database_url=new.url, check=False)
    assert "ZeroDivisionError" in failed.stderr, "a step that only changes rows was left out"
    assert new.migrate() > 0


def test_a_failed_creation_leaves_nothing_and_is_repeated(new, stepped, tmp_path):
    with former.running(with_step(tmp_path, CREATES_SOMETHING)):
        failed = run("migrate", data=new.data, database_url=new.url, check=False)
    assert "ZeroDivisionError" in failed.stderr
    assert new.rows() == {}
    new.migrate()
    assert new.form() == stepped.form()


def test_a_new_database_knows_the_oldest_version_that_opens_it(new, tmp_path):
    with former.running(*former.contracted(tmp_path)):
        new.migrate()
    assert new.rows()["accounts_databaseform"] == [repr([("form", 2), ("version", "9.1.0")])]


@pytest.mark.django_db
def test_the_migrations_of_libraries_are_those_with_which_both_ways_were_compared():
    loader = MigrationLoader(connection)
    last = {
        app: name
        for app, name in loader.graph.leaf_nodes()
        if not loader.disk_migrations[app, name].__module__.startswith("muniment.")
    }
    assert last == creation.COMPARED, "look at what the new ones do for an empty database, then name them"


@pytest.mark.django_db
def test_a_restore_of_other_migrations_applies_them(monkeypatch):
    monkeypatch.setattr(connection, "schema_editor", None)
    assert creation.create(only={("accounts", "0001_initial")}) is False
