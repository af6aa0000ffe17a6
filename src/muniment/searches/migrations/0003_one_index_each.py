import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from muniment.store.database.operations import WithoutIndex


class Migration(migrations.Migration):
    dependencies = [
        ("searches", "0002_subscriptions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        WithoutIndex(
            model_name="savedsearch",
            name="account",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="saved_searches",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        WithoutIndex(
            model_name="subscription",
            name="subscriber",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="subscriptions",
                to="searches.subscriber",
            ),
        ),
    ]
