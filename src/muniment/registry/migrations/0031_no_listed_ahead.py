"""Remove the mark of listing dates in the future: lists are ordered by the date, whatever it is."""

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0030_defaults_for_former_versions")]

    operations: ClassVar = [migrations.RemoveField("company", "listed_ahead")]
