import django.db.models.deletion
from django.db import migrations, models

from muniment.store.database.operations import WithoutIndex


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0002_claims_by_index"),
    ]

    operations = [
        WithoutIndex(
            model_name="step",
            name="job",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="steps", to="jobs.job"
            ),
        ),
    ]
