"""
The provenance of text: whether a reviewer, an owner or an import wrote what an item shows.

A row keeps the last review or import of its text, and the day of each text that an owner has changed since: of a list,
of each row. Operations write it, so that a mark costs nothing when a document is rendered.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import chain
from typing import Any, Final

from django.conf import settings

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.registry.models import Company, Framework, Person

Row = Company | Person | Framework

REVIEWED: Final = "reviewed"
OWNER: Final = "owner"
IMPORTED: Final = "imported"


def mark(row: JSONMapping, *shown: str) -> str:
    """
    Return the mark of a row, given by its columns: its provenance and the day, such as ``owner 2026-11-22``.

    ``owner``: an owner changed text that no reviewer has approved or rewritten since. ``reviewed``: a reviewer
    approved the row or was the last to change its text. ``imported``: its text came by import. A row that says
    nothing, as a node of an earlier version writes it, counts as the owner's.

    Args:
        shown: the days on which owners changed text of other rows that this one shows; empty where none did.
    """
    found: JSONObject = row["provenance"] or {}
    days = [*_days(found.get(OWNER, {})), *filter(None, shown)]
    if days:
        return f"{OWNER} {max(days)}"
    if "source" in found:
        return f"{found['source']} {found['on']}"
    at: datetime = row["updated_at"]
    return f"{OWNER} {at:%Y-%m-%d}"


def _days(owned: JSONMapping) -> Iterable[str]:
    for day in owned.values():
        yield from day.values() if isinstance(day, dict) else (day,)


def owned_on(provenance: JSONMapping | None, name: str, item: str = "") -> str:
    """Return the day on which an owner changed a text, or a row of a list, that still waits for a review; else ""."""
    day = (provenance or {}).get(OWNER, {}).get(name, "")
    return str(day.get(item, "") if isinstance(day, dict) else day)


def marks(model: type[Row], slugs: Iterable[str]) -> dict[str, str]:
    """Return the marks of stored rows, by slug."""
    found: Any = model._default_manager.filter(slug__in=list(slugs))  # noqa: SLF001 - Django's public name
    return {row["slug"]: mark(row) for row in found.values("slug", "provenance", "updated_at")}


def _texts(row: Row) -> frozenset[str]:
    """Return the fields of *row* that hold text, by their names in the history."""
    if isinstance(row, Framework):
        return frozenset({"name", "description"})
    record = settings.SCHEMA.person if isinstance(row, Person) else settings.SCHEMA.company_change
    return record.texts


def _without_text(row: Row) -> frozenset[str]:
    """Return the fields of *row* that hold no text, by their names in the history."""
    if isinstance(row, Framework):
        return frozenset({"kind", "company_id", "closed", "runCost", "listed", "specificationVersion"})
    schema = settings.SCHEMA
    record = schema.person if isinstance(row, Person) else schema.company
    return frozenset(record.by_name) - record.texts | {"state", "unlisted_by", "listed", "documentId"}


def edited(row: Any, actor: Actor, before: JSONMapping, after: JSONMapping, *, on: datetime) -> None:
    """Record on the unsaved *row* that *actor* changed fields, given by their names and values in the history."""
    changed = _texts(row) & after.keys()
    if not changed:
        return
    former = row.provenance or {}
    owned = dict(former.get(OWNER, {}))
    today = f"{on:%Y-%m-%d}"
    by_owner = not actor.decides
    for name in sorted(changed):
        day = today if by_owner else ""
        owned[name] = _edited_rows(owned.get(name), before.get(name), after[name], day)
    owned = {name: day for name, day in owned.items() if day}
    if by_owner:
        provenance = {key: value for key, value in former.items() if key != OWNER}
    else:
        provenance = _source(REVIEWED, today)
    if owned:
        provenance[OWNER] = owned
    row.provenance = provenance


def _edited_rows(former: Any, before: Any, after: Any, day: str) -> Any:
    """Return the day of a changed text, or the days of the rows of a changed list; *day* is empty for a review."""
    rows = _objects(after)
    if not rows or not all(row.get("id") for row in rows):
        return day
    rows_before = {row["id"]: row for row in _objects(before) if row.get("id")}
    former_days: Mapping[str, str] = former or {}
    if isinstance(former, str):
        former_days = dict.fromkeys(rows_before, former)  # the day of a whole list counts for each of its rows
    days = {}
    for row in rows:
        is_unchanged = rows_before.get(row["id"]) == row
        days[row["id"]] = former_days.get(row["id"], "") if is_unchanged else day
    return {row_id: row_day for row_id, row_day in days.items() if row_day}


def _objects(value: Any) -> list[JSONObject]:
    """Return the rows of a list; none of another value."""
    if not isinstance(value, list):
        return []
    return [row for row in value if isinstance(row, dict)]


def reviewed(row: Any) -> None:
    """Record on the unsaved *row* that a reviewer approved it as a whole."""
    row.provenance = _source(REVIEWED, f"{now():%Y-%m-%d}")


def imported(row: Any, names: Iterable[str], kept: Iterable[str]) -> None:
    """Record on the unsaved *row* that an import brought the fields *names*, but of *kept* not all."""
    changed = set(names) - _without_text(row) - set(kept)
    if not changed:
        return
    owned_before = (row.provenance or {}).get(OWNER, {})
    owned = {name: day for name, day in owned_before.items() if name not in changed}
    row.provenance = _source(IMPORTED, f"{now():%Y-%m-%d}")
    if owned:
        row.provenance[OWNER] = owned


def created_by_import(rows: Iterable[Any]) -> None:
    """Record on the unsaved *rows* that an import created them."""
    today = f"{now():%Y-%m-%d}"
    for row in rows:
        row.provenance = _source(IMPORTED, today)


def merged(kept: Any, other: Any, *names: Iterable[str]) -> None:
    """Record on the unsaved *kept* that it takes the texts *names* from *other*."""
    theirs = (other.provenance or {}).get(OWNER, {})
    taken = {name: theirs[name] for name in chain.from_iterable(names) if name in theirs}
    if taken:
        own = kept.provenance or {}
        kept.provenance = {**own, OWNER: {**own.get(OWNER, {}), **taken}}


def _source(source: str, day: str) -> JSONObject:
    return {"source": source, "on": day}
