"""
Connections: uvicorn's protocol with limits, so that nobody holds the process by being slow, silent, long or odd.

What cannot be read is answered with the same envelope as everything else. Leans on the internals of uvicorn's
``HttpToolsProtocol``; `muniment.server.fastpath.protocol` checks at the start that they are there.
"""

import asyncio
import heapq
from http import HTTPStatus
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from muniment.api.responses import refusal
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
    """The address is longer than any that leads somewhere."""

    code = "bad_request"
    status = HTTPStatus.REQUEST_URI_TOO_LONG


class HeadersTooLarge(Problem):
    """The headers are more, or longer, than any client needs."""

    code = "bad_request"
    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


class TooSlow(Problem):
    """The request did not come in time."""

    code = "bad_request"
    status = HTTPStatus.REQUEST_TIMEOUT


class _RefusedError(Exception):
    """Ends the parser's work; the reason stands on the connection."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self, config: Any, server_state: Any, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.front: App = config.app
        self.peer = ""
        self.heard_at = self.progress_at = self.head_at = self.stuck_at = self.closing_at = 0.0
        self.has_asked = self.is_retiring = False
        self._in_head = False
        self._in_body = False
        self._is_over = False
        self._head_bytes = self._unsent = 0
        self._refusal: Problem | None = None

    # ------------------------------------------------------------------ the transport's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # asyncio's, narrowed
        """Begin; when there are too many, the most idle ones go."""
        super().connection_made(transport)
        self.peer = self.client[0] if self.client else ""
        self.heard_at = self.progress_at = self.loop.time()
        most = self.front.config.max_connections
        if len(self.connections) > most:
            drop_most_idle(self.connections, max(1, most // 100), self)
            self.front.metrics.happened("connection dropped for another")

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self._is_over:
            return
        self.heard_at = self.loop.time()
        if self.front.end_rest is not None:
            self.front.end_rest()
        was_in_head = self._in_head
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Nothing is upgraded to here: the request is answered as it stands, and what follows is not HTTP.
            self._is_over = True
            if self.cycle is not None:
                self.cycle.keep_alive = False
        except httptools.HttpParserError:
            self.refuse(
                self._refusal
                or BadRequest("The request is not HTTP/1.1 as RFC 9112 describes it.", "Check the client.")
            )
        else:
            if was_in_head and self._in_head:
                # The parser keeps an unfinished header to itself, so what came is counted here.
                self._head_bytes += len(data)
                if self._head_bytes > MAX_HEAD_BYTES:
                    self.refuse(self._too_large())

    def resume_writing(self) -> None:
        """Go on writing: the client has taken some of it."""
        super().resume_writing()
        self.stuck_at = self.loop.time()

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio takes a bool; uvicorn's gives none
        """Answer what a client asked before it half-closed, then close."""
        if not self.is_busy or self._in_body:
            return False
        self.cycle.keep_alive = False
        return True

    # ------------------------------------------------------------------ the parser's side

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._begin_head()

    def _begin_head(self) -> None:
        self._in_head = True
        self.head_at = self.heard_at
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        self.url += url
        if len(self.url) > MAX_TARGET_BYTES:
            self._refusal = TargetTooLong(
                f"The address is longer than {MAX_TARGET_BYTES >> 10} KB.", "Ask for less at once, in several requests."
            )
            raise _RefusedError

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        super().on_header(name, value)
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._refusal = self._too_large()
            raise _RefusedError

    def on_headers_complete(self) -> None:
        """Check what is between the lines, then go on."""
        self._in_head = False
        self.has_asked = True
        hosts = [value for name, value in self.headers if name == b"host"]
        version = self.parser.get_http_version()
        if version not in {"1.1", "1.0"}:
            self._refusal = BadRequest(f"HTTP/{version} is not spoken here.", "Send HTTP/1.1.")
            raise _RefusedError
        if len(hosts) > 1 or (not hosts and version != "1.0"):
            self._refusal = BadRequest("A request names its Host, once.", "Send one Host header.")
            raise _RefusedError
        if version == "1.0" and any(name == b"transfer-encoding" for name, _ in self.headers):
            self._refusal = BadRequest("HTTP/1.0 knows no Transfer-Encoding.", "Send Content-Length.")
            raise _RefusedError
        self.proceed()

    def proceed(self) -> None:
        """Hand the request to the application."""
        super().on_headers_complete()
        self._in_body = True
        if self.is_retiring:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        if self._in_body:
            self._in_body = False
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request; :func:`sweep` ends those who stay silent, so no timer is needed."""
        self.server_state.total_requests += 1
        self.progress_at = self.loop.time()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)

    # ------------------------------------------------------------------ refusals

    @staticmethod
    def _too_large() -> Problem:
        return HeadersTooLarge(
            f"The headers are more than {MAX_HEADERS}, or longer than {MAX_HEAD_BYTES >> 10} KB.", "Send fewer headers."
        )

    @property
    def is_busy(self) -> bool:
        """Tell whether an answer is owed."""
        return self.cycle is not None and not self.cycle.response_complete

    def refuse(self, problem: Problem) -> None:
        """Answer what cannot be read on, in its turn, and end the connection."""
        self._is_over = True
        self.front.metrics.happened(f"refused with {int(problem.status)}")
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if not self._in_body:
                # An earlier request is being answered: that answer is the last.
                cycle.keep_alive = False
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started or self.pipeline:
                self.transport.close()
                return
        response = refusal(problem)
        lines = self.front.closing_lines(self.front.request_id(None), None)
        closing = b"".join(b"%s: %s\r\n" % line for line in lines)
        self.transport.write(b"%s%sconnection: close\r\n\r\n%s" % (response.head, closing, response.body))
        # Closing over what is still on its way would reset the connection, and the answer with it.
        self.closing_at = self.loop.time() + LINGER_S
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def look_after(self, now: float) -> None:
        """End the connection if its client has been silent or slow for too long."""
        if self.closing_at or self.transport.is_closing():
            self._see_off(now)
        elif self._in_head or (self._in_body and not self.cycle.response_complete):
            self._hurry(now)
        elif unsent := self.transport.get_write_buffer_size():
            if unsent != self._unsent:
                self._unsent, self.stuck_at = unsent, now
            elif now - self.stuck_at > self.front.config.body_timeout_s:
                self.transport.abort()  # the client does not take what it asked for
        elif not self.is_busy:
            patience_s = KEEP_ALIVE_S if self.has_asked else self.front.config.header_timeout_s
            if now - self.progress_at > patience_s:
                self.transport.close()

    def retire(self) -> None:
        """Answer what is asked next as the last, and say so: another process takes the client's next connection."""
        self.is_retiring = True
        if self.is_busy:
            self.cycle.keep_alive = False

    def _see_off(self, now: float) -> None:
        """Wait for what is still to be sent, and for the client to hang up; not for ever."""
        if not self.transport.is_closing():
            if now > self.closing_at:
                self.closing_at = now + FLUSH_S
                self.transport.close()
        elif not self.closing_at:
            self.closing_at = now + FLUSH_S
        elif now > self.closing_at:
            self.transport.abort()

    def _hurry(self, now: float) -> None:
        """Refuse a request that does not come."""
        config = self.front.config
        if self._in_head:
            if now - self.head_at > config.header_timeout_s:
                self.refuse(TooSlow("The headers did not come in time.", "Send the request in one go."))
        elif not self.flow.read_paused and now - self.heard_at > config.body_timeout_s:
            self.refuse(TooSlow("The body did not come in time.", "Send it without pauses."))


def sweep(connections: set[Any], now: float) -> None:
    """Look after every connection; called once a second."""
    for connection in list(connections):
        connection.look_after(now)


async def retire(connections: set[Any]) -> None:
    """Let clients leave by themselves, for a moment: a connection that is closed as they ask costs them a request."""
    for connection in list(connections):
        connection.retire()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + RETIRE_S
    while connections and loop.time() < deadline:  # noqa: ASYNC110 - uvicorn's own set, which tells nobody
        await asyncio.sleep(RETIRE_S / 40)


def drop_most_idle(connections: set[Any], count: int, keep: LimitedProtocol) -> None:
    """End the connections whose clients have got nothing for the longest time, and are owed nothing."""
    idle = [each for each in connections if each is not keep and not each.is_busy]
    for each in heapq.nsmallest(count, idle, key=lambda one: one.progress_at):
        each.transport.abort()
