"""Remove what stored values say of a former name that a reviewer removed."""

from typing import Any

from muniment.kernel.json import JSONObject
from muniment.registry.models import Company, HistoryEntry
from muniment.registry.names import former
from muniment.registry.people import suppression
from muniment.registry.people.traces import COLUMNS, rows_naming


def remove_traces(company: Company, name: str) -> None:
    """Remove a name from the history of a listing and from decided requests, in the caller's transaction."""
    for model, columns in COLUMNS:
        rows = rows_naming(model, columns, name).filter(company=company)
        if model is not HistoryEntry:
            rows = rows.exclude(decision="")
        for row in rows:
            values: JSONObject = {column: _without(getattr(row, column), name) for column in columns}
            if isinstance(row, HistoryEntry) and row.changed is not None:
                held = {*values["before"], *values["after"]}
                values["changed"] = [each for each in row.changed if each in held]
            model._default_manager.filter(pk=row.pk).update(**values)  # noqa: SLF001 - Django's public name


def _without(values: JSONObject, name: str) -> JSONObject:
    """Return values of fields without *name*, as the name and among the former ones."""
    found: JSONObject = {}
    for member, value in values.items():
        if member == "name" and isinstance(value, str) and former.key_of(value) == former.key_of(name):
            continue
        found[member] = former.without(value, name) if member == "formerNames" else value
    return found


def remove_suppressed(keys: list[suppression.SuppressionKey]) -> int:
    """
    Remove the former names in a restored database that were removed since, before its documents are published.

    Returns:
        How many names were removed.
    """
    listed, count = suppression.Suppressions(keys), 0
    companies: Any = Company.objects.exclude(former_names=None) if listed else ()
    for company in companies:
        for entry in list(company.former_names):
            if listed.has_former_name(company.slug, entry["name"]):
                remove_traces(company, entry["name"])
                company.former_names = former.without(company.former_names, entry["name"])
                company.save(update_fields=["former_names"])
                count += 1
    return count
