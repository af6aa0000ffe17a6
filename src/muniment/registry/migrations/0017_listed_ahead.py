"""Mark the listings that have a date in the future; a job moves those that exist."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0016_chain")]

    operations: ClassVar = [migrations.AddField("company", "listed_ahead", models.BooleanField(default=False))]
