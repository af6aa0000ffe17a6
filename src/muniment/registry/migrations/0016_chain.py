"""The table of the chain is created with those of the published documents, after the migrations."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("registry", "0015_provenance")]

    operations = []
