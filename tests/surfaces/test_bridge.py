"""The bridge of the bundles: the official client speaks to a tool server through it, in every revision."""

import asyncio
import json
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import muniment.web.connecting
from muniment.mcp.protocol.http import OriginPolicy
from muniment.mcp.protocol.transport import ToolServer
from muniment.mcp.tools.public import public_declarations
from muniment.schema.objects import registry_schema
from services.loopback import serving
from services.mcp import fictional_registry
from services.node import NODE
from services.ports import free_port

BRIDGE = str(Path(muniment.web.connecting.__file__).parent / "bridge.mjs")
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Yield the address of a server and the headers that it was sent."""
    seen = []
    with fictional_registry(tmp_path_factory.mktemp("published") / "p.sqlite3") as reader:
        offer = public_declarations(
            reader, base_url="http://127.0.0.1", registry_name="Suite Registry", schema=registry_schema("USD")
        )
        tools = ToolServer(offer, gate=OriginPolicy(""))

        async def app(scope, receive, send):
            seen.append(dict(scope["headers"]))
            await (special if scope["path"] in ANSWERS else tools)(scope, receive, send)

        with serving(app) as port:
            yield f"http://127.0.0.1:{port}/api/mcp", seen


ANSWERS = {
    "/refused": (401, "application/json", [{"error": {"code": "bad_request", "message": "No token.", "hint": "Ask."}}]),
    "/broken": (502, "text/html", ["<h1>"]),
    "/stream": (200, "text/event-stream", [PROGRESS, {"jsonrpc": "2.0", "id": 7, "result": {"text": "a\u2028b"}}]),
}


async def special(scope, receive, send):
    status, content_type, parts = ANSWERS[scope["path"]]
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", content_type.encode())]})
    for part in parts:
        text = json.dumps(part, ensure_ascii=False)
        body = f"event: message\ndata: {text}\n\n" if content_type.startswith("text/event") else text
        await send({"type": "http.response.body", "body": body.encode(), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def bridge(url, **environment):
    return StdioServerParameters(command=str(NODE), args=[BRIDGE, url], env=environment)


@pytest.mark.requirement("mcp.eras")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.anyio
async def test_a_client_works_through_the_bridge(server, mode):
    url, seen = server
    async with Client(stdio_client(bridge(url, MUNIMENT_TOKEN=" Bearer mun_pat_x\n")), mode=mode) as client:
        assert "list_companies" in {tool.name for tool in (await client.list_tools()).tools}
        found = await client.call_tool("get_company", {"slug": "夜明け"})
        assert found.structured_content["data"]["company"]["symbol"] == "DAWN"
        resource = await client.read_resource("registry://companies/夜明け")
        assert "DAWN" in resource.contents[0].text
        failed = await client.call_tool("get_company", {"slug": "missing"})
        assert failed.is_error
    assert seen[-1][b"authorization"] == b"Bearer mun_pat_x"
    assert seen[-1][b"mcp-protocol-version"] == (b"2025-11-25" if mode == "legacy" else b"2026-07-28")


async def told(url, *lines):
    """Write *lines* to a bridge and return what it writes before it ends."""
    process = await asyncio.create_subprocess_exec(
        NODE, BRIDGE, url, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate("".join(f"{line}\n" for line in lines).encode())
    return [json.loads(line) for line in out.decode().split("\n") if line]


CALL = '{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"text":"a\u2028b"}}'


@pytest.mark.anyio
async def test_the_bridge_passes_each_event_of_a_stream(server):
    base = server[0].removesuffix("/api/mcp")
    assert await told(f"{base}/stream", CALL) == ANSWERS["/stream"][2]


@pytest.mark.anyio
async def test_the_bridge_says_why_there_is_no_answer(server):
    base = server[0].removesuffix("/api/mcp")
    (refused,) = await told(f"{base}/refused", CALL)
    assert refused == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32000, "message": "No token. Ask."}}
    (broken,) = await told(f"{base}/broken", CALL)
    assert "status 502" in broken["error"]["message"]
    (away,) = await told(f"http://127.0.0.1:{free_port()}/api/mcp", CALL)
    assert "ECONNREFUSED" in away["error"]["message"]
    (unread,) = await told(base, "{")
    assert unread["error"]["code"] == -32700


@pytest.mark.anyio
async def test_a_notification_gets_no_answer(server):
    base = server[0].removesuffix("/api/mcp")
    note = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    assert await told(f"{base}/refused", note) == []
    assert await told(server[0], note) == []
