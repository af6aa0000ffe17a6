"""HTTP of the tool servers: read bodies, send replies, and encode errors as JSON."""

from typing import NamedTuple

import msgspec

from muniment.kernel.asgi import Receive, Send
from muniment.kernel.problems import Problem, TooLarge

Headers = list[tuple[bytes, bytes]]

MAX_BODY_BYTES = 1 << 20
MAX_PUBLIC_BODY_BYTES = 64 << 10
"""Of the public tools, whose arguments are short."""
_ROUTING = frozenset({b"mcp-protocol-version", b"mcp-method", b"mcp-name"})
ALLOW = "POST, OPTIONS"
EXPOSED = (
    b"ETag, Link, MCP-Protocol-Version, MCP-Session-Id, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, "
    b"X-Request-Id"
)
ASKED = (
    b"Authorization, Content-Type, Accept, Last-Event-ID, MCP-Protocol-Version, MCP-Session-Id, Mcp-Method, Mcp-Name, "
    b"X-Request-Id"
)
CORS: Headers = [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", EXPOSED)]
PREFLIGHT: Headers = [
    *CORS,
    (b"access-control-allow-methods", ALLOW.encode()),
    (b"access-control-allow-headers", ASKED),
    (b"access-control-max-age", b"86400"),
    (b"allow", ALLOW.encode()),
]
JSON_HEADERS: Headers = [(b"content-type", b"application/json"), *CORS]
NOTHING: Headers = [(b"content-length", b"0"), *CORS]


class Reply(NamedTuple):
    """A finished HTTP response."""

    status: int
    headers: Headers
    body: bytes


def error_reply(problem: Problem) -> Reply:
    """Return the HTTP response for *problem*, in the envelope of the service document."""
    more = ((name.lower().encode(), value.encode("latin-1")) for name, value in problem.headers.items())
    return Reply(problem.status, [*JSON_HEADERS, *more], msgspec.json.encode(problem.to_wire()))


async def deliver(reply: Reply, send: Send) -> None:
    headers = reply.headers
    if reply.body:
        headers = [*headers, (b"content-length", b"%d" % len(reply.body))]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def headers_by_name(lines: Headers) -> tuple[dict[bytes, bytes], bool]:
    """Return headers by name, and whether a routing header occurs twice."""
    headers: dict[bytes, bytes] = {}
    is_ambiguous = False
    for name, value in lines:
        is_routing = name in _ROUTING
        is_ambiguous = is_ambiguous or (is_routing and name in headers)
        headers[name] = value.strip() if is_routing else value
    return headers, is_ambiguous


async def read_body(headers: dict[bytes, bytes], receive: Receive, limit: int = MAX_BODY_BYTES) -> bytes | None:
    """
    Return the body; None if the client disconnected.

    Raises:
        TooLarge: more than *limit* bytes, declared or sent.
    """
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and (len(declared) > 9 or int(declared) > limit):
        raise _too_large(limit)
    chunks, size = [], 0
    while (message := await receive())["type"] == "http.request":
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body"):
            return b"".join(chunks)
    return None


def _too_large(limit: int) -> TooLarge:
    uploads = "; upload large files with create_document_upload" if limit == MAX_BODY_BYTES else ""
    return TooLarge(f"The body is larger than {limit} bytes.", f"Send less per request{uploads}.")
