"""
Declare one field, change its declaration, move it, or remove it.

Each makes a new version of the settings of the registry, as a changed file does: :mod:`muniment.registry.settings`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from muniment import declared_fields
from muniment.accounts.operations import require_operator
from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Conflict, NotFound
from muniment.registry.declared.stored import StoredValues, stored_values
from muniment.registry.settings.versions import apply_settings, latest_version
from muniment.registry_toml.applied import Applied
from muniment.schema.declared.declarations import Declaration
from muniment.schema.declared.faults import FieldsError

Table = JSONObject
"""A declaration as ``registry.toml`` has it."""


class Field(NamedTuple):
    """A declared field with its stored values."""

    declared: Declaration
    values: StoredValues


def list_fields(latest: Applied) -> list[Field]:
    """Return the declared fields of a version in their order, with their stored values."""
    declared = _declared(latest)
    values_by_field = {(values.declared.of, values.declared.key): values for values in stored_values(declared)}
    return [Field(declaration, values_by_field[declaration.of, declaration.key]) for declaration in declared]


def get_field(latest: Applied, of: str, key: str) -> Declaration:
    """Return a declared field of a version; raise NotFound if there is none."""
    return _declared(latest)[_place(latest, of, key)]


def propose(latest: Applied, table: Table, *, of: str = "", key: str = "") -> tuple[tuple[Table, ...], int]:
    """
    Return the declarations of a version with *table* in place of the field *key*, or as a further one; and its place.

    Raises:
        NotFound: there is no such field.
    """
    tables = list(latest.settings.fields)
    at = _place(latest, of, key) if key else len(tables)
    tables[at : at + 1] = [table]
    return tuple(tables), at


def check(tables: Sequence[Table], number: int) -> StoredValues:
    """
    Return the stored values of the field *number* of declarations.

    Raises:
        FieldsError: the declarations have faults.
    """
    return stored_values([declared_fields.read(tables)[number]])[0]


def apply_fields(actor: Actor, tables: Sequence[Table], *, note: str, expected_number: int) -> int:
    """
    Make a version with other declarations, and return its number.

    Raises:
        Forbidden: the actor is not an operator.
        InvalidSettings: the declarations have faults, or stored values do not fit them.
        Conflict: there is a later version.
    """
    latest = latest_version()
    settings = replace(latest.settings, fields=tuple(tables))
    return apply_settings(actor, settings, note=note, expected_number=expected_number)


def move_field(actor: Actor, of: str, key: str, *, up: bool, expected_number: int) -> int:
    """Let a field change places with the one before or after it; raise NotFound if there is no such field."""
    require_operator(actor)
    latest = latest_version()
    here = _place(latest, of, key)
    declared = _declared(latest)
    places = [place for place, field in enumerate(declared) if field.of == of]
    if up:
        beside = [place for place in places if place < here][-1:]
    else:
        beside = [place for place in places if place > here][:1]
    tables: list[Any] = list(latest.settings.fields)
    for there in beside:  # none if the field is the first or the last one
        tables[here], tables[there] = tables[there], tables[here]
    return apply_fields(actor, tables, note=f"{key} moved", expected_number=expected_number)


def retire_field(actor: Actor, of: str, key: str, *, retired: bool, expected_number: int) -> int:
    """Retire a field, whose values are kept, or use it again; raise NotFound if there is no such field."""
    require_operator(actor)
    latest = latest_version()
    at = _place(latest, of, key)
    tables: list[Any] = list(latest.settings.fields)
    kept = {name: value for name, value in tables[at].items() if name != "retired"}
    if retired:
        kept["retired"] = True
    tables[at] = kept
    note = f"{key} retired" if retired else f"{key} used again"
    return apply_fields(actor, tables, note=note, expected_number=expected_number)


def remove_field(actor: Actor, of: str, key: str, *, expected_number: int) -> int:
    """Remove a declaration; its values are kept. Raise NotFound if there is no such field."""
    require_operator(actor)
    latest = latest_version()
    tables: list[Any] = list(latest.settings.fields)
    del tables[_place(latest, of, key)]
    return apply_fields(actor, tables, note=f"{key} removed", expected_number=expected_number)


def _declared(latest: Applied) -> tuple[Declaration, ...]:
    try:
        return declared_fields.read(latest.settings.fields)
    except FieldsError:
        raise Conflict(
            "A later version of Muniment has declared fields that this one does not know.",
            "Upgrade this server, or restore an earlier version of the settings.",
        ) from None


def _place(latest: Applied, of: str, key: str) -> int:
    for place, declaration in enumerate(_declared(latest)):
        if declaration.of == of and declaration.key == key:
            return place
    raise NotFound(
        Phrase("There is no declared field {key}.", key=key[:40]),
        "The list has all of them; it may have been removed.",
    )
