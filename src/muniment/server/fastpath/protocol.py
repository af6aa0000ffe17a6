"""
The express lane: what needs no waiting is answered from within the HTTP parser.

That is a GET whose answer is ready, and a call of a public tool that came in one piece and looks one document up.

What is kept is answered as it is read. What has to be looked up waits until all that came in this turn of the loop is
read, and is looked up in one go: each part of the work finds the processor's caches as it left them.

Nothing is decided here that the ordinary path does not decide alike: what is ready, the rate, the request's id and
the closing lines come from the same :class:`~muniment.server.app.app.App`, and the same tests run with the lane on
and off. It spares the ASGI messages, which cost as much as all the rest of a small answer.
"""

import logging
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from muniment.api.responses import Answer
from muniment.mcp.declarations import Caller
from muniment.server.app.telemetry import is_sampled
from muniment.server.fastpath.fast_path import ToolAnswers
from muniment.server.fastpath.rest import Detail
from muniment.server.http.http_limits import LimitedProtocol

log = logging.getLogger("muniment.server")

_TRACE: Final = frozenset({b"traceparent"})
"""Where requests are followed, one that is part of a recorded trace takes the path on which it can be."""
DECLINED: Final = _TRACE | {b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"range"}
"""What makes a request more than an ordinary one."""
UNUSUAL_CALL: Final = _TRACE | {b"transfer-encoding", b"expect", b"upgrade"}
_CALLBACKS: Final = (
    "_start_asgi_task",
    "connection_lost",
    "connection_made",
    "data_received",
    "on_body",
    "on_header",
    "on_headers_complete",
    "on_message_begin",
    "on_message_complete",
    "on_response_complete",
    "on_url",
    "resume_writing",
    "shutdown",
)
_ATTRIBUTES: Final = (
    "app",
    "client",
    "connections",
    "cycle",
    "expect_100_continue",
    "flow",
    "headers",
    "loop",
    "parser",
    "pipeline",
    "scope",
    "server_state",
    "transport",
    "url",
)
_CYCLE: Final = ("disconnected", "keep_alive", "message_event", "response_complete", "response_started")


def missing_internals(protocol: type = HttpToolsProtocol, cycle: type = RequestResponseCycle) -> list[str]:
    """Name what connections and the lane lean on and this version of uvicorn lacks."""
    begins = {
        *protocol.__init__.__code__.co_names,  # type: ignore[misc]  # of the very class, no subclass of it
        *protocol.on_message_begin.__code__.co_names,  # type: ignore[attr-defined]  # a protocol of httptools has it
    }
    has = set(cycle.__init__.__code__.co_names)  # type: ignore[misc]  # of the very class, no subclass of it
    return sorted(
        [name for name in _CALLBACKS if not callable(getattr(protocol, name, None))]
        + [name for name in _ATTRIBUTES if name not in begins]
        + [f"cycle.{name}" for name in _CYCLE if name not in has]
    )


_PLAIN_HEADS: Final = {200: b"HTTP/1.1 200 OK\r\n", 202: b"HTTP/1.1 202 Accepted\r\n"}


class FastPathProtocol(LimitedProtocol):
    """One connection with the lane."""

    _waits_for: Detail | None = None
    """The detail that the request asks for, while it waits for the end of this turn."""
    _tools: ToolAnswers | None = None
    """Who is being called, from the headers of a call to the end of its body or of the piece that came with them."""
    _called_with: bytes = b""

    def data_received(self, data: bytes) -> None:
        """Read on; a call whose body is still to come takes the ordinary path, which knows how to wait."""
        super().data_received(data)
        if self._tools is not None:
            self._hand_over()

    @property
    def is_busy(self) -> bool:
        """Tell whether an answer is owed."""
        return self._waits_for is not None or super().is_busy

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio takes a bool; uvicorn's gives none
        """Answer what a client asked before it half-closed, then close."""
        self._end_wait()
        return super().eof_received()

    def retire(self) -> None:
        """Answer what is asked next as the last."""
        self._end_wait()
        super().retire()

    def on_message_begin(self) -> None:
        """Begin a request, without the scope: only the ordinary path needs one."""
        if self._waits_for is not None:
            self._end_wait()
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._begin_head()

    def proceed(self) -> None:
        """Answer at once, wait for the end of the turn or the rest of a piece, or take the ordinary path."""
        if self._is_open(b"GET") and self._answer_at_once():
            return
        self._tools = self._tools_at_once()
        self._called_with = b""
        if self._tools is None:
            self._proceed_by_task()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if self._tools is None:
            super().on_body(body)
        else:
            self._called_with += body

    def on_message_complete(self) -> None:
        """Note that the request is whole; a call is answered now, or by the ordinary path."""
        if self._tools is not None:
            if self._call_at_once(self._tools):
                self._tools = None
                return
            self._hand_over()
        super().on_message_complete()

    def _hand_over(self) -> None:
        """Let the ordinary path have the call that was waited for, with as much of its body as is there."""
        self._tools = None
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
        """Tell whether a header that may matter does."""
        return name not in _TRACE or (self.front.traces is not None and is_sampled(value))

    def _is_open(self, method: bytes) -> bool:
        """Tell whether a request of *method* may be answered now: nothing before it is, and the client reads."""
        parser = self.parser
        cycle = self.cycle
        return (
            parser.get_method() == method
            and (cycle is None or cycle.response_complete)
            and not self.flow.write_paused
            and parser.should_keep_alive()
            and parser.get_http_version() == "1.1"
            and not self.is_retiring  # the ordinary path says that the answer is the last
        )

    def _tools_at_once(self) -> ToolAnswers | None:
        """Give the tool server that the request calls, when the lane may answer for it."""
        tools = self.front.fast_path.tools.get(self.url)
        if tools is None or not self._is_open(b"POST"):
            return None
        for name, value in self.headers:
            if name in UNUSUAL_CALL and self._declines(name, value):
                return None
        return tools

    def _call_at_once(self, tools: ToolAnswers) -> bool:
        front = self.front
        given_id = None
        for name, value in self.headers:
            if name == b"x-request-id":
                given_id = value
        request_id = front.request_id(given_id)
        address = front.clients.address(self.peer, self.headers)
        caller = Caller(None, front.clients.rate_key(address), request_id.decode("ascii"))
        try:
            found = tools.call(self.headers, self._called_with, caller)
        except Exception:  # noqa: BLE001 - the ordinary path meets it again, logs it and answers it with its id
            return False
        if found is None:
            return False
        reply, verdict = found
        head = _PLAIN_HEADS[reply.status] + b"".join(b"%s: %s\r\n" % line for line in reply.headers)
        if reply.body:
            head += b"content-length: %d\r\n" % len(reply.body)
        self._send(head, front.ending(request_id, verdict), reply.body)
        front.metrics.answered("mcp", "POST", reply.status, 0.0)
        if front.log_requests:
            target = self.url.decode("latin-1")
            front.write_line("POST", target, reply.status, 0.0, client=address, request_id=caller.request_id)
        return True

    def _send(self, head: bytes, ending: bytes, body: bytes) -> None:
        self.transport.writelines((head, ending, body))
        self.server_state.total_requests += 1
        self.progress_at = self.heard_at

    def _answer_at_once(self, answer: Answer | None = None) -> bool:
        """Answer a GET with what is kept, or with *answer*; without one, wait for it where one look-up gives it."""
        front = self.front
        accept_encoding = if_none_match = b""
        given_id = None
        for name, value in self.headers:
            if name == b"accept-encoding":
                accept_encoding = value
            elif name == b"if-none-match":
                if_none_match = value
            elif name == b"x-request-id":
                given_id = value
            elif name in DECLINED and self._declines(name, value):
                return False
        address = front.clients.address(self.peer, self.headers)
        client = front.clients.rate_key(address)
        try:
            found = front.fast_path.get(self.url, accept_encoding, if_none_match, client, answer)
        except Exception:  # noqa: BLE001 - the ordinary path meets it again, logs it and answers it with its id
            return False
        if found is None:
            return answer is None and self._wait()
        response = found.response
        request_id = front.request_id(given_id)
        self._send(response.head, front.ending(request_id, found.verdict), response.body)
        front.metrics.at_once[response.status] += 1
        if front.log_requests:
            target = self.url.decode("latin-1")
            shown = request_id.decode("ascii")
            front.write_line("GET", target, response.status, 0.0, client=address, request_id=shown)
        return True

    # ------------------------------------------------------------------ what waits for the end of the turn

    def _wait(self) -> bool:
        """Wait for the detail that the request asks for; False when it asks for something else."""
        front = self.front
        wanted = front.fast_path.detail(self.url)
        if wanted is None:
            return False
        if not front.fast_path.waiting:
            self.loop.call_soon(front.fast_path.answer_waiting)
        front.fast_path.waiting.append(self)
        self._waits_for = wanted
        return True

    def _end_wait(self) -> None:
        """Have everything answered that waits, if this connection does: something else comes after it."""
        if self._waits_for is not None:
            self.front.fast_path.answer_waiting()

    @property
    def waits_for(self) -> Detail | None:
        """Give the detail that is waited for; None when nothing is, or nobody is there any more."""
        return None if self.transport.is_closing() else self._waits_for

    def abort(self) -> None:
        """Close the connection without an answer."""
        self.transport.abort()

    def answer_late(self, answers: dict[bytes, Answer]) -> None:
        """Answer what waited; the ordinary path says why, when it was not found."""
        self._waits_for = None
        answer = answers.get(self.url)
        if answer is None or not self._answer_at_once(answer):
            self._proceed_by_task()
            self.on_message_complete()
