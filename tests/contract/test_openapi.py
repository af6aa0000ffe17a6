"""The contract describes what the service answers: every live answer validates, and v1 only ever grows."""

import json
from pathlib import Path

import jsonschema
import pytest

from make.asgi import Client
from make.published import Publisher, company, framework, person
from make.rest import FileLog
from muniment.api.application import Api
from muniment.api.contract import API_VERSION, examples, openapi_document
from muniment.api.routes import ROUTES
from muniment.config import Config
from muniment.schema.company_parts import SOCIALS
from muniment.schema.objects import registry_schema
from muniment.store.reader import Reader

SCHEMA = registry_schema("USD")
SNAPSHOT = Path(__file__).with_name("v1.json")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contract")
    publisher = Publisher(folder / "muniment.sqlite3")
    publisher.publish(
        *(company(n, symbol=f"T{n}", capTable=[{"address": "0x1", "percentage": 1.5}]) for n in range(1, 31)),
        company(40, "中国", socials=dict.fromkeys(SOCIALS.by_name), address=[]),
        person(1),
        framework(1),
        framework(2, kind="program"),
    )
    publisher.unlist("company", "company-3")
    reader = Reader(folder / "muniment.sqlite3")
    api = Api(reader, Config({}, data=folder), SCHEMA)
    api.exports.make()
    api.open_log(FileLog(reader.path))
    yield Client(api)
    reader.close()
    publisher.close()


@pytest.fixture(scope="module")
def document(client):
    return client.ask("/openapi.json").json


def validator(document, schema):
    return jsonschema.Draft202012Validator(
        {**schema, "components": document["components"]}, format_checker=jsonschema.FormatChecker()
    )


@pytest.mark.requirement("cli.openapi")
def test_the_document_is_the_one_that_the_command_prints(document, tmp_path):
    assert document == json.loads(json.dumps(openapi_document(Config({}, data=tmp_path), SCHEMA)))
    assert document["openapi"].startswith("3.1")


@pytest.mark.requirement("openapi.complete")
@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/companies", "/api/v1/companies"),
        ("/api/v1/companies", "/api/v1/companies?page=9"),
        ("/api/v1/companies", "/api/v1/companies?q=company&fields=status&pageSize=2"),
        ("/api/v1/companies", "/api/v1/companies?q=compnay&type=nothing"),
        ("/api/v1/companies/{slug}", "/api/v1/companies/company-1"),
        ("/api/v1/companies/{slug}", "/api/v1/companies/%E4%B8%AD%E5%9B%BD"),
        ("/api/v1/companies/{slug}/cap-table", "/api/v1/companies/company-1/cap-table"),
        ("/api/v1/people", "/api/v1/people"),
        ("/api/v1/people/{slug}", "/api/v1/people/person-1"),
        ("/api/v1/frameworks", "/api/v1/frameworks?kind=program"),
        ("/api/v1/frameworks/{frameworkId}", "/api/v1/frameworks/framework-1"),
        ("/api/v1/companies", "/api/v1/companies?type=DAO&type=corporation&treasuryMin=1&facets=type,status"),
        ("/api/v1/frameworks", "/api/v1/frameworks?isOpen=true&facets=kind"),
        ("/api/v1/facets", "/api/v1/facets"),
        ("/api/v1/facets", "/api/v1/facets?list=people&q=person&facets=title"),
        ("/api/v1/stats", "/api/v1/stats"),
        ("/api/v1/changes", "/api/v1/changes"),
        ("/api/v1/exports", "/api/v1/exports"),
        ("/api/v1/log", "/api/v1/log"),
        ("/api/v1/log/proof", "/api/v1/log/proof?kind=company&id=company-1"),
        ("/api/v1/log/proof", "/api/v1/log/proof?formerSize=2&size=9"),
        ("/api/v1/log/cosigned", "/api/v1/log/cosigned"),
        ("/api/v1/log/leaves", "/api/v1/log/leaves?limit=3"),
    ],
)
def test_every_answer_is_as_the_contract_says(client, document, path, target):
    answer = client.ask(target)
    assert answer.status == 200
    described = document["paths"][path]["get"]["responses"]["200"]
    validator(document, described["content"]["application/json"]["schema"]).validate(answer.json)
    named = {name.lower() for name in described["headers"]}
    sent = set(answer.headers) - {
        "content-type", "content-length", "access-control-allow-origin", "access-control-expose-headers"
    }  # fmt: skip
    assert sent <= named


@pytest.mark.requirement("openapi.complete")
@pytest.mark.parametrize(
    ("target", "method", "status"),
    [
        ("/api/v1/companies?page=0", "GET", "400"),
        ("/api/v1/companies/missing", "GET", "404"),
        ("/api/v1/companies", "POST", "405"),
    ],
)
def test_every_refusal_is_as_the_contract_says(client, document, target, method, status):
    answer = client.ask(target, method)
    assert str(answer.status) == status
    path = "/api/v1/companies/{slug}" if target.endswith("missing") else "/api/v1/companies"
    name = document["paths"][path]["get"]["responses"][status]["$ref"].rsplit("/", 1)[1]
    schema = document["components"]["responses"][name]["content"]["application/json"]["schema"]
    validator(document, schema).validate(answer.json)


@pytest.mark.requirement("openapi.complete")
def test_every_example_is_valid(document):
    for operations in document["paths"].values():
        (content, *_) = operations["get"]["responses"]["200"]["content"].values()
        validator(document, content["schema"]).validate(content["example"])
        for parameter in operations["get"]["parameters"]:
            if "example" in parameter:
                jsonschema.validate(parameter["example"], parameter["schema"])
    for response in document["components"]["responses"].values():
        for content in response.get("content", {}).values():
            validator(document, content["schema"]).validate(content["example"])


@pytest.mark.requirement("openapi.complete")
def test_everything_is_described_and_shown(document):
    for route in ROUTES:
        operation = document["paths"][route.path]["get"]
        assert operation["summary"]
        assert operation["description"]
        assert route.schema in examples(SCHEMA)
        assert [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "query"] == [
            parameter.name for parameter in route.parameters
        ]
        for parameter in operation["parameters"]:
            assert parameter["description"]
            assert "example" in parameter or parameter["name"] in {"cursor", "chain"}
    for header in document["components"]["headers"].values():
        assert header["description"]
        assert header["example"]


def facts(document):
    """What a client may lean on: addresses, parameters with their ranges, members with their types."""
    found = {}
    for path, operations in document["paths"].items():
        operation = operations["get"]
        (content, *_) = operation["responses"]["200"]["content"].values()
        found[f"GET {path}"] = content["schema"]
        for parameter in operation["parameters"]:
            kept = {name: value for name, value in parameter["schema"].items() if name != "description"}
            found[f"GET {path} {parameter['in']} {parameter['name']}"] = kept
    for name, schema in document["components"]["schemas"].items():
        parts = [schema, *(part for part in schema.get("allOf", ()) if "properties" in part)]
        for part in parts:
            found[f"{name} required"] = sorted({*found.get(f"{name} required", ()), *part.get("required", ())})
            for member, described in part.get("properties", {}).items():
                found[f"{name}.{member}"] = {
                    key: value for key, value in described.items() if key not in {"description", "example"}
                }
    return found


def grew(before, now):
    """Return whether *now* equals *before* or only adds members to it."""
    if isinstance(before, dict) and isinstance(now, dict):
        return all(grew(each, now.get(name)) for name, each in before.items()) and (
            now.keys() == before.keys() or not before.keys() & {"type", "$ref", "anyOf"}
        )
    if isinstance(before, list) and isinstance(now, list) and all(isinstance(each, str) for each in before):
        return set(before) <= set(now)
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(map(grew, before, now))
    return before == now


@pytest.mark.requirement("openapi.complete")
def test_the_contract_has_its_own_version_and_lists_no_operation_twice(document):
    assert document["info"]["version"] == API_VERSION
    assert all(set(path) == {"get"} for path in document["paths"].values())
    assert "HEAD" in document["info"]["description"]


@pytest.mark.requirement("versioning.additive")
@pytest.mark.parametrize(
    ("before", "now", "is_growth"),
    [
        ({"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "string"}, "b": {}}}, True),
        (["a"], ["a", "b"], True),
        ({"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}, False),
        ({"type": "string"}, {"type": "integer"}, False),
        ({"type": "string"}, {"type": "string", "maxLength": 5}, False),
        ([{"type": "string"}, {"type": "null"}], [{"type": "string"}], False),
        (["a", "b"], ["a"], False),
    ],
)
def test_growth_is_told_from_change(before, now, is_growth):
    assert grew(before, now) is is_growth


def accepts(name, before, now):
    """Return whether a member has only grown; a parameter may also take a list of what it took."""
    is_parameter = name.startswith("GET ") and " query " in name
    return grew(before, now) or (is_parameter and bool(now) and grew(before, now.get("anyOf", [None])[0]))


@pytest.mark.requirement("versioning.additive")
def test_v1_only_ever_grows(document):
    """
    Whatever stood in the contract stands there still. After adding to it, write the snapshot anew:

    python -c "import test_openapi as t; t.write_snapshot()"
    """
    before = json.loads(SNAPSHOT.read_text())
    now = json.loads(json.dumps(facts(document)))
    assert [name for name in before if not accepts(name, before[name], now.get(name))] == []
    unrecorded = sorted(set(now) - set(before))
    assert unrecorded == [], "record what was added"


def write_snapshot():
    SNAPSHOT.write_text(json.dumps(facts(openapi_document(Config({}), SCHEMA)), indent=1, sort_keys=True) + "\n")


@pytest.mark.requirement("docs.page")
def test_the_text_for_language_models_names_every_route(client):
    answer = client.ask("/llms.txt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    for route in ROUTES:
        assert f"]({route.path})" in answer.body.decode()
