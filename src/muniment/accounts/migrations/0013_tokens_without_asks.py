"""Remove the setting of tokens that asked before their tool calls acted."""

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Remove ``asks`` from tokens."""

    dependencies: ClassVar = [("accounts", "0012_defaults_for_former_versions")]

    operations: ClassVar = [migrations.RemoveField("personaltoken", "asks")]
