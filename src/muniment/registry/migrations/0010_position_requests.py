"""Positions that show a name alone, and the requests to people to confirm theirs."""

from typing import Any, ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from muniment.kernel.ids import new_id, now
from muniment.registry.fields import Text

UPGRADED = "registry.consent_introduced"
"""The job that mails the holders of positions that exist already."""
_DECISIONS = [("confirmed", "Confirmed"), ("declined", "Declined"), ("ended", "Ended"), ("withdrawn", "Withdrawn")]


def _tell_holders(apps: Any, _: Any) -> None:
    held = apps.get_model("registry", "Position").objects.filter(person__account__isnull=False)
    if held.exists():
        apps.get_model("jobs", "Job").objects.create(id=new_id(), kind=UPGRADED, run_at=now(), unique_key=UPGRADED)


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("registry", "0009_verification"),
        ("jobs", "0001_first"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.AddField("position", "name", Text(blank=True, default="")),
        migrations.AlterField(
            "position",
            "person",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="positions",
                to="registry.person",
            ),
        ),
        migrations.CreateModel(
            "PositionRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("item", Text()),
                ("title", Text(blank=True, null=True)),
                ("asked_at", models.DateTimeField(default=now)),
                ("told_at", models.DateTimeField(blank=True, null=True)),
                ("decision", models.CharField(blank=True, choices=_DECISIONS, default="", max_length=16)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
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
                    "company",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="position_requests",
                        to="registry.company",
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="position_requests",
                        to="registry.person",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["account", "asked_at"], name="position_requests_of_account")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("decision", "")),
                        fields=("company", "item"),
                        name="position_request_once",
                    )
                ],
            },
        ),
        migrations.RunPython(_tell_holders, migrations.RunPython.noop, elidable=True),
    ]
