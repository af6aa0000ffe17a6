"""Defaults of earlier versions that an instance keeps: one that has accounts keeps Django's admin site."""

from typing import Any, ClassVar

from django.db import migrations, models


def keep_admin(apps: Any, _editor: Any) -> None:
    """Keep the admin site of an instance that was used before this version."""
    if apps.get_model("accounts", "Account").objects.exists():
        apps.get_model("accounts", "FormerDefault").objects.create(name="django_admin")


class Migration(migrations.Migration):
    """Add the table of kept defaults."""

    dependencies: ClassVar = [("accounts", "0008_asks")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="FormerDefault",
            fields=[("name", models.CharField(max_length=40, primary_key=True, serialize=False))],
        ),
        migrations.RunPython(keep_admin, migrations.RunPython.noop, elidable=True),
    ]
