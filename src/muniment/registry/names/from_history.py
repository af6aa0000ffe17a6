"""Find in the history the names that companies had while they were public."""

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec
from django.db import connection

from muniment.registry.names import former
from muniment.registry.names.former import Stored
from muniment.registry.sql import marks, rows

CHUNK: Final = 500
_PUBLISHED: Final = "published"
_REQUESTS: Final = ("asked", "request withdrawn", "change refused")
"""Entries that changed no field."""


class Recorded(NamedTuple):
    """What an entry of the history says of a company's name and state, before and after; None where it says nothing."""

    on: date
    name_before: str | None
    name: str | None
    state_before: str | None
    state: str | None


def names_of(steps: Iterable[Recorded], name: str, state: str) -> Stored:
    """
    Return the former names of a company.

    Args:
        steps: oldest first.
        name: the present name.
        state: the present state.
    """
    known = list(steps)
    is_public = next((each.state_before for each in known if each.state_before), state) == _PUBLISHED
    current: str | None = next((each.name_before for each in known if each.name_before or each.name), name)
    shown = current if is_public else None
    found: Stored = None
    for each in known:
        if each.name_before or each.name:
            current = each.name
            if shown:
                found = former.renamed(found, shown, current or "", on=each.on)
        if each.state:
            is_public = each.state == _PUBLISHED
        if is_public:
            shown = current
    return former.without(found, name)


def fill(is_removed: Callable[[str, str], bool] = lambda _slug, _name: False) -> int:
    """
    Store the former names that the history tells and no company has yet, and return how many companies got some.

    Run by the migration that adds them, and again while nodes of an earlier version rename companies.

    Args:
        is_removed: whether a reviewer removed a name of the company with a slug.
    """
    changed = 0
    for key, slug, name, state, stored, steps in _renamed():
        found = names_of(steps, name, state)
        names = former.joined(stored, found or (), name, lambda each, slug=slug: is_removed(slug, each))  # type: ignore[misc]  # bound in the loop
        if names != stored:
            text = None if names is None else msgspec.json.encode(names).decode()
            with connection.cursor() as cursor:
                cursor.execute("UPDATE registry_company SET former_names = %s WHERE id = %s", [text, key])
            changed += 1
    return changed


def _renamed() -> Iterator[tuple[int, str, str, str, Stored, list[Recorded]]]:
    """Yield the companies that were ever renamed, with their history of names and states."""
    asked = f"action NOT IN ({marks(_REQUESTS)})"
    keys = [
        key
        for (key,) in rows(
            "SELECT DISTINCT company_id FROM registry_historyentry WHERE company_id IS NOT NULL"
            f" AND {asked} AND {_member('before', 'name')} <> '' ORDER BY company_id",
            [*_REQUESTS],
        )
    ]
    columns = ", ".join(_member(side, name) for name in ("name", "state") for side in ("before", "after"))
    for start in range(0, len(keys), CHUNK):
        some = keys[start : start + CHUNK]
        companies = {
            key: (slug, name, state, msgspec.json.decode(stored) if stored else None)
            for key, slug, name, state, stored in rows(
                f"SELECT id, slug, name, state, former_names FROM registry_company WHERE id IN ({marks(some)})", some
            )
        }
        entries = rows(
            f"SELECT company_id, at, {columns} FROM registry_historyentry WHERE company_id IN ({marks(some)})"
            f" AND {asked} ORDER BY company_id, id",
            [*some, *_REQUESTS],
        )
        for key, group in groupby(entries, itemgetter(0)):
            steps = [Recorded(date.fromisoformat(str(at)[:10]), *values) for _, at, *values in group]
            yield key, *companies[key], steps


def _member(column: str, name: str) -> str:
    """Return the expression of a text within a column of JSON."""
    if connection.vendor == "postgresql":
        return f"{column}::json->>'{name}'"
    return f"json_extract({column}, '$.{name}')"
