"""HTTP of the tool servers: read bodies, send replies, and encode errors as JSON."""

import re
from typing import NamedTuple

import msgspec

from muniment.kernel.asgi import Receive, Send
from muniment.kernel.problems import Problem, TooLarge
from muniment.mcp import web_pages

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
_ASKED = (
    b"Authorization, Content-Type, Accept, Last-Event-ID, MCP-Protocol-Version, MCP-Session-Id, Mcp-Method, Mcp-Name, "
    b"X-Request-Id"
)
_MAX_ASKED_BYTES = 1_000
_NAMES = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:[ \t]*,[ \t]*[!#$%&'*+.^_`|~0-9A-Za-z-]+)*")
"""Names of headers (RFC 9110, section 5.1) with commas between them."""
CORS: Headers = [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", EXPOSED)]
JSON_HEADERS: Headers = [(b"content-type", b"application/json"), *CORS]
NOTHING: Headers = [(b"content-length", b"0"), *CORS]


class Reply(NamedTuple):
    """A finished HTTP response."""

    status: int
    headers: Headers
    body: bytes


def preflight(headers: dict[bytes, bytes]) -> Reply:
    """
    Return the response to a browser's question: any origin may call, with any header that the browser asks for.

    A star would do, but not for Authorization, and older browsers take it for a name.
    """
    asked = headers.get(b"access-control-request-headers", b"")
    more = b", " + asked if len(asked) <= _MAX_ASKED_BYTES and _NAMES.fullmatch(asked) else b""
    lines = [
        *CORS,
        (b"access-control-allow-methods", ALLOW.encode()),
        (b"access-control-allow-headers", _ASKED + more),
        (b"access-control-max-age", b"86400"),
        (b"vary", b"Access-Control-Request-Headers"),
        (b"allow", ALLOW.encode()),
    ]
    return Reply(204, lines, b"")


def error_reply(problem: Problem, base_url: str = "") -> Reply:
    """
    Return the HTTP response for *problem*, in the envelope of the service document; no cache keeps it.

    Args:
        base_url: before the paths of pages that the problem names.
    """
    told = problem.to_wire()
    told["error"] = web_pages.with_addresses(told["error"], base_url)
    more = ((name.lower().encode(), value.encode("latin-1")) for name, value in problem.headers.items())
    return Reply(problem.status, [*JSON_HEADERS, (b"cache-control", b"no-store"), *more], msgspec.json.encode(told))


async def deliver(reply: Reply, send: Send) -> None:
    headers = reply.headers
    if reply.body:
        headers = [*headers, (b"content-length", b"%d" % len(reply.body))]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def headers_by_name(lines: Headers) -> dict[bytes, bytes]:
    """Return headers by name. A routing header that occurs twice has both values, which match nothing (RFC 9110)."""
    headers: dict[bytes, bytes] = {}
    for name, value in lines:
        if name not in _ROUTING:
            headers[name] = value
        elif name in headers:
            headers[name] += b", " + value.strip()
        else:
            headers[name] = value.strip()
    return headers


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
