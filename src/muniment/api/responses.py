"""Encoded responses: every form of a version of a resource, created once and stored with the body."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from muniment.kernel.asgi import Header, Send
from muniment.kernel.http.representations import (
    SMALLEST_ENCODED,
    encode,
    etag,
    http_date,
    is_known,
    negotiated,
    proves,
    shown,
)
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Problem
from muniment.registry_toml.applied import current

CACHE_CONTROL: Final = b"public, max-age=30, stale-while-revalidate=300"
EXPOSED: Final = (
    b"ETag, Link, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id, X-Muniment-Edition, "
    b"X-Muniment-Truncated, Deprecation, Sunset"
)
VARY_BY_FORMAT: Final = b"Accept-Encoding, Accept"
"""Of lists, which ``Accept: text/csv`` asks for as CSV."""
CORS: Final = b"access-control-allow-origin: *\r\naccess-control-expose-headers: " + EXPOSED + b"\r\n"
ALLOW: Final = "GET, HEAD, OPTIONS"
JSON: Final = b"application/json"
QUICK_BYTES: Final = 64 << 10
"""Up to this size, compression takes about a millisecond, so the event loop can do it."""


class Response(msgspec.Struct, frozen=True, gc=False):
    """A finished response. A struct for speed: each cache miss creates one."""

    status: int
    head: bytes
    """The status line and the headers, with line ends, without the final blank line."""
    body: bytes
    """The body; empty for 204 and 304."""

    @property
    def headers(self) -> tuple[Header, ...]:
        """Return the headers as pairs with lower-case names, for ASGI."""
        pairs = (line.partition(b": ") for line in self.head.split(b"\r\n")[1:-1])
        return tuple((name, value) for name, _, value in pairs)


async def send_response(send: Send, response: Response, *, head_only: bool) -> None:
    await send({"type": "http.response.start", "status": response.status, "headers": list(response.headers)})
    body = b"" if head_only else response.body
    await send({"type": "http.response.body", "body": body})


def status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d %s\r\n" % (status, HTTPStatus(status).phrase.encode())


def plain(status: int, headers: Mapping[str, str], body: bytes, *, content_type: bytes = JSON) -> Response:
    """Return a response without alternative encodings."""
    head = status_line(status)
    if status not in {204, 304}:  # they have no body
        head += b"content-type: %s\r\ncontent-length: %d\r\n" % (content_type, len(body))
    head += CORS
    for name, value in headers.items():
        head += f"{name.lower()}: {value}\r\n".encode("latin-1", "replace")
    return Response(status, head, body)


def error_response(problem: Problem, lines: bytes = b"") -> Response:
    """Return the error response of *problem*; *lines* are additional header lines."""
    body = msgspec.json.encode(problem.to_wire())
    made = plain(int(problem.status), {"Cache-Control": "no-store", **problem.headers}, body)
    return Response(made.status, made.head + lines, made.body)


def preflight() -> Response:
    """Return the response to OPTIONS: any origin may read, with any header."""
    headers = {
        "Allow": ALLOW,
        "Access-Control-Allow-Methods": ALLOW,
        "Access-Control-Allow-Headers": "*, Authorization",
        "Access-Control-Max-Age": "86400",
    }
    return plain(204, headers, b"")


class Answer(msgspec.Struct, gc=False):
    """
    A version of a resource: its encodings and its 304, each created on first use.

    A struct for speed: each cache miss creates one.
    """

    body: bytes
    """The unencoded bytes."""
    tag: bytes
    """The opaque part of the ETag; each encoding adds its name."""
    modified_at: str = ""
    """The stamp of the last change (see `is_stamp`), or another RFC 3339 time in UTC; "" if unknown."""
    lines: bytes = b""
    """Additional header lines."""
    content_type: bytes = JSON
    cache_control: bytes = CACHE_CONTROL
    vary: bytes = b"Accept-Encoding"
    forms: dict[bytes, Response] = {}
    """The cached responses by encoding; empty for none."""
    _unchanged: dict[bytes, Response] = {}

    def make(self, encoding: bytes) -> Response:
        body = encode(self.body, encoding)
        encoding_line = b"content-encoding: %s\r\n" % encoding if encoding else b""
        head = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n%setag: %s\r\n%s" % (
            self.content_type,
            len(body),
            encoding_line,
            etag(self.tag, encoding),
            self._common(),
        )
        made = self.forms[encoding] = Response(200, head, body)
        return made

    def encoding(self, accepted: bytes) -> bytes:
        if not accepted or len(self.body) < SMALLEST_ENCODED:
            return b""
        return negotiated(accepted)

    def unchanged(self, encoding: bytes) -> Response:
        made = self._unchanged.get(encoding)
        if made is None:
            head = b"HTTP/1.1 304 Not Modified\r\netag: %s\r\n%s" % (etag(self.tag, encoding), self._common())
            made = self._unchanged[encoding] = Response(304, head, b"")
        return made

    def matches(self, if_none_match: bytes) -> bool:
        """Return whether an ``If-None-Match`` value matches this version in any encoding."""
        return is_known(self.tag, if_none_match)

    def has(self, response: Response) -> bool:
        """Return whether *response* is a form of this version."""
        return any(form is response for form in (*self.forms.values(), *self._unchanged.values()))

    def is_unmodified(self, if_modified_since: bytes) -> bool:
        return proves(if_modified_since, self.modified_at)

    def _common(self) -> bytes:
        """Return the header lines of every form, including the 304."""
        modified = b"last-modified: %s\r\n" % http_date(shown(self.modified_at)) if self.modified_at else b""
        rest = (self.cache_control, self.vary, CORS, self.lines + licence_line())
        return b"%scache-control: %s\r\nvary: %s\r\n%s%s" % (modified, *rest)


def declared_licence() -> JSONObject:
    """Return the license of the data as the contract and the list of exports state it; empty if none is declared."""
    declared = current().registry
    if not declared.licence:
        return {}
    licence: JSONObject = {"name": declared.licence}
    if declared.licence_url:
        licence["url"] = declared.licence_url
    return licence


def licence_line() -> bytes:
    """Return the Link header line of the license of the data, if the registry declares its address."""
    address = current().registry.licence_url
    return link_line([("license", address)]) if address.isascii() and address else b""


def link_line(relations: Iterable[tuple[str, str]]) -> bytes:
    links = ", ".join(f'<{address}>; rel="{relation}"' for relation, address in relations)
    return f"link: {links}\r\n".encode("latin-1")
