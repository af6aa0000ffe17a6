"""Let nodes of former versions, which do not name it, create accounts during an upgrade or after a step back."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("accounts", "0011_first_setup")]

    operations: ClassVar = [
        migrations.AlterField(
            "account", "language", models.CharField(blank=True, db_default="", default="", max_length=16)
        )
    ]
