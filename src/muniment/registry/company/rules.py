"""
Judge edits by the rules about values, after they are applied and before they are written.

What an edit does not touch breaks no rule: values stored before a rule, and those that an import brought, stay until an
edit changes them.

Source: decisions, section 5, values.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from django.conf import settings
from django.db import connection

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.registry.company.company_change import HINT, BadFields
from muniment.registry.company.difference import Difference
from muniment.registry.models import Company
from muniment.registry.sql import rows
from muniment.schema.company import bytes_of, listing_breaches, object_breaches
from muniment.schema.item_lists import ItemChange
from muniment.schema.record import Record
from muniment.schema.validation import MAX_FAULTS, Breach, Path

_PARTS: Final = (
    ("positions", "registry_position", ("COALESCE(title, '')", "extra"), 60),
    ("proposals", "registry_proposal", ("document",), 1),
    ("capTable", "registry_captableentry", ("document",), 1),
)
"""The parts of a listing: its table, the columns with its text, and about how many bytes of a row are elsewhere."""


def refuse_broken_rules(company: Company, found: Difference) -> None:
    """
    Refuse an edit whose changed values break a rule.

    Raises:
        BadFields: names each of them by its place in the change.
    """
    if breaches := list(islice(_breaches(company, found), MAX_FAULTS)):
        raise BadFields([each._replace(path=_in_change(each.path, found)).fault for each in breaches])


def refuse_broken_fields(record: Record, found: Difference, hint: str = HINT) -> None:
    """
    Refuse an edit of an object without parts.

    Raises:
        BadFields: a changed value breaks a rule.
    """
    breaches = [
        breach
        for name, after in found.after.items()
        for breach in record.by_name[name].kind.breaches(after, (name,), found.before[name])
    ]
    if breaches:
        raise BadFields([each.fault for each in breaches], hint)


def _breaches(company: Company, found: Difference) -> Iterator[Breach]:
    by_id = {path[0] for path in found.operations}
    for name, after in found.after.items():
        kind = settings.SCHEMA.company_field(name).kind
        for breach in kind.breaches(after, (name,), found.before[name], by_row=name not in by_id):
            if name != "positions" or not _names_known_person(after, breach.path):
                yield breach
    yield from _sizes(company, found)


def _names_known_person(positions: list[JSONObject], path: Path) -> bool:
    """Return whether *path* is the name of a person who has a profile, which the listing only shows."""
    return path[2:] == ("person", "name") and bool(positions[int(path[1])]["person"].get("slug"))


def _sizes(company: Company, found: Difference) -> Iterator[Breach]:
    if found.columns:
        before, after = _object_bytes(vars(company)), _object_bytes({**vars(company), **found.columns})
        yield from object_breaches(after, before)
    changed = [name for name, *_ in _PARTS if name in found.after]
    growth = sum(bytes_of(found.after[name]) - bytes_of(found.before[name]) for name in changed)
    if growth > 0:
        yield from listing_breaches(listing_bytes(company) + growth)


def _object_bytes(columns: JSONMapping) -> int:
    members = settings.SCHEMA.company.exact(columns)
    return bytes_of({**members, **(columns["extra"] or {}), "distribution": columns["distribution"]})


def listing_bytes(company: Company) -> int:
    """Return about how many bytes the stored listing has with all its parts."""
    if company.pk is None:
        return 0
    size = "octet_length" if connection.vendor == "postgresql" else "length"
    text = "{}" if connection.vendor == "postgresql" else "CAST({} AS BLOB)"
    sums = ", ".join(
        f"(SELECT COALESCE(SUM({' + '.join(f'{size}({text.format(each)})' for each in columns)} + {overhead}), 0)"
        f" FROM {table} WHERE company_id = %s)"
        for _, table, columns, overhead in _PARTS
    )
    ((*parts,),) = rows(f"SELECT {sums}", [company.pk] * len(_PARTS))
    return sum(map(int, parts)) + _object_bytes(vars(company))


def _in_change(path: Path, found: Difference) -> Path:
    """Return the place in the change of a value at *path* after the change."""
    for prefix, change in found.operations.items():
        rest = path[len(prefix) :]
        if path[: len(prefix)] == prefix and rest and isinstance(rest[0], int):
            return (*prefix, *_in_operations(rest[0], change, _rows_at(prefix, found)), *rest[1:])
    return path


def _rows_at(prefix: Path, found: Difference) -> list[JSONObject]:
    value: Any = found.after
    for name in prefix:
        value = value[name]
    return list(value)


def _in_operations(index: int, change: ItemChange, given: list[JSONObject]) -> Path:
    if (each := given[index].get("id", "")) in change.set:
        return ("set", list(change.set).index(each))
    first = len(given) - len(change.add)
    return ("add", index - first) if index >= first else (index,)
