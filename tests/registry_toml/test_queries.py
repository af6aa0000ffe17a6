"""Saved queries of registry.toml: every fault is named, and the shipped ones fit the tables."""

import pytest

from muniment.registry_toml.document import Query
from muniment.registry_toml.queries import SHIPPED
from muniment.registry_toml.reading import InvalidSettings, check, known_part, parse, written
from muniment.schema.objects import registry_schema
from muniment.store.tables.form import Form
from muniment.store.tables.statements import fault_of, parameters_in

FORM = Form(registry_schema("USD"))
QUERY = {"slug": "old-ones", "title": "Old ones", "sql": "SELECT slug\nFROM companies"}


def test_a_declared_query_is_written_as_it_was_read():
    settings = check({"queries": [QUERY]})
    assert settings.queries == (Query("old-ones", "Old ones", "", QUERY["sql"]),)
    assert parse(written(settings)) == settings
    assert known_part({"queries": [{**QUERY, "later": 1}]}).queries == settings.queries


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"slug": "Old ones"}, "queries.Old ones.slug"),
        ({"slug": "x" * 61}, f"queries.{'x' * 61}.slug"),
        ({"title": ""}, "queries.old-ones.title"),
        ({"title": "a\nb"}, "queries.old-ones.title"),
        ({"title": 7}, "queries.old-ones.title"),
        ({"sql": "x" * 8_001}, "queries.old-ones.sql"),
        ({"sql": "SELECT \x01"}, "queries.old-ones.sql"),
        ({"chart": "pie"}, "queries.old-ones.chart"),
        ({"titel": "x"}, "queries.old-ones.titel"),
    ],
)
def test_a_fault_of_a_query_is_named_by_its_place(change, place):
    with pytest.raises(InvalidSettings) as refused:
        check({"queries": [{**QUERY, **change}]})
    assert list(refused.value.faults) == [place]


@pytest.mark.parametrize("queries", ["x", [1], [QUERY] * 101, [QUERY, QUERY]])
def test_queries_are_a_list_of_tables_with_different_slugs(queries):
    with pytest.raises(InvalidSettings):
        check({"queries": queries})


@pytest.mark.parametrize("query", SHIPPED, ids=lambda query: query.slug)
def test_a_shipped_query_fits_the_tables_of_every_registry(query):
    assert fault_of(query.sql, FORM) is None
    assert check({"queries": [{"slug": query.slug, "title": query.title, "sql": query.sql, "chart": query.chart}]})


def test_a_wrong_statement_is_told_before_it_is_asked():
    fault = fault_of("SELECT nmae FROM companies", FORM)
    assert "companies.name" in fault.hint
    assert parameters_in("SELECT ':no', \":no\", :a -- :no\n/* :no */ + :b + :a") == ["a", "b"]
