"""Whether stored values fit the fields that an operator declares, before the declarations are applied."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db import models

from muniment.kernel.http.representations import digest
from muniment.kernel.json import JSONObject
from muniment.registry.models import Company, Person
from muniment.schema.declared.declarations import Declaration, field_of
from muniment.schema.record import Field
from muniment.schema.validation import Validation

_NAMED: Final = 3
"""Rows in a sentence."""
_SHOWN: Final = 20
"""Rows on a page."""
_TABLES: Final[dict[str, type[models.Model]]] = {"company": Company, "person": Person}


class StoredValues(NamedTuple):
    """
    The stored values of a declared field.

    Args:
        n: how many rows have one.
        unfit: how many do not fit.
        examples: the slugs of the first of these, each with what is wrong.
    """

    declared: Declaration
    n: int
    unfit: int
    examples: tuple[tuple[str, str], ...]

    @property
    def fault(self) -> str:
        key = self.declared.key
        named = "; ".join(f"{slug}: {says}" for slug, says in self.examples[:_NAMED])
        return f"{key} ({self.declared.kind}): {self.unfit:,} of {self.n:,} stored values: {named}"


def stored_values(declarations: Sequence[Declaration]) -> list[StoredValues]:
    """Read the stored values of each declared field."""
    values: list[StoredValues] = []
    for place, model in _TABLES.items():
        of_table = [declaration for declaration in declarations if declaration.of == place]
        if of_table:
            values += _of_table(model, of_table)
    return values


def unfit_values(declarations: Sequence[Declaration]) -> list[str]:
    """Return a sentence for each field that stored values do not fit; those of a retired field are only kept."""
    return [values.fault for values in stored_values(declarations) if values.unfit]


def _of_table(model: type[models.Model], declarations: Sequence[Declaration]) -> list[StoredValues]:
    fields = [field_of(declaration, settings.CURRENCY) for declaration in declarations]
    counts = [0] * len(fields)
    unfit = [0] * len(fields)
    examples: list[list[tuple[str, str]]] = [[] for _ in fields]
    rows = model._default_manager.exclude(extra={}).order_by("pk").values_list("slug", "extra")  # noqa: SLF001 - Django's public name
    for slug, extra in rows.iterator():
        for place, field in enumerate(fields):
            value = (extra or {}).get(field.name)
            if value is None:
                continue
            counts[place] += 1
            fault = "" if declarations[place].retired else fault_of(field, value)
            if fault:
                unfit[place] += 1
                if unfit[place] <= _SHOWN:
                    examples[place].append((slug, fault))
    stored = []
    for place, declaration in enumerate(declarations):
        stored.append(StoredValues(declaration, counts[place], unfit[place], tuple(examples[place])))
    return stored


def fault_of(field: Field, value: Any) -> str:
    """Return why *value*, in wire form, is none of a declared field; empty if it is one."""
    validation = Validation(change=True)
    validation.read(field.kind, value)
    return validation.faults[0].reason if validation.faults else ""


@lru_cache(maxsize=4)
def mark_of(declarations: tuple[Declaration, ...]) -> str:
    """Return a mark of what documents are rendered with, for which each publication asks; empty without such fields."""
    if not declarations:
        return ""
    rendered: list[JSONObject] = []
    for declaration in sorted(declarations, key=lambda declaration: (declaration.of, declaration.key)):
        members = declaration.to_wire()
        for name in ("label", "help", "in_lists"):  # no document shows them
            members.pop(name, None)
        rendered.append(members)
    return digest(msgspec.json.encode(rendered))[:8]
