"""
The fast path's protocol: answer requests from within the HTTP parser.

These are GET requests whose response is ready, calls of a public tool that arrived in one piece and look up one
document, and all requests of a client over its limit, whose refusal must not cost more than a response.

Cached responses are sent while parsing. Look-ups are collected until everything received in this turn of the event loop
is parsed, and then made in one query, which uses the processor's caches well.

The fast path makes the same decisions as the ordinary path: cache, rate limit, request id and closing headers come from
the same :class:`~muniment.server.app.app.App`, and the same tests run with it on and off. It saves the ASGI messages,
which cost as much as all the rest of a small response.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from muniment.api.responses import Answer, status_line
from muniment.kernel.actor import VISITOR
from muniment.kernel.fairness import Verdict
from muniment.kernel.http.representations import prefers_csv
from muniment.kernel.json import JSONObject
from muniment.mcp.declarations import Caller
from muniment.server.charging import last_value
from muniment.server.fastpath.fast_path import Ready, ToolAnswers
from muniment.server.fastpath.heads import (
    DECLINED,
    LINE_END,
    MAX_REQUEST_BYTES,
    SINCE,
    TRACE,
    Head,
    plain_headers,
)
from muniment.server.fastpath.rest import Detail
from muniment.server.http.http_limits import LimitedProtocol
from muniment.server.observability.telemetry import is_sampled

log = logging.getLogger("muniment.server")

UNUSUAL_CALL: Final = frozenset({TRACE, b"transfer-encoding", b"expect", b"upgrade"})
PLAIN_TARGET: Final = re.compile(rb"/[!-~]*")
_CALLBACKS: Final = (
    "_start_asgi_task connection_lost connection_made data_received on_body on_header on_headers_complete"
    " on_message_begin on_message_complete on_response_complete on_url resume_writing shutdown"
)
_ATTRIBUTES: Final = (
    "app client connections cycle expect_100_continue flow headers loop parser pipeline scope server_state transport"
    " url"
)
_CYCLE: Final = ("disconnected", "keep_alive", "message_event", "response_complete", "response_started")


def missing_internals(protocol: type = HttpToolsProtocol, cycle: type = RequestResponseCycle) -> list[str]:
    """Return the internals of uvicorn that connections need and this version lacks."""
    begins = {
        *protocol.__init__.__code__.co_names,  # type: ignore[misc]  # of the very class, no subclass of it
        *protocol.on_message_begin.__code__.co_names,  # type: ignore[attr-defined]  # a protocol of httptools has it
    }
    has = set(cycle.__init__.__code__.co_names)  # type: ignore[misc]  # of the very class, no subclass of it
    return sorted(
        [name for name in _CALLBACKS.split() if not callable(getattr(protocol, name, None))]
        + [name for name in _ATTRIBUTES.split() if name not in begins]
        + [f"cycle.{name}" for name in _CYCLE if name not in has]
    )


class FastPathProtocol(LimitedProtocol):
    """A connection with the fast path."""

    __slots__ = ("_called_with", "_is_between", "_last_block", "_pending", "_waits_for")

    def __init__(
        self, config: Any, server_state: Any, app_state: JSONObject, _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._waits_for: Detail | None = None
        """The detail to look up at the end of this turn."""
        self._pending: Callable[[], bool] | None = None
        """Answers the request whose body is still being read; returns False for the ordinary path."""
        self._called_with = b""
        self._last_block = 0
        """The hash of the headers of the latest request: a client that repeats them may do so often."""
        self._is_between = False
        """
        Whether the latest request was answered without the parser, and nothing has happened since.

        The next one needs no further checks. Never through a proxy, which names another client with each request, nor
        where requests are logged.
        """

    def data_received(self, data: bytes) -> None:
        """Read on; a call whose body is incomplete takes the ordinary path, which can wait."""
        if len(data) <= MAX_REQUEST_BYTES and self._pause is None:
            if self._is_between and self._repeat(data):
                return
            if data.startswith(b"GET /") and self._answer_known(data):
                return
        self._is_between = False
        super().data_received(data)
        if self._pending is not None:
            self._hand_over()
            self.update()

    @property
    def _is_between_requests(self) -> bool:
        return self._pending is None and super()._is_between_requests

    def pause(self, seconds: float) -> None:
        self._is_between = False
        super().pause(seconds)

    @property
    def is_busy(self) -> bool:
        return self._waits_for is not None or super().is_busy

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio takes a bool; uvicorn's gives none
        """Answer requests sent before the client half-closed, then close."""
        self._end_wait()
        return super().eof_received()

    def retire(self) -> None:
        self._is_between = False
        self._end_wait()
        super().retire()

    def pause_writing(self) -> None:
        self._is_between = False
        super().pause_writing()

    def on_message_begin(self) -> None:
        """Start a request without a scope, which only the ordinary path needs."""
        if self._waits_for is not None:
            self._end_wait()
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._begin_head()

    def proceed(self) -> None:
        """Answer at once, wait for the rest of the turn, or take the ordinary path."""
        if self._is_open(b"GET") and self._answer_at_once():
            return
        self._pending = self._call_to_answer() or self._refusal_to_send()
        self._called_with = b""
        if self._pending is None:
            self._proceed_by_task()

    def on_body(self, body: bytes) -> None:
        if self._pending is None:
            super().on_body(body)
        else:
            self._called_with += body

    def on_message_complete(self) -> None:
        """Finish parsing; answer or refuse the request now, or pass it to the ordinary path."""
        if self._pending is not None:
            if self._pending():
                self._pending = None
                return
            self._hand_over()
        super().on_message_complete()

    def _hand_over(self) -> None:
        """Pass the pending request to the ordinary path, with the body received so far."""
        self._pending = None
        if self._is_over:
            return
        self._proceed_by_task()
        if self._called_with:
            super().on_body(self._called_with)

    def _proceed_by_task(self) -> None:
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        HttpToolsProtocol.on_message_begin(self)
        self.url, self.headers, self.expect_100_continue = url, headers, expects
        self.scope["headers"] = headers
        super().proceed()

    def _declines(self, name: bytes, value: bytes) -> bool:
        if name == SINCE:
            return all(each != b"if-none-match" for each, _ in self.headers)
        return name != TRACE or (self.front.traces is not None and is_sampled(value))

    def _is_open(self, method: bytes) -> bool:
        """Return whether a request of *method* may be answered now."""
        return self.parser.get_method() == method and self._is_usual()

    def _is_usual(self) -> bool:
        """Return whether a response can be sent at once, and the connection stays open after it."""
        return self._is_free() and self.parser.should_keep_alive() and self.parser.get_http_version() == "1.1"

    def _is_free(self) -> bool:
        """Return whether no request is pending, and the client reads."""
        cycle = self.cycle
        return (
            (cycle is None or cycle.response_complete)
            and not self.flow.write_paused
            and not self.is_retiring  # the ordinary path sends Connection: close
        )

    def _answer_known(self, data: bytes) -> bool:
        """
        Answer *data* from the cache without the parser, if it is one request with known headers; return whether it is.

        A cached target is one that the parser has accepted; so *data* is, from its first byte to its last, what the
        parser has seen before. It must be between two requests, the first of which it has read.
        """
        if not self._awaits_another():
            return False
        line, _, block = data.partition(LINE_END)
        head = self._known_head(block)
        if head is None:
            return False
        self.heard_at = self.head_at = self.loop.time()
        self.url = line[4:]
        self.headers = head.headers
        client = self._client()
        if not self._answer_cached(head.accept_encoding, head.if_none_match, None, client, known=head, request=data):
            return self._refuse_known(client[1])
        self._is_between = not (self._is_proxied or self.front.log_requests or self.flow.write_paused)
        return True

    def _awaits_another(self) -> bool:
        """Return whether the connection has read a request and can answer the next one as soon as it arrives."""
        is_reading = self.is_unfinished or self._in_head or self._in_body
        is_ending = self._is_over or self._waits_for is not None
        return self.has_asked and not is_reading and not is_ending and self._is_free()

    def _known_head(self, block: bytes) -> Head | None:
        """Return the parsed headers of *block* if they are known, which they are once they arrived twice in a row."""
        heads = self.front.fast_path.heads
        head = heads.by_block.get(block)
        if head is None:
            former, self._last_block = self._last_block, hash(block)
            if former == self._last_block:
                heads.learn(block)
        return head

    def _refuse_known(self, client: str) -> bool:
        """Refuse a request with known headers without the parser, which accepts its target; return whether it is."""
        if not PLAIN_TARGET.fullmatch(self.url):
            return False
        refused = self.front.refused("GET", self.url, self.headers, client)
        if refused is None:
            return False
        return self._refuse("GET", *refused)

    def _repeat(self, request: bytes) -> bool:
        """Answer *request* as the same bytes were answered before, and return whether they were."""
        front = self.front
        found = front.fast_path.repeat(request, self._address)
        if found is None:
            return False
        response, verdict, surface = found
        if verdict is not None and not verdict.allowed:
            self.heard_at = self.loop.time()
            return self._refuse("GET", surface, verdict)
        self.transport.writelines((response.head, front.ending(None, verdict), response.body))
        self.progress_at = self.loop.time()  # when something was heard matters only while a request is unfinished
        front.metrics.fast_path[surface, response.status] += 1
        return True

    def _client(self) -> tuple[str, str]:
        """Return the address of the client and its key of the rate limit."""
        if not self._is_proxied:
            return self.peer, self._address
        clients = self.front.clients
        address = clients.address(self.peer, self.headers)
        return address, clients.rate_key(address)

    def _refusal_to_send(self) -> Callable[[], bool] | None:
        """Return what refuses the request, if its client is over the limit: the same as the ordinary path would."""
        if not self._is_usual() or self.expect_100_continue or self.parser.should_upgrade():
            return None
        method = self.parser.get_method().decode("ascii")
        found = self.front.refused(method, self.url, self.headers, self._client()[1])
        return partial(self._refuse, method, *found) if found is not None else None

    def _refuse(self, method: str, surface: str, verdict: Verdict) -> bool:
        """Send a refusal, and read nothing more from this client until it can be answered."""
        front = self.front
        response = front.refusal(surface, verdict, self.headers)
        request_id = front.request_id(last_value(self.headers, b"x-request-id"))
        body = b"" if method == "HEAD" else response.body
        self._send(response.head, front.ending(request_id, front.charging.shown(surface, verdict)), body)
        if method == "GET":
            front.metrics.fast_path[surface, response.status] += 1
        else:
            front.metrics.answered(surface, method, response.status, 0.0)
        if front.log_requests:
            address, _ = self._client()
            front.write_line(method, self.url, response.status, 0.0, client=address, request_id=request_id)
        self.pause(verdict.wait_s)
        return True

    def _call_to_answer(self) -> Callable[[], bool] | None:
        """Return what answers the call of a tool that the request is, if the fast path may."""
        tools = self.front.fast_path.tools.get(self.url)
        if tools is None or not self._is_open(b"POST"):
            return None
        for name, value in self.headers:
            if name in UNUSUAL_CALL and self._declines(name, value):
                return None
        return partial(self._call_at_once, tools)

    def _call_at_once(self, tools: ToolAnswers) -> bool:
        front = self.front
        given_id = None
        for name, value in self.headers:
            if name == b"x-request-id":
                given_id = value
        request_id = front.request_id(given_id)
        address, client = self._client()
        caller = Caller(VISITOR, client, request_id.decode("ascii"), waits=False)
        try:
            found = tools.call(self.headers, self._called_with, caller)
        except Exception:  # noqa: BLE001 - the ordinary path repeats, logs and reports it
            return False
        if found is None:
            return False
        reply, verdict = found
        head = status_line(reply.status) + b"".join(b"%s: %s\r\n" % line for line in reply.headers)
        if reply.body:
            head += b"content-length: %d\r\n" % len(reply.body)
        self._send(head, front.ending(request_id, verdict), reply.body)
        front.metrics.answered(tools.surface, "POST", reply.status, 0.0)
        if front.log_requests:
            front.write_line("POST", self.url, reply.status, 0.0, client=address, request_id=request_id)
        if verdict is not None and not verdict.allowed:
            self.pause(verdict.wait_s)
        return True

    def _send(self, head: bytes, ending: bytes, body: bytes) -> None:
        self.transport.writelines((head, ending, body))
        self.progress_at = self.heard_at

    def _answer_at_once(self, answer: Answer | None = None) -> bool:
        """Answer a GET from the cache or with *answer*; otherwise wait for it, if one look-up gives it."""
        accept_encoding = if_none_match = b""
        given_id = None
        for name, value in self.headers:
            if name == b"accept-encoding":
                accept_encoding = value
            elif name == b"if-none-match":
                if_none_match = value
            elif name == b"x-request-id":
                given_id = value
            elif name == b"accept" and prefers_csv(value):
                return False  # the address may be kept as JSON
            elif name in DECLINED and self._declines(name, value):
                return False
        if self._answer_cached(accept_encoding, if_none_match, given_id, self._client(), answer):
            return True
        return answer is None and self._wait()

    def _answer_cached(
        self,
        accept_encoding: bytes,
        if_none_match: bytes,
        given_id: bytes | None,
        address_and_client: tuple[str, str],
        answer: Answer | None = None,
        *,
        known: Head | None = None,
        request: bytes = b"",
    ) -> bool:
        """
        Answer the GET of which only these headers matter, and return whether it could be answered at once.

        Args:
            known: the remembered headers, and *request* all the bytes that were received.
        """
        front = self.front
        address, client = address_and_client
        try:
            found = self._find_ready(accept_encoding, if_none_match, client, answer, known)
        except Exception:  # noqa: BLE001 - the ordinary path repeats, logs and reports it
            return False
        if found is None:
            return False
        response, verdict, surface = found
        if verdict is not None and not verdict.allowed:
            return self._refuse("GET", surface, verdict)
        # A request that is answered by its bytes is not parsed, and the 304 to "If-None-Match: *" must be charged.
        if self._is_between and surface == "api" and if_none_match.strip() != b"*":
            front.fast_path.remember(request, self.url, response)
        request_id = front.request_id(given_id) if given_id is not None or front.log_requests else None
        self._send(response.head, front.ending(request_id, verdict), response.body)
        front.metrics.fast_path[surface, response.status] += 1
        if front.log_requests and request_id is not None:
            front.write_line("GET", self.url, response.status, 0.0, client=address, request_id=request_id)
        return True

    def _find_ready(
        self, accept_encoding: bytes, if_none_match: bytes, client: str, answer: Answer | None, known: Head | None
    ) -> Ready | None:
        """Return a response of the API, or else a kept page, charged; with *answer*, the API has it."""
        fast_path = self.front.fast_path
        found = fast_path.get(self.url, accept_encoding, if_none_match, client, answer)
        if found is not None or answer is not None:
            return found
        if known is not None:  # it has no cookie
            return fast_path.page(self.url, accept_encoding, if_none_match, client, known.accept_language)
        if fast_path.has_page(self.url):
            return self._page(accept_encoding, if_none_match, client)
        return None

    def _page(self, accept_encoding: bytes, if_none_match: bytes, client: str) -> Ready | None:
        """Return a kept page; the pages read repeated headers in their own way, and known heads have none."""
        named = plain_headers(self.headers)
        if named is None:
            return None
        accept_language, cookie = named.get(b"accept-language", b""), named.get(b"cookie", b"")
        return self.front.fast_path.page(self.url, accept_encoding, if_none_match, client, accept_language, cookie)

    # ------------------------------------------------------------------ end of the turn

    def _wait(self) -> bool:
        """Wait for the detail that the request needs; return False if it needs something else."""
        front = self.front
        wanted = front.fast_path.detail(self.url)
        if wanted is None:
            return False
        verdict = front.limiter.refusal(self._client()[1])
        if verdict is not None:
            return self._refuse("GET", "api", verdict)
        if not front.fast_path.waiting:
            self.loop.call_soon(front.fast_path.answer_waiting)
        front.fast_path.waiting.append(self)
        self._waits_for = wanted
        return True

    def _end_wait(self) -> None:
        """Answer everything that waits, if this connection does: another request follows it."""
        if self._waits_for is not None:
            self.front.fast_path.answer_waiting()

    @property
    def waits_for(self) -> Detail | None:
        return None if self.transport.is_closing() else self._waits_for

    def abort(self) -> None:
        self.transport.abort()

    def answer_late(self, answers: dict[bytes, Answer]) -> None:
        """Answer the pending request; the ordinary path handles a missing document."""
        self._waits_for = None
        answer = answers.get(self.url)
        if answer is None or not self._answer_at_once(answer):
            self._proceed_by_task()
            self.on_message_complete()
