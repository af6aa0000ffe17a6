"""Keep tables that are imported in the browser, and what imports report."""

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import muniment.kernel.ids
import muniment.registry.fields


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("registry", "0023_registry_versions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="importrun",
            name="job",
            field=models.CharField(blank=True, db_default="", default="", max_length=26),
        ),
        migrations.AddField(
            model_name="importrun",
            name="report",
            field=muniment.registry.fields.JSONText(blank=True, null=True),
        ),
        migrations.CreateModel(
            name="ImportUpload",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=muniment.kernel.ids.new_id, max_length=26, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(default=muniment.kernel.ids.now)),
                ("updated_at", models.DateTimeField(default=muniment.kernel.ids.now)),
                ("name", muniment.registry.fields.Text()),
                ("address", muniment.registry.fields.Text(blank=True, default="")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("reading", "Reading"),
                            ("mapping", "Mapping"),
                            ("checking", "Checking"),
                            ("preview", "Preview"),
                            ("importing", "Importing"),
                            ("done", "Done"),
                        ],
                        default="reading",
                        max_length=16,
                    ),
                ),
                ("options", muniment.registry.fields.JSONText(default=list)),
                ("mapping", muniment.registry.fields.Text(blank=True, default="")),
                ("facts", muniment.registry.fields.JSONText(default=dict)),
                ("report", muniment.registry.fields.JSONText(default=dict)),
                ("error", muniment.registry.fields.Text(blank=True, default="")),
                ("job", models.CharField(blank=True, default="", max_length=26)),
                (
                    "account",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="registry.importrun",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=16)),
                ("content", models.BinaryField()),
                (
                    "upload",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="files", to="registry.importupload"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="importupload",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["reading", "mapping", "checking", "preview", "importing", "done"])),
                name="import_upload_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="importfile",
            constraint=models.UniqueConstraint(fields=("upload", "kind"), name="import_file_once"),
        ),
    ]
