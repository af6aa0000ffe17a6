"""Columns for the ids of positions and funding rounds, and the ids of removed rows."""

from typing import ClassVar

from django.db import migrations, models

from muniment.registry.fields import Text


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0003_erasures")]

    operations: ClassVar = [
        migrations.AddField("position", "item_id", Text(blank=True, default="")),
        migrations.AddField("fundinground", "item_id", Text(blank=True, default="")),
        migrations.CreateModel(
            "RemovedItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("item", Text()),
                ("company", models.ForeignKey(on_delete=models.CASCADE, related_name="+", to="registry.company")),
            ],
            options={"constraints": [models.UniqueConstraint(fields=["company", "item"], name="removed_item_once")]},
        ),
    ]
