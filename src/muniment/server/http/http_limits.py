"""
HTTP limits: uvicorn's protocol with limits against slow, idle, oversized and malformed requests.

Requests that cannot be parsed get the same JSON error as others. Depends on internals of uvicorn's
``HttpToolsProtocol``; `muniment.server.fastpath.protocol` checks for them at start-up.
"""

import asyncio
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.utils import get_remote_addr

from muniment.api.responses import error_response
from muniment.kernel.asgi import LISTENS
from muniment.kernel.fairness import PAUSE, too_many
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Problem
from muniment.server.app.app import App
from muniment.server.http.holders import Holder
from muniment.server.http.incoming_body import DEADLINE_S, PAUSE_S, IncomingBody, TooSlow
from muniment.server.http.responding import INVALID, HeadersTooLarge, TargetTooLong, Wire, crowded, unknown_method

MAX_TARGET_BYTES: Final = 16 << 10
MAX_HEAD_BYTES: Final = 64 << 10
MAX_HEADERS: Final = 128
HEADER_TIMEOUT_S: Final = 10
"""Clients send the head of a request at once, so a slower one holds a connection on purpose."""
KEEP_ALIVE_S: Final = 75
"""Longer than most proxies and pools keep an idle connection, so that they close first."""
LINGER_S: Final = 2
FLUSH_S: Final = 15
RETIRE_S: Final = 1.0
MAX_PAUSE_S: Final = 1.0
"""A client that waits as Retry-After says does not notice a pause: it is told to wait for a second or longer."""
MAX_DOUBLINGS: Final = 3
"""
A client that has sent requests ahead is paused up to eight times as long: each pause ends with a refusal, and those of
2,000 connections would keep the process from others.
"""
FORGIVEN_AFTER_S: Final = 10.0
"""
Of these doublings, one is forgotten for each 10 seconds without a pause: a client that has become patient, or another
one that shares its connection, is not paused for what was sent ahead long ago.
"""
TIMER_S: Final = 0.005
"""Timers count milliseconds and may be early: a token would not be there yet."""
END_OF_HEAD: Final = b"\r\n\r\n"
SHORTEST_HEAD: Final = 16
SPACE: Final = ord(" ")
UPLOADS: Final = b"/uploads/"


_ANSWER: Final = error_response(too_many("new_connections", 1))
_CLOSING: Final = b"x-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
_TURNED_AWAY: Final = _ANSWER.head + _CLOSING + _ANSWER.body


class _RefusedError(Exception):
    """Stops the parser; the connection has the reason."""


class LimitedProtocol(HttpToolsProtocol):
    """A connection with limits."""

    # Python shares the keys of the attributes of all connections only while there are at most 30. Uvicorn has 28, so
    # ours are slots: otherwise each connection takes 1.2 KB more.
    __slots__ = (
        "_address",
        "_answering",
        "_body",
        "_has_ended",
        "_head_bytes",
        "_impatience",
        "_in_body",
        "_in_head",
        "_is_over",
        "_is_proxied",
        "_marked_at",
        "_pause",
        "_paused_until",
        "_refusal",
        "_refused_later",
        "_unread",
        "_unsent",
        "closing_at",
        "front",
        "has_asked",
        "head_at",
        "heard_at",
        "held_bytes",
        "holder",
        "is_retiring",
        "is_unfinished",
        "peer",
        "progress_at",
        "stuck_at",
    )

    def __init__(
        self, config: Any, server_state: Any, app_state: JSONObject, _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.front: App = config.app
        self.peer = ""
        self.holder: Holder | None = None
        """Whose connection it is; through a trusted proxy, whose request it carries."""
        self.held_bytes = 0
        """Body bytes of its requests in progress and what is unread, which its holder counts."""
        self.is_unfinished = True
        """Whether the request that the client is expected to send, or has begun, is incomplete."""
        self.heard_at = self.progress_at = self.head_at = self.stuck_at = self.closing_at = 0.0
        self.has_asked = self.is_retiring = False
        self._in_head = self._in_body = self._is_over = self._is_proxied = False
        self._head_bytes = self._unsent = 0
        self._refusal: Problem | None = None
        self._refused_later: Problem | None = None
        """The error to report after the responses to earlier requests."""
        self._body = IncomingBody(PAUSE_S, DEADLINE_S)
        self._marked_at = 0.0
        self._address = ""
        self._answering: RequestResponseCycle | None = None
        self._pause: asyncio.TimerHandle | None = None
        """Ends the pause of a client over its limit, in which nothing is read from it."""
        self._impatience = 0
        """The pauses in a row at whose end requests waited that the client had sent ahead; it fades with time."""
        self._paused_until = 0.0
        """When the latest pause ended."""
        self._unread = b""
        """Bytes received during a pause, or while a request was being answered."""
        self._has_ended = False
        """Whether the client has half-closed the connection after what is unread."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # asyncio's, narrowed
        """Open the connection, and end another one if there are too many."""
        clients, holders = self.front.clients, self.front.holders
        client = get_remote_addr(transport)
        self.peer = client[0] if client else ""
        self._is_proxied = not clients.trusts_none and clients.trusts(self.peer)
        if not self._is_proxied:
            self._address = clients.rate_key(self.peer)
            if not self.front.fairness.new_connections.take(self._address).allowed:
                self._turn_away_at_once(transport)
                return
        super().connection_made(transport)
        now = self.heard_at = self.progress_at = self.head_at = self._marked_at = self.loop.time()
        if len(self.connections) > holders.max_connections:
            self.front.metrics.count_event("connection dropped for another")
            everyone: set[Any] = self.connections
            if not holders.make_room(everyone, self, now):
                self._turn_away()
                return
        if not self._is_proxied and not holders.enter(self, self._address):
            self._turn_away()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._in_body:
            self._charge_body(self.loop.time())
        if self._pause is not None:
            self._pause.cancel()
        self.front.holders.leave(self)
        if self._answering is not None and not self._answering.response_complete:
            # Uvicorn tells the latest of pipelined requests only.
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        """Read request by request, so that what a client sends ahead waits, and costs nothing while it does."""
        begin = 0
        while begin < len(data) and not self._is_over:
            is_between = self._is_between_requests
            if self._pause is not None or self._unread or (is_between and self._is_answering):
                if self.front.holders.hold(self, len(data) - begin):
                    self._unread += data[begin:]
                    self.flow.pause_reading()
                else:
                    self.refuse(crowded("bytes at once"))
                return
            end = len(data)
            # Neither a body nor empty lines between requests are cut into pieces.
            if is_between and data[begin] > SPACE:
                end_of_head = data.find(END_OF_HEAD, begin + SHORTEST_HEAD)
                if end_of_head >= 0:
                    end = end_of_head + len(END_OF_HEAD)
            self._read(data if end - begin == len(data) else data[begin:end])
            begin = end

    @property
    def _is_between_requests(self) -> bool:
        return not (self._in_head or self._in_body)

    def pause(self, seconds: float) -> None:
        """
        Read nothing more from a client over its limit until it can be answered.

        Through a trusted proxy, others send by the same connection, which is read on.
        """
        if self._pause is None and not (self._is_proxied or self.is_retiring or self._is_over):
            forgiven = int((self.loop.time() - self._paused_until) // FORGIVEN_AFTER_S)
            self._impatience = max(0, self._impatience - forgiven)
            pause_s = min(seconds, MAX_PAUSE_S) * 2**self._impatience
            self._pause = self.loop.call_later(pause_s + TIMER_S, self._end_pause)
            self.flow.pause_reading()

    def _end_pause(self) -> None:
        self._pause = None
        self._paused_until = self.loop.time()
        self._impatience = min(self._impatience + 1, MAX_DOUBLINGS) if self._unread else 0
        self._read_on()

    def _read_on(self) -> None:
        """Read what had to wait, and then from the client again."""
        if self.transport.is_closing():
            return
        unread, self._unread = self._unread, b""
        if unread:
            self.front.holders.release(self)
            self.data_received(unread)
        if self._pause is not None or self._unread:
            return
        self.flow.resume_reading()
        if self._has_ended and not self.eof_received():
            self.transport.close()

    def _read(self, data: bytes) -> None:
        self.heard_at = self.loop.time()
        was_in_head = self._in_head
        body_of = self.cycle if self._in_body else None
        content_bytes = self._body.content_bytes
        if self._parse(data):
            if was_in_head and self._in_head:
                self._count_head(len(data))
            elif self._in_body and body_of is self.cycle:
                self._count_framing(len(data) - (self._body.content_bytes - content_bytes))
        if self._in_head or self._in_body or self.is_unfinished:
            self.update()

    def _parse(self, data: bytes) -> bool:
        """Return whether *data* was parsed; else the connection ends, after a refusal of what is no HTTP."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # No upgrades are supported: the request is answered normally, and what follows is not HTTP.
            self._is_over = True
            if self.cycle is not None:
                self.cycle.keep_alive = False
        except httptools.HttpParserInvalidMethodError:
            self.refuse(self._refusal or unknown_method(data) or INVALID)
        except httptools.HttpParserError:
            self.refuse(self._refusal or INVALID)
        else:
            return True
        return False

    def _count_head(self, size_bytes: int) -> None:
        """Count the bytes of a header that the parser does not report, because it is unfinished."""
        self._head_bytes += size_bytes
        if self._head_bytes > MAX_HEAD_BYTES:
            self.refuse(self._too_large())

    def _count_framing(self, size_bytes: int) -> None:
        """Count the bytes of a body that are not its content."""
        fault = self._body.frame(size_bytes)
        self._refusal = self._refusal or fault

    def update(self) -> None:
        """Report to the holder whether the request is unfinished, and refuse a body that has become too much."""
        if self._refusal is not None and not self._is_over:
            self.refuse(self._refusal)
        is_unfinished = self._is_expected
        holders = self.front.holders
        is_another = is_unfinished and self._marked_at != self.head_at
        if is_another or is_unfinished != self.is_unfinished:
            self.is_unfinished, self._marked_at = is_unfinished, self.head_at
            holders.mark(self)
        if not self._in_body and not self.is_busy:
            if self._is_proxied:
                holders.leave(self)
            elif self.held_bytes and not self._unread:
                holders.release(self)

    @property
    def _is_expected(self) -> bool:
        """Return whether the client is to send a request, or the rest of one, and no earlier one is being answered."""
        if self._in_body:
            return not self.pipeline
        return (self._in_head or not self.has_asked) and not self.is_busy

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stuck_at = self.loop.time()

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio takes a bool; uvicorn's gives none
        """Answer requests sent before the client half-closed, then close."""
        if self._unread:
            self._has_ended = True
            return True
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
        # Uvicorn's method, repeated here: another call for each header would cost 2 % of a request.
        if self._in_head:  # a trailer is counted and dropped: it must not become a header
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._refusal = self._too_large()
            raise _RefusedError

    def on_headers_complete(self) -> None:
        self._in_head = False
        self.has_asked = True
        hosts = 0
        coding = b""
        for name, value in self.headers:
            if name == b"host":
                hosts += 1
            elif name == b"transfer-encoding":
                coding += value or b"?"
        fault = _fault_of_head(self.parser.get_http_version(), hosts, coding)
        if fault is not None:
            self._refusal = fault
        if self._refusal is not None:
            raise _RefusedError
        self.proceed()

    def proceed(self) -> None:
        """Answer the request, for which its client counts as a holder."""
        if self._is_proxied:
            self._enter_named()
        self.scope["state"]["body"] = self._body
        super().on_headers_complete()
        self._in_body = True
        self._body.begin(self.heard_at, is_upload=self.url.startswith(UPLOADS))
        self.cycle.transport = Wire(self)  # type: ignore[assignment]  # what a cycle uses of it
        if self.is_retiring:
            self.cycle.keep_alive = False

    def _enter_named(self) -> None:
        """Count the connection for the client that a trusted proxy names; a request over the limit gets a 429."""
        front = self.front
        front.holders.leave(self)
        address = front.clients.address(self.peer, self.headers)
        self._address = "" if front.clients.trusts(address) else front.clients.rate_key(address)
        if self._address and not front.holders.enter(self, self._address):
            self.scope["state"]["refusal"] = crowded("requests at once")

    def on_body(self, body: bytes) -> None:
        self._body.content_bytes += len(body)
        # Uploads are streamed and therefore not in memory.
        if not self._body.is_upload and not self.front.holders.hold(self, len(body)):
            self._refusal = self._refusal or crowded("bytes at once")
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._in_body:
            self._in_body = False
            self._body.is_complete = True
            self._charge_body(self.heard_at)
            super().on_message_complete()

    def _charge_body(self, now: float) -> None:
        taken_s = self._body.taken_s(now)
        if taken_s and self._address:
            self.front.fairness.body_time.charge(self._address, taken_s)

    def on_response_complete(self) -> None:
        """Start the next request; :func:`sweep` closes idle connections, so no timer is needed."""
        self.server_state.total_requests += 1
        self.progress_at = self.loop.time()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        answered = self._answering
        if answered is not None and PAUSE in answered.scope["state"]:
            self.pause(answered.scope["state"][PAUSE])
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self._refused_later is not None:
            self.refuse(self._refused_later)
        if self._unread and self._pause is None:
            self._read_on()
        if self._in_head or self._in_body or self._is_proxied or self.held_bytes:
            self.update()

    @staticmethod
    def _too_large() -> Problem:
        return HeadersTooLarge(
            f"The request has more than {MAX_HEADERS} headers, or more than {MAX_HEAD_BYTES >> 10} KB of them.",
            "Send fewer headers.",
        )

    @property
    def _is_answering(self) -> bool:
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.disconnected

    @property
    def is_busy(self) -> bool:
        return self._is_answering

    @property
    def is_working(self) -> bool:
        if not self.is_busy or self.is_unfinished or self.flow.write_paused:
            return False
        answering = self._answering
        return answering is None or not answering.scope["state"].get(LISTENS)

    @property
    def waiting_since(self) -> float:
        return self.head_at if self.is_unfinished else max(self.progress_at, self.stuck_at)

    def end(self) -> None:
        """Close the connection, once the client has had time to read the response."""
        if self._in_body:
            self._is_over = True
            self._linger_for_client()
        else:
            self.transport.close()

    def evict(self) -> None:
        """End the connection to make room; a client that has sent part of a request is told."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not self._is_over and (self._in_head or self._in_body):
            self._turn_away()
        elif self.transport.get_write_buffer_size():
            self.transport.abort()  # its client does not read
        else:
            self.transport.close()

    def _turn_away_at_once(self, transport: asyncio.Transport) -> None:
        """Close a new connection before anything is set up for it: its address opens too many."""
        self._is_over = True
        self.transport = transport
        self.front.fairness.count_refusal("new_connections")
        transport.write(_TURNED_AWAY)
        transport.close()

    def _turn_away(self) -> None:
        self.refuse(crowded("connections"))
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def refuse(self, problem: Problem) -> None:
        """Report an error for a request that cannot be parsed, after earlier responses, and close the connection."""
        self._is_over = True
        cycle = self.cycle
        is_pending = cycle is not None and not cycle.response_complete
        if is_pending and self._in_body:
            cycle.disconnected = True
            cycle.message_event.set()
            if self.pipeline:  # its request has not begun; earlier ones are answered
                self.pipeline.popleft()
                self.cycle = self.pipeline[0][0] if self.pipeline else self._answering  # type: ignore[assignment]  # one is
                self._in_body = False
        if is_pending and not self._in_body:
            self._refused_later = problem
            return
        self.front.metrics.count_event(f"refused with {int(problem.status)}")
        if self._in_body and (cycle.response_complete or cycle.response_started):
            self.transport.close()  # the rest of a body whose request was answered early
            return
        response = error_response(problem)
        lines = self.front.closing_lines(self.front.request_id(None), None)
        closing = b"".join(b"%s: %s\r\n" % line for line in lines)
        self.transport.write(b"%s%sconnection: close\r\n\r\n%s" % (response.head, closing, response.body))
        self._linger_for_client()

    def _linger_for_client(self) -> None:
        """Let the client close first: closing with unread input would reset the connection and discard the response."""
        self.closing_at = self.loop.time() + LINGER_S
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def check_limits(self, now: float) -> None:
        """Close the connection if its client has been idle or slow for too long."""
        if self.closing_at or self.transport.is_closing():
            self._linger(now)
            return
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self.stuck_at = unsent, now
        elif unsent and now - self.stuck_at > PAUSE_S:
            self.transport.abort()  # the client does not read its response
            return
        if (self._in_head or self._in_body) and not self._is_over:
            self._check_timeout(now)
        elif not unsent and not self.is_busy:
            self._check_idle(now)

    def retire(self) -> None:
        """Close the connection after the next response, so that another process can take the next one."""
        self.is_retiring = True
        if self._pause is not None:
            self._pause.cancel()
            self._end_pause()
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

    def _check_idle(self, now: float) -> None:
        patience_s = KEEP_ALIVE_S if self.has_asked else HEADER_TIMEOUT_S
        if now - self.progress_at > patience_s:
            self.transport.close()

    def _check_timeout(self, now: float) -> None:
        if self._in_body:
            fault: Problem | None = self._body.fault(now, self.heard_at, is_paused=self.flow.read_paused)
        elif now - self.head_at > HEADER_TIMEOUT_S:
            fault = TooSlow("The headers did not arrive in time.", "Send the whole request at once.")
        else:
            fault = None
        if fault is not None:
            self.refuse(fault)


def _fault_of_head(version: str, hosts: int, coding: bytes) -> Problem | None:
    """Return why a request is refused by its version, the number of its Host headers and its Transfer-Encoding."""
    if version not in {"1.1", "1.0"}:
        return BadRequest(f"HTTP/{version} is not supported.", "Send HTTP/1.1.")
    if hosts > 1 or (not hosts and version != "1.0"):
        return BadRequest("A request needs exactly one Host header.", "Send one Host header.")
    if coding and version == "1.0":
        return BadRequest("Transfer-Encoding is not valid in HTTP/1.0.", "Send Content-Length.")
    if coding and coding.lower() != b"chunked":
        return BadRequest("Only Transfer-Encoding: chunked is supported.", "Send the body uncompressed.")
    return None


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
