"""The check of references between tables: a row that refers to a missing row is an orphan."""

from typing import Any, Final, NamedTuple

from django.apps import apps
from django.db import connection

from muniment.scrub.checks import RESTORE, Check, Damage, Slice, in_order
from muniment.store.database.snapshots import snapshot

NAME: Final = "references"


class _Reference(NamedTuple):
    """A column that refers to the key of another table."""

    table: str
    key: str
    column: str
    target: str
    target_key: str

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}"


def _references() -> dict[str, _Reference]:
    models: list[Any] = [each for each in apps.get_models(include_auto_created=True) if each._meta.managed]  # noqa: SLF001 - documented by Django
    present = set(connection.introspection.table_names())
    found = [
        _Reference(
            model._meta.db_table,  # noqa: SLF001 - documented by Django
            model._meta.pk.column,  # noqa: SLF001 - documented by Django
            field.column,
            field.related_model._meta.db_table,  # noqa: SLF001 - documented by Django
            field.target_field.column,
        )
        for model in models
        for field in model._meta.concrete_fields  # noqa: SLF001 - documented by Django
        if field.is_relation and field.related_model is not None
    ]
    return {each.name: each for each in found if {each.table, each.target} <= present}


def _look(after: str, limit: int, mend: bool) -> Slice:  # noqa: ARG001, FBT001 - the signature of a check
    references = _references()
    names, last = in_order(sorted(references), after, max(1, limit // 5))
    with snapshot():
        findings = [_damage(references[name]) for name in names]
    damages = [damage for damage in findings if damage is not None]
    return Slice(len(names), damages, last)


def _damage(reference: _Reference) -> Damage | None:
    table, key, column, target, target_key = (connection.ops.quote_name(name) for name in reference)
    statement = (
        f"FROM {table} child LEFT JOIN {target} parent ON parent.{target_key} = child.{column}"
        f" WHERE child.{column} IS NOT NULL AND parent.{target_key} IS NULL"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*), min(child.{key}) {statement}")
        orphans, first = cursor.fetchone()
    if not orphans:
        return None
    says = f"{orphans:,} rows refer to missing rows of {reference.target}, the first is {reference.key} {first}"
    remedy = f"restore a backup into a new data folder to see what is missing, or {RESTORE}"
    return Damage(check=NAME, subject=reference.name, says=says, remedy=remedy)


CHECK: Final = Check(name=NAME, fine="every reference leads to a row", count=lambda: len(_references()), look=_look)
