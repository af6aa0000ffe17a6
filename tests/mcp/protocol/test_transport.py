"""What holds at the tool server's address for any request: who may knock, with what, how large and how often."""

import asyncio
import difflib
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from muniment.kernel.actor import Actor
from muniment.kernel.fairness import Fairness, Limiter
from muniment.kernel.problems import Forbidden, Unauthorized
from muniment.mcp.declarations import Declarations, Tool
from muniment.mcp.protocol.http import MAX_BODY_BYTES, MAX_PUBLIC_BODY_BYTES, Access, OriginPolicy
from muniment.mcp.protocol.transport import ToolServer
from services.mcp import Asker, fictional_registry, initialize, legacy, modern, public_server

STATS = {"name": "get_registry_stats", "arguments": {}}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    with fictional_registry(tmp_path_factory.mktemp("published") / "p.sqlite3") as found:
        yield found


@pytest.fixture(scope="module")
def server(reader):
    with public_server(reader) as asker:
        yield asker


def with_header(name, value, request=None):
    headers, body = request or modern("tools/call", STATS)
    return [pair for pair in headers if pair[0] != name] + ([] if value is None else [(name, value)]), body


def envelope(answer, code="bad_request"):
    error = answer.json()["error"]
    assert answer.headers["content-type"] == "application/json"
    assert (error["code"], bool(error["message"]), bool(error["hint"])) == (code, True, True)
    return error


@pytest.mark.requirement("mcp.host-origin")
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("registry.example", 200),
        ("REGISTRY.example", 200),
        ("registry.example:443", 200),
        ("127.0.0.1:9", 200),
        ("127.8.8.8", 200),
        ("localhost:8000", 200),
        ("[::1]:8000", 200),
        ("[::1]", 200),
        ("registry.example:80", 421),
        ("evil.example", 421),
        ("registry.example.evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("127.0.0.999", 421),
        ("127.0.0.1:9141.evil.example", 421),
        ("[::1]evil.example", 421),
        ("registry.example:80:80", 421),
        ("[::2]", 421),
        ("", 421),
        (None, 421),
    ],
)
def test_only_known_hosts_are_answered(server, host, status):
    answer = server.ask(*with_header("host", host))
    assert answer.status == status
    if status == 421:
        envelope(answer)


@pytest.mark.requirement("mcp.host-origin")
@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:3000", 200),
        ("localhost", "http://localhost:5173", 200),
        ("[::1]:1", "https://[::1]", 200),
        ("127.0.0.1:8000", "https://evil.example", 403),
        ("127.0.0.1:8000", "http://localhost.evil.example", 403),
        ("127.0.0.1:8000", "http://127.0.0.1:9141.evil.example", 403),
        ("127.0.0.1:8000", "http://[::1].evil.example", 403),
        ("127.0.0.1:8000", "http://evil.example@localhost", 403),
        ("127.0.0.1:8000", "null", 403),
        ("127.0.0.1:8000", "file://localhost", 403),
        ("registry.example", "https://anyone.example", 200),
        ("registry.example", "null", 200),
    ],
)
def test_a_page_of_another_origin_cannot_speak_to_a_loopback_host(server, host, origin, status):
    headers, body = with_header("host", host)
    answer = server.ask([*headers, ("origin", origin)], body)
    assert answer.status == status
    if status == 403:
        envelope(answer)


@pytest.mark.requirement("mcp.host-origin")
def test_configured_hosts_and_origins_are_let_in(reader):
    with public_server(reader) as asker:
        asker.server.gate = OriginPolicy("", ["inner.example", "other.example:8080"], ["https://tool.example/"])
        for host, status in (("inner.example:99", 200), ("other.example:8080", 200), ("other.example", 421)):
            assert asker.ask(*with_header("host", host)).status == status
        headers, body = modern("tools/call", STATS)
        assert asker.ask([*headers, ("origin", "https://tool.example")], body).status == 200
        assert asker.ask(*with_header("host", "registry.example")).status == 421


@pytest.mark.requirement("mcp.eras")
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "PATCH"])
def test_other_methods_are_405_with_allow(server, method):
    answer = server.ask(modern("ping")[0], method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "POST, OPTIONS")
    envelope(answer, "method_not_allowed")


@pytest.mark.parametrize(
    ("asked", "echoed"),
    [
        ("traceparent, x-team", True),
        ("X-A,x-b\t, x-c", True),
        (", ".join(["x-aaaaaa"] * 100), True),
        (", ".join(["x-aaaaaa"] * 101), False),
        ("x-a,", False),
        ("x a", False),
        ("x-a\r\nset-cookie: b=c", False),
        ("x-a\n", False),
        ("x-é", False),
        ("x-a: b", False),
        ("", False),
    ],
)
def test_a_preflight_allows_the_headers_that_a_browser_asks_for(server, asked, echoed):
    headers = [("host", "registry.example"), ("access-control-request-headers", asked)]
    answer = server.ask(headers, method="OPTIONS")
    allowed = answer.headers["access-control-allow-headers"]
    assert answer.status == 204
    assert allowed.startswith("Authorization, Content-Type, ")
    assert allowed.endswith(f", {asked}" if echoed else ", X-Request-Id")
    assert ("\r" in allowed, "\n" in allowed) == (False, False)
    assert answer.headers["vary"] == "Access-Control-Request-Headers"


def test_browsers_may_call_after_a_preflight(server):
    answer = server.ask([("host", "registry.example"), ("origin", "https://a.example")], method="OPTIONS")
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == "*"
    allowed = answer.headers["access-control-allow-headers"].lower()
    for name in ("authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"):
        assert name in allowed
    assert "WWW-Authenticate" in server.ask(*modern("tools/list")).headers["access-control-expose-headers"]


@pytest.mark.requirement("mcp.eras")
@pytest.mark.parametrize("make", [modern, legacy])
@pytest.mark.parametrize("body", [b"[]", b"  [] ", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'])
def test_batches_are_refused_in_every_era(server, make, body):
    answer = server.ask(make("ping")[0], body)
    assert (answer.status, answer.json()["error"]["code"], answer.json()["id"]) == (400, -32600, None)


@pytest.mark.requirement("mcp.eras")
@pytest.mark.parametrize("make", [modern, legacy])
@pytest.mark.parametrize("body", [b'{"jsonrpc":"2.0","id":1,"method":"\x89"}', b'{"id":"\xff', b"\xff\xfe{"])
def test_a_body_that_is_no_text_is_a_parse_error(server, make, body):
    answer = server.ask(make("ping")[0], body)
    assert (answer.status, answer.json()["error"]["code"]) == (400, -32700)


def _refuses_above(limit, asker, token=()):
    headers, body = legacy("ping")
    headers = [*headers, *token]
    padded = body[:-1] + b" " * (limit - len(body)) + b"}"
    assert len(padded) == limit
    assert asker.ask(headers, padded).status == 200
    for answer in (
        asker.ask(headers, padded + b" "),
        asker.ask([*headers, ("content-length", str(limit + 1))], b""),
        asker.ask([*headers, ("content-length", "9" * 40)], b""),
    ):
        assert answer.status == 413
        envelope(answer)


@pytest.mark.requirement("mcp.limits")
def test_a_body_above_64_kilobytes_is_refused_by_public_tools_declared_or_sent(server):
    _refuses_above(MAX_PUBLIC_BODY_BYTES, server)
    assert MAX_PUBLIC_BODY_BYTES == 64 << 10


@pytest.mark.requirement("mcp.limits")
def test_a_body_above_a_mebibyte_is_refused_by_owner_tools_declared_or_sent(scoped):
    _refuses_above(MAX_BODY_BYTES, scoped, [("authorization", "Bearer a")])


@pytest.mark.parametrize("make", [modern, legacy])
def test_an_unknown_argument_is_compared_by_its_beginning_only(server, make, monkeypatch):
    compared = []
    plain = difflib.get_close_matches
    monkeypatch.setattr(
        difflib, "get_close_matches", lambda word, *rest, **more: compared.append(word) or plain(word, *rest, **more)
    )
    call = {"name": "get_registry_stats", "arguments": {"x" * 60_000: "y" * 1_000}}
    found = server.ask(*make("tools/call", call)).result
    assert found["isError"] is True
    assert len(json.dumps(found)) < 2_000
    assert compared == ["x" * 60]


@pytest.mark.parametrize(
    ("value", "status"), [("text/plain", 415), (None, 415), ("application/jsonx", 415), ("Application/JSON;x=y", 200)]
)
def test_a_body_is_declared_as_json(server, value, status):
    for request in (modern("tools/call", STATS), legacy("prompts/list")):
        answer = server.ask(*with_header("content-type", value, request))
        assert answer.status == status
        if status != 200:
            envelope(answer)


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("text/html", 406),
        ("text/event-stream", 406),
        (None, 200),
        ("", 200),
        ("application/*", 200),
        ("text/html, */*;q=0.1", 200),
    ],
)
def test_a_client_that_refuses_json_gets_406_and_one_without_accept_gets_json(server, value, status):
    for request in (modern("tools/call", STATS), legacy("prompts/list")):
        answer = server.ask(*with_header("accept", value, request))
        assert answer.status == status
        if status != 200:
            envelope(answer)


@pytest.mark.requirement("mcp.eras")
def test_white_space_around_routing_headers_does_not_matter(server):
    headers, body = modern("tools/call", STATS)
    padded = [(name, f" {value}\t " if name.startswith("mcp-") else value) for name, value in headers]
    assert server.ask(padded, body).result["isError"] is False


@pytest.mark.requirement("mcp.eras")
def test_lists_and_reads_say_how_long_they_keep(server):
    for method in ("tools/list", "server/discover", "prompts/list", "resources/list", "resources/templates/list"):
        found = server.ask(*modern(method)).result
        assert (found["ttlMs"], found["cacheScope"]) == (3_600_000, "public")
        assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "muniment"
    read = server.ask(*modern("resources/read", {"uri": "registry://stats"})).result
    assert (read["ttlMs"], read["cacheScope"]) == (30_000, "public")
    assert "ttlMs" not in server.ask(*legacy("tools/list")).result


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.requirement("mcp.limits")
def test_over_the_rate_a_tool_answers_an_error_and_anything_else_429(reader):
    clock = Clock()
    with public_server(reader, limiter=Limiter(60, 2, clock=clock)) as asker:
        assert [asker.ask(*legacy("ping")).status for _ in range(2)] == [200, 200]
        for request in (modern("tools/call", STATS), legacy("tools/call", STATS)):
            answer = asker.ask(*request)
            assert (answer.status, answer.result["isError"]) == (200, True)
            assert answer.result["structuredContent"]["error"]["code"] == "bad_request"
            assert "Wait 1 s" in answer.result["structuredContent"]["error"]["hint"]
            odd = (request[0], request[1].replace(b'"id": 1', b'"id": "\\u0041"'))
            assert asker.ask(*odd).result["isError"] is True
        initialized = (legacy("ping")[0], b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        for request in (modern("tools/list"), legacy("ping"), initialize(), modern("prompts/list"), initialized):
            answer = asker.ask(*request)
            assert (answer.status, answer.headers["retry-after"]) == (429, "1")
            envelope(answer)
        assert asker.ask(*legacy("ping"), client="192.0.2.9").status == 200
        clock.now = 60.0
        assert asker.ask(*legacy("ping")).status == 200


@pytest.mark.requirement("mcp.tool-failures")
def test_a_tool_that_fails_shows_the_request_id_and_no_detail(reader, caplog):
    def broken(arguments, caller):
        raise RuntimeError("the secret is 42")

    with public_server(reader) as asker:
        bound = asker.server.tools["get_registry_stats"]
        asker.server.tools["get_registry_stats"] = type(bound)(
            Tool(name="x", title="", description="", arguments={}, answer={}, handler=broken), bound.check
        )
        found = asker.ask(*modern("tools/call", STATS)).result
    assert found["isError"] is True
    assert found["structuredContent"]["error"]["code"] == "internal_error"
    assert "r-1" in found["structuredContent"]["error"]["message"]
    assert "secret" not in json.dumps(found)
    assert "the secret is 42" in caplog.text


@pytest.mark.parametrize("waits", [False, True])
def test_only_a_call_that_waits_is_canceled_when_its_client_goes_away(waits):
    ended = []

    async def act(arguments, caller):
        for _ in range(50):
            await asyncio.sleep(0)
        ended.append("acts")
        return {"data": {}}

    tool = Tool(name="acts", title="", description="", arguments={}, answer={}, handler=act, waits=waits)
    server = ToolServer(replace(scoped_server().offer, tools=(tool,)), gate=OriginPolicy(""))
    headers, body = modern("tools/call", {"name": "acts", "arguments": {}})
    received = iter([{"type": "http.request", "body": body}])

    async def receive():
        return next(received, {"type": "http.disconnect"})

    async def send(message):
        pass

    state = {"client": "127.0.0.1", "request_id": "r-1"}
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": encoded, "state": state}
    asyncio.run(server(scope, receive, send))
    assert ended == ([] if waits else ["acts"])


def scoped_server():
    def tool(name, scope):
        return Tool(
            name=name,
            title=name,
            description=name,
            arguments={"n": {"type": "integer"}},
            answer={"data": {"type": "object"}},
            handler=lambda arguments, caller: {"data": {"account": caller.actor.account_id}},
            scope=scope,
        )

    async def authenticate(scope):
        token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        if not token:
            raise Unauthorized("No token.", "See /manage/tokens.", headers={"WWW-Authenticate": 'Bearer scope="a b"'})
        return Actor(account_id=7, role="owner", via="token", scopes=frozenset(token.split("+")))

    def missing(scope):
        challenge = f'Bearer error="insufficient_scope", scope="{scope}"'
        return Forbidden(f"The scope {scope} is missing.", "Make a token.", headers={"WWW-Authenticate": challenge})

    offer = Declarations(
        name="scoped",
        title="Scoped",
        version="1",
        description="d",
        instructions="i",
        website_url="https://registry.example",
        tools=(tool("reads", "a"), tool("writes", "b"), tool("free", None)),
        shared=False,
    )
    return ToolServer(offer, gate=OriginPolicy(""), access=Access(authenticate, missing))


@pytest.fixture(scope="module")
def scoped():
    asker = Asker(scoped_server())
    yield asker
    asker.close()


@pytest.mark.parametrize("make", [modern, legacy])
def test_a_caller_sees_the_tools_that_the_scopes_permit(scoped, make):
    headers, body = make("tools/list")
    for token, names in (("a", ["reads", "free"]), ("b", ["writes", "free"]), ("a+b", ["reads", "writes", "free"])):
        answer = scoped.ask([*headers, ("authorization", f"Bearer {token}")], body)
        assert [tool["name"] for tool in answer.result["tools"]] == names


@pytest.mark.parametrize("make", [modern, legacy])
def test_a_tool_beyond_the_scopes_is_403(scoped, make):
    headers, body = make("tools/call", {"name": "writes", "arguments": {}})
    answer = scoped.ask([*headers, ("authorization", "Bearer a")], body)
    assert answer.status == 403
    assert 'error="insufficient_scope", scope="b"' in answer.headers["www-authenticate"]
    assert answer.headers["cache-control"] == "no-store"
    envelope(answer)
    allowed = scoped.ask([*headers, ("authorization", "Bearer b")], body)
    assert allowed.result["structuredContent"] == {"data": {"account": 7}}


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_missing_token_is_reported_before_anything_else(scoped, method):
    answer = scoped.ask(modern("tools/list")[0], b"nonsense", method=method)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer scope="a b"')
    assert answer.headers["cache-control"] == "no-store"
    envelope(answer)
    assert scoped.ask([("host", "localhost")], method="OPTIONS").status == 204


@pytest.fixture
def hosted():
    """Yield an owner server with limits, where the tokens that begin with "bad" are invalid, and its look-ups."""
    server = scoped_server()
    authenticate, seen, looked_up = server.access.authenticate, set(), []

    def token(scope):
        return dict(scope["headers"]).get(b"authorization", b"")

    async def count(scope):
        looked_up.append(token(scope).decode())
        if token(scope).startswith(b"Bearer bad"):
            raise Unauthorized("No.", "No.")
        actor = await authenticate(scope)
        seen.add(token(scope))
        return replace(actor, account_id=len(token(scope)))  # tokens of different length belong to different accounts

    limits = Fairness(rate=60, burst=2)
    server.access = Access(count, server.access.missing, lambda scope: token(scope) in seen, limits)
    asker = Asker(server)
    asker.looked_up = looked_up
    asker.fairness = limits
    yield asker
    asker.close()


def bearer(token, request=None):
    headers, body = request or modern("tools/call", {"name": "free", "arguments": {}})
    return [*headers, ("authorization", f"Bearer {token}")], body


@pytest.mark.requirement("mcp.limits")
def test_an_address_without_a_valid_token_is_refused_before_another_look_up(hosted):
    plain = modern("tools/list")
    assert [hosted.ask(*bearer("bad1")).status, hosted.ask(*plain).status] == [401, 401]
    for request in (bearer("bad2"), bearer("a"), plain, bearer("bad3", legacy("ping"))):
        for method in ("POST", "GET", "DELETE"):
            answer = hosted.ask(*request, method=method)
            assert (answer.status, answer.headers["retry-after"]) == (429, "1")
            envelope(answer)
    assert hosted.looked_up == ["Bearer bad1", ""]
    assert hosted.ask(*bearer("a"), client="192.0.2.9").status == 200
    assert hosted.fairness.refused == {"unauthenticated": 12}


@pytest.mark.requirement("mcp.limits")
def test_users_of_one_address_do_not_share_a_limit(hosted):
    """One user over the limit, and one without a valid token, take nothing from the others of a hosted agent."""
    assert hosted.ask(*bearer("b")).status == 200
    assert [hosted.ask(*bearer("aa")).result["isError"] for _ in range(3)] == [False, False, True]
    assert [hosted.ask(*bearer("bad1")).status for _ in range(3)] == [401, 401, 429]
    answer = hosted.ask(*bearer("b"))
    assert (answer.status, answer.result["isError"]) == (200, False)
    refused = hosted.ask(*bearer("aa"), client="192.0.2.9").result["structuredContent"]["error"]
    assert "this account" in refused["message"]
    assert hosted.ask(*bearer("aa", modern("tools/list"))).status == 429


@pytest.mark.requirement("mcp.limits")
def test_valid_tokens_are_not_charged_to_their_address(hosted):
    for length in range(1, 20):
        assert hosted.ask(*bearer("c" * length)).result["isError"] is False
    assert hosted.ask(*bearer("bad1")).status == 401
    assert hosted.fairness.unauthenticated.peek("127.0.0.1").remaining == 1


@pytest.mark.requirement("mcp.limits")
def test_a_call_over_the_limit_of_its_account_is_a_tool_error(hosted):
    assert [hosted.ask(*bearer("a")).status for _ in range(2)] == [200, 200]
    error = hosted.ask(*bearer("a")).result["structuredContent"]["error"]
    assert "Wait 1 s" in error["hint"]


def test_an_account_s_changes_are_limited_and_its_reads_are_not():
    server = scoped_server()
    limits = Fairness(writes=60)
    limits.writes.charge("7", 120)
    done = []
    for name in ("reads", "writes"):
        bound = server.tools[name]
        tool = replace(bound.tool, read_only=name == "reads", handler=lambda *_: done.append(1) or {"data": {}})
        server.tools[name] = type(bound)(tool, bound.check)
    server.access = replace(server.access, fairness=limits)
    asker = Asker(server)
    try:
        read = asker.ask(*bearer("a+b", modern("tools/call", {"name": "reads", "arguments": {}}))).result
        assert read["isError"] is False
        refused = asker.ask(*bearer("a+b", modern("tools/call", {"name": "writes", "arguments": {}}))).result
        assert "Too many changes" in refused["structuredContent"]["error"]["message"]
        assert "Wait 1 s" in refused["structuredContent"]["error"]["hint"]
        assert len(done) == 1
        assert limits.refused == {"writes": 1}
        limits.writes.charge("7", -1)
        assert (
            asker.ask(*bearer("b", modern("tools/call", {"name": "writes", "arguments": {}}))).result["isError"]
            is False
        )
    finally:
        asker.close()


def test_answers_of_the_owner_server_are_private(scoped):
    headers, body = modern("tools/list")
    assert scoped.ask([*headers, ("authorization", "Bearer a")], body).result["cacheScope"] == "private"


def test_the_public_tools_import_neither_an_sdk_nor_django():
    program = (
        "import sys; import muniment.mcp.protocol.transport, muniment.mcp.tools.public, muniment.mcp.cards; "
        "print([name for name in ('mcp', 'mcp_types', 'pydantic', 'starlette', 'django') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"
