"""Whatever is sent to the tool server, it answers by the protocol, never with a 500, and keeps nothing of it."""

import json

import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from services.mcp import HEADERS, META, MODERN, fictional_registry, public_server
from services.product import Product

STATUSES = {200, 202, 400, 403, 404, 405, 406, 413, 415, 421}
ENVELOPES = {403, 405, 406, 413, 415, 421}
GROWTH_BYTES = 6_000_000

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
methods = st.sampled_from(
    ["tools/call", "tools/list", "initialize", "ping", "server/discover", "resources/read", "prompts/get", "x", ""]
    + [
        "completion/complete",
        "notifications/initialized",
        "notifications/cancelled",
        "resources/list",
        "logging/setLevel",
    ]
) | st.text(max_size=10)
names = st.sampled_from(["get_company", "list_companies", "get_framework", "nothing", "research_company"]) | values
arguments = st.fixed_dictionaries(
    {},
    optional={
        "slug": st.sampled_from(["company-1", "../../etc/passwd", "' OR 1=1 --", "%00", "a" * 300]) | values,
        "page": st.integers() | values,
        "pageSize": st.integers() | values,
        "q": st.text(max_size=40) | values,
        "frameworkId": values,
        "sort": values,
    },
)
metas = st.just(META) | values | st.fixed_dictionaries({key: st.just(value) | values for key, value in META.items()})
params = st.fixed_dictionaries(
    {},
    optional={
        "_meta": metas,
        "name": names,
        "arguments": arguments | values,
        "uri": st.sampled_from(["registry://companies/company-1", "registry://companies/%ff", "registry://"]) | values,
        "ref": values,
        "argument": values,
        "cursor": values,
        "protocolVersion": st.sampled_from(["2025-11-25", MODERN, "x"]) | values,
        "capabilities": st.just({}) | values,
        "clientInfo": st.just({"name": "n", "version": "1"}) | values,
        "requestState": values,
        "inputResponses": values,
    },
)
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | values, "method": methods | values},
    optional={
        "id": st.integers() | st.text(max_size=8) | values,
        "params": params | values,
        "result": values,
        "error": values,
    },
)
encoded = messages.map(lambda message: json.dumps(message, ensure_ascii=True).encode())


@st.composite
def broken(draw):
    """A message with a piece cut out, doubled or overwritten."""
    body = draw(encoded)
    start = draw(st.integers(0, len(body)))
    end = draw(st.integers(start, min(len(body), start + 12)))
    return body[:start] + draw(st.binary(max_size=6) | st.just(body[start:end] * 2)) + body[end:]


bodies = encoded | broken() | st.binary(max_size=60) | values.map(lambda value: json.dumps(value).encode())
printable = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=16)
header_sets = st.fixed_dictionaries(
    {
        "host": st.just(HEADERS["host"])
        | st.sampled_from(["registry.example", "evil.example", "", "[", ":::"])
        | printable,
        "content-type": st.just("application/json")
        | st.sampled_from(["text/plain", "application/json;a=b", ""])
        | printable,
        "accept": st.just(HEADERS["accept"]) | st.sampled_from(["*/*", "", "text/html"]) | printable,
    },
    optional={
        "origin": st.sampled_from(["http://localhost:3000", "null", "https://evil.example"]) | printable,
        "mcp-protocol-version": st.sampled_from([MODERN, "2025-11-25", "2024-11-05", "1"]) | printable,
        "mcp-method": st.sampled_from(["tools/call", "tools/list", "ping"]) | printable,
        "mcp-name": st.sampled_from(["get_company", "=?base64?Z2V0X2NvbXBhbnk=?=", "=?base64?%?="]) | printable,
        "mcp-session-id": printable,
        "mcp-param-slug": printable,
        "content-length": st.sampled_from(["0", "-1", "x", "99999999999999999999"]) | printable,
    },
).map(lambda found: list(found.items()))
https = st.sampled_from(["POST"] * 12 + ["GET", "DELETE", "OPTIONS", "HEAD", "PUT"])


@st.composite
def requests(draw):
    """A method, headers that fit the body more often than chance would have it, and a body."""
    headers, body = draw(header_sets), draw(bodies)
    if draw(st.booleans()):
        try:
            message = json.loads(body)
            method, name = message["method"], message.get("params", {}).get("name", "")
            fitting = {**HEADERS, "mcp-protocol-version": MODERN, "mcp-method": method, "mcp-name": name}
            assert all(isinstance(value, str) and value.encode("latin-1") for value in fitting.values())
            assert all(map(str.isprintable, fitting.values()))  # others are no HTTP, and refused before the protocol
            headers = list(fitting.items())
        except (ValueError, TypeError, KeyError, AttributeError, AssertionError, RecursionError):
            pass
    return draw(https), headers, body


def check(ask, request):
    method, headers, body = request
    found = ask(headers, body, method=method)
    if method == "OPTIONS" and found.status == 204:
        return
    assert found.status in STATUSES, (found.status, found.body)
    if found.status == 202 or method == "HEAD":
        return
    message = found.json()
    if found.status in ENVELOPES:
        assert set(message["error"]) == {"code", "message", "hint"}
    else:
        assert message["jsonrpc"] == "2.0"
        assert ("result" in message) != ("error" in message)


def settle(count):
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with (
        fictional_registry(tmp_path_factory.mktemp("published") / "p.sqlite3") as reader,
        public_server(reader) as asker,
    ):
        yield asker


@pytest.mark.requirement("mcp.eras")
def test_malformed_requests_get_answers_of_the_protocol(server):
    @given(requests())
    @settle(500)
    def run(request):
        check(server.ask, request)

    run()


def plain(headers):
    """Return the headers that an HTTP client can send: framing and Host are its own, and values are plain ASCII."""
    own = {"content-length", "host"}
    return {name: value.strip() for name, value in headers if name not in own and value.isascii() and value.strip()}


@pytest.mark.proof
@pytest.mark.timeout(1500)
@pytest.mark.requirement("mcp.limits")
def test_ten_thousand_malformed_requests_leave_nothing_behind(tmp_path):
    with Product(tmp_path, "--demo") as product:
        process = psutil.Process(product.pid)
        count = 0
        held = {}

        def ask(headers, body, *, method):
            return product.request(method, "/api/mcp", plain(headers), body=body)

        @given(requests())
        @settle(10_000)
        def run(request):
            nonlocal count
            check(ask, request)
            count += 1
            if count in {3_000, 9_999}:
                held[count] = process.memory_info().rss

        run()
        grown = held[9_999] - held[3_000]
    assert grown < GROWTH_BYTES, f"the process holds {grown} bytes more after 7,000 more requests"
