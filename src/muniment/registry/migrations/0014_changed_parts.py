"""How the values of history entries that are not whole fit into the whole; entries so far hold whole values."""

from typing import ClassVar

from django.db import migrations

from muniment.registry.fields import JSONText


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0013_picture_paths")]

    operations: ClassVar = [
        migrations.AddField("historyentry", name, JSONText(blank=True, null=True)) for name in ("parts", "changed")
    ]
