"""Keep the names that companies had; those that the history tells are stored."""

from typing import Any, ClassVar

from django.db import migrations

import muniment.registry.fields
from muniment.registry.names import from_history


def _fill(_apps: Any, _editor: Any) -> None:
    from_history.fill()


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0017_listed_ahead")]

    operations: ClassVar = [
        migrations.AddField("company", "former_names", muniment.registry.fields.JSONText(null=True, blank=True)),
        migrations.RunPython(_fill, migrations.RunPython.noop, elidable=True),
    ]
