"""
The express lane: a GET whose answer is ready is answered from within the HTTP parser.

Nothing is decided here that the ordinary path does not decide alike: what is ready, the rate, the request's id and
the closing lines come from the same :class:`~muniment.server.front.Front`, and the same tests run with the lane on and
off. It spares the ASGI messages, which cost as much as all the rest of a small answer.
"""

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from muniment.server.clients import FORWARDING
from muniment.server.connections import Guarded

DECLINED: Final = FORWARDING | {b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"range"}
"""What makes a request more than an ordinary one; forwarding headers only where a proxy is believed."""
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
    begins = {*protocol.__init__.__code__.co_names, *protocol.on_message_begin.__code__.co_names}  # type: ignore[attr-defined, misc]
    has = set(cycle.__init__.__code__.co_names)  # type: ignore[misc]
    return sorted(
        [name for name in _CALLBACKS if not callable(getattr(protocol, name, None))]
        + [name for name in _ATTRIBUTES if name not in begins]
        + [f"cycle.{name}" for name in _CYCLE if name not in has]
    )


class Express(Guarded):
    """One connection with the lane."""

    def on_message_begin(self) -> None:
        """Begin a request, without the scope: only the ordinary path needs one."""
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._begin_head()

    def proceed(self) -> None:
        """Answer at once, or take the ordinary path."""
        if self._answer_at_once():
            return
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        HttpToolsProtocol.on_message_begin(self)
        self.url, self.headers, self.expect_100_continue = url, headers, expects
        self.scope["headers"] = headers
        super().proceed()

    def retire(self) -> None:
        """Leave the lane: the ordinary path says that the answer is the last."""
        super().retire()
        self._answer_at_once = _never  # type: ignore[method-assign]

    def _answer_at_once(self) -> bool:
        parser = self.parser
        cycle = self.cycle
        if (
            parser.get_method() != b"GET"
            or (cycle is not None and not cycle.response_complete)
            or self.flow.write_paused
            or not parser.should_keep_alive()
            or parser.get_http_version() != "1.1"
        ):
            return False
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
            elif name in DECLINED and (name not in FORWARDING or not front.clients.believes_nobody):
                return False
        client = front.clients.rate_key(self.peer)
        try:
            found = front.at_once(self.url, accept_encoding, if_none_match, client)
        except Exception:  # noqa: BLE001 - the ordinary path meets it again, logs it and answers it with its id
            return False
        if found is None:
            return False
        response, verdict = found
        request_id = front.request_id(given_id)
        self.transport.writelines((response.head, front.ending(request_id, verdict), response.body))
        self.server_state.total_requests += 1
        self.progress_at = self.heard_at
        front.metrics.at_once[response.status] += 1
        if front.log_requests:
            target = self.url.decode("latin-1")
            shown = request_id.decode("ascii")
            front.write_line("GET", target, response.status, 0.0, client=self.peer, request_id=shown)
        return True


def _never() -> bool:
    return False
