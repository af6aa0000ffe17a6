"""Store logos and portraits of our own by their path: their URL begins with the instance's present one."""

import re
from collections.abc import Callable
from typing import Any, ClassVar

from django.db import migrations

_URL = re.compile(r"https?://[^/]+(?P<path>/pictures/(?P<digest>[0-9a-f]{32})-(?:144|512)\.webp)")
_CHUNK = 500


def _store_paths(apps: Any, _: Any) -> None:
    stored = set(apps.get_model("registry", "Picture").objects.values_list("digest", flat=True))

    def path_of(address: Any) -> Any:
        match = _URL.fullmatch(address) if isinstance(address, str) else None
        return match["path"] if match and match["digest"] in stored else address

    def of_company(company: Any) -> Any:
        company.icon, former = path_of(company.icon), company.icon
        return company.icon != former

    def of_person(person: Any) -> Any:
        extra = person.extra or {}
        person.extra = {**extra, "picture": path_of(extra["picture"])} if "picture" in extra else person.extra
        return person.extra != extra

    if stored:
        _change(apps.get_model("registry", "Company"), "icon", of_company)
        _change(apps.get_model("registry", "Person"), "extra", of_person)


def _change(model: Any, column: str, change: Callable[[Any], bool]) -> None:
    rows = model.objects.filter(**{f"{column}__contains": "/pictures/"})
    keys = list(rows.values_list("pk", flat=True))
    for start in range(0, len(keys), _CHUNK):
        changed = [row for row in model.objects.filter(pk__in=keys[start : start + _CHUNK]) if change(row)]
        model.objects.bulk_update(changed, [column])


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0012_exact_values")]

    operations: ClassVar = [migrations.RunPython(_store_paths, migrations.RunPython.noop, elidable=True)]
