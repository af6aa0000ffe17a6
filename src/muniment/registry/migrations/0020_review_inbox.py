"""What the checks of queued items found, replies that reviewers saved, and their settings."""

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import muniment.kernel.ids
import muniment.registry.fields


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("registry", "0019_scores"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            "ItemChecks",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("subject", models.CharField(max_length=220, unique=True)),
                ("stamp", models.CharField(max_length=64)),
                ("attention", models.CharField(blank=True, default="", max_length=200)),
                ("links", muniment.registry.fields.JSONText(default=list)),
                ("at", models.DateTimeField(default=muniment.kernel.ids.now)),
            ],
        ),
        migrations.CreateModel(
            "SavedReply",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField(max_length=80, unique=True)),
                ("text", muniment.registry.fields.Text()),
                ("updated_at", models.DateTimeField(default=muniment.kernel.ids.now)),
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
        ),
        migrations.CreateModel(
            "ReviewerSettings",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.BooleanField(default=True)),
                ("shortcuts", models.BooleanField(default=True)),
                ("digest_at", models.DateTimeField(blank=True, null=True)),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
    ]
