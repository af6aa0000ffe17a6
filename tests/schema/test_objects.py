"""The registry's own records: their columns exist, their limits are the published ones, further fields join them."""

import pytest
from django.core.exceptions import FieldDoesNotExist

from muniment.registry.models import Company, Framework, FundingRound, Person
from muniment.schema.kinds import CHANGE, CONTRACT, Text
from muniment.schema.objects import registry_schema
from muniment.schema.record import Field

SCHEMA = registry_schema("USD")


@pytest.mark.parametrize(
    ("record", "model"),
    [
        (SCHEMA.company, Company),
        (SCHEMA.person, Person),
        (SCHEMA.framework, Framework),
        (SCHEMA.funding_round, FundingRound),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else "",
)
def test_every_column_of_a_record_is_one_of_its_table(record, model):
    for field in record.fields:
        if field.column:
            try:
                column = model._meta.get_field(field.column)
            except FieldDoesNotExist:
                pytest.fail(f"{record.name}.{field.name}: the table has no column {field.column}")
            assert column.null == (field.kind.empty is None) or field.required or field.column == "updated_at"


def test_every_field_is_declared_once():
    for record in (SCHEMA.company, SCHEMA.bundle, SCHEMA.person, SCHEMA.framework, SCHEMA.company_change):
        names = [field.name for field in record.fields]
        assert len(set(names)) == len(names)
        assert all(field.label for field in record.fields)


def test_name_symbol_and_type_need_review():
    assert [field.name for field in SCHEMA.company_change.fields if field.review] == ["name", "symbol", "type"]


def test_an_instance_declares_further_fields_beside_the_schema_that_exists():
    further = Field("berthNumber", Text(40), "Berth number")
    declared = SCHEMA.declare(company=(further,), person=(further,))
    for record in (declared.company, declared.company_change, declared.person, declared.profile_change):
        assert record.by_name["berthNumber"].label == "Berth number"
    assert "berthNumber" in declared.bundle.by_name["company"].kind.by_name
    assert "berthNumber" not in SCHEMA.company.by_name


def test_a_declared_field_does_not_take_the_name_of_another():
    for name in ("id", "positions", "symbol"):
        with pytest.raises(ValueError, match=f"fields of these names exist: {name}"):
            SCHEMA.declare(company=(Field(name, Text(), "Mine"),))
    with pytest.raises(ValueError, match="fields of these names exist: bio"):
        SCHEMA.declare(person=(Field("bio", Text(), "Mine"),))


EDITING = ("Starts with", "Used only while", "Empty if there is no", "if new", "You can use", "Changes the open round")


def texts_of(schema):
    """Yield every description within a JSON Schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("description"), str):
            yield schema["description"]
        for each in schema.values():
            yield from texts_of(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from texts_of(each)


def test_the_api_reference_says_nothing_of_the_form():
    records = (SCHEMA.company, SCHEMA.bundle, SCHEMA.person, SCHEMA.framework)
    texts = [text for record in records for text in texts_of(record.definition(CONTRACT))]
    assert "Absent if there is no token." in texts
    assert [text for text in texts if any(word in text for word in EDITING)] == []


def test_a_text_for_reading_replaces_the_help_only_where_it_is_read():
    field = Field("symbol", Text(9), "Symbol", "Type it.", description="As typed.")
    assert (field.schema(CHANGE)["description"], field.schema(CONTRACT)["description"]) == ("Type it.", "As typed.")
    silent = Field("symbol", Text(9), "Symbol", "Type it.", description="")
    assert "description" not in silent.schema(CONTRACT)
    assert Field("symbol", Text(9), "Symbol", "Both.").schema(CONTRACT)["description"] == "Both."
