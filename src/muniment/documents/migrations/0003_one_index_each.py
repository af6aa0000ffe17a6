import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from muniment.store.database.operations import WithoutIndex


class Migration(migrations.Migration):
    dependencies = [
        ("documents", "0002_lists_by_index"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        WithoutIndex(
            model_name="document",
            name="account",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="documents",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        WithoutIndex(
            model_name="page",
            name="document",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="pages",
                to="documents.document",
            ),
        ),
        WithoutIndex(
            model_name="pin",
            name="document",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="pins",
                to="documents.document",
            ),
        ),
    ]
