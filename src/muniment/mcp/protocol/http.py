"""
HTTP of the tool servers: Host, Origin and credential of a request, its limit and its body; replies and errors.

A request is admitted by its Host and Origin, its credential or address, the limit that it is charged to, and its
content type, before its body is read.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from muniment.kernel import fairness
from muniment.kernel.actor import SCOPES, VISITOR, Actor
from muniment.kernel.asgi import Receive, Scope, Send
from muniment.kernel.fairness import Fairness, Holder, Limiter
from muniment.kernel.http.representations import MAX_REMEMBERED_BYTES
from muniment.kernel.problems import Forbidden, Problem, TooLarge, TooMany, Unauthorized
from muniment.mcp import web_pages
from muniment.mcp.declarations import Caller

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
    if host in {"localhost", "[::1]"}:
        return True
    parts = host.split(".")
    if len(parts) != 4 or parts[0] != "127":
        return False
    return all(part.isdigit() and int(part) < 256 for part in parts)


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


# ---------------------------------------------------------------- who calls, and the limit that a request is charged to
# Both are settled before the body is read. Source: decisions, section 2, rate limit.

PROMPT_BYTES: Final = MAX_PUBLIC_BODY_BYTES
PROMPT_S: Final = 1.0


class Admitted(NamedTuple):
    """A caller, and what a tool call answers instead if the caller is over the limit."""

    caller: Caller
    refusal: TooMany | None


def _never(_: Scope) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Access:
    """
    Authentication of the owner-scoped server, and its limits.

    Args:
        authenticate: gets the ASGI scope; returns the actor, or raises Unauthorized with WWW-Authenticate.
        missing: gets a scope that the credential lacks; returns the error (403).
        is_known: gets the ASGI scope; returns whether this process has seen the credential valid.
        fairness: the limits; none by default.
    """

    authenticate: Callable[[Scope], Awaitable[Actor]]
    missing: Callable[[str], Problem]
    is_known: Callable[[Scope], bool] = _never
    fairness: Fairness = field(default_factory=Fairness)

    async def admit(self, scope: Scope, client: str) -> tuple[Actor, TooMany | None]:
        """
        Authenticate a request, and charge it to the account, or to the address without a valid credential.

        A credential that was valid before does not depend on its address, so that users of one hosted agent do not
        share a limit. Other requests of an address over its limit are refused before a query.

        Raises:
            Unauthorized: no valid credential.
            TooMany: too many requests of this address had none.
        """
        limits = self.fairness
        state = scope.setdefault("state", {})
        is_known = self.is_known(scope)
        if not is_known:
            self._charge_address(state, client)
        try:
            actor = await self.authenticate(scope)
        except Unauthorized:
            if is_known:
                self._charge_address(state, client)
            raise
        if not is_known:
            limits.unauthenticated.refund(client)
        account = str(actor.account_id)
        fairness.holder.set(Holder(client, account))
        verdict = state["verdict"] = limits.credentials.take(account)
        if verdict.allowed:
            return actor, None
        return actor, limits.refuse("credentials", verdict)

    def _charge_address(self, state: dict[str, object], client: str) -> None:
        verdict = state["verdict"] = self.fairness.unauthenticated.take(client)
        if not verdict.allowed:
            raise self.fairness.refuse("unauthenticated", verdict, state)


def _charge_public(limiter: Limiter, scope: Scope, client: str) -> TooMany | None:
    """Charge a request to the public server; return the refusal if its address is over the limit."""
    state = scope.setdefault("state", {})
    verdict = state["verdict"] = limiter.take(client)
    return None if verdict.allowed else fairness.current().refuse("requests", verdict, state)


async def admit(scope: Scope, access: Access | None, limiter: Limiter | None) -> Admitted:
    """
    Return the caller, and charge the limit that applies.

    Args:
        access: None for a public server, whose callers are visitors.
        limiter: the limit of the addresses of a public server; None for no limit.
    """
    client = in_state(scope, "client")
    actor, refusal = VISITOR, None
    if access is not None:
        actor, refusal = await access.admit(scope, client)
    elif limiter is not None:
        refusal = _charge_public(limiter, scope, client)
    return Admitted(Caller(actor, client, in_state(scope, "request_id")), refusal)


def in_state(scope: Scope, name: str) -> str:
    """Return what the server noted of a request; "" if nothing."""
    state = scope.get("state")
    return str(state.get(name, "")) if state else ""


async def read_prompt_body(headers: dict[bytes, bytes], receive: Receive, refusal: TooMany) -> bytes | None:
    """
    Return the body of a request over the limit, which names the call to answer; None if the client disconnected.

    Raises:
        TooMany: *refusal*, if the body is not small or does not arrive at once. The rest of it is not read.
    """
    try:
        async with asyncio.timeout(PROMPT_S):
            return await read_body(headers, receive, PROMPT_BYTES)
    except (TooLarge, TimeoutError):
        raise refusal from None


_METADATA_PATH: Final = "/.well-known/oauth-protected-resource/api/manage/mcp"
_MAX_CLIENT_CHARACTERS: Final = 120


class TokenSource(Protocol):
    """Finds the actor of a token."""

    async def __call__(self, text: str, client: str) -> Actor | None:
        """Return the actor of a token, or None if it is invalid."""

    def is_known(self, text: str) -> bool:
        """Return whether this process has seen the token valid."""


class BearerAuthentication:
    """
    Authentication by the Authorization header only.

    Source: RFC 6750, sections 2 and 3; RFC 9728, section 5.1; decisions, section 4.
    """

    def __init__(self, tokens: TokenSource, base_url: str) -> None:
        self._tokens = tokens
        self._base_url = base_url
        self._metadata = f'resource_metadata="{base_url}{_METADATA_PATH}"'

    async def authenticate(self, scope: Scope) -> Actor:
        """Return the actor; raise Unauthorized for no token, an invalid one, or one in the URL."""
        text = self._token(scope)
        client = dict(scope["headers"]).get(b"user-agent", b"")
        actor = await self._tokens(text, _plain(client))
        if actor is None:
            raise self._unauthorized("The token is unknown, expired or revoked.", "invalid_token")
        return actor

    def is_known(self, scope: Scope) -> bool:
        """Return whether this process has seen the token valid. Needs no query."""
        try:
            return self._tokens.is_known(self._token(scope))
        except Unauthorized:
            return False

    def _token(self, scope: Scope) -> str:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if b"access_token=" in scope["query_string"] or b"mun_" in scope["query_string"]:
            raise self._unauthorized(
                "Tokens in the URL are not accepted, because logs and histories store URLs.", "invalid_request"
            )
        if not given:
            raise self._unauthorized("This server requires a bearer token.", "")
        kind, _, text = given[0].decode("latin-1").strip().partition(" ")
        if len(given) > 1 or kind.lower() != "bearer":
            raise self._unauthorized("The Authorization header must be one bearer token.", "invalid_token")
        return str(text.strip())

    def missing(self, scope: str) -> Problem:
        """Return the error for a missing scope (RFC 6750, section 3.1)."""
        return Forbidden(
            f"The credential does not permit {scope}.",
            f"Connect again and allow {scope}, or create a token with it at {self._base_url}{web_pages.TOKENS}.",
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}", {self._metadata}'},
        )

    def _unauthorized(self, message: str, error: str) -> Unauthorized:
        challenge = f'Bearer {self._metadata}, scope="{" ".join(SCOPES)}"'
        return Unauthorized(
            message,
            f"Sign in with OAuth, or create a token at {self._base_url}{web_pages.TOKENS} and send it as "
            "Authorization: Bearer.",
            headers={"WWW-Authenticate": f'{challenge}, error="{error}"' if error else challenge},
        )


def _plain(client: bytes) -> str:
    text = client[: 2 * _MAX_CLIENT_CHARACTERS].decode("utf-8", "replace")
    return "".join(character for character in text if character.isprintable())[:_MAX_CLIENT_CHARACTERS]
