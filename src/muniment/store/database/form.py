"""
The form of the database, by a number, and the oldest form that a version must know to open it.

A migration that only adds (expands) leaves older versions working, so that nodes can be upgraded one by one and go one
step back. A migration that takes something away (contracts) ends with :class:`RequireForm`; versions that do not know
this form refuse to open the database from then on.

Nothing before 0.1.0 was released. Its databases and backups lack the first migration, and are refused too.
"""

from collections.abc import Collection
from typing import Any, Final

from django.db import connection
from django.db.migrations import RunPython

from muniment import __version__

FORM: Final = 1
"""The newest form that this version knows; raised by one with each contracting migration."""
TABLE: Final = "accounts_databaseform"
FIRST: Final = ("accounts", "0001_initial")
"""The migration that every released version has applied."""
UNRELEASED: Final = "was made by a version before 0.1.0, none of which was released"
WAY_OUT: Final = (
    "Run `muniment export FOLDER` with the version that made it, then `muniment import FOLDER` here with a new data"
    " folder or database. UPGRADING says what else to do."
)


class UnknownDatabase(Exception):  # noqa: N818 - its message is for the operator
    """This version must not open the database."""


class NewerDatabase(UnknownDatabase):
    """A newer version has contracted the database."""

    def __init__(self, form: int, version: str) -> None:
        super().__init__(
            f"This database needs Muniment {version} or later (form {form}); this is Muniment {__version__}, which"
            f" knows forms up to {FORM}. Install that version, or restore a backup that an earlier version made."
        )


class UnreleasedDatabase(UnknownDatabase):
    """A version before 0.1.0 made the database."""

    def __init__(self) -> None:
        super().__init__(f"This database {UNRELEASED}. {WAY_OUT}")


class RequireForm(RunPython):
    """The last operation of a contracting migration: only *version* and later, which know *form*, open the database."""

    def __init__(self, form: int, version: str) -> None:
        self.form, self.version = form, version
        super().__init__(self._record, RunPython.noop)

    def _record(self, _apps: Any, schema_editor: Any) -> None:
        record(schema_editor.connection, self.form, self.version)


def record(on: Any, form: int, version: str) -> None:
    with on.cursor() as cursor:
        cursor.execute(f"DELETE FROM {TABLE} WHERE form < %s", [form])
        cursor.execute(f"INSERT INTO {TABLE} (form, version) VALUES (%s, %s) ON CONFLICT DO NOTHING", [form, version])


def is_unreleased(applied: Collection[tuple[str, str]]) -> bool:
    """Return whether a version before 0.1.0 applied these migrations."""
    return bool(applied) and FIRST not in applied


def require_known() -> None:
    """Raise UnknownDatabase if this version must not open the database."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        if "django_migrations" not in tables:
            return
        cursor.execute("SELECT app, name FROM django_migrations WHERE app = %s", [FIRST[0]])
        if is_unreleased(cursor.fetchall()):
            raise UnreleasedDatabase
        if TABLE not in tables:
            return
        cursor.execute(f"SELECT form, version FROM {TABLE} ORDER BY form DESC LIMIT 1")
        row = cursor.fetchone()
    if row is not None and row[0] > FORM:
        raise NewerDatabase(*row)
