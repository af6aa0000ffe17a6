"""Fetch a file through redirects: each address is checked like the first, and all share one deadline."""

import http.client
import time
from typing import Final, Unpack
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

import idna

from muniment.outbound import fetching
from muniment.outbound.fetching import DEADLINE_S, PORTS, Connection, Fetched, NotFetched

MAX_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset(
    {
        http.client.MOVED_PERMANENTLY,
        http.client.FOUND,
        http.client.SEE_OTHER,
        http.client.TEMPORARY_REDIRECT,
        http.client.PERMANENT_REDIRECT,
    }
)
_SAFE: Final = "/%:@!$&'()*+,;=~-._?"
MAX_CHARACTERS: Final = 2_000


def plain_address(address: str) -> str:
    """
    Return an address in ASCII without a fragment: http or https, at the scheme's own port, without a user.

    Raises:
        ValueError: it has another form.
    """
    if len(address) > MAX_CHARACTERS:
        raise ValueError("the address is too long")
    parts = urlsplit(address.strip())
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError("the address is not one of http or https")
    if "@" in parts.netloc:
        raise ValueError("the address names a user")
    if parts.port not in {None, PORTS[parts.scheme]}:
        raise ValueError("the address names a port")
    host = parts.hostname.removesuffix(".")
    host = host if host.isascii() else idna.encode(host, uts46=True).decode()
    shown = f"[{host}]" if ":" in host else quote(host, safe="")
    return urlunsplit((parts.scheme, shown, quote(parts.path or "/", _SAFE), quote(parts.query, _SAFE), ""))


def follow(address: str, *, accept: str, **connection: Unpack[Connection]) -> Fetched:
    """
    Fetch *address*, and where it redirects to.

    Raises:
        OSError: no connection, or a timeout.
        NotFetched: the last response is neither 200 nor a redirect.
        ValueError: an address that is not allowed, too many redirects, or a response that is too large.
        http.client.HTTPException: the response is not HTTP.
    """
    end = time.monotonic() + connection.get("deadline_s", DEADLINE_S)
    here = plain_address(address)
    for _ in range(MAX_REDIRECTS + 1):
        connection["deadline_s"] = end - time.monotonic()
        try:
            return fetching.fetch(here, accept=accept, **connection)
        except NotFetched as found:
            if found.status not in _REDIRECTS or not found.location:
                raise
            there = plain_address(urljoin(here, found.location))
        if here.startswith("https:") and not there.startswith("https:"):
            raise ValueError("the address redirects from https to http")
        here = there
    raise ValueError("the address redirects too often")
