"""Remove a person from stored JSON: the positions of companies in the history and in requests."""

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import msgspec
from django.db import models
from django.db.models import Q, TextField
from django.db.models.functions import Cast

from muniment.kernel.json import JSONObject
from muniment.registry.changed_parts import without_rows
from muniment.registry.models import HistoryEntry, PendingChange, Petition
from muniment.registry.people.suppression import folded

COLUMNS: Final[list[tuple[type[models.Model], tuple[str, ...]]]] = [
    (HistoryEntry, ("before", "after")),
    (PendingChange, ("changes",)),
    (Petition, ("changes",)),
]
"""The columns with values of listings."""


class Named(NamedTuple):
    """A person as positions name them."""

    slug: str
    name: str

    def is_in(self, position: Any) -> bool:
        """Return whether a JSON value is a position of this person, by slug, or by name where there is no slug."""
        person = position.get("person") if isinstance(position, dict) else None
        if not isinstance(person, dict):
            return False
        slug, name = person.get("slug"), person.get("name")
        return slug == self.slug if slug else isinstance(name, str) and folded(name) == folded(self.name)


def without(value: Any, person: Named) -> Any:
    """Return a JSON value without the positions of a person."""
    if isinstance(value, dict):
        return {key: without(each, person) for key, each in value.items() if not person.is_in(each)}
    if isinstance(value, list):
        return [without(each, person) for each in value if not person.is_in(each)]
    return value


def remove_from_values(person: Named, companies: Collection[int]) -> set[int]:
    """
    Remove a person's positions from the history and from requests, in the caller's transaction.

    Args:
        companies: those that have positions of the person, by primary key.

    Returns:
        These and the companies whose values named the person by slug. Their values may also have the name alone.
    """
    named = set(companies)
    for model, columns in COLUMNS:
        for row in rows_naming(model, columns, person.slug).filter(company__isnull=False):
            named.add(row.company_id)
            _clean(row, columns, person)
    for model, columns in COLUMNS:
        for row in rows_naming(model, columns, person.name).filter(company__in=named):
            _clean(row, columns, person)
    return named


def rows_naming(model: type[models.Model], columns: tuple[str, ...], text: str) -> models.QuerySet[Any]:
    """Return the rows of a table with *text*, in any case, as a value in one of the columns."""
    encoded = msgspec.json.encode(text).decode()
    texts = {f"{column}_text": Cast(column, TextField()) for column in columns}
    contains = Q(pk__in=[])
    for column in texts:
        contains |= Q(**{f"{column}__icontains": encoded})
    found: models.QuerySet[Any] = model._default_manager.annotate(**texts).filter(contains)  # noqa: SLF001 - Django's public name
    return found


def _clean(row: Any, columns: tuple[str, ...], person: Named) -> None:
    values = {column: without(getattr(row, column), person) for column in columns}
    if isinstance(row, HistoryEntry):
        values = _without_unchanged(row, values["before"], values["after"])
    type(row)._default_manager.filter(pk=row.pk).update(**values)  # noqa: SLF001 - Django's public name


def _without_unchanged(entry: HistoryEntry, before: JSONObject, after: JSONObject) -> JSONObject:
    """Return the columns of *entry* without the fields that are now the same before and after."""
    parts = dict(entry.parts or {})
    for name, part in parts.items():
        if "from" in part:
            of_all, left = (
                {row["id"] for side in of for row in side[name]}
                for of in ((entry.before, entry.after), (before, after))
            )
            parts[name] = without_rows(part, of_all - left)
    for name in [name for name in before if name in after and before[name] == after[name]]:
        if not any(parts.get(name, {}).values()):
            del before[name], after[name]
            parts.pop(name, None)
    changed = [name for name in entry.changed if name in after or name in before]
    return {"before": before, "after": after, "parts": parts or None, "changed": changed}
