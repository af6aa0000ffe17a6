"""Whether the day of a listing date is known, and a country in every stored address."""

from typing import Any, ClassVar

from django.db import migrations, models

CHUNK = 500


def _fill(apps: Any, _: Any) -> None:
    model = apps.get_model("registry", "Company")
    # A month without a day is stored as its first day, so that a first day may be either.
    first_days = model.objects.filter(listed_on__day=1)
    approved = apps.get_model("registry", "HistoryEntry").objects.filter(action="approved", company__in=first_days)
    on_that_day = approved.filter(at__date=models.F("company__listed_on")).values_list("company_id", flat=True)
    first_days.exclude(pk__in=list(on_that_day)).update(listed_month_only=True)
    last = 0
    while rows := list(model.objects.filter(pk__gt=last, address__isnull=False).order_by("pk")[:CHUNK]):
        last = rows[-1].pk
        for row in rows:
            row.address = [{**place, "country": place.get("country")} for place in row.address]
        model.objects.bulk_update(rows, ["address"])


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0011_import_memory")]

    operations: ClassVar = [
        migrations.AddField("company", "listed_month_only", models.BooleanField(default=False)),
        migrations.RunPython(_fill, migrations.RunPython.noop, elidable=True),
    ]
