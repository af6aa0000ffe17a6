"""Requests that are not as the protocol has them: each gets the error of the protocol that says what is wrong."""

import base64
import json

import pytest

from services.mcp import LEGACY, MODERN, fictional_registry, initialize, legacy, modern, public_server

pytestmark = pytest.mark.requirement("mcp.eras")

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
CALL = {"name": "get_registry_stats", "arguments": {}}
NOTIFICATIONS = ["notifications/initialized", "notifications/cancelled", "notifications/roots/list_changed", "x", ""]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with (
        fictional_registry(tmp_path_factory.mktemp("published") / "p.sqlite3") as reader,
        public_server(reader) as asker,
    ):
        yield asker


def error(answer, status, code, *, request_id=1):
    """Return the error of an answer, after checking its status, code and id."""
    assert answer.status == status, answer.body
    message = answer.json()
    assert (message["jsonrpc"], message["error"]["code"], message["id"]) == ("2.0", code, request_id)
    assert message["error"]["message"]
    assert "pydantic" not in answer.body.decode()
    return message["error"]


def changed(request, name, value):
    headers, body = request
    return [pair for pair in headers if pair[0] != name] + ([] if value is None else [(name, value)]), body


@pytest.mark.parametrize("make", [modern, legacy])
@pytest.mark.parametrize(
    "part", ["NaN", "Infinity", "-Infinity", "1e999", '"\\ud800"', '{"a": 1, "a": 1}', "[" * 200 + "]" * 200]
)
def test_what_the_strict_reader_refuses_is_a_parse_error(server, make, part):
    headers, body = make("tools/call", {**CALL, "here": "it"})
    for place in (body.replace(b'"it"', part.encode()), body.replace(b'"2.0"', b'"2.0", "more": ' + part.encode())):
        assert place != body
        error(server.ask(headers, place), 400, -32700, request_id=None)


@pytest.mark.parametrize("make", [modern, legacy])
@pytest.mark.parametrize("value", [1.5, None, True, [], {}, 1e300 + 0.5])
def test_an_id_that_is_none_is_an_error_and_not_a_notification(server, make, value):
    request = make("tools/call", CALL, request_id=value)
    if value == 1e300:  # a whole number, written with a fraction
        assert server.ask(*request).json()["id"] == int(1e300)
    else:
        error(server.ask(*request), 400, -32600, request_id=None)
    notified = make("notifications/initialized", request_id=None)
    error(server.ask(*notified), 400, -32600, request_id=None)


@pytest.mark.parametrize("make", [modern, legacy])
@pytest.mark.parametrize(
    "value", [0, -1, 2**53, 2**64, -(10**30), "", "a", 'a"b\\', "é", "\u2028", "\U0001f600", "1" * 500]
)
def test_an_id_comes_back_as_it_was(server, make, value):
    answer = server.ask(*make("tools/call", CALL, request_id=value))
    assert (answer.status, answer.json()["id"], type(answer.json()["id"])) == (200, value, type(value))
    assert server.ask(*make("tools/call", CALL, request_id=1.0)).json()["id"] == 1


@pytest.mark.parametrize("make", [modern, legacy])
@pytest.mark.parametrize(
    "message",
    [
        5,
        "x",
        None,
        True,
        {},
        {"jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "id": 1},
        {**PING, "jsonrpc": "1.0"},
        {**PING, "jsonrpc": 2.0},
        {"id": 1, "method": "ping"},
        {**PING, "method": 5},
        {**PING, "method": None},
        {"jsonrpc": "1.0", "method": "notifications/initialized"},
    ],
)
def test_what_is_no_message_is_an_invalid_request(server, make, message):
    error(server.ask(make("ping")[0], json.dumps(message).encode()), 400, -32600, request_id=None)


@pytest.mark.parametrize("make", [modern, legacy])
@pytest.mark.parametrize("method", NOTIFICATIONS)
@pytest.mark.parametrize("params", [None, {}, {"requestId": 1}, []])
def test_a_notification_of_any_kind_is_accepted(server, make, method, params):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    answer = server.ask(make("ping")[0], json.dumps(message).encode())
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("make", [modern, legacy])
@pytest.mark.parametrize("member", ["result", "error"])
def test_a_response_of_the_client_is_accepted(server, make, member):
    message = {"jsonrpc": "2.0", "id": 1, member: {}}
    assert server.ask(make("ping")[0], json.dumps(message).encode()).status == 202


@pytest.mark.parametrize("version", ["2030-01-01", "2023-01-01", "1", "x", "", "é", "v" * 200])
def test_an_unknown_protocol_version_is_told_with_the_supported_ones(server, version):
    requests = [
        changed(legacy("tools/list"), "mcp-protocol-version", version),
        changed(legacy("tools/call", CALL), "mcp-protocol-version", version),
        changed(initialize(), "mcp-protocol-version", version),
        changed(legacy("unknown"), "mcp-protocol-version", version),
    ]
    if version != "é":  # a header has no other characters than those of Latin-1, and this client writes UTF-8
        _, body = modern("tools/list")
        requests.append((changed(modern("tools/list"), "mcp-protocol-version", version)[0], body.replace(
            MODERN.encode(), version.encode())))  # fmt: skip
    for request in requests:
        found = error(server.ask(*request), 400, -32022)
        assert found["data"] == {"supported": [MODERN], "requested": version[:100]}
        for known in (MODERN, LEGACY, "2024-11-05"):
            assert known in found["message"]
    note = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    headers = changed(legacy("ping"), "mcp-protocol-version", version)[0]
    assert error(server.ask(headers, note), 400, -32022, request_id=None)["data"]["supported"] == [MODERN]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mcp-protocol-version", LEGACY),
        ("mcp-protocol-version", None),
        ("mcp-protocol-version", "2030-01-01"),
        ("mcp-method", None),
        ("mcp-method", "tools/list"),
        ("mcp-method", ""),
        ("mcp-name", None),
        ("mcp-name", "GET_REGISTRY_STATS"),
        ("mcp-name", "=?base64?Z2V0X2NvbXBhbnk=?="),
        ("mcp-name", "=?base64?!?="),
        ("mcp-name", "=?base64?Z2V0X3JlZ2lzdHJ5X3N0YXRz"),
        ("mcp-name", "=?base64??="),
        ("mcp-name", "=?base64?/w==?="),
    ],
)
def test_headers_that_differ_from_the_body_are_a_mismatch(server, name, value):
    found = error(server.ask(*changed(modern("tools/call", CALL), name, value)), 400, -32020)
    assert name in found["message"]


@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name"])
def test_a_routing_header_that_occurs_twice_matches_nothing(server, name):
    headers, body = modern("tools/call", CALL)
    again = [pair for pair in headers if pair[0] == name]
    error(server.ask([*headers, *again], body), 400, -32020)
    error(server.ask([*headers, (name, "x")], body), 400, -32020)


def test_names_that_are_not_ascii_come_in_base64(server):
    uri = "registry://companies/夜明け"
    request = modern("resources/read", {"uri": uri})
    told = "=?base64?" + base64.b64encode(uri.encode()).decode() + "?="
    assert "DAWN" in server.ask(*changed(request, "mcp-name", told)).body.decode()
    plain = changed(modern("tools/call", CALL), "mcp-name", "=?base64?Z2V0X3JlZ2lzdHJ5X3N0YXRz?=")
    assert server.ask(*plain).result["isError"] is False


@pytest.mark.parametrize("key", ["protocolVersion", "clientCapabilities"])
def test_an_incomplete_envelope_names_what_is_missing(server, key):
    headers, body = modern("tools/list")
    message = json.loads(body)
    del message["params"]["_meta"][f"io.modelcontextprotocol/{key}"]
    found = error(server.ask(headers, json.dumps(message).encode()), 400, -32602)
    assert f"io.modelcontextprotocol/{key}" in found["message"]
    for meta in (None, [], "x", 5):
        message["params"]["_meta"] = meta
        assert "params._meta" in error(server.ask(headers, json.dumps(message).encode()), 400, -32602)["message"]


@pytest.mark.parametrize(
    "method",
    [
        *("logging/setLevel", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen", "tasks/list"),
        *("roots/list", "sampling/createMessage", "tools/unknown", "rpc.discover", "Tools/list", ""),
    ],
)
def test_unknown_methods_are_not_found(server, method):
    error(server.ask(*legacy(method)), 200, -32601)
    error(server.ask(*modern(method)), 404, -32601)


def test_methods_of_the_other_generation_are_not_found(server):
    error(server.ask(*legacy("server/discover")), 200, -32601)
    for method in ("initialize", "ping"):
        error(server.ask(*modern(method)), 404, -32601)


@pytest.mark.parametrize(
    ("method", "params", "part"),
    [
        ("tools/call", {}, "name"),
        ("tools/call", {"name": 5}, "$.name"),
        ("tools/call", {"name": "get_company", "arguments": []}, "$.arguments"),
        ("tools/call", {"name": "get_company", "arguments": "x"}, "$.arguments"),
        ("tools/call", {**CALL, "_meta": {"progressToken": 1.5}}, "progressToken"),
        ("resources/read", {}, "uri"),
        ("resources/read", {"uri": ["x"]}, "$.uri"),
        ("prompts/get", {"name": "research_company", "arguments": {"slug": 7}}, "arguments"),
        ("completion/complete", {"ref": {"type": "ref/other"}, "argument": {"name": "a", "value": ""}}, "type"),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}}, "argument"),
        ("skills/get", {"uri": None}, "uri"),
        ("tools/list", {"cursor": "x"}, "cursor"),
        ("prompts/list", {"cursor": 5}, "cursor"),
    ],
)
def test_parameters_of_another_shape_are_named(server, method, params, part):
    assert part in error(server.ask(*legacy(method, params)), 200, -32602)["message"]
    request = modern(method, params)
    key = params.get("name", params.get("uri"))
    if isinstance(key, str) or "name" not in params:
        answer = server.ask(*request)
        assert answer.status == 400
        assert answer.json()["error"]["code"] in {-32602, -32020}


@pytest.mark.parametrize("params", [[], "x", 5, True])
def test_params_must_be_an_object(server, params):
    headers, _ = legacy("ping")
    found = error(server.ask(headers, json.dumps({**PING, "params": params}).encode()), 200, -32602)
    assert "params" in found["message"]


@pytest.mark.parametrize("make", [modern, legacy])
def test_members_that_are_not_known_are_ignored(server, make):
    headers, body = make("tools/call", {**CALL, "task": {"ttl": 1}, "x": [1], "_meta": {"vendor/x": {"y": [1]}}})
    message = {**json.loads(body), "trace": "t", "result": None}
    message["params"]["_meta"]["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    message["params"]["inputResponses"] = {"other": {"role": "user"}}
    message["params"]["requestState"] = "s"
    expected = server.ask(*make("tools/call", CALL)).result
    assert server.ask(headers, json.dumps(message).encode()).result == expected


@pytest.mark.parametrize(
    "capabilities",
    [
        {"elicitation": {}},
        {"elicitation": {"form": 1, "url": []}, "sampling": 5, "roots": "x"},
        {"elicitation": None, "experimental": []},
        {"extensions": {"a/b": 3}, "unknown": {"c": None}, "tasks": {"list": {}}},
    ],
)
def test_capabilities_of_any_kind_are_taken(server, capabilities):
    meta = {"io.modelcontextprotocol/clientCapabilities": capabilities}
    assert server.ask(*modern("tools/call", {**CALL, "_meta": meta})).result["isError"] is False
    assert server.ask(*initialize(capabilities=capabilities)).result["protocolVersion"] == LEGACY


def test_escaped_names_are_those_that_they_stand_for(server):
    headers, body = modern("tools/call", CALL)
    escaped = body.replace(b'"get_registry_stats"', b'"\\u0067et_registry_stats"').replace(
        b'"method"', b'"m\\u0065thod"'
    )
    assert escaped.count(b"\\u00") == 2
    assert server.ask(headers, escaped).result == server.ask(headers, body).result


@pytest.mark.parametrize("extra", [{"capabilities": None}, {"clientInfo": {"name": "x"}}, {"protocolVersion": 5}])
def test_a_handshake_without_its_parts_is_refused(server, extra):
    error(server.ask(*initialize(**extra)), 200, -32602)


@pytest.mark.parametrize("version", ["2023-01-01", "x", "", MODERN])
def test_a_handshake_for_another_version_gets_the_latest_one(server, version):
    assert server.ask(*initialize(version)).result["protocolVersion"] == LEGACY
