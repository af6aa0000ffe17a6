"""
Known heads: what the HTTP parser made of a block of request headers that clients send again and again.

A client that keeps its connection sends the same headers with each request. The outcome of parsing them is remembered
by their exact bytes, so that such a request costs a lookup instead of a dozen callbacks (decision 68).
"""

from collections.abc import Sequence
from typing import Final

import httptools
import msgspec

from muniment.kernel.asgi import Header
from muniment.kernel.http.representations import prefers_csv

TRACE: Final = b"traceparent"
SINCE: Final = b"if-modified-since"
"""Alone, the ordinary path compares it; beside ``If-None-Match``, it does not count."""
DECLINED: Final = frozenset({TRACE, b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"range", SINCE})
"""Headers that send a request to the ordinary path; a ``traceparent`` only if its trace is recorded."""
_NEVER: Final = (DECLINED - {SINCE}) | {b"x-request-id", b"cookie", b"authorization", b"proxy-authorization"}
"""Headers of a block that is not remembered: they are secret, or differ from request to request."""
LINE_END: Final = b" HTTP/1.1\r\n"
MAX_REQUEST_BYTES: Final = 4096
"""Longer requests are not looked up."""
MAX_BLOCK_BYTES: Final = 2048
_KEPT: Final = b"keep-alive"
MAX_HEADERS: Final = 64
MAX_KNOWN: Final = 512
"""Blocks remembered by a process: at most 1 MB of bytes, and about 3 MB with what was made of them."""


class Head(msgspec.Struct, frozen=True, gc=False):
    """The headers of a request, and those that choose a cached response."""

    headers: list[Header]
    accept_encoding: bytes
    if_none_match: bytes
    accept_language: bytes


class KnownHeads:
    """
    Heads by their exact bytes, from the end of the request line to the end of the request.

    A block is remembered with the verdict of a real parser on the same bytes, and only if it is an ordinary one: of one
    GET request without a body, without credentials, with nothing that concerns the connection.
    """

    def __init__(self) -> None:
        self.by_block: dict[bytes, Head] = {}
        """The known heads by their bytes; only this class changes them."""

    def learn(self, block: bytes) -> None:
        """Remember *block* if it qualifies; the oldest block makes room."""
        head = parsed(block)
        if head is None:
            return
        if len(self.by_block) >= MAX_KNOWN:
            del self.by_block[next(iter(self.by_block))]
        self.by_block[block] = head


class _Recorder:
    """Receives the callbacks of a parser."""

    def __init__(self) -> None:
        self.url = b""
        self.headers: list[Header] = []
        self.messages = 0
        self.bodies = 0
        self.is_complete = False

    def on_message_begin(self) -> None:
        self.messages += 1

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_body(self, _body: bytes) -> None:
        self.bodies += 1

    def on_message_complete(self) -> None:
        self.is_complete = True


def parsed(block: bytes) -> Head | None:
    """Parse a GET request with *block*; return its head, or None unless it is one whole, ordinary request."""
    if len(block) > MAX_BLOCK_BYTES or not block.endswith(b"\r\n\r\n"):
        return None
    recorder = _Recorder()
    parser = httptools.HttpRequestParser(recorder)
    try:
        parser.feed_data(b"GET /" + LINE_END + block)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    is_whole = recorder.messages == 1 and recorder.is_complete and not recorder.bodies and recorder.url == b"/"
    if not is_whole or parser.get_http_version() != "1.1" or not parser.should_keep_alive():
        return None
    return ordinary(recorder.headers)


def plain_headers(headers: Sequence[Header]) -> dict[bytes, bytes] | None:
    """Return the headers by name; None if one is repeated, or ``If-Modified-Since`` counts."""
    chosen = dict(headers)
    is_plain = len(chosen) == len(headers) and (SINCE not in chosen or bool(chosen.get(b"if-none-match")))
    return chosen if is_plain else None


def ordinary(headers: Sequence[Header]) -> Head | None:
    """Return the head of *headers* if they may be remembered."""
    chosen = plain_headers(headers)
    if chosen is None or len(headers) > MAX_HEADERS or b"host" not in chosen or not _NEVER.isdisjoint(chosen):
        return None
    if chosen.get(b"connection", _KEPT).lower() != _KEPT or prefers_csv(chosen.get(b"accept", b"")):
        return None
    return Head(
        list(headers),
        chosen.get(b"accept-encoding", b""),
        chosen.get(b"if-none-match", b""),
        chosen.get(b"accept-language", b""),
    )
