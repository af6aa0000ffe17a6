"""Keep a record of each import, which the history entries that it makes name."""

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import muniment.kernel.ids
import muniment.registry.fields


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("registry", "0021_fetched_logos"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            "ImportRun",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("started_at", models.DateTimeField(default=muniment.kernel.ids.now)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("via", models.CharField(max_length=16)),
                ("files", muniment.registry.fields.JSONText(default=list)),
                ("options", muniment.registry.fields.JSONText(default=list)),
                ("result", muniment.registry.fields.Text(blank=True, default="")),
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
                (
                    "undoes",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="undone_by",
                        to="registry.importrun",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            "historyentry",
            "import_run",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="entries",
                to="registry.importrun",
            ),
        ),
    ]
