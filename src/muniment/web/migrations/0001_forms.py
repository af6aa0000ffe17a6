"""The table that remembers submitted forms, so that none acts twice."""

from typing import Any, ClassVar

from django.core.management import call_command
from django.db import migrations

TABLE = "web_forms"


def create(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001 - Django's signature
    call_command("createcachetable", TABLE, database=schema_editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    dependencies: ClassVar = []
    operations: ClassVar = [migrations.RunPython(create, migrations.RunPython.noop)]
