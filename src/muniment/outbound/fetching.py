"""
Fetch a small file of a server that a user names.

The name is resolved once; all its addresses must be allowed; the connection uses the checked address, with TLS for the
name. Redirects are not followed.
"""

import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypedDict, Unpack
from urllib.parse import urlsplit

from muniment.outbound.addresses import addresses_of, is_public

DEADLINE_S: Final = 4.0
MAX_BODY_BYTES: Final = 8_192
MAX_HEAD_BYTES: Final = 8_192
PORTS: Final = {"https": 443, "http": 80}

Resolve = Callable[[str, int], Iterable[str]]


class Connection(TypedDict, total=False):
    """
    What a caller may replace.

    Args:
        resolve: returns the addresses of a name.
        is_allowed: whether an address may be connected to; public ones by default.
        tls: the certificates to trust; the system's by default.
        port: of the server, in place of the scheme's.
        deadline_s: time limit of the whole exchange.
    """

    resolve: Resolve
    is_allowed: Callable[[str], bool]
    tls: ssl.SSLContext
    port: int
    deadline_s: float


class Fetched(NamedTuple):
    """A body and its media type, in lower case and without parameters."""

    body: bytes
    media_type: str


def fetch(address: str, *, accept: str, **connection: Unpack[Connection]) -> Fetched:
    """
    Fetch *address* from a checked, pinned address of its host.

    Raises:
        OSError: no connection, or a timeout.
        ValueError: the host has an address that is not allowed, or the response is not 200 or too large.
        http.client.HTTPException: the response is not HTTP.
    """
    end = time.monotonic() + connection.get("deadline_s", DEADLINE_S)
    parts = urlsplit(address)
    name, port = parts.hostname or "", connection.get("port", PORTS[parts.scheme])
    found = list(connection.get("resolve", addresses_of)(name, port))
    if not found or not all(map(connection.get("is_allowed", is_public), found)):
        raise ValueError("the name resolves to an address that is not public")
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    request = (
        f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: {accept}\r\n"
        "User-Agent: muniment\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
    ).encode("ascii")
    with socket.create_connection((found[0], port), timeout=_left(end)) as plain:
        plain.settimeout(_left(end))
        if parts.scheme == "http":
            return _fetched(_exchange(plain, request, end))
        tls = connection.get("tls") or ssl.create_default_context()
        with tls.wrap_socket(plain, server_hostname=name) as line:
            return _fetched(_exchange(line, request, end))


def _exchange(line: socket.socket, request: bytes, end: float) -> bytes:
    line.settimeout(_left(end))
    line.sendall(request)
    chunks: list[bytes] = []
    size = 0
    while True:
        line.settimeout(_left(end))
        chunk = line.recv(4_096)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_HEAD_BYTES + MAX_BODY_BYTES:
            raise ValueError("the response is too large")


def _fetched(answer: bytes) -> Fetched:
    class Received:
        def makefile(self, *_: object) -> io.BytesIO:
            return io.BytesIO(answer)

    response = http.client.HTTPResponse(Received())  # type: ignore[arg-type]  # it asks a socket for makefile alone
    response.begin()
    if response.status != http.client.OK:
        raise ValueError(f"the response is {response.status}, not 200; redirects are not followed")
    body = response.read()
    if len(body) > MAX_BODY_BYTES:
        raise ValueError("the file is too large")
    media_type = (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()
    return Fetched(body, media_type)


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
