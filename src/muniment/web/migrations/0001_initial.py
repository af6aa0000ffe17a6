"""The tables of submitted forms, so that none acts twice, and of forms that wait for their account to sign in again."""

from typing import Any, ClassVar

from django.core.management import call_command
from django.db import migrations

TABLES = ("web_forms", "web_kept_forms")


def create(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001 - Django's signature
    call_command("createcachetable", *TABLES, database=schema_editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    initial = True

    dependencies: ClassVar = []

    operations: ClassVar = [migrations.RunPython(create, migrations.RunPython.noop)]
