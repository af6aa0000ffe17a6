"""
Fetch client metadata documents, from public addresses only (SSRF protection).

The name is resolved once; all its addresses must be public; the connection uses the checked address, with TLS for the
name. No redirects, at most 8 KB and 4 s in total; failures are cached for a minute, and the whole instance shares one
rate limit.

Source: draft-ietf-oauth-client-id-metadata-document, sections 3, 4 and 6.5; decisions, section 4.
"""

import http.client
import io
import ipaddress
import json
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from threading import BoundedSemaphore, Thread
from typing import Final
from urllib.parse import urlsplit

from django.core.cache import cache

from muniment.kernel.ids import digest, now
from muniment.kernel.json import JSONObject
from muniment.oauth.errors import Refusal

DEADLINE_S: Final = 4.0
MAX_BODY_BYTES: Final = 8_192
MAX_HEAD_BYTES: Final = 8_192
FAILURE_KEPT_S: Final = 60
FETCHES_A_MINUTE: Final = 10
FETCHES_AN_HOUR: Final = 100
PORT: Final = 443
# Ranges that embed an IPv4 address, which a gateway may translate to a private one, and one reserved for protocols.
_NOT_OURS: Final = tuple(
    ipaddress.ip_network(network)
    for network in ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "192.0.0.0/24")
)

Resolve = Callable[[str, int], Iterable[str]]

log = logging.getLogger(__name__)
_slots = BoundedSemaphore(2)


def is_document_address(identifier: str) -> bool:
    """Return whether a client_id is the URL of a metadata document: https, with a plain path."""
    if not identifier.startswith("https://") or not all("!" <= c <= "~" for c in identifier):
        return False
    try:
        parts = urlsplit(identifier)
        port = parts.port
    except ValueError:
        return False
    segments = parts.path.split("/")
    return (
        bool(parts.hostname)
        and parts.path not in {"", "/"}
        and port in {None, PORT}
        and "@" not in parts.netloc
        and "#" not in identifier
        and "." not in segments
        and ".." not in segments
        and "\\" not in identifier
    )


def fetch(address: str) -> JSONObject:
    """Fetch a client's document, or raise a Refusal: invalid_client, or temporarily_unavailable over the rate limit."""
    failed = f"client-document:{digest(address.encode())}"
    if cache.get(failed):
        raise _unreadable()
    _hold_to_rate()
    found: list[JSONObject] = []
    if not _slots.acquire(blocking=False):
        raise _too_many()
    # In a thread that may outlive the timeout, because name resolution has none.
    thread = Thread(target=_read_into, args=(found, address), name="client-document", daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    if not found:
        cache.set(failed, 1, FAILURE_KEPT_S)
        raise _unreadable()
    return found[0]


def _read_into(found: list[JSONObject], address: str) -> None:
    try:
        found.append(read(address))
    except (OSError, ValueError, http.client.HTTPException, RecursionError) as error:
        log.info("could not fetch client metadata document: %s", type(error).__name__)
    finally:
        _slots.release()


def read(
    address: str,
    *,
    resolve: Resolve | None = None,
    is_allowed: Callable[[str], bool] | None = None,
    tls: ssl.SSLContext | None = None,
    port: int = PORT,
    deadline_s: float = DEADLINE_S,
) -> JSONObject:
    """
    Read a document from a checked, pinned address.

    Raises:
        OSError: no connection, or a timeout.
        ValueError: the address is not public, or the response is not a metadata document.
    """
    end = time.monotonic() + deadline_s
    parts = urlsplit(address)
    name = parts.hostname or ""
    found = list((resolve or addresses_of)(name, port))
    allowed = is_allowed or is_public
    if not found or not all(allowed(each) for each in found):
        raise ValueError("the name resolves to an address that is not public")
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    request = (
        f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: application/json\r\n"
        "User-Agent: muniment\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection((found[0], port), timeout=_left(end)) as plain:
        plain.settimeout(_left(end))
        with (tls or ssl.create_default_context()).wrap_socket(plain, server_hostname=name) as line:
            line.settimeout(_left(end))
            line.sendall(request.encode("ascii"))
            answer = _received(line, end)
    return _document(answer)


def _received(line: ssl.SSLSocket, end: float) -> bytes:
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


def _document(answer: bytes) -> JSONObject:
    class Received:
        def makefile(self, *_: object) -> io.BytesIO:
            return io.BytesIO(answer)

    response = http.client.HTTPResponse(Received())  # type: ignore[arg-type]  # it asks a socket for makefile alone
    response.begin()
    if response.status != http.client.OK:
        raise ValueError("the response is not 200; redirects are not followed")
    kind = (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise ValueError("the response is not JSON")
    body = response.read()
    if len(body) > MAX_BODY_BYTES:
        raise ValueError("the document is too large")
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError("the document is not an object")  # noqa: TRY004 - external input
    return found


def addresses_of(name: str, port: int) -> list[str]:
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: str) -> bool:
    """Return whether an address is public: not loopback, private, link-local, shared, multicast or embedded."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_global and not found.is_multicast and not any(found in net for net in _NOT_OURS)


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _hold_to_rate() -> None:
    at = now()
    for key, limit, kept in (
        (f"client-documents:{at:%Y%m%d%H%M}", FETCHES_A_MINUTE, 90),
        (f"client-documents:{at:%Y%m%d%H}", FETCHES_AN_HOUR, 3_700),
    ):
        cache.add(key, 0, timeout=kept)
        if cache.incr(key) > limit:
            raise _too_many()


def _unreadable() -> Refusal:
    return Refusal("invalid_client", "The client's metadata document could not be read from its address.")


def _too_many() -> Refusal:
    return Refusal("temporarily_unavailable", "Too many client metadata documents were requested; try again later.")
