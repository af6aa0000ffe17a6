"""When the deletion of an account was requested, and when it happened."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("accounts", "0003_personal_tokens")]

    operations: ClassVar = [
        migrations.AddField("account", "delete_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("account", "deleted_at", models.DateTimeField(blank=True, null=True)),
    ]
