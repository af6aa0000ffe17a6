"""Store the number of criteria of each run."""

from typing import Any

from django.db import migrations, models


def count(apps: Any, _editor: Any) -> None:
    runs = apps.get_model("assessments", "ReportRun").objects
    for specification in apps.get_model("registry", "FrameworkSpecification").objects.iterator():
        criteria = sum(len(section["criteria"]) for section in specification.document["sections"])
        runs.filter(specification_id=specification.pk).update(criteria=criteria)


class Migration(migrations.Migration):
    dependencies = [("assessments", "0002_applications")]

    operations = [
        migrations.AddField(model_name="reportrun", name="criteria", field=models.PositiveIntegerField(db_default=0)),
        migrations.RunPython(count, migrations.RunPython.noop, elidable=True),
    ]
