from typing import ClassVar

from django.apps.registry import Apps
from django.db import migrations
from django.utils import timezone


def open_again(apps: Apps, _: object) -> None:
    """Let what the scanner gave no verdict on be completed again, and end like everything that was left over."""
    apps.get_model("documents", "Document").objects.filter(state="uploaded", text_state="not extractable").update(
        text_state="none",
        text_note="",
        reason="The virus scanner gave no verdict. Complete the upload again within 24 hours"
        " to have it scanned once more.",
        changed_at=timezone.now(),
    )


class Migration(migrations.Migration):
    dependencies: ClassVar = [("documents", "0002_blob_hold")]

    operations: ClassVar = [migrations.RunPython(open_again, migrations.RunPython.noop, elidable=True)]
