"""Record the provenance of stored text, as far as the history tells it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

import msgspec
from django.db import migrations, models

import muniment.registry.fields

IMPORTED = "imported"
WHOLE = {"approved", "relisted"}
"""Reviews of a whole listing or profile."""
REVIEWS = {*WHOLE, "change approved", "corrected"}
UNPUBLISHED = {"asked", "request withdrawn", "change refused"}
"""Actions that changed no member."""
TEXTLESS = {
    *("status", "teamSize", "treasury", "treasuryAmount", "createdAt", "listedAt", "icon", "picture"),
    *("state", "unlistedBy", "account", "owner", "kind", "closed", "listed", "runCost", "specificationVersion"),
}
CHUNK = 500


def _provenance(entries: Iterable[tuple[Any, ...]], owners: set[int]) -> Any:
    """Return what the entries of one row tell; those of *owners* count as theirs, others with an account as reviews."""
    source: dict[str, str] = {}
    owned: dict[str, str] = {}
    for _, action, account, via, changed, after, at in entries:
        day = f"{at:%Y-%m-%d}"
        fields = after if changed is None else changed
        names = [] if action in UNPUBLISHED else [name for name in fields if name not in TEXTLESS]
        if action == IMPORTED:
            source = {"source": IMPORTED, "on": day}
        elif action in WHOLE:
            source, owned = {"source": "reviewed", "on": day}, {}
            continue
        elif action in REVIEWS or (names and via == "command"):
            source = {"source": "reviewed", "on": day}
        elif names and (account is None or account in owners or via in {"token", "app"}):
            owned |= dict.fromkeys(names, day)
            continue
        elif names:
            source = {"source": "reviewed", "on": day}
        for name in names:
            owned.pop(name, None)
    return {**source, **({"owner": owned} if owned else {})}


def _entries(apps: Any, column: str) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
    """Yield the entries of each row; of imports, whose values are long, only the day."""
    entries = apps.get_model("registry", "HistoryEntry").objects.filter(**{f"{column}__isnull": False})
    touched = set(entries.exclude(action=IMPORTED).values_list(column, flat=True).distinct())
    latest = entries.filter(action=IMPORTED).values_list(column).annotate(at=models.Max("at")).order_by()
    for key, at in latest.iterator():
        if key not in touched:
            yield key, [(key, IMPORTED, None, "", [], {}, at)]
    keys = sorted(touched)
    columns = (column, "action", "account_id", "via", "changed", "after", "at")
    for start in range(0, len(keys), CHUNK):
        some = entries.filter(**{f"{column}__in": keys[start : start + CHUNK]}).order_by(column, "pk")
        for key, group in groupby(some.values_list(*columns).iterator(), itemgetter(0)):
            yield key, list(group)


def record(apps: Any, _: Any) -> None:
    accounts = apps.get_model("accounts", "Account").objects
    reviewers = set(accounts.exclude(role="owner").values_list("pk", flat=True))
    for name in ("Company", "Person", "Framework"):
        model = apps.get_model("registry", name)
        belonging = _owners(apps, name)
        # Most rows have the same provenance, so that they are updated together.
        rows: dict[bytes, list[int]] = defaultdict(list)
        for key, entries in _entries(apps, f"{name.lower()}_id"):
            actors = {entry[2] for entry in entries} - {None}
            owners = {each for each in actors if each not in reviewers or (key, each) in belonging}
            if found := _provenance(entries, owners):
                rows[msgspec.json.encode(found)].append(key)
        for found, keys in rows.items():
            for start in range(0, len(keys), CHUNK):
                some = model.objects.filter(pk__in=keys[start : start + CHUNK])
                some.update(provenance=msgspec.json.decode(found))
        _record_rest(model, "reviewed" if name == "Framework" else IMPORTED)


def _owners(apps: Any, name: str) -> set[tuple[int, int]]:
    """Return the rows and accounts that belong to each other."""
    if name == "Company":
        return set(apps.get_model("registry", "Ownership").objects.values_list("company_id", "account_id"))
    if name == "Person":
        people = apps.get_model("registry", "Person").objects.filter(account__isnull=False)
        return set(people.values_list("pk", "account_id"))
    return set()


def _record_rest(model: Any, source: str) -> None:
    """Record rows without a history, such as people whom an imported listing names, by the day they were made."""
    rest = model.objects.filter(provenance=None)
    for day in list(rest.datetimes("created_at", "day")):
        made = rest.filter(created_at__gte=day, created_at__lt=day + timedelta(days=1))
        made.update(provenance={"source": source, "on": f"{day:%Y-%m-%d}"})


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0014_changed_parts"), ("accounts", "0004_deletion")]

    operations: ClassVar = [
        *(
            migrations.AddField(name, "provenance", muniment.registry.fields.JSONText(null=True, blank=True))
            for name in ("company", "person", "framework")
        ),
        migrations.RunPython(record, migrations.RunPython.noop, elidable=True),
    ]
