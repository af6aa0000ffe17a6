"""WSGI adapter: serve the Django pages in the thread pool."""

from typing import Any, Final

from a2wsgi.wsgi import WSGIResponder

from muniment.kernel.asgi import Message, Receive, Scope, Send
from muniment.kernel.problems import TooLarge, Unavailable
from muniment.server.app.threads import Bridge
from muniment.server.http.client_address import FORWARDING

MAX_FORM_BYTES: Final = 12 << 20
"""Enough for a form with a picture; documents have their own endpoint, which streams."""
MAX_WAITING_BYTES: Final = 96 << 20
"""For all forms being received at once."""


class _Responder(WSGIResponder):
    def send(self, message: Any) -> None:
        # The queue has no limit, so the thread need not wait for the event loop to take each part of a response.
        self.loop.call_soon_threadsafe(self.send_queue.put_nowait, message)


class WSGIApplication:
    """
    Serves a WSGI application.

    A request enters a thread only when its body is complete, and frees the thread as soon as the response is ready: a
    slow client uses memory, which is bounded, but none of the four threads.
    """

    def __init__(self, application: Any, bridge: Bridge) -> None:
        self._application = application
        self._pool = bridge.pool
        self._waiting_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kept = 0
        try:
            parts: list[bytes] = []
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                part = message.get("body", b"")
                more = message.get("more_body", False)
                kept += len(part)
                self._waiting_bytes += len(part)
                if kept > MAX_FORM_BYTES:
                    limit = f"Forms are limited to {MAX_FORM_BYTES >> 20} MB."
                    raise TooLarge(limit, "Send a smaller file.", headers={"Connection": "close"})
                if self._waiting_bytes > MAX_WAITING_BYTES:
                    raise Unavailable("Too many forms are being uploaded at once.", "Try again in a moment.")
                parts.append(part)
            body = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]
            parts.clear()

            async def complete() -> Message:
                return body.pop() if body else {"type": "http.disconnect"}

            whole = {**scope, "headers": tidied(scope, kept)}
            await _Responder(self._application, self._pool, 0)(whole, complete, send)  # type: ignore[arg-type]  # a2wsgi types ASGI its own way
        finally:
            self._waiting_bytes -= kept


def tidied(scope: Scope, body_bytes: int) -> list[tuple[bytes, bytes]]:
    """
    Return the headers for WSGI.

    WSGI maps underscores and hyphens to the same name, so names with underscores are dropped; so are forwarding
    headers, which have already been evaluated for trusted proxies; several cookie lines are joined.
    """
    kept: list[tuple[bytes, bytes]] = []
    cookies: list[bytes] = []
    for name, value in scope["headers"]:
        if name == b"cookie":
            cookies.append(value)
        elif b"_" not in name and name not in FORWARDING and name not in _OURS:
            kept.append((name, value))
    if cookies:
        kept.append((b"cookie", b"; ".join(cookies)))
    if body_bytes or scope["method"] not in {"GET", "HEAD"}:
        kept.append((b"content-length", str(body_bytes).encode()))  # a chunked body has a known length by now
    kept.append((b"x-request-id", scope["state"]["request_id"].encode()))
    return kept


_OURS: Final = frozenset({b"x-request-id", b"content-length", b"transfer-encoding", b"proxy"})
"""Set by the server; also ``Proxy``, which some libraries would read as HTTP_PROXY."""
