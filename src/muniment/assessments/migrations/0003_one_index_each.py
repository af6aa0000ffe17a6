import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from muniment.store.database.operations import WithoutIndex


class Migration(migrations.Migration):
    dependencies = [
        ("assessments", "0002_lists_by_index"),
        ("registry", "0007_one_index_each"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        WithoutIndex(
            model_name="application",
            name="applicant",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="applications",
                to="registry.company",
            ),
        ),
        WithoutIndex(
            model_name="application",
            name="receiver",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="received_applications",
                to="registry.company",
            ),
        ),
        WithoutIndex(
            model_name="reportrun",
            name="account",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="report_runs",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        WithoutIndex(
            model_name="reportrun",
            name="company",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="report_runs",
                to="registry.company",
            ),
        ),
    ]
