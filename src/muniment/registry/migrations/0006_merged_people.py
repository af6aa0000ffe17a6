"""The former slugs of people who were merged into others."""

from typing import ClassVar

from django.db import migrations, models

from muniment.registry.fields import Text


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0005_give_item_ids")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="MergedPerson",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", Text()),
                (
                    "person",
                    models.ForeignKey(on_delete=models.deletion.CASCADE, related_name="merged", to="registry.person"),
                ),
            ],
            options={
                "verbose_name_plural": "merged people",
                "constraints": [models.UniqueConstraint(fields=("slug",), name="merged_person_slug_unique")],
            },
        ),
    ]
