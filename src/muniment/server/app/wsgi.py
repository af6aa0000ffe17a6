"""
WSGI adapter: serve the Django pages in the thread pool.

The account of a request is known only after the session is looked up, in a thread. What the pages found out is
remembered by session, so that the next request of the session waits for the turn of its account.
"""

import hashlib
import re
import time
from collections.abc import MutableMapping
from typing import Any, Final

from a2wsgi.wsgi import WSGIResponder
from cachetools import LRUCache
from django.conf import settings

from muniment.kernel import fairness
from muniment.kernel.asgi import Message, Receive, Scope, Send
from muniment.kernel.fairness import ACCOUNT, Holder
from muniment.kernel.problems import TooLarge, Unavailable
from muniment.server.app.threads import Bridge
from muniment.server.http.client_address import FORWARDING
from muniment.store.database import patience
from muniment.store.tables.outcome import STATE

MAX_FORM_BYTES: Final = 12 << 20
"""Enough for a form with a picture; documents have their own endpoint, which streams."""
MAX_FIELDS_BYTES: Final = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
"""Maximum bytes of a form without files. Django refuses a longer one too, but only when all of it is in memory."""
MAX_WAITING_BYTES: Final = 96 << 20
"""Maximum bytes of all forms that are being received."""
MAX_SESSIONS: Final = 10_000


class _Responder(WSGIResponder):
    account = ""

    def wsgi(self, environ: Any, start_response: Any) -> None:
        """Answer the request in this thread, and charge its CPU time to the account."""
        began_s = time.thread_time()
        try:
            with patience.within(patience.REQUEST_S):
                super().wsgi(environ, start_response)
        finally:
            self.account = environ.get(ACCOUNT, "")
            if self.account:
                used_ms = (time.thread_time() - began_s) * 1000
                fairness.current().page_cpu.charge(self.account, used_ms)

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
        self._bridge = bridge
        self._waiting_bytes = 0
        self._accounts: MutableMapping[bytes, str] = LRUCache(MAX_SESSIONS)
        """Accounts by the digest of their session's cookie."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kept = 0
        limit = _limit(scope["headers"])
        if _declared(scope["headers"]) > limit:
            raise _too_large(limit)
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
                if kept > limit:
                    raise _too_large(limit)
                if self._waiting_bytes > MAX_WAITING_BYTES:
                    raise Unavailable("Too many forms are being uploaded at once.", "Try again in a moment.")
                parts.append(part)
            body = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]
            parts.clear()

            async def complete() -> Message:
                return body.pop() if body else {"type": "http.disconnect"}

            whole = {**scope, "headers": tidied(scope, kept)}
            session = _session(whole["headers"])
            may_hash = scope["method"] == "POST" and scope["path"].startswith("/accounts/")
            account, has_asked = self._accounts.get(session, ""), STATE in scope["state"]
            holder = Holder(scope["state"]["client"], account, may_hash, has_asked)
            responder = _Responder(self._application, self._bridge.turn(holder), 0)  # type: ignore[arg-type]  # needs only submit
            await responder(whole, complete, send)  # type: ignore[arg-type]  # a2wsgi types ASGI its own way
            if session and responder.account:
                self._accounts[session] = responder.account
        finally:
            self._waiting_bytes -= kept


def _limit(headers: list[tuple[bytes, bytes]]) -> int:
    """Return how many bytes a form may have: only one of several parts carries files."""
    has_files = any(name == b"content-type" and value.startswith(b"multipart/") for name, value in headers)
    return MAX_FORM_BYTES if has_files else MAX_FIELDS_BYTES


def _declared(headers: list[tuple[bytes, bytes]]) -> int:
    """Return the declared length of the body; 0 without one. The parser accepts digits only."""
    for name, value in headers:
        if name == b"content-length":
            return int(value)
    return 0


def _too_large(limit: int) -> TooLarge:
    size = f"{limit / (1 << 20):g} MB"
    if limit == MAX_FORM_BYTES:
        return TooLarge(f"Forms with files are limited to {size}.", "Send a smaller file.", headers=_CLOSE)
    return TooLarge(f"Forms without files are limited to {size}.", "Send less text.", headers=_CLOSE)


def _session(headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the digest of the session's cookie, or an empty value."""
    for name, value in headers:
        if name == b"cookie":
            session = _SESSION.search(value)
            return hashlib.sha256(session[1]).digest() if session else b""
    return b""


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


_SESSION: Final = re.compile(rb"(?:^|;)\s*%s=([^;]*)" % re.escape(settings.SESSION_COOKIE_NAME.encode()))
_CLOSE: Final = {"Connection": "close"}
_OURS: Final = frozenset({b"x-request-id", b"content-length", b"transfer-encoding", b"proxy"})
"""Set by the server; also ``Proxy``, which some libraries would read as HTTP_PROXY."""
