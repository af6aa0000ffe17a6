"""The table of the security log and the audit log."""

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from muniment.kernel.ids import now


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("accounts", "0004_deletion"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="SecurityEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(default=now)),
                ("event", models.CharField(max_length=40)),
                ("via", models.CharField(blank=True, default="", max_length=16)),
                ("credential", models.CharField(blank=True, default="", max_length=200)),
                ("address", models.CharField(blank=True, default="", max_length=45)),
                ("agent", models.CharField(blank=True, default="", max_length=200)),
                ("request_id", models.CharField(blank=True, default="", max_length=128)),
                ("subject", models.CharField(blank=True, default="", max_length=250)),
                ("detail", models.JSONField(blank=True, default=dict)),
                ("is_audited", models.BooleanField(default=False)),
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
                    "actor",
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
                "indexes": [
                    models.Index(fields=["account", "id"], name="security_event_account"),
                    models.Index(
                        condition=models.Q(("is_audited", True)), fields=["id"], name="security_event_audited"
                    ),
                    models.Index(fields=["at"], name="security_event_at"),
                ],
            },
        ),
    ]
