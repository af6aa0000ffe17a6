import django.db.models.deletion
from django.db import migrations, models

from muniment.store.database.operations import WithoutIndex


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks", "0002_endpoint_behind"),
    ]

    operations = [
        WithoutIndex(
            model_name="delivery",
            name="endpoint",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deliveries",
                to="webhooks.endpoint",
            ),
        ),
    ]
