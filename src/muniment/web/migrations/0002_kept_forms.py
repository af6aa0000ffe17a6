"""The table of forms that wait while their account signs in again or confirms its identity."""

from typing import Any, ClassVar

from django.core.management import call_command
from django.db import migrations

TABLE = "web_kept_forms"


def create(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001 - Django's signature
    call_command("createcachetable", TABLE, database=schema_editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    dependencies: ClassVar = [("web", "0001_forms")]
    operations: ClassVar = [migrations.RunPython(create, migrations.RunPython.noop)]
