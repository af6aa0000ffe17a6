"""Columns for who unlisted a listing or a profile; what is unlisted already counts as taken down by a reviewer."""

from typing import Any, ClassVar

from django.db import migrations, models

CHOICES = [("owner", "Owner"), ("reviewer", "Reviewer")]


def take_down(apps: Any, _: Any) -> None:
    apps.get_model("registry", "Company").objects.filter(state="unlisted").update(unlisted_by="reviewer")


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0006_merged_people")]

    operations: ClassVar = [
        migrations.AddField(
            "company", "unlisted_by", models.CharField(blank=True, choices=CHOICES, default="", max_length=16)
        ),
        migrations.AddField(
            "person", "unlisted_by", models.CharField(blank=True, choices=CHOICES, default="", max_length=16)
        ),
        migrations.RunPython(take_down, migrations.RunPython.noop, elidable=True),
    ]
