"""Keep several share links of a report, each with a name; those that exist stay valid."""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import muniment.kernel.ids
import muniment.registry.fields


def keep(apps: Any, _editor: Any) -> None:
    links = apps.get_model("assessments", "ShareLink").objects
    shared = apps.get_model("assessments", "Report").objects.exclude(share_digest="")
    for report_id, digest, created_at in shared.values_list("pk", "share_digest", "created_at").iterator():
        links.create(report_id=report_id, digest=digest, created_at=created_at)


class Migration(migrations.Migration):
    dependencies = [
        ("assessments", "0003_criteria"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ShareLink",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=muniment.kernel.ids.new_id, max_length=26, primary_key=True, serialize=False
                    ),
                ),
                ("name", muniment.registry.fields.Text(blank=True, default="")),
                ("digest", models.CharField(max_length=64)),
                ("sealed", muniment.registry.fields.Text(blank=True, default="")),
                ("created_at", models.DateTimeField(default=muniment.kernel.ids.now)),
                ("opened_at", models.DateTimeField(blank=True, null=True)),
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
                    "report",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="links", to="assessments.report"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("digest",), name="share_link_digest_unique")],
            },
        ),
        migrations.RunPython(keep, migrations.RunPython.noop, elidable=True),
    ]
