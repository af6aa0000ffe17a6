"""Keep the versions of the settings of the registry."""

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import muniment.kernel.ids
import muniment.registry.fields


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("registry", "0022_import_runs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="RegistryVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField(unique=True)),
                ("at", models.DateTimeField(default=muniment.kernel.ids.now)),
                ("stamp", models.CharField(max_length=20)),
                ("via", models.CharField(max_length=16)),
                ("note", models.CharField(blank=True, default="", max_length=200)),
                ("document", muniment.registry.fields.JSONText(default=dict)),
                ("file_digest", models.CharField(blank=True, default="", max_length=64)),
                (
                    "account",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-number"],
            },
        ),
    ]
