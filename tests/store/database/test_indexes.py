"""Each index of a table of Muniment has a reason: none only repeats how another one begins."""

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db import connection, models

pytestmark = pytest.mark.django_db


def own_models() -> list[type[models.Model]]:
    return [model for model in apps.get_models(include_auto_created=True) if model.__module__.startswith("muniment.")]


def repeated(model: type[models.Model]) -> Iterator[str]:
    """Yield the foreign keys with an index of their own, though an index without a condition begins with the column."""
    options = model._meta
    beginnings = {names[0] for names in options.unique_together}
    for index in options.indexes:
        if index.condition is None and index.fields:
            beginnings.add(index.fields[0].removeprefix("-"))
    for constraint in options.constraints:
        if isinstance(constraint, models.UniqueConstraint) and constraint.condition is None and constraint.fields:
            beginnings.add(constraint.fields[0])
    for field in options.local_fields:
        if isinstance(field, models.ForeignKey) and field.db_index and not field.unique and field.name in beginnings:
            yield f"{options.label}.{field.name}"


def test_no_foreign_key_has_an_index_that_another_begins_with():
    found = [name for model in own_models() for name in repeated(model)]
    assert found == []


def test_every_foreign_key_is_found_by_an_index():
    missing = []
    with connection.cursor() as cursor:
        for model in own_models():
            constraints = connection.introspection.get_constraints(cursor, model._meta.db_table).values()
            first = {
                each["columns"][0] for each in constraints if each["columns"] and (each["index"] or each["unique"])
            }
            for field in model._meta.local_fields:
                if isinstance(field, models.ForeignKey) and field.column not in first and not field.primary_key:
                    missing.append(f"{model._meta.label}.{field.name}")
    assert missing == []
