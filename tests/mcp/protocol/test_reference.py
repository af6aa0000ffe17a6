"""The official SDK's server answers the same requests alike, but for what is named here."""

import json
import re
from typing import Any

import pytest

from services.mcp import LEGACY, META, MODERN, fictional_registry, initialize, legacy, modern, public_server
from services.sdk_reference import Reference

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
CALLS: list[tuple[str, Any]] = [
    ("get_company", {"slug": "company-1"}),
    ("get_company", {"slug": "夜明け"}),
    ("get_company", {"slug": "many-holders"}),
    ("get_company", {"slug": "company-9999"}),
    ("get_company", {"slug": ""}),
    ("get_company", {"slug": 7}),
    ("get_company", {"slug": None}),
    ("get_company", {"sulg": "company-1"}),
    ("get_company", {}),
    ("get_company", None),
    ("list_companies", {}),
    ("list_companies", {"page": 2, "pageSize": 5}),
    ("list_companies", {"page": 2.0}),
    ("list_companies", {"page": 1.5}),
    ("list_companies", {"page": 0}),
    ("list_companies", {"page": True}),
    ("list_companies", {"page": "1"}),
    ("list_companies", {"pageSize": 101}),
    ("list_companies", {"page": 10**20}),
    ("list_companies", {"q": "company", "type": "DAO", "sort": "treasury"}),
    ("list_companies", {"sort": "relevance"}),
    ("list_companies", {"q": "a\u0000b"}),
    ("list_companies", {"status": "Active"}),
    ("list_companies", {"hasToken": True, "raising": False, "detail": "full"}),
    ("list_people", {"q": "person 3", "pageSize": 3}),
    ("get_person", {"slug": "person-2"}),
    ("list_frameworks", {"kind": "program"}),
    ("get_framework", {"frameworkId": "ember-grants"}),
    ("get_scoring_framework", {"frameworkId": "ember-grants"}),
    ("list_scoring_frameworks", {}),
    ("list_program_frameworks", {"kind": "score"}),
    ("get_registry_stats", {}),
    ("list_company_form_options", {}),
    ("no_such_tool", {}),
    ("", {}),
]
METHODS = [
    "tools/list",
    "server/discover",
    "ping",
    "initialize",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "completion/complete",
    "skills/list",
    "skills/get",
    "logging/setLevel",
    "tools/unknown",
    "subscriptions/listen",
    "tasks/list",
    "rpc.discover",
    "",
]
METAS: list[Any] = [
    {},
    {"progressToken": "p"},
    {"progressToken": 3},
    {"progressToken": 3.5},
    {"progressToken": None},
    {"io.modelcontextprotocol/logLevel": "info"},
    {"io.modelcontextprotocol/logLevel": "loud"},
    {"io.modelcontextprotocol/clientInfo": {"name": "x"}},
    {"io.modelcontextprotocol/clientInfo": None},
    {"io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1", "icons": [{"src": "a", "theme": "dark"}]}},
    {"io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1", "icons": [{"theme": "dark"}]}},
    {"io.modelcontextprotocol/clientInfo": "x"},
    {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}, "roots": {}, "sampling": {}}},
    {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": 1}}},
    {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"a/b": {"c": [1, None]}}, "unknown": 5}},
    {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"a/b": 3}}},
    {"io.modelcontextprotocol/clientCapabilities": {"experimental": []}},
    {"io.modelcontextprotocol/clientCapabilities": []},
    {"io.modelcontextprotocol/clientCapabilities": None},
    {"io.modelcontextprotocol/protocolVersion": "2025-11-25"},
    {"io.modelcontextprotocol/protocolVersion": "2030-01-01"},
    {"io.modelcontextprotocol/protocolVersion": 5},
    {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor/x": {"y": [1]}},
]
IDS: list[Any] = [0, -1, 7, 2**53, 2**64, -(10**30), 1.0, 1.5, "", "a", 'a"b', "é", "\u2028", True, None, [], {}]
RAW = [
    b"",
    b" ",
    b"null",
    b"true",
    b"1",
    b'"x"',
    b"{}",
    b"{",
    b"[]]",
    b"{}{}",
    b'{"jsonrpc":"2.0"}',
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","x":1}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized","params":{"a":1}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    b'{"jsonrpc":"2.0","method":"notifications/x"}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized","params":[]}',
    b'{"jsonrpc":"2.0","method":"ping"}',
    b'{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","id":4,"method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"p\\u0069ng"}',
    b"[" * 5000,
    b'{"a":' * 3000,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 2000 + b"1" + b"}" * 2001,
    b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
    b'  \n{"jsonrpc":"2.0","id":1,"method":"ping"}\n ',
]


def corpus():
    """Every request of the differential test, each with a name."""
    for name, arguments in CALLS:
        params = {"name": name, **({} if arguments is None else {"arguments": arguments})}
        label = f"{name} {arguments}"
        yield f"modern {label}", modern("tools/call", params)
        yield f"legacy {label}", legacy("tools/call", params)
    for arguments in ([], "x", 5, [["slug", "company-1"]]):
        params = {"name": "get_company", "arguments": arguments}
        yield f"modern arguments {arguments}", modern("tools/call", params)
        yield f"legacy arguments {arguments}", legacy("tools/call", params)
    for extra in ({"task": {"ttl": 1}}, {"task": None}, {"inputResponses": {}}, {"requestState": "s"}, {"x": 1}):
        params = {"name": "get_registry_stats", "arguments": {}, **extra}
        yield f"modern extra {extra}", modern("tools/call", params)
        yield f"legacy extra {extra}", legacy("tools/call", params)
    for method in METHODS:
        yield f"modern {method}", modern(method)
        for version in (*VERSIONS, None):
            yield f"{version} {method}", legacy(method, version=version)
            yield f"{version} {method} with params", legacy(method, {}, version=version)
        yield f"modern {method} with a cursor", modern(method, {"cursor": "x"})
        yield f"legacy {method} with a cursor", legacy(method, {"cursor": "x"})
        yield f"modern {method} with a null cursor", modern(method, {"cursor": None})
    yield from metas_and_ids()
    yield from reads()
    yield from odd_lookups()
    yield from handshakes()
    yield from header_mistakes()
    for body in RAW:
        yield f"modern raw {body[:60]!r}", (modern("ping")[0], body)
        yield f"legacy raw {body[:60]!r}", (legacy("ping")[0], body)


def metas_and_ids():
    for meta in METAS:
        for method, params in (
            ("tools/call", {"name": "get_registry_stats"}),
            ("tools/list", {}),
            ("server/discover", {}),
        ):
            yield f"modern {method} meta {meta}", modern(method, {**params, "_meta": meta})
            yield f"legacy {method} meta {meta}", legacy(method, {**params, "_meta": meta})
    for bad in (None, [], "x"):
        headers, body = modern("tools/list")
        yield f"modern meta {bad}", (headers, body.replace(json.dumps(META).encode(), json.dumps(bad).encode()))
        yield f"legacy meta {bad}", legacy("tools/list", {"_meta": bad})
    for request_id in IDS:
        yield f"modern id {request_id!r}", modern("tools/call", {"name": "get_registry_stats"}, request_id=request_id)
        yield f"legacy id {request_id!r}", legacy("tools/call", {"name": "get_registry_stats"}, request_id=request_id)
        yield f"legacy ping id {request_id!r}", legacy("ping", request_id=request_id)


def reads():
    for uri in (
        "registry://companies/company-1",
        "registry://companies/%E5%A4%9C%E6%98%8E%E3%81%91",
        "registry://stats",
        "registry://people/person-1",
        "registry://frameworks/x",
        "registry://companies/",
        "file:///etc/passwd",
        "",
    ):
        yield f"modern read {uri}", modern("resources/read", {"uri": uri})
        yield f"legacy read {uri}", legacy("resources/read", {"uri": uri})
    for name, arguments in (
        ("research_company", {"slug": "company-1"}),
        ("research_company", {}),
        ("x", {}),
        ("compare_companies", {"frameworkId": "framework-1", "slugs": "company-1, company-2"}),
    ):
        yield f"modern prompt {name} {arguments}", modern("prompts/get", {"name": name, "arguments": arguments})
        yield f"legacy prompt {name} {arguments}", legacy("prompts/get", {"name": name, "arguments": arguments})
    for ref, argument in (
        ({"type": "ref/resource", "uri": "registry://companies/{slug}"}, {"name": "slug", "value": "company-1"}),
        ({"type": "ref/resource", "uri": "registry://companies/{slug}"}, {"name": "other", "value": ""}),
        ({"type": "ref/prompt", "name": "research_company"}, {"name": "slug", "value": "夜"}),
        ({"type": "ref/prompt", "name": "none"}, {"name": "slug", "value": ""}),
        ({"type": "ref/other"}, {"name": "slug", "value": ""}),
    ):
        yield f"modern complete {ref}", modern("completion/complete", {"ref": ref, "argument": argument})
        yield f"legacy complete {ref}", legacy("completion/complete", {"ref": ref, "argument": argument})
    for uri in ("skill://due-diligence/SKILL.md", "skill://other/SKILL.md", ""):
        yield f"modern skill {uri}", modern("skills/get", {"uri": uri})
        yield f"legacy skill {uri}", legacy("skills/get", {"uri": uri})
        yield f"modern read {uri}", modern("resources/read", {"uri": uri})


def odd_lookups():
    """Look-ups that are not quite of the common shape."""
    ref, argument = {"type": "ref/prompt", "name": "research_company"}, {"name": "slug", "value": "c"}
    whole: dict[str, dict[str, Any]] = {
        "resources/read": {"uri": "registry://stats"},
        "skills/get": {"uri": "skill://due-diligence/SKILL.md"},
        "prompts/get": {"name": "research_company", "arguments": {"slug": "company-1"}},
        "completion/complete": {"ref": ref, "argument": argument},
    }
    for method, params in whole.items():
        changes: list[dict[str, Any]] = [{each: value} for each in params for value in (None, 5, "x", [], {})]
        changes += [{"x": 1}, {"inputResponses": {}}, {"requestState": "s"}, {"arguments": None}, {"_meta": {"y": 1}}]
        changes += [{"context": {"arguments": {"a": "b"}}}, {"context": {"arguments": {"a": 1}}}, {"context": None}]
        changes += [{"arguments": {"slug": 7}}, {"arguments": {"slug": " "}}, {"ref": {**ref, "title": "T"}}]
        changes += [{"ref": {**ref, "x": 1}}, {"argument": {**argument, "x": 1}}, {"argument": {"name": "slug"}}]
        for change in changes:
            yield f"modern {method} with {change}", modern(method, {**params, **change})
            yield f"legacy {method} with {change}", legacy(method, {**params, **change})
        headers, body = modern(method, params)
        for value in ("", "x", "=?base64?eA==?="):
            changed = [(name, value if name == "mcp-name" else told) for name, told in headers]
            yield f"modern {method} named {value!r}", (changed, body)


def handshakes():
    for version in (*VERSIONS, MODERN, "2023-01-01", "x", ""):
        yield f"initialize {version}", initialize(version)
    for extra in (
        {"capabilities": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}},
        {"capabilities": {"roots": {"listChanged": "yes"}}},
        {"capabilities": {"roots": {"listChanged": 7}}},
        {"capabilities": {"tasks": {"list": {}}}},
        {"capabilities": {"experimental": {"a": {}}}},
        {"capabilities": None},
        {"clientInfo": {"name": "x"}},
        {"clientInfo": {"name": "x", "version": "1", "title": "T", "websiteUrl": "https://x.example"}},
        {"protocolVersion": 5},
        {"protocolVersion": None},
        {"_meta": {"progressToken": 1}},
        {"x": 1},
    ):
        yield f"initialize with {extra}", initialize(**extra)


def header_mistakes():
    headers, body = modern("tools/call", {"name": "get_registry_stats", "arguments": {}})
    for name in ("mcp-protocol-version", "mcp-method", "mcp-name"):
        yield f"without {name}", ([pair for pair in headers if pair[0] != name], body)
        yield f"twice {name}", ([*headers, *(pair for pair in headers if pair[0] == name)], body)
        for value in (
            "",
            "x",
            " tools/call",
            "tools/list",
            "get_registry_stats ",
            "GET_REGISTRY_STATS",
            MODERN,
            LEGACY,
            "=?base64?Z2V0X3JlZ2lzdHJ5X3N0YXRz?=",
            "=?base64?!?=",
            "é",
        ):
            yield f"{name} is {value!r}", ([(n, value if n == name else v) for n, v in headers], body)
    yield "a parameter's header", ([*headers, ("mcp-param-slug", "x")], body)
    yield "a session id", ([*legacy("ping")[0], ("mcp-session-id", "abc")], legacy("ping")[1])
    yield "charset", ([(n, "application/json; charset=utf-8" if n == "content-type" else v) for n, v in headers], body)
    yield "accepts json only", ([(n, "application/json" if n == "accept" else v) for n, v in headers], body)
    yield "accepts anything", ([(n, "*/*" if n == "accept" else v) for n, v in headers], body)


REQUESTS = list(corpus())


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    with (
        fictional_registry(tmp_path_factory.mktemp("published") / "p.sqlite3") as reader,
        public_server(reader) as ours,
    ):
        reference = Reference(ours.server)
        yield ours, reference
        reference.close()


def shown(answer):
    """Return a result whole, and of an error its status and code: the words are ours."""
    if not answer.body:
        return answer.status
    message = answer.json()
    if "error" in message:
        return answer.status, message["error"]["code"], message["id"]
    if "capabilities" in message["result"]:  # the SDK leaves the extensions out of the handshake
        message["result"]["capabilities"].pop("extensions", None)
    return answer.status, message


DELIBERATE = {
    "a method that is not offered is unknown, whatever its parameters": ["logging/setLevel", "subscriptions/listen"],
    "what a server does not use is ignored": [
        *(r"progressToken': (3\.5|None)", "logLevel", "clientInfo'", "clientCapabilities", "legacy meta"),
        *("'context'", "'roots'"),
    ],
    "header and body must name the same version": [
        *(r"^legacy .*protocolVersion': (5|'2030)", "without mcp-protocol-version", "mcp-protocol-version is '2025"),
    ],
    "an id is a string or a whole number, and an error if it is not": [
        *(r" id (1\.0|1\.5|True|None|\[\]|\{\})$", '"id":null'),
    ],
    "white space around a header's value is not part of it": ["is ' tools/call'", "is 'get_registry_stats '"],
    "what is no request of JSON-RPC has the code for that": [
        *(r"legacy raw b'(null|true|1|\"x\"|\{\})'", r"legacy raw b'\{\"jsonrpc\":\"1\.0", r"legacy raw b'\{\"id\":1"),
        *(r"legacy raw b'\{\"jsonrpc\":\"2\.0\"\}", r"legacy raw b'\{\"jsonrpc\":\"2\.0\",\"id\":1(\}|,\"method\":5)"),
    ],
    "params are judged as parameters, and a notification gets no error": [
        *(r"raw .*\"params\":\[\]", r"raw .*initialized\",\"param"),
    ],
    "a response of the client is accepted": [r"raw .*\"(result|error)\":\{"],
    "JSON is read strictly": ["xef", r"\"id\":1,\"id\":2", r"\"tools/list\",\"method\":\"ping", "NaN", "ud800"],
}


PATTERNS = {pattern for patterns in DELIBERATE.values() for pattern in patterns}


@pytest.mark.requirement("mcp.eras")
def test_ours_and_the_sdk_answer_alike(both):
    ours, reference = both
    unexplained, explained = {}, set()
    for name, (headers, body) in REQUESTS:
        first, second = ours.ask(headers, body), reference.ask(headers, body)
        if shown(first) != shown(second):
            reasons = [pattern for pattern in PATTERNS if re.search(pattern, name)]
            explained.update(reasons)
            if not reasons:
                unexplained[name] = (shown(first), shown(second))
        assert first.status < 500, name
        assert first.headers["access-control-allow-origin"] == "*", name
    assert unexplained == {}
    assert explained == PATTERNS, "each is needed"
    assert len(REQUESTS) > 600
