"""Access tokens with fewer scopes than their connection."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the scopes of the current and the replaced access token; "" means those of the connection."""

    dependencies: ClassVar = [("oauth", "0001_first")]

    operations: ClassVar = [
        migrations.AddField(
            "grant", "access_scopes", models.CharField(blank=True, db_default="", default="", max_length=300)
        ),
        migrations.AddField(
            "grant", "replaced_access_scopes", models.CharField(blank=True, db_default="", default="", max_length=300)
        ),
    ]
