"""ASGI application, routing: which part answers a path, and what all responses have in common."""

import asyncio
import itertools
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from email.utils import formatdate
from importlib import import_module
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import httptools

from muniment.api.application import Api
from muniment.api.responses import Response
from muniment.config import Config
from muniment.kernel import fairness
from muniment.kernel.asgi import LASTING, LISTENS, Application, Header, Message, Receive, Scope, Send
from muniment.kernel.fairness import Holder, Verdict
from muniment.kernel.http.paths import canonical_path
from muniment.kernel.http.public_pages import STAMP, PageStamp
from muniment.kernel.http.representations import KEPT
from muniment.kernel.problems import AtOrigin, MethodNotAllowed, NotFound, Problem, Unavailable
from muniment.server.charging import (
    WITH_BODY,
    Charging,
    last_value,
    may_be_free,
    problem_response,
    refusal_response,
)
from muniment.server.fastpath.fast_path import FastPath, Ready
from muniment.server.fastpath.pages import PageAnswers
from muniment.server.fastpath.rest import RestAnswers
from muniment.server.http.client_address import ClientAddresses, ForwardingNotice
from muniment.server.http.holders import MAX_CONNECTIONS, MAX_CONNECTIONS_PER_ADDRESS, Holders
from muniment.server.http.incoming_body import IncomingBody
from muniment.server.limits import limits_of
from muniment.server.observability import logs
from muniment.server.observability.metrics import CONTENT_TYPE, Metrics
from muniment.server.observability.outages import Outages
from muniment.store.database.faults import log_failure, unexpected

if TYPE_CHECKING:
    from muniment.server.observability.traces import Traces


SANE_ID: Final = re.compile(rb"[A-Za-z0-9._~:+/=-]{1,128}")
READ_ONLY: Final = "GET, HEAD"
ASSETS: Final = "/static/"
ON_ADMIN: Final = "on_admin"
"""The state of requests to the administrative listener."""
MANAGE_PATH: Final = "/api/manage/mcp"
PUBLIC_PATH: Final = "/api/mcp"
log = logging.getLogger("muniment.server")


class App:
    """Answers every request of the process; the tool servers share its rate limiter."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.fairness = fairness.use(limits_of(config))
        self.limiter = self.fairness.requests
        self.charging = Charging(self.fairness)
        self.fast_path = FastPath(self.charging)
        notice = ForwardingNotice(config.data, config.forwarded_header)
        self.clients = ClientAddresses(config.trusted_proxies, config.forwarded_header, notice)
        self.holders = Holders(MAX_CONNECTIONS, MAX_CONNECTIONS_PER_ADDRESS, count_refusal=self.fairness.count_refusal)
        self.metrics = Metrics()
        limited = "Requests refused by a limit, by its name."
        self.metrics.counter("muniment_limited_total", limited, "limit", lambda: self.fairness.refused)
        self.outages = Outages()
        explanation = "How long each service that health checks ask has not answered this process."
        self.metrics.gauges("muniment_outage_seconds", explanation, "service", lambda: self.outages.seconds)
        self.api: Api | None = None
        self.mounts: dict[str, Application] = {}
        """Applications by exact path."""
        self.mounts_with_pages: dict[str, Application] = {}
        """Applications that start with the pages, by the first part of the path: ``/uploads/``."""
        self.pages: Callable[[], Awaitable[Application]] | None = None
        """Waits until the pages are loaded, and returns them."""
        self.health: Callable[[bool], Awaitable[Response]] | None = None
        """Runs the health check of everything reads need; with True, of writes too."""
        self.refresh_gauges: Callable[[], Awaitable[None]] | None = None
        """Updates the database gauges, unless they are recent."""
        self.traces: Traces | None = None
        """Traces requests if a collector is configured."""
        self.log_requests = config.log_requests
        burst, window_s = self.limiter.burst, self.limiter.window_s
        self.policy = b'"default";q=%d;w=60, "burst";q=%d;w=%d' % (config.rate_limit, burst, window_s)
        self._id_prefix = secrets.token_hex(6).encode()
        self._numbers = itertools.count()
        self.update_edition(0)

    def update_date(self) -> None:
        self.date = formatdate(usegmt=True).encode()
        numbered = b"date: %s\r\nx-muniment-edition: %s\r\nx-request-id: " % (self.date, self.edition)
        self._timed_lines = b"x-content-type-options: nosniff\r\n" + numbered
        """The lines of :meth:`closing_lines` that only change with time, encoded, and the start of the next."""
        self._numbered_lines = self._timed_lines + self._id_prefix
        """The same lines and the start of a new id."""

    def update_edition(self, edition: int) -> None:
        """Update X-Muniment-Edition: the lowest edition that this process may show."""
        self.edition = b"%d" % edition
        self.update_date()

    def request_id(self, given: bytes | None) -> bytes:
        """Return the client's request id if it is valid, otherwise a new one."""
        if given is not None and SANE_ID.fullmatch(given):
            return given
        return self._id_prefix + b"%08x" % next(self._numbers)

    def closing_lines(self, request_id: bytes, verdict: Verdict | None) -> list[Header]:
        lines = [
            (b"x-content-type-options", b"nosniff"),
            (b"date", self.date),
            (b"x-muniment-edition", self.edition),
            (b"x-request-id", request_id),
        ]
        if verdict is not None and self.limiter.is_enabled:
            lines.append((b"ratelimit", b'"burst";r=%d;t=%d' % (verdict.remaining, verdict.reset_s)))
            lines.append((b"ratelimit-policy", self.policy))
        return lines

    def ending(self, request_id: bytes | None, verdict: Verdict | None) -> bytes:
        """Return :meth:`closing_lines` encoded, with the blank line after them; None is a new id."""
        if request_id is None:
            lines, number = self._numbered_lines, b"%08x" % next(self._numbers)
        else:
            lines, number = self._timed_lines, request_id
        if verdict is None or not self.limiter.is_enabled:
            return b"%s%s\r\n\r\n" % (lines, number)
        limits = lines, number, verdict.remaining, verdict.reset_s, self.policy
        return b'%s%s\r\nratelimit: "burst";r=%d;t=%d\r\nratelimit-policy: %s\r\n\r\n' % limits

    def open_api(self, api: Api) -> None:
        self.api = self.charging.api = api
        self.fast_path.rest = RestAnswers(api)
        if self.config.base_url:
            # Without it, pages name the Host of their request.
            self.fast_path.pages = PageAnswers(api.reader)

    def listeners(self) -> int:
        """Return the number of open streams of changes."""
        return 0 if self.api is None else len(self.api.live)

    def write_line(
        self, method: str, target: bytes, status: int, seconds: float, *, client: str, request_id: bytes
    ) -> None:
        ours = {"milliseconds": round(seconds * 1000, 1), "client": client, "requestId": request_id.decode("ascii")}
        path = target.decode("latin-1")
        log.info("%s %s %d", method, path, status, extra={"method": method, "path": path, "status": status, **ours})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        headers: list[Header] = scope["headers"]
        request_id = self.request_id(last_value(headers, b"x-request-id"))
        peer, port = scope.get("client") or ("", 0)
        address = self.clients.address(peer, headers)
        shown = request_id.decode("ascii")
        scope["state"] = {**scope.get("state", {}), "request_id": shown, "client": self.clients.rate_key(address)}
        scope["client"] = (address, port if address == peer else 0)  # that of a proxy is not the client's
        scope["scheme"] = self.clients.scheme(peer, headers) or scope.get("scheme", "http")
        logs.request_id.set(shown)
        fairness.holder.set(Holder(scope["state"]["client"]))
        out = _Outgoing(self, send, request_id, scope)
        if self.traces is None or scope["path"].startswith(ASSETS) or scope["raw_path"] in _CHECKS:
            await self._settle(scope, receive, out)
        else:
            with self.traces.request(scope, shown) as span:
                await self._settle(scope, receive, out)
                span.answered(out.surface, out.status)
        lasting = scope["state"].get(LASTING)
        if lasting is not None:
            headers.clear()  # the connection has the same list, which takes kilobytes of a browser
            await lasting.until_left(receive)
        seconds = time.perf_counter() - began
        # A client that listens wants to wait: that is no response time.
        timed_s = 0.0 if LISTENS in scope["state"] else seconds
        self.metrics.answered(out.surface, scope["method"], out.status, timed_s)
        if self.log_requests:
            self.write_line(scope["method"], _target(scope), out.status, seconds, client=address, request_id=request_id)

    async def _settle(self, scope: Scope, receive: Receive, out: "_Outgoing") -> None:
        try:
            self._admit(scope)
            await self._answer(scope, receive, out)
        except Problem as problem:
            await out.refuse(problem)
        except Exception as error:  # noqa: BLE001 - it is logged
            log_failure(log, error, "request failed")
            await out.refuse(unexpected(error, scope["state"]["request_id"]))

    def _admit(self, scope: Scope) -> None:
        """Raise the problem of a request that its connection refuses, or of a client whose bodies are too slow."""
        refusal = scope["state"].get("refusal")
        if refusal is not None:
            raise refusal
        if scope["method"] in WITH_BODY:
            self.fairness.check("body_time", scope["state"]["client"])

    async def _answer(self, scope: Scope, receive: Receive, out: "_Outgoing") -> None:
        asked = scope
        raw_path, path = canonical_path(asked["raw_path"], asked["path"])
        if raw_path != asked["raw_path"]:
            scope = {**asked, "path": path, "raw_path": raw_path}
        out.surface = "health" if scope["state"].get(ON_ADMIN) else self._surface(path)
        if out.surface == "health":
            await self._check(asked, out)
            return
        mounted = self.mounts.get(_without_slash(path))
        if self.config.mirrored and _without_slash(path) == MANAGE_PATH:
            raise AtOrigin(self.config.mirrored, path)
        if mounted is not None:
            await mounted(scope, receive, out)
            return
        if self.charging.is_twin(path):
            path = f"/api/v1{path.removesuffix('.json')}"
            raw_path = b"/api/v1" + scope["raw_path"].removesuffix(b".json")
            scope = {**scope, "path": path, "raw_path": raw_path}
        found = self._unchanged(
            out.surface, scope["method"], _target(scope), scope["headers"], scope["state"]["client"]
        )
        if found is not None:
            response, out.verdict, _ = found
            await out.finish(response)
            return
        self._charge(scope, out)
        if out.surface == "api":
            if self.api is None:
                raise Unavailable("The registry is starting for the first time.", "Try again in a moment.")
            await self.api(scope, receive, out)
            return
        application = await self._pages_or_files(path, out)
        await application(scope, receive, out)

    async def _pages_or_files(self, path: str, out: "_Outgoing") -> Application:
        """Return the application that starts with the pages: the pages, uploads or downloads."""
        if self.pages is None:
            raise Unavailable("The pages are still starting.", "Try again in a moment.")
        pages = await self.pages()
        application = self.mounts_with_pages.get(path[: path.find("/", 1) + 1])
        if application is None:
            return pages
        out.surface = "files"
        return application

    def _surface(self, path: str) -> str:
        """Return the surface that answers *path*, which says by whose rules it is charged."""
        shown = _without_slash(path)
        if shown in _CHECKS.values():
            return "health"
        if shown in self.mounts:
            return "manage_mcp" if shown == MANAGE_PATH else "mcp"
        return self.charging.surface(path)

    def _unchanged(
        self, surface: str, method: str, target: bytes, headers: Sequence[Header], client: str
    ) -> Ready | None:
        """Return the 304 from memory to a request of the API, which is free; None if the request is to be charged."""
        if surface != "api" or method != "GET" or not may_be_free(headers):
            return None
        encoding, known = last_value(headers, b"accept-encoding"), last_value(headers, b"if-none-match")
        return self.fast_path.not_modified(target, encoding or b"", known or b"", client)

    def _charge(self, scope: Scope, out: "_Outgoing") -> None:
        """Charge a request by the limit of its surface; raise TooMany over it."""
        client = scope["state"]["client"]
        name, limiter = self.charging.limit(out.surface)
        verdict = limiter.take(client)
        out.verdict = self.charging.shown(out.surface, verdict)
        if not verdict.allowed:
            self._count_refusal(out.surface)
            raise self.fairness.refuse(name, verdict, scope["state"])
        if out.verdict is not None:
            out.charged = client

    def _count_refusal(self, surface: str) -> None:
        if surface != "static":
            self.metrics.count_event("rate limited")

    def refused(self, method: str, target: bytes, headers: Sequence[Header], client: str) -> tuple[str, Verdict] | None:
        """
        Return the surface and the verdict if :meth:`_charge` would refuse this request, before anything else is done.

        None if it may be answered, also without being charged.
        """
        is_asset = target.startswith(ASSETS.encode())
        limiter = self.fairness.assets if is_asset else self.limiter
        verdict = limiter.refusal(client)
        if verdict is None:
            return None
        try:
            url = httptools.parse_url(target)
            raw_path = url.path or b""
            _, path = canonical_path(raw_path, unquote(raw_path.decode("ascii")))
        except (httptools.HttpParserInvalidURLError, UnicodeDecodeError):
            return None
        surface = self._surface(path)
        if surface in _CHARGED_BY_THEMSELVES or is_asset != (surface == "static"):
            return None
        if method in WITH_BODY and not self.fairness.body_time.peek(client).allowed:
            return None  # the ordinary path refuses it by another limit
        if self._unchanged(surface, method, target, headers, client) is not None:
            return None
        return surface, verdict

    def refusal(self, surface: str, verdict: Verdict, headers: Sequence[Header]) -> Response:
        """Count a refusal of the fast path, and return its response."""
        name, _ = self.charging.limit(surface)
        self._count_refusal(surface)
        self.fairness.count_refusal(name)
        return refusal_response(name, verdict, surface, headers)

    async def _check(self, scope: Scope, out: "_Outgoing") -> None:
        """Answer health checks at their exact paths: proxies hide only the forms of a path that they know."""
        path = _CHECKS.get(scope["raw_path"])
        is_elsewhere = path != "/healthz" and bool(self.config.admin_listen) and not scope["state"].get(ON_ADMIN)
        if path is None or is_elsewhere:
            self._charge(scope, out)
            raise NotFound("Not found.", "The registry is at /, its API at /api/v1.")
        if scope["method"] not in {"GET", "HEAD"}:
            raise MethodNotAllowed(scope["method"], READ_ONLY)
        if not scope["state"].get(ON_ADMIN):
            verdict = self.fairness.probes.take(scope["state"]["client"])
            if not verdict.allowed:
                raise self.fairness.refuse("probes", verdict, scope["state"])
        if path == "/healthz":
            await out.finish(plain_answer(b'{"status":"up"}', b"application/json"))
        elif path == "/metrics":
            await out.finish(await self._metrics())
        elif self.health is None:
            raise Unavailable("The server is starting.", "Try again in a moment.")
        else:
            await out.finish(await self.health(scope["query_string"] == b"writes"))

    async def _metrics(self) -> Response:
        if self.refresh_gauges is not None:
            await self.refresh_gauges()
        # Its import takes 2 MB and, in this thread, 16 ms of the event loop.
        exposition = await asyncio.to_thread(import_module, "muniment.server.observability.exposition")
        return plain_answer(exposition.text(self.metrics.families()), CONTENT_TYPE)


def _target(scope: Scope) -> bytes:
    target: bytes = scope["raw_path"]
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    return target


def _without_slash(path: str) -> str:
    return path.rstrip("/") or "/"


_CHARGED_BY_THEMSELVES: Final = frozenset({"health", "mcp", "manage_mcp"})
"""Surfaces whose requests have limits of their own."""
_CHECKS: Final = {b"/healthz": "/healthz", b"/readyz": "/readyz", b"/metrics": "/metrics"}
"""Health checks by raw path."""


def plain_answer(body: bytes, content_type: bytes) -> Response:
    """Return a response for monitoring, which must not be cached."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\ncache-control: no-store\r\n"
    return Response(200, head % (content_type, len(body)), body)


class _Outgoing:
    """Sends responses: adds the closing headers, and records metrics and logs."""

    __slots__ = ("_front", "_keep", "_request_id", "_scope", "_send", "charged", "status", "surface", "verdict")

    def __init__(self, front: App, send: Send, request_id: bytes, scope: Scope) -> None:
        self._front, self._send, self._request_id, self._scope = front, send, request_id, scope
        self.status = 0
        self.surface = "pages"
        self.verdict: Verdict | None = None
        self.charged = ""
        self._keep: Callable[[Message], None] | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = self._started(message)
        elif self._keep is not None:
            self._keep(message)
        await self._send(message)

    def _started(self, message: Message) -> Message:
        """Return the beginning of the response with the closing headers."""
        self.status = message["status"]
        state = self._scope["state"]
        # A kept page that has not changed is free, and was charged before that was known.
        if self.status == 304 and self.charged and state.get(KEPT) and may_be_free(self._scope["headers"]):
            self.verdict = self._front.limiter.refund(self.charged)
        headers = [line for line in message.get("headers", ()) if line[0] not in _SET_HERE]
        if STAMP in state:
            self._keep = self._keeping(state[STAMP], headers)
        if self.status in _ENDING and not state.get("body", _WHOLE).is_complete:
            headers.append((b"connection", b"close"))  # the rest of the body is not read
        verdict = self.verdict or state.get("verdict")
        return {**message, "headers": headers + self._front.closing_lines(self._request_id, verdict)}

    def _keeping(self, stamp: PageStamp, headers: list[Header]) -> Callable[[Message], None] | None:
        """Return what hands a public page to the fast path when all of its body has come; None if it is not kept."""
        pages, scope, status = self._front.fast_path.pages, self._scope, self.status
        if pages is None or scope["method"] != "GET" or status not in {200, 304}:
            return None
        parts: list[bytes] = []

        def keep(message: Message) -> None:
            if message.get("body"):
                parts.append(message["body"])
            if not message.get("more_body", False):
                body = parts[0] if len(parts) == 1 else b"".join(parts)
                pages.keep(_target(scope), stamp, self.surface, status=status, headers=list(headers), body=body)

        return keep

    async def finish(self, response: Response) -> None:
        await self({"type": "http.response.start", "status": response.status, "headers": response.headers})
        body = b"" if self._scope["method"] == "HEAD" else response.body
        await self({"type": "http.response.body", "body": body})

    async def refuse(self, problem: Problem) -> None:
        """Send a problem as JSON, or close the connection if a response has already started."""
        if self.status:
            raise problem
        await self.finish(problem_response(problem, self.surface, self._scope["headers"]))


_WHOLE: Final = IncomingBody(0, 0)
_ENDING: Final = frozenset({413, 429})
_SET_HERE: Final = frozenset(
    {
        b"x-content-type-options",
        b"date",
        b"x-muniment-edition",
        b"x-request-id",
        b"ratelimit",
        b"ratelimit-policy",
    }
)
