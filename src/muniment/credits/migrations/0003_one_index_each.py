import django.db.models.deletion
from django.db import migrations, models

from muniment.store.database.operations import WithoutIndex


class Migration(migrations.Migration):
    dependencies = [
        ("credits", "0002_lists_by_index"),
    ]

    operations = [
        WithoutIndex(
            model_name="hold",
            name="account",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="holds",
                to="credits.ledgeraccount",
            ),
        ),
        WithoutIndex(
            model_name="purchase",
            name="account",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="purchases",
                to="credits.ledgeraccount",
            ),
        ),
        WithoutIndex(
            model_name="transfer",
            name="credit",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="credits",
                to="credits.ledgeraccount",
            ),
        ),
        WithoutIndex(
            model_name="transfer",
            name="debit",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="debits",
                to="credits.ledgeraccount",
            ),
        ),
    ]
