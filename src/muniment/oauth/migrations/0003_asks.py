"""Whether an app asks before its tool calls act; connections from before work as before."""

from typing import Any, ClassVar

from django.db import migrations, models

CHOICES = [
    ("all", "Asks before it spends, removes, deletes or applies"),
    ("applications", "Asks before it applies to a program"),
    ("none", "Acts without asking"),
]


def keep_as_before(apps: Any, _editor: Any) -> None:
    """Let existing connections ask before applications only, as they did."""
    apps.get_model("oauth", "Grant").objects.update(asks="applications")


class Migration(migrations.Migration):
    """Add ``asks`` to connections, and to the codes that become some."""

    dependencies: ClassVar = [("oauth", "0002_access_scopes"), ("accounts", "0008_asks")]

    operations: ClassVar = [
        migrations.AddField(
            "grant",
            "asks",
            models.CharField(choices=CHOICES, db_default="all", default="all", max_length=16),
        ),
        migrations.AddField(
            "authorizationcode",
            "asks",
            models.CharField(choices=CHOICES, db_default="all", default="all", max_length=16),
        ),
        migrations.RunPython(keep_as_before, migrations.RunPython.noop, elidable=True),
    ]
