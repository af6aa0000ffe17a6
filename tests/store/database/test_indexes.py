"""Each foreign key has an index, and has none of its own if another index begins with it."""

import pytest
from django.apps import apps
from django.db import models

OWN = [model for model in apps.get_models(include_auto_created=True) if model.__module__.startswith("muniment.")]


def beginnings(model: type[models.Model]) -> set[str]:
    """Return the fields that begin an index or a unique constraint over all rows."""
    found = {names[0] for names in model._meta.unique_together}
    found |= {
        index.fields[0].removeprefix("-") for index in model._meta.indexes if index.fields and not index.condition
    }
    for constraint in model._meta.constraints:
        if isinstance(constraint, models.UniqueConstraint) and constraint.fields and not constraint.condition:
            found.add(constraint.fields[0])
    return found


@pytest.mark.parametrize("model", OWN, ids=lambda model: model._meta.label)
def test_a_foreign_key_has_an_index_of_its_own_unless_another_begins_with_it(model):
    begun = beginnings(model)
    for field in model._meta.local_fields:
        if isinstance(field, models.ForeignKey) and not field.unique:
            assert field.db_index is (field.name not in begun), field.name
