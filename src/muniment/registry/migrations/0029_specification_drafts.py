"""Keep what reviewers edit of a large specification before they publish it."""

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import muniment.kernel.ids
import muniment.registry.fields


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("registry", "0028_instance_currency"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="SpecificationDraft",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("revision", models.PositiveIntegerField(default=1)),
                ("document", muniment.registry.fields.JSONText()),
                ("changed_at", models.DateTimeField(default=muniment.kernel.ids.now)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "framework",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="registry.framework"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("framework", "account"), name="specification_draft_unique")
                ],
            },
        ),
    ]
