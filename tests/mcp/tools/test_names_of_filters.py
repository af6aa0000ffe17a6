"""An agent that names a filter as a field gets the field that the filter is about."""

import pytest

from muniment.mcp.tools.answers import form_of
from muniment.schema.objects import registry_schema

# What a filter selects by is no field of an answer: the presence of a value, or the company of a person.
OF_NO_FIELD = {"raising", "hasCapTable", "company", "title", "isOpen"}


def filters():
    for kind, listing in registry_schema("USD").listings.items():
        for name, (field, _) in listing.filters.items():
            if name not in OF_NO_FIELD:
                yield pytest.param(name, field.name, id=f"{kind}-{name}")


@pytest.mark.parametrize(("name", "field"), list(filters()))
def test_a_filter_named_as_a_field_is_its_field(name, field):
    assert form_of({"fields": [name]}).fields == (field,)
