"""Remember the logos that are fetched, and tell their pictures from uploaded ones."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models

import muniment.kernel.ids
import muniment.registry.fields


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0020_review_inbox")]

    operations: ClassVar = [
        migrations.AddField("picture", "is_fetched", models.BooleanField(default=False, db_default=False)),
        migrations.CreateModel(
            "FetchedLogo",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("source", muniment.registry.fields.Text()),
                ("digest", models.CharField(blank=True, default="", max_length=32)),
                ("fault", muniment.registry.fields.Text(blank=True, default="")),
                ("failures", models.PositiveIntegerField(default=0)),
                ("asked_at", models.DateTimeField(default=muniment.kernel.ids.now)),
                ("retry_at", models.DateTimeField(blank=True, null=True)),
                (
                    "company",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="fetched_logo",
                        to="registry.company",
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["digest"], name="fetched_logo_digest")]},
        ),
    ]
