"""Who may call what: the declared scope decides, whatever a request looks like and whichever way it takes."""

import base64
import json
import random
from dataclasses import replace

import pytest
from django.db import connection

from make import registry as make
from muniment.accounts import tokens
from muniment.accounts.scopes import READ_SCOPES
from muniment.kernel.actor import ALL_SCOPES, SCOPES, VISITOR
from muniment.mcp.declarations import Caller
from muniment.mcp.protocol.transport import Bound
from muniment.registry.people import profiles
from muniment.server.fastpath.tools import PublicToolAnswers
from services.manage import manage
from services.mcp import HEADERS, fictional_registry, legacy, modern, public_server

SETS = {
    "nothing": frozenset(),
    **{scope: frozenset({scope}) for scope in SCOPES},
    "reading": READ_SCOPES,
    "everything": ALL_SCOPES,
}
ELICITS = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
NOT_STRICT = ["NaN", "Infinity", "-Infinity", "1e999", '"\\ud800"', '{"a": 1, "a": 2}', "[" * 200 + "]" * 200]
CALLED, REFUSED, NO_CALL = "called", "403", "no call"


def call(make_request, name, arguments=None, **params):
    return make_request("tools/call", {"name": name, "arguments": arguments or {}, **params})


def escaped(text):
    return "".join(f"\\u{ord(character):04x}" for character in text).encode()


def swapped(request, old, new):
    headers, body = request
    assert old in body
    return headers, body.replace(old, new, 1)


def named(request, name):
    """Return *request* with its name in base64 in the header."""
    told = "=?base64?" + base64.b64encode(name.encode()).decode() + "?="
    return [(key, told if key == "mcp-name" else value) for key, value in request[0]], request[1]


def accepting(request, accept):
    return [(key, accept if key == "accept" else value) for key, value in request[0]], request[1]


def unnumbered(request):
    """Return a request as a notification."""
    message = json.loads(request[1])
    del message["id"]
    return request[0], json.dumps(message).encode()


def calls(name):
    """Yield every way to call a tool, with its label."""
    waits = {"waitSeconds": 1}
    for make_request in (modern, legacy):
        era = make_request.__name__
        plain = call(make_request, name)
        yield f"{era}", plain
        yield f"{era}, escaped name", swapped(plain, name.encode(), escaped(name))
        yield f"{era}, half escaped name", swapped(plain, name.encode(), escaped(name[:1]) + name[1:].encode())
        yield f"{era}, escaped method", swapped(plain, b"tools/call", escaped("tools/call"))
        yield f"{era}, escaped members", swapped(plain, b'"name"', b'"' + escaped("name") + b'"')
        yield f"{era}, unknown members", call(make_request, name, x=1, task={"ttl": 1}, _meta={"vendor/x": [None]})
        yield f"{era}, more members", swapped(plain, b'"jsonrpc"', b'"result": {}, "error": null, "jsonrpc"')
        yield f"{era}, spaces", (plain[0], b"\n " + json.dumps(json.loads(plain[1]), indent=3).encode() + b" \r\n")
        yield (
            f"{era}, answers",
            call(make_request, name, inputResponses={"confirm": {"action": "accept"}}, requestState="x", _meta=ELICITS),
        )
        yield f"{era}, event stream", call(make_request, name, waits, _meta={"progressToken": "p"})
        yield f"{era}, JSON only", accepting(call(make_request, name, waits), "application/json")
        yield f"{era}, session", ([*plain[0], ("mcp-session-id", "s"), ("mcp-param-slug", "x")], plain[1])
        for request_id in (0, -(10**30), 1.0, "", "a\\", "é"):
            yield f"{era}, id {request_id!r}", make_request("tools/call", {"name": name}, request_id=request_id)
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", None):
        yield f"legacy {version}", legacy("tools/call", {"name": name}, version=version)
    yield "modern, name in base64", named(call(modern, name), name)


def others(name):
    """Yield what looks like a call of a tool and is none: notifications, and what the strict reader refuses."""
    for make_request in (modern, legacy):
        plain = call(make_request, name)
        era = make_request.__name__
        yield f"{era}, notification", unnumbered(plain)
        yield f"{era}, batch", (plain[0], b"[" + plain[1] + b"]")
        yield f"{era}, id null", make_request("tools/call", {"name": name}, request_id=None)
        yield f"{era}, mark", (plain[0], b"\xef\xbb\xbf" + plain[1])
        yield f"{era}, UTF-16", (plain[0], plain[1].decode().encode("utf-16"))
        yield f"{era}, name twice", swapped(plain, b'"name"', b'"name": "list_my_companies", "name"')
        yield f"{era}, method twice", swapped(plain, b'"method"', b'"method": "ping", "method"')
        yield f"{era}, escaped member twice", swapped(plain, b'"name"', b'"n\\u0061me": "list_my_companies", "name"')
        for part in NOT_STRICT:
            member = b'"x": ' + part.encode() + b", "
            for place in (b'"arguments"', b'"jsonrpc"', b'"name"'):
                yield f"{era}, {part[:12]} before {place!r}", swapped(plain, place, member + place)
    for header in ("mcp-name", "mcp-method", "mcp-protocol-version"):
        headers, body = call(modern, name)
        yield f"{header} twice", ([*headers, *(pair for pair in headers if pair[0] == header)], body)
        yield f"other {header}", ([(key, "x" if key == header else value) for key, value in headers], body)


class Watched:
    """The owner server with handlers that only record that they were called."""

    def __init__(self, served):
        self.server = served.asker.server
        self.asker = served.asker
        self.called = []
        actor = make.owner()

        async def authenticate(scope):
            given = dict(scope["headers"])[b"authorization"].decode().removeprefix("Bearer ")
            return replace(actor, via="token", scopes=SETS[given])

        self.server.access = replace(self.server.access, authenticate=authenticate)
        for name, bound in self.server.tools.items():
            tool = replace(bound.tool, handler=lambda _arguments, _caller, name=name: self._record(name))
            self.server.tools[name] = Bound(tool, lambda arguments: arguments)

    def _record(self, name):
        self.called.append(name)
        return {"data": {}}

    def outcome(self, scopes, request):
        """Return what became of a request."""
        headers, body = request
        self.called.clear()
        answer = self.asker.ask([*headers, ("authorization", f"Bearer {scopes}")], body, path="/api/manage/mcp")
        if self.called:
            assert answer.status == 200
            return f"{CALLED} {' '.join(self.called)}"
        if answer.status == 403:
            assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
            assert answer.headers["cache-control"] == "no-store"
            return REFUSED
        assert answer.status in {202, 400, 404} or "error" in answer.json(), answer
        return NO_CALL


@pytest.fixture
def watched(db):
    with manage() as served:
        yield Watched(served)


@pytest.mark.requirement("oauth.scopes")
@pytest.mark.parametrize("scopes", SETS)
def test_every_tool_is_called_by_every_way_exactly_if_its_scope_permits(watched, scopes):
    wrong, count = [], 0
    for name, bound in watched.server.tools.items():
        scope = bound.tool.scope
        expected = f"{CALLED} {name}" if scope is None or scope in SETS[scopes] else REFUSED
        for label, request in calls(name):
            count += 1
            found = watched.outcome(scopes, request)
            if found != expected:
                wrong.append((name, label, found, expected))
        for label, request in others(name):
            count += 1
            found = watched.outcome(scopes, request)
            if found != NO_CALL:
                wrong.append((name, label, found, NO_CALL))
    assert wrong == []
    assert len(watched.server.tools) >= 25
    assert count > 60 * len(watched.server.tools)


def test_every_owner_tool_has_a_scope_and_every_tool_that_changes_something_one_that_permits_changes(watched):
    for bound in watched.server.tools.values():
        if bound.tool.name == "query":
            assert (bound.tool.scope, bound.tool.read_only) == (None, True)  # it answers what is public
            continue
        assert bound.tool.scope in ALL_SCOPES
        assert bound.tool.read_only == (bound.tool.scope in READ_SCOPES), bound.tool.name


@pytest.mark.requirement("oauth.scopes")
def test_a_token_that_may_only_read_changes_nothing_by_any_way(db):
    changes = []

    def watch(execute, sql, params, many, context):
        if sql.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE")):
            changes.append(sql)
        return execute(sql, params, many, context)

    with manage() as served:
        actor = make.owner()
        profiles.create_profile(actor, profiles.ProfileChange({"name": "Ottoline Ferrisbrook", "bio": "Mends boats."}))
        reading = tokens.create_token(actor, "reads", permitted=READ_SCOPES).text
        writing = tokens.create_token(actor, "writes", permitted=ALL_SCOPES).text
        change = {"changes": {"bio": "Changed."}}
        before = served.data(reading, "get_my_profile")
        with connection.execute_wrapper(watch):
            for name, bound in served.asker.server.tools.items():
                if bound.tool.read_only:
                    continue
                for _, request in (*calls(name), *others(name)):
                    message = request[1]
                    if name == "update_my_profile" and b'"arguments": {}' in message:
                        message = message.replace(b'"arguments": {}', b'"arguments": ' + json.dumps(change).encode())
                    assert served.ask(reading, (request[0], message)).status in {202, 400, 403}
        assert [sql for sql in changes if "token" not in sql and "session" not in sql] == []
        assert served.data(reading, "get_my_profile") == before
        served.data(writing, "update_my_profile", **change)
        assert served.data(reading, "get_my_profile") != before


# ---------------------------------------------------------------------- generated requests


def dressed(chance, message, headers):
    """Return *message* as bytes and *headers*, in one of the many forms that mean the same."""
    for place in (message, message["params"], message["params"].setdefault("_meta", {})):
        for _ in range(chance.randrange(3)):
            place[f"x{chance.randrange(99)}"] = chance.choice([None, 1, "a:b", [True], {"a": {"b": 1.5}}, '":'])
    message["id"] = chance.choice([1, 0, -5, 2**70, "a", "", 'q"', 3.0])
    if chance.random() < 0.3:
        message["params"]["requestState"] = "s"
    if chance.random() < 0.3:
        message["params"]["_meta"]["progressToken"] = chance.choice([1, "p"])
    items = list(message.items())
    chance.shuffle(items)
    body = json.dumps(
        dict(items),
        ensure_ascii=chance.random() < 0.5,
        indent=chance.choice([None, None, 1]),
        separators=chance.choice([None, (",", ":")]),
    )
    if chance.random() < 0.3:
        word = chance.choice(["tools/call", "method", "name", "params"])
        body = body.replace(f'"{word}"', f'"{escaped(word).decode()}"')
    extra = [("x-more", "1")] * chance.randrange(2)
    if chance.random() < 0.2:
        extra.append(("mcp-param-x", "y"))
    return [*headers.items(), *extra], body.encode()


def broken(chance, body):
    """Return *body* with a few bytes cut out, doubled, or replaced by what readers of JSON disagree about."""
    start = chance.randrange(len(body))
    end = min(len(body), start + chance.randrange(1, 9))
    odd = [part.encode() for part in NOT_STRICT]
    piece = chance.choice([b"", body[start:end] * 2, *odd, b"\x00", b"\xff", b"\\u0000"])
    return body[:start] + piece + body[end:]


def pair(chance, name, arguments):
    """Return one call in both eras, each in a form of its own."""
    params = {"name": name, "arguments": arguments}
    meta = json.loads(modern("ping")[1])["params"]["_meta"]
    message = {"jsonrpc": "2.0", "method": "tools/call"}
    headers = {**HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name}
    old = dict(HEADERS)
    if version := chance.choice([None, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]):
        old["mcp-protocol-version"] = version
    return (
        dressed(chance, {**message, "params": {**params, "_meta": dict(meta)}}, headers),
        dressed(chance, {**message, "params": dict(params)}, old),
    )


@pytest.mark.requirement("oauth.scopes", "mcp.eras")
def test_generated_requests_may_the_same_in_both_eras(watched):
    chance = random.Random(37)
    names = list(watched.server.tools)
    different = []
    for _ in range(1_300):
        name, scopes = chance.choice(names), chance.choice(list(SETS))
        needed = watched.server.tools[name].tool.scope
        may = needed is None or needed in SETS[scopes]
        expected = f"{CALLED} {name}" if may else REFUSED
        for request in pair(chance, name, chance.choice([{}, {"slug": "x"}, {"changes": {"bio": "a:b"}}])):
            if (found := watched.outcome(scopes, request)) != expected:
                different.append((request, found, expected))
            # A broken one may be a call of this tool still, and never more than that.
            spoiled = watched.outcome(scopes, (request[0], broken(chance, request[1])))
            if spoiled not in {expected, NO_CALL}:
                different.append((request, spoiled))
    assert different == []


@pytest.mark.requirement("mcp.eras")
def test_generated_requests_get_the_same_answer_on_the_fast_path_and_from_the_application(tmp_path):
    chance = random.Random(73)
    given = [{}, {"slug": "company-1"}, {"slug": "missing"}, {"query": "company"}, {"pageSize": "2"}, {"x": 1}]
    different, on_the_fast_path = [], 0
    with fictional_registry(tmp_path / "p.sqlite3") as reader, public_server(reader) as asker:
        fast = PublicToolAnswers(asker.server)
        caller = Caller(VISITOR, "127.0.0.1", "r-1", waits=False)
        for _ in range(1_300):
            name = chance.choice([*asker.server.tools, "update_my_company", "missing"])
            for headers, body in pair(chance, name, chance.choice(given)):
                for sent in (body, broken(chance, body)):
                    lines = [(key.encode(), value.encode()) for key, value in headers]
                    found = fast.call(lines, sent, caller)
                    if found is None:
                        continue
                    on_the_fast_path += 1
                    whole = asker.ask(headers, sent)
                    if (found[0].status, found[0].body) != (whole.status, whole.body):
                        different.append((headers, sent, found, whole))
    assert different == []
    assert on_the_fast_path > 3_000
