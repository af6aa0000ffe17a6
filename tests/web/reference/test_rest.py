"""The REST reference shows the whole OpenAPI document."""

import pytest

from muniment.api.contract import openapi_document
from muniment.config import Config
from muniment.schema.objects import registry_schema
from muniment.web.reference.rest import OTHERS, groups, objects

BASE = "https://registry.example"


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    return openapi_document(Config({}, data=tmp_path_factory.mktemp("data")), registry_schema("USD"))


def test_every_operation_is_shown_once_and_without_its_head_twin(document):
    shown = [each.key for group in groups(document, BASE, {}) for each in group.operations]
    assert sorted(shown) == sorted(item["get"]["operationId"] for item in document["paths"].values())


def test_every_parameter_is_shown_except_the_headers_that_all_operations_have(document):
    operations = [each for group in groups(document, BASE, {}) for each in group.operations]
    shown = {each.path: {row.name for row in each.parameters} for each in operations}
    for path, item in document["paths"].items():
        declared = {each["name"] for each in item["get"]["parameters"]}
        conditions = {"If-None-Match", "If-Modified-Since"} if "304" in item["get"]["responses"] else set()
        assert declared - shown[path] == conditions


def test_samples_name_a_document_of_the_registry_or_else_the_example(document):
    def sample(known):
        found = {each.key: each.sample for group in groups(document, BASE, known) for each in group.operations}
        return found["listCapTable"]

    assert sample({"companies": "a b/c"}) == f"curl '{BASE}/api/v1/companies/a%20b%2Fc/cap-table'"
    assert sample({}) == f"curl '{BASE}/api/v1/companies/blue-river-trust/cap-table'"


def test_every_object_is_shown_with_its_members(document):
    declared = document["components"]["schemas"]
    shown = [each for group in objects(document) for each in group.objects]
    assert {each.name: [row.name for row in each.rows] for each in shown} == {
        name: list(schema.get("properties", {})) for name, schema in declared.items()
    }
    assert len(shown) == len(declared)


def test_every_object_is_in_a_group_and_described(document):
    assert OTHERS not in [group.title for group in objects(document)]
    assert all(each.description for group in objects(document) for each in group.objects)
    unknown = {"components": {"schemas": {"Berth": {"description": "A place.", "properties": {}}}}}
    assert [(group.title, group.objects[0].name) for group in objects(unknown)] == [(OTHERS, "Berth")]
