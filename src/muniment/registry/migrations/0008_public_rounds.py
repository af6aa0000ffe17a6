"""Funding rounds are public, except the name and target of those that exist: their owner publishes them."""

from typing import Any, ClassVar

from django.db import migrations, models
from django.db.models import Exists, OuterRef


def _keep_private(apps: Any, _: Any) -> None:
    rounds = apps.get_model("registry", "FundingRound").objects
    rounds.update(public=False)
    still_open = rounds.filter(company=OuterRef("pk"), closed_on__isnull=True)
    apps.get_model("registry", "Company").objects.filter(Exists(still_open)).update(raising=True)


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0007_unlisted_by")]

    operations: ClassVar = [
        migrations.AddField("company", "raising", models.BooleanField(default=False)),
        migrations.AddField("fundinground", "public", models.BooleanField(default=True)),
        migrations.RunPython(_keep_private, migrations.RunPython.noop, elidable=True),
    ]
