"""
Fetch a small file of a server that a user names, or send something small to it.

The name is resolved once; all its addresses must be allowed; the connection uses the checked address, with TLS for the
name. Redirects are not followed here; :mod:`muniment.outbound.following` does, with the same checks for each.
"""

import http.client
import io
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Final, NamedTuple, Self, TypedDict, Unpack
from urllib.parse import SplitResult, urlsplit

from muniment.outbound.addresses import addresses_of, is_public

DEADLINE_S: Final = 4.0
MAX_BODY_BYTES: Final = 8_192
MAX_HEAD_BYTES: Final = 8_192
MAX_STATUS_BYTES: Final = 1_024
MAX_EXCERPT_BYTES: Final = 500
"""Of what answers a request that sends something."""
EXCERPT_S: Final = 1.0
"""The wait for it once the status is known: the answer counts, whatever follows."""
_CHUNK_BYTES: Final = 16_384
PORTS: Final = {"https": 443, "http": 80}

Resolve = Callable[[str, int], Iterable[str]]
Receive = Callable[[socket.socket, float], bytes]


class Connection(TypedDict, total=False):
    """
    The options that a caller may replace.

    Args:
        resolve: returns the addresses of a name.
        is_allowed: whether an address may be connected to; public ones by default.
        tls: the certificates to trust; the system's by default.
        port: the port of the server, in place of the scheme's.
        deadline_s: time limit of the whole exchange.
        max_body_bytes: size limit of the body; of what answers a request that sends something, only so much is read.
    """

    resolve: Resolve
    is_allowed: Callable[[str], bool]
    tls: ssl.SSLContext
    port: int
    deadline_s: float
    max_body_bytes: int


class NotFetched(ValueError):  # noqa: N818 - an outcome
    """
    The response is not 200.

    Args:
        status: the status of the response.
        location: where a redirect leads; "" for other responses.
    """

    def __init__(self, status: int, location: str = "") -> None:
        super().__init__(f"the response is {status}, not 200; redirects are not followed")
        self.status, self.location = status, location


class Answered(NamedTuple):
    """The status of a response, and the beginning of its body."""

    status: int
    excerpt: str


class Fetched(NamedTuple):
    """A body and its media type, in lower case and without parameters."""

    body: bytes
    media_type: str


def fetch(address: str, *, accept: str, **connection: Unpack[Connection]) -> Fetched:
    """
    Fetch *address* from a checked, pinned address of its host.

    Raises:
        OSError: no connection, or a timeout.
        NotFetched: the response is not 200.
        ValueError: the host has an address that is not allowed, or the response is too large.
        http.client.HTTPException: the response is not HTTP.
    """
    limit = connection.get("max_body_bytes", MAX_BODY_BYTES)
    return _fetched(_ask(address, _Request("GET", {"Accept": accept}), partial(_whole, limit), connection), limit)


def answered_status(address: str, *, accept: str = "*/*", **connection: Unpack[Connection]) -> int:
    """
    Return the HTTP status that *address* answers with; its body is not read.

    Raises:
        OSError: no connection, or a timeout.
        ValueError: the host has an address that is not allowed, or the URL is not valid.
        http.client.HTTPException: the response is not HTTP.
    """
    line = _ask(address, _Request("GET", {"Accept": accept}), _status_line, connection)
    match = re.match(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: |\r?\n|$)", line)
    if match is None:
        raise http.client.BadStatusLine(line[:80].decode("latin-1"))
    return int(match[1])


def post(address: str, body: bytes, headers: Mapping[str, str], **connection: Unpack[Connection]) -> Answered:
    """Send *body* to *address* once, as a :class:`Channel` does, by a connection that closes."""
    request = _Request("POST", {**headers, "Content-Length": str(len(body))}, body)
    limit = connection.get("max_body_bytes", MAX_EXCERPT_BYTES)
    return _answered(_ask(address, request, partial(_beginning, limit), connection), limit)


class Channel:
    """
    Sends requests to one address, one after another, by one connection as long as the server keeps it.

    A connection stays at the address that was checked when it was opened.
    """

    def __init__(self, address: str, **connection: Unpack[Connection]) -> None:
        self._address, self._connection = address, connection
        self._limit = connection.get("max_body_bytes", MAX_EXCERPT_BYTES)
        self._line: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def post(self, body: bytes, headers: Mapping[str, str]) -> Answered:
        """
        Send *body*, and return what the server answers; a redirect is an answer like any other.

        Raises:
            OSError: no connection, or no response in time.
            ValueError: the host has an address that is not allowed, or the URL is not valid.
            http.client.HTTPException: the response is not HTTP.
        """
        end = time.monotonic() + self._connection.get("deadline_s", DEADLINE_S)
        parts = _checked(self._address)
        request = _Request("POST", {**headers, "Content-Length": str(len(body))}, body)
        sent = request.encoded(parts, keeps=True)
        try:
            found = self._exchanged_again(sent, end)
            if not found:
                self._line = _connected(parts, self._connection, end)
                found = _exchange(self._line, sent, end, partial(_beginning, self._limit))
        except BaseException:
            self._close()
            raise
        if not _keeps(found):
            self._close()
        return _answered(found, self._limit)

    def _exchanged_again(self, sent: bytes, end: float) -> bytes:
        """Send by the connection that was kept; return nothing if there is none, or the server has closed it."""
        if self._line is None:
            return b""
        try:
            found = _exchange(self._line, sent, end, partial(_beginning, self._limit))
        except TimeoutError:
            raise
        except OSError:
            found = b""
        if not found:
            self._close()
        return found

    def _close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


def _answered(found: bytes, limit: int) -> Answered:
    if b"\r\n\r\n" not in found:
        raise http.client.HTTPException("the response is not HTTP, or its head is cut off or too long")
    response = http.client.HTTPResponse(_Received(found))  # type: ignore[arg-type]  # it asks for makefile alone
    response.begin()
    try:
        content = response.read()
    except http.client.IncompleteRead as cut:
        content = cut.partial
    return Answered(response.status, content[:limit].decode(errors="replace"))


class _Request(NamedTuple):
    method: str
    headers: Mapping[str, str]
    body: bytes = b""

    def encoded(self, parts: SplitResult, *, keeps: bool) -> bytes:
        """Return the request as it is sent to a URL, which *keeps* the connection for another or closes it."""
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        head = (
            f"{self.method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{lines}User-Agent: muniment\r\n"
            f"Accept-Encoding: identity\r\nConnection: {'keep-alive' if keeps else 'close'}\r\n\r\n"
        )
        return head.encode("ascii") + self.body


def _ask(address: str, request: _Request, receive: Receive, connection: Connection) -> bytes:
    """Send a request from a checked, pinned address of its host, and return what *receive* reads of the response."""
    end = time.monotonic() + connection.get("deadline_s", DEADLINE_S)
    parts = _checked(address)
    with _connected(parts, connection, end) as line:
        return _exchange(line, request.encoded(parts, keeps=False), end, receive)


def _checked(address: str) -> SplitResult:
    parts = urlsplit(address)
    if parts.scheme not in PORTS:
        raise ValueError("the URL is not of a website")
    return parts


def _connected(parts: SplitResult, connection: Connection, end: float) -> socket.socket:
    """Connect to a checked address of the host, with TLS for its name."""
    name, port = parts.hostname or "", connection.get("port", PORTS[parts.scheme])
    resolve: Resolve = connection.get("resolve") or partial(addresses_of, within_s=_left(end))
    found = list(resolve(name, port))
    if not found or not all(map(connection.get("is_allowed", is_public), found)):
        raise ValueError("the name resolves to an address that is not public")
    plain = socket.create_connection((found[0], port), timeout=_left(end))
    try:
        plain.settimeout(_left(end))
        if parts.scheme == "http":
            return plain
        return (connection.get("tls") or _trusted()).wrap_socket(plain, server_hostname=name)
    except BaseException:
        plain.close()
        raise


@cache
def _trusted() -> ssl.SSLContext:
    """Return the authorities that the system trusts; to read them takes 20 ms."""
    return ssl.create_default_context()


def _exchange(line: socket.socket, request: bytes, end: float, receive: Receive) -> bytes:
    line.settimeout(_left(end))
    line.sendall(request)
    return receive(line, end)


def _status_line(line: socket.socket, end: float) -> bytes:
    """Read the first line of a response."""
    found = b""
    while b"\n" not in found and len(found) < MAX_STATUS_BYTES:
        line.settimeout(_left(end))
        chunk = line.recv(MAX_STATUS_BYTES)
        if not chunk:
            break
        found += chunk
    return found.partition(b"\n")[0] + b"\n"


def _beginning(limit: int, line: socket.socket, end: float) -> bytes:
    """Read the head of a response and the beginning of its body, as far as it comes in time."""
    found = b""
    while len(found) < MAX_HEAD_BYTES + limit:
        try:
            line.settimeout(_left(end))
            chunk = line.recv(_CHUNK_BYTES)
        except TimeoutError:
            if b"\r\n\r\n" not in found:
                raise
            break  # the server has answered, and leaves the connection open
        if not chunk:
            break
        found += chunk
        head, complete, body = found.partition(b"\r\n\r\n")
        if complete:
            end = min(end, time.monotonic() + EXCERPT_S)
        is_too_long = not complete and len(found) >= MAX_HEAD_BYTES
        if is_too_long or len(body) >= limit or (complete and _is_complete(head, body)):
            break
    return found[: MAX_HEAD_BYTES + limit]


_WITHOUT_BODY: Final = re.compile(rb"HTTP/1\.1 (?:204|304)(?: |\r\n|$)")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d{1,9})(?:\r\n|$)", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked(?:\r\n|$)", re.IGNORECASE)
_CLOSES: Final = re.compile(rb"\r\nconnection: *close(?:\r\n|$)", re.IGNORECASE)
_LAST_CHUNK: Final = b"0\r\n\r\n"


def _is_complete(head: bytes, body: bytes) -> bool:
    """Return whether a response seems to end with *body*."""
    if _WITHOUT_BODY.match(head):
        return True
    length = _LENGTH.search(head)
    if length is not None:
        return len(body) >= int(length[1])
    return _CHUNKED.search(head) is not None and body.endswith(_LAST_CHUNK)


def _keeps(found: bytes) -> bool:
    """Return whether a response certainly ends here, and its server waits for another request."""
    head, complete, body = found.partition(b"\r\n\r\n")
    if not complete or not head.startswith(b"HTTP/1.1 ") or _CLOSES.search(head):
        return False
    if _WITHOUT_BODY.match(head):
        return not body
    length, is_chunked = _LENGTH.search(head), _CHUNKED.search(head) is not None
    if length is not None:
        return not is_chunked and len(body) == int(length[1])
    # A longer body may only look as if it ended: what is left of it would be taken for the next response.
    return is_chunked and body == _LAST_CHUNK


def _whole(limit: int, line: socket.socket, end: float) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        line.settimeout(_left(end))
        chunk = line.recv(_CHUNK_BYTES)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_HEAD_BYTES + limit:
            raise ValueError("the response is too large")


class _Received:
    """A socket whose bytes have been read."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self._content)


def _fetched(answer: bytes, limit: int) -> Fetched:
    response = http.client.HTTPResponse(_Received(answer))  # type: ignore[arg-type]  # it asks for makefile alone
    response.begin()
    if response.status != http.client.OK:
        raise NotFetched(response.status, response.getheader("Location") or "")
    body = response.read()
    if len(body) > limit:
        raise ValueError("the file is too large")
    media_type = (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()
    return Fetched(body, media_type)


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
