"""A tool server in this process, called through ASGI."""

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema

from make import published as make
from muniment.mcp.protocol.http import OriginPolicy
from muniment.mcp.protocol.transport import ToolServer
from muniment.mcp.tools.public import public_declarations
from muniment.schema.objects import Schema, registry_schema
from muniment.store.reader import Reader

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "suite", "version": "1"},
}
HEADERS = {
    "host": "127.0.0.1:8000",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}
BASE = "https://registry.example"
Headers = list[tuple[str, str]]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> Any:
        """Return the JSON-RPC result; fail with the whole response if there is none."""
        message = self.json()
        assert "result" in message, (self.status, message)
        return message["result"]


def modern(method: str, params: Mapping[str, Any] | None = None, *, request_id: Any = 1) -> tuple[Headers, bytes]:
    """Build a request of the current protocol version."""
    whole = {**(params or {}), "_meta": {**META, **(params or {}).get("_meta", {})}}
    headers = {**HEADERS, "mcp-protocol-version": MODERN, "mcp-method": method}
    name = whole.get("uri" if method == "resources/read" else "name")
    if method in {"tools/call", "prompts/get", "resources/read"} and isinstance(name, str):
        headers["mcp-name"] = name
    body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": whole}
    return list(headers.items()), json.dumps(body).encode()


def legacy(
    method: str, params: Mapping[str, Any] | None = None, *, request_id: Any = 1, version: str | None = LEGACY
) -> tuple[Headers, bytes]:
    """Build a request of an older protocol version."""
    headers = {**HEADERS, **({"mcp-protocol-version": version} if version else {})}
    body = {"jsonrpc": "2.0", "id": request_id, "method": method, **({} if params is None else {"params": params})}
    return list(headers.items()), json.dumps(body).encode()


def initialize(version: str = LEGACY, **extra: Any) -> tuple[Headers, bytes]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "suite", "version": "1"}, **extra}
    return legacy("initialize", params, version=None)


class Asker:
    """Sends requests to one tool server on its own event loop."""

    def __init__(self, server: ToolServer) -> None:
        self.server = server
        self.loop = asyncio.new_event_loop()
        self._validators: dict[str, jsonschema.Draft202012Validator] = {}

    def close(self) -> None:
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def ask(self, headers: Headers, body: bytes = b"", *, method: str = "POST", **scope: Any) -> Answer:
        return self.loop.run_until_complete(ask(self.server, headers, body, method=method, **scope))

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call a tool and return the result, after checking it against its outputSchema."""
        result = self.ask(*modern("tools/call", {"name": name, "arguments": dict(arguments or {})})).result
        self.validate(name, result["structuredContent"])
        return result

    def validate(self, name: str, answer: Any) -> None:
        """Fail unless a tool's result matches its outputSchema."""
        if name not in self._validators:
            self._validators[name] = jsonschema.Draft202012Validator(self.server.tools[name].tool.output_schema)
        self._validators[name].validate(answer)


async def ask(
    app: Any, headers: Headers, body: bytes = b"", *, method: str = "POST", path: str = "/api/mcp", **state: Any
) -> Answer:
    """Send one ASGI request to *app*."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 5000),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "state": {"client": "127.0.0.1", "request_id": "r-1", **state},
    }
    pending = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        if not pending:
            await asyncio.Event().wait()  # the client stays and listens
        return pending.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    async with asyncio.timeout(60):
        await app(scope, receive, send)
    starts = [message for message in sent if message["type"] == "http.response.start"]
    assert len(starts) == 1, f"an answer starts once, not {len(starts)} times"
    return Answer(
        starts[0]["status"],
        {name.decode(): value.decode("latin-1") for name, value in starts[0]["headers"]},
        b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body"),
    )


@contextlib.contextmanager
def fictional_registry(path: Path) -> Iterator[Reader]:
    """Yield a reader of a small published file with every shape that the tools show."""
    publisher = make.Publisher(path)
    publisher.publish(
        *(make.framework(number, kind="score") for number in range(1, 4)),
        make.framework(4, "ember-grants", kind="program"),
        *(make.person(number, bio=f"Bio of person {number}.") for number in range(1, 31)),
        *(
            make.company(
                number, type="DAO" if number % 3 else "corporation", body=f"Body {number}.", treasuryMinor=number * 1000
            )
            for number in range(1, 61)
        ),
        make.company(
            61,
            "many-holders",
            capTable=[{"address": f"0x{n}", "percentage": n} for n in range(1_500)],
            body="x" * 90_000,
        ),
        make.company(62, "夜明け", symbol="DAWN", description='Native script & "quotes" \u2028 <b>'),
    )
    reader = Reader(path)
    make.follow(reader)
    try:
        yield reader
    finally:
        reader.close()
        publisher.close()


@contextlib.contextmanager
def public_server(reader: Reader, schema: Schema | None = None, **more: Any) -> Iterator[Asker]:
    """Yield the public tool server over *reader*."""
    schema = schema or registry_schema("USD")
    offer = public_declarations(reader, base_url=BASE, registry_name="Suite Registry", schema=schema)
    asker = Asker(ToolServer(offer, gate=OriginPolicy(BASE), **more))
    try:
        yield asker
    finally:
        asker.close()


def check_types(schema: Any) -> None:
    """
    Fail if a schema inside *schema* lists types beside entries, members or choices.

    Gemini's clients refuse such a schema (gemini-cli #21094); `anyOf` says the same.
    """
    if isinstance(schema, dict):
        is_mixed = isinstance(schema.get("type"), list) and schema.keys() & {"items", "properties", "enum"}
        assert not is_mixed, schema
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        check_types(inner)


def tools_of_the_docs() -> set[str]:
    """Return the names in the first columns of the tables of docs/TOOLS.md."""
    rows = (Path(__file__).parents[2] / "docs" / "TOOLS.md").read_text().splitlines()
    columns = [row.split("|")[1] for row in rows if row.startswith("| `")]
    return set(re.findall(r"`(\w+)`", " ".join(columns)))
