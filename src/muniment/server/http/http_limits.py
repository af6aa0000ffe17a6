"""
HTTP limits: uvicorn's protocol with limits against slow, idle, oversized and malformed requests.

Requests that cannot be parsed get the same JSON error as others. Depends on internals of uvicorn's
``HttpToolsProtocol``; `muniment.server.fastpath.protocol` checks for them at start-up.
"""

import asyncio
import heapq
from http import HTTPStatus
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from muniment.api.responses import error_response
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Problem
from muniment.server.app.app import App

MAX_TARGET_BYTES: Final = 16 << 10
MAX_HEAD_BYTES: Final = 64 << 10
MAX_HEADERS: Final = 128
KEEP_ALIVE_S: Final = 75
"""Longer than most proxies and pools keep an idle connection, so that they close first."""
LINGER_S: Final = 2
FLUSH_S: Final = 15
RETIRE_S: Final = 1.0


class TargetTooLong(Problem):
    """The request target is too long."""

    status = HTTPStatus.REQUEST_URI_TOO_LONG


class HeadersTooLarge(Problem):
    """The request has too many headers, or too long ones."""

    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


class TooSlow(Problem):
    """The request did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT


class _RefusedError(Exception):
    """Stops the parser; the connection has the reason."""


class LimitedProtocol(HttpToolsProtocol):
    """A connection with limits."""

    def __init__(
        self, config: Any, server_state: Any, app_state: JSONObject, _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.front: App = config.app
        self.peer = ""
        self.heard_at = self.progress_at = self.head_at = self.stuck_at = self.closing_at = 0.0
        self.has_asked = self.is_retiring = False
        self._in_head = self._in_body = self._is_over = False
        self._head_bytes = self._unsent = 0
        self._refusal: Problem | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # asyncio's, narrowed
        """Open the connection; close the longest-idle ones if there are too many."""
        super().connection_made(transport)
        self.peer = self.client[0] if self.client else ""
        self.heard_at = self.progress_at = self.loop.time()
        most = self.front.config.max_connections
        if len(self.connections) > most:
            drop_most_idle(self.connections, max(1, most // 100), self)
            self.front.metrics.count_event("connection dropped for another")

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        self.heard_at = self.loop.time()
        was_in_head = self._in_head
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # No upgrades are supported: the request is answered normally, and what follows is not HTTP.
            self._is_over = True
            if self.cycle is not None:
                self.cycle.keep_alive = False
        except httptools.HttpParserError:
            invalid = BadRequest("The request is not valid HTTP/1.1 (RFC 9112).", "Check the client.")
            self.refuse(self._refusal or invalid)
        else:
            if was_in_head and self._in_head:
                # The parser does not report an unfinished header, so received bytes are counted here.
                self._head_bytes += len(data)
                if self._head_bytes > MAX_HEAD_BYTES:
                    self.refuse(self._too_large())

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stuck_at = self.loop.time()

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio takes a bool; uvicorn's gives none
        """Answer requests sent before the client half-closed, then close."""
        if not self.is_busy or self._in_body:
            return False
        self.cycle.keep_alive = False
        return True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begin_head()

    def _begin_head(self) -> None:
        self._in_head = True
        self.head_at = self.heard_at
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        self.url += url
        if len(self.url) > MAX_TARGET_BYTES:
            self._refusal = TargetTooLong(
                f"The URL is longer than {MAX_TARGET_BYTES >> 10} KB.", "Split it into several requests."
            )
            raise _RefusedError

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._refusal = self._too_large()
            raise _RefusedError

    def on_headers_complete(self) -> None:
        self._in_head = False
        self.has_asked = True
        hosts = [value for name, value in self.headers if name == b"host"]
        version = self.parser.get_http_version()
        if version not in {"1.1", "1.0"}:
            self._refusal = BadRequest(f"HTTP/{version} is not supported.", "Send HTTP/1.1.")
        elif len(hosts) > 1 or (not hosts and version != "1.0"):
            self._refusal = BadRequest("A request needs exactly one Host header.", "Send one Host header.")
        elif version == "1.0" and any(name == b"transfer-encoding" for name, _ in self.headers):
            self._refusal = BadRequest("Transfer-Encoding is not valid in HTTP/1.0.", "Send Content-Length.")
        if self._refusal is not None:
            raise _RefusedError
        self.proceed()

    def proceed(self) -> None:
        super().on_headers_complete()
        self._in_body = True
        if self.is_retiring:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        if self._in_body:
            self._in_body = False
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the next request; :func:`sweep` closes idle connections, so no timer is needed."""
        self.server_state.total_requests += 1
        self.progress_at = self.loop.time()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)

    @staticmethod
    def _too_large() -> Problem:
        return HeadersTooLarge(
            f"The request has more than {MAX_HEADERS} headers, or more than {MAX_HEAD_BYTES >> 10} KB of them.",
            "Send fewer headers.",
        )

    @property
    def is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def refuse(self, problem: Problem) -> None:
        """Report an error for a request that cannot be parsed, after earlier responses, and close the connection."""
        self._is_over = True
        self.front.metrics.count_event(f"refused with {int(problem.status)}")
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if not self._in_body:
                # An earlier request is being answered: close after its response.
                cycle.keep_alive = False
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started or self.pipeline:
                self.transport.close()
                return
        response = error_response(problem)
        lines = self.front.closing_lines(self.front.request_id(None), None)
        closing = b"".join(b"%s: %s\r\n" % line for line in lines)
        self.transport.write(b"%s%sconnection: close\r\n\r\n%s" % (response.head, closing, response.body))
        # Closing with unread input would reset the connection and discard the response.
        self.closing_at = self.loop.time() + LINGER_S
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def check_limits(self, now: float) -> None:
        """Close the connection if its client has been idle or slow for too long."""
        if self.closing_at or self.transport.is_closing():
            self._linger(now)
        elif self._in_head or (self._in_body and not self.cycle.response_complete):
            self._check_timeout(now)
        elif unsent := self.transport.get_write_buffer_size():
            if unsent != self._unsent:
                self._unsent, self.stuck_at = unsent, now
            elif now - self.stuck_at > self.front.config.body_timeout_s:
                self.transport.abort()  # the client does not read its response
        elif not self.is_busy:
            patience_s = KEEP_ALIVE_S if self.has_asked else self.front.config.header_timeout_s
            if now - self.progress_at > patience_s:
                self.transport.close()

    def retire(self) -> None:
        """Close the connection after the next response, so that another process can take the next one."""
        self.is_retiring = True
        if self.is_busy:
            self.cycle.keep_alive = False

    def _linger(self, now: float) -> None:
        """Wait a limited time until the response is sent and the client closes."""
        if not self.transport.is_closing():
            if now > self.closing_at:
                self.closing_at = now + FLUSH_S
                self.transport.close()
        elif not self.closing_at:
            self.closing_at = now + FLUSH_S
        elif now > self.closing_at:
            self.transport.abort()

    def _check_timeout(self, now: float) -> None:
        config = self.front.config
        if self._in_head:
            if now - self.head_at > config.header_timeout_s:
                self.refuse(TooSlow("The headers did not arrive in time.", "Send the whole request at once."))
        elif not self.flow.read_paused and now - self.heard_at > config.body_timeout_s:
            self.refuse(TooSlow("The body did not arrive in time.", "Send it without pauses."))


def sweep(connections: set[Any], now: float) -> None:
    """Check the time limits of every connection; called once per second."""
    for connection in list(connections):
        connection.check_limits(now)


async def retire(connections: set[Any]) -> None:
    """Let clients close their connections first: closing one while its client sends a request fails that request."""
    for connection in list(connections):
        connection.retire()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + RETIRE_S
    while connections and loop.time() < deadline:  # noqa: ASYNC110 - uvicorn's set has no event
        await asyncio.sleep(RETIRE_S / 40)


def drop_most_idle(connections: set[Any], count: int, keep: LimitedProtocol) -> None:
    """Close the connections without pending responses that have been idle the longest."""
    idle = [each for each in connections if each is not keep and not each.is_busy]
    for each in heapq.nsmallest(count, idle, key=lambda one: one.progress_at):
        each.transport.abort()
