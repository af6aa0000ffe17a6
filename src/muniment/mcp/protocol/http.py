"""HTTP of the tool servers: check Host, Origin and content types, read bodies, send replies and errors."""

import re
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from muniment.kernel.asgi import Receive, Send
from muniment.kernel.http.representations import MAX_REMEMBERED_BYTES
from muniment.kernel.problems import Forbidden, Problem, TooLarge
from muniment.mcp import web_pages

Headers = list[tuple[bytes, bytes]]

MAX_BODY_BYTES = 1 << 20
MAX_PUBLIC_BODY_BYTES = 64 << 10
"""Maximum body of a request to the public tools, whose arguments are short."""
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
        base_url: the prefix for paths of pages that the problem names.
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


class UnsupportedType(Problem):
    """The body is not declared as JSON."""

    code = "bad_request"
    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


class NotAcceptable(Problem):
    """The client does not accept JSON."""

    code = "bad_request"
    status = HTTPStatus.NOT_ACCEPTABLE


def check_types(headers: dict[bytes, bytes]) -> None:
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        raise UnsupportedType(
            "The Content-Type of a request must be application/json.", "Send Content-Type: application/json."
        )
    accept = headers.get(b"accept", b"")
    if not (_remembered(accept) if len(accept) <= MAX_REMEMBERED_BYTES else _accepts_json(accept)):
        raise NotAcceptable(
            "Responses are JSON, which the Accept header excludes.",
            "Send Accept: application/json, text/event-stream.",
        )


def accepts_events(headers: dict[bytes, bytes]) -> bool:
    """Return whether the client names event streams among what it accepts."""
    return b"text/event-stream" in headers.get(b"accept", b"").lower()


def _accepts_json(accept: bytes) -> bool:
    types = {part.partition(b";")[0].strip().lower() for part in accept.split(b",")}
    return not accept.strip() or bool(types & {b"application/json", b"application/*", b"*/*"})


_remembered: Final = lru_cache(maxsize=1024)(_accepts_json)


_MAX_CACHED = 1_000
_MAX_CACHED_BYTES = 256
_AUTHORITY = re.compile(r"(\[[0-9a-f:.%]+\]|[^:\[\]@/\\]*)(?::[0-9]{0,5})?")


class Misdirected(Problem):
    """The Host is not one of this server's: DNS rebinding, or a missing setting."""

    status = HTTPStatus.MISDIRECTED_REQUEST


def _host_of(authority: str) -> str:
    """Return the host of ``host[:port]`` in lower case, with the brackets of an IPv6 address; "" for anything else."""
    found = _AUTHORITY.fullmatch(authority.strip().lower())
    return found[1] if found else ""


def _is_loopback(host: str) -> bool:
    parts = host.split(".")
    return host in {"localhost", "[::1]"} or (
        len(parts) == 4 and parts[0] == "127" and all(part.isdigit() and int(part) < 256 for part in parts)
    )


class OriginPolicy:
    """
    The rules for Host and Origin.

    Args:
        base_url: the public URL; "" if the instance has none.
        hosts: additional Host names; one without a port allows every port.
        origins: additional Origins that may call a loopback Host.

    Source: decisions, section 3; MCP specification, Streamable HTTP, security warning.
    """

    def __init__(self, base_url: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        parts = urlsplit(base_url)
        self._hosts = {host.lower() for host in hosts}
        self._base = {parts.netloc.lower()} if parts.netloc else set()
        if parts.hostname and parts.port is None:
            # A proxy may add the default port.
            self._base.add(f"{_host_of(parts.netloc)}:{443 if parts.scheme == 'https' else 80}")
        self._origins = {origin.rstrip("/").lower() for origin in origins}
        self._admitted: set[tuple[bytes, bytes]] = set()

    def admit(self, host: bytes, origin: bytes) -> None:
        """
        Check a request's Host and Origin.

        Raises:
            Misdirected: 421, the Host is unknown.
            Forbidden: a page of another Origin calls a server on this machine.
        """
        pair = (host, origin)
        if pair in self._admitted:
            return
        self._check(host.decode("latin-1"), origin.decode("latin-1"))
        if len(self._admitted) < _MAX_CACHED and len(host) + len(origin) <= _MAX_CACHED_BYTES:
            self._admitted.add(pair)

    def _check(self, host: str, origin: str) -> None:
        name = _host_of(host)
        if _is_loopback(name):
            if origin and not self._is_local(origin):
                raise Forbidden(
                    f"The Origin {origin[:100]} is not allowed to call this server at the Host {host[:100]}.",
                    "Use the public URL, or add the origin to MUNIMENT_ALLOWED_ORIGINS.",
                )
        elif host.lower() not in self._base and host.lower() not in self._hosts and name not in self._hosts:
            raise Misdirected(
                f"This server does not serve the Host {host[:100] or '(none)'}.",
                "Use the public URL (MUNIMENT_BASE_URL), or add the host to MUNIMENT_ALLOWED_HOSTS.",
            )

    def _is_local(self, origin: str) -> bool:
        if origin.rstrip("/").lower() in self._origins:
            return True
        scheme, _, authority = origin.partition("://")
        return scheme in {"http", "https"} and _is_loopback(_host_of(authority)) and "/" not in authority
