"""Let nodes of former versions, which do not name the columns, add rows during an upgrade or after a step back."""

from typing import ClassVar

from django.db import migrations, models

from muniment.registry.fields import Text


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0029_specification_drafts")]

    operations: ClassVar = [
        migrations.AlterField("company", "listed_ahead", models.BooleanField(db_default=False, default=False)),
        migrations.AlterField("score", "evaluator", Text(blank=True, db_default="", default="")),
    ]
