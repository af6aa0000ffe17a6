"""Whether a token asks before its tool calls act; tokens from before work as before."""

from typing import Any, ClassVar

from django.db import migrations, models

CHOICES = [
    ("all", "Asks before it spends, removes, deletes or applies"),
    ("applications", "Asks before it applies to a program"),
    ("none", "Acts without asking"),
]


def keep_as_before(apps: Any, _editor: Any) -> None:
    """Let existing tokens ask before applications only, as they did."""
    apps.get_model("accounts", "PersonalToken").objects.update(asks="applications")


class Migration(migrations.Migration):
    """Add ``asks`` to tokens."""

    dependencies: ClassVar = [("accounts", "0007_database_form")]

    operations: ClassVar = [
        migrations.AddField(
            "personaltoken",
            "asks",
            models.CharField(choices=CHOICES, db_default="all", default="all", max_length=16),
        ),
        migrations.RunPython(keep_as_before, migrations.RunPython.noop, elidable=True),
    ]
