"""The registry's own records: their columns exist, their limits are the published ones, further fields join them."""

import pytest
from django.core.exceptions import FieldDoesNotExist

from muniment.registry.models import Company, Framework, FundingRound, Person
from muniment.schema.kinds import Text
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
