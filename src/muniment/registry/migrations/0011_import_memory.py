"""What imports brought for members that people had changed; until the first such import, the history tells it."""

from typing import Any, ClassVar

from django.db import migrations, models

from muniment.registry.fields import JSONText


def _one_of(model: str) -> Any:
    return models.OneToOneField(
        blank=True,
        null=True,
        on_delete=models.deletion.CASCADE,
        related_name="import_memory",
        to=f"registry.{model}",
    )


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0010_position_requests")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="ImportMemory",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("members", JSONText(default=dict)),
                *((model, _one_of(model)) for model in ("company", "person", "framework")),
            ],
            options={
                "verbose_name_plural": "import memories",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(company__isnull=False, person=None, framework=None)
                        | models.Q(company=None, person__isnull=False, framework=None)
                        | models.Q(company=None, person=None, framework__isnull=False),
                        name="import_memory_of_one_row",
                    )
                ],
            },
        ),
    ]
