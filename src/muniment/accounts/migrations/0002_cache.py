"""The table in which the rate limits of signing in are counted, for all processes together."""

from typing import Any, ClassVar

from django.core.management import call_command
from django.db import migrations

TABLE = "accounts_cache"


def create(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001 - Django's signature
    call_command("createcachetable", TABLE, database=schema_editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    dependencies: ClassVar = [("accounts", "0001_first")]
    operations: ClassVar = [migrations.RunPython(create, migrations.RunPython.noop)]
