"""Remove the setting of connected apps that asked before their tool calls acted."""

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Remove ``asks`` from connections and from the codes that become some."""

    dependencies: ClassVar = [("oauth", "0003_asks")]

    operations: ClassVar = [
        migrations.RemoveField("authorizationcode", "asks"),
        migrations.RemoveField("grant", "asks"),
    ]
