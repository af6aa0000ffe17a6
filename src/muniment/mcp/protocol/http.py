"""HTTP of the tool servers: read bodies, send replies, and encode errors as JSON."""

from typing import NamedTuple

import msgspec

from muniment.kernel.asgi import Message, Receive, Send
from muniment.kernel.problems import Problem, TooLarge
from muniment.mcp.protocol.origin import MAX_BODY_BYTES, NotAcceptable

Headers = list[tuple[bytes, bytes]]

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


class SdkResponseSender:
    """Sends the SDK's responses with CORS headers, and replaces its plain errors by the JSON envelope."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._bare = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", []), *CORS]
            is_json_answer = any(name == b"content-type" and b"json" in value for name, value in headers)
            if message["status"] >= 400 and not is_json_answer:
                self._bare = message["status"]
                return
            message = {**message, "headers": headers}
        elif self._bare:
            if not message.get("more_body"):
                problem = NotAcceptable(
                    "The request was rejected.", "Send Accept: application/json, text/event-stream."
                )
                await deliver(error_reply(problem)._replace(status=self._bare), self._send)
            return
        await self._send(message)


def normalize_headers(headers: Headers) -> Headers:
    """
    Return the headers in the form that the SDK expects.

    httptools keeps trailing white space in values, which the SDK takes for a mismatch; a missing Accept means anything
    (RFC 9110), and media types are case-insensitive.
    """
    normalized = [
        (name, value.strip() if name.startswith(b"mcp-") else value)
        for name, value in headers
        if name not in {b"content-type", b"content-length"} and not (name == b"accept" and not value.strip())
    ]
    normalized.append((b"content-type", b"application/json"))
    if not any(name == b"accept" for name, _ in normalized):
        normalized.append((b"accept", b"application/json, text/event-stream"))
    return normalized


def headers_by_name(lines: Headers) -> tuple[dict[bytes, bytes], bool]:
    """Return headers by name, and whether a routing header occurs twice."""
    headers: dict[bytes, bytes] = {}
    is_ambiguous = False
    for name, value in lines:
        is_routing = name in _ROUTING
        is_ambiguous = is_ambiguous or (is_routing and name in headers)
        headers[name] = value.strip() if is_routing else value
    return headers, is_ambiguous


async def read_body(headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
    """
    Return the body; None if the client disconnected.

    Raises:
        TooLarge: more than a mebibyte, declared or sent.
    """
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and (len(declared) > 9 or int(declared) > MAX_BODY_BYTES):
        raise _too_large()
    chunks, size = [], 0
    while (message := await receive())["type"] == "http.request":
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > MAX_BODY_BYTES:
            raise _too_large()
        if not message.get("more_body"):
            return b"".join(chunks)
    return None


def _too_large() -> TooLarge:
    return TooLarge(
        f"The body is larger than {MAX_BODY_BYTES} bytes.",
        "Send less per request; upload large files with create_document_upload.",
    )
