"""
Where a request comes from, for the security log, and how much of what all visitors may leave behind its site may take.

A site may have an IPv6 network of 48 bits, with 65,536 networks that each count as a client. An IPv4 client needs an
address for each, so nothing is counted for it here.

Source: decision 87.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse

from muniment.accounts.security.models import MAX_AGENT_CHARACTERS
from muniment.kernel.http.addresses import rate_key, site_key
from muniment.kernel.http.representations import digest
from muniment.kernel.ids import now
from muniment.kernel.texts import printable


class Origin(NamedTuple):
    """The client of the current request; empty outside of requests."""

    address: str = ""
    agent: str = ""
    request_id: str = ""


_NOWHERE: Final = Origin()
_current: ContextVar[Origin] = ContextVar("origin", default=_NOWHERE)


def current() -> Origin:
    return _current.get()


@contextmanager
def at(address: str, agent: str, request_id: str = "") -> Iterator[None]:
    """Set the origin for a block."""
    token = _current.set(_origin(address, agent, request_id))
    try:
        yield
    finally:
        _current.reset(token)


class OriginMiddleware:
    """Sets the origin of the requests for pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        known = request.META
        with at(
            str(known.get("REMOTE_ADDR") or ""),
            str(known.get("HTTP_USER_AGENT") or ""),
            str(known.get("HTTP_X_REQUEST_ID") or ""),
        ):
            return self._get_response(request)


def _origin(address: str, agent: str, request_id: str) -> Origin:
    shown = printable(agent[:MAX_AGENT_CHARACTERS])
    return Origin(address[:45], shown.strip(), request_id[:128])


SITE_PART: Final = 10
"""A site may take one part of so many: a tenth."""


def take_share(kind: str, *, in_all: int, least: int, hours: int) -> bool:
    """
    Count one more *kind* for the site that the current request comes from; return False if its share is used up.

    Args:
        in_all: the limit of all visitors together.
        least: the limit of one client in an hour, which a site always has too.
        hours: the number of hours of the clock in which one of them counts, the first and the last included.
    """
    site = site_key(current().address)
    if site is None:
        return True
    return take(f"share:{kind}", site, max(least, in_all // SITE_PART // hours))


def take_of_client(kind: str, most: int) -> bool:
    """Count one more *kind* for the client of the current request; return False above *most* in an hour."""
    return take(kind, rate_key(current().address), most)


def take(kind: str, whose: str, most: int, *, days: bool = False) -> bool:
    """
    Count one more *kind* in all processes together; return False above *most* in an hour of the clock.

    Args:
        whose: of whom they are counted; it is stored as a digest.
        days: they are counted by the day.
    """
    period = f"{now():%Y%m%d}" if days else f"{now():%Y%m%d%H}"
    key = f"{kind}:{digest(whose.encode())}:{period}"
    # A refused flood only reads: it does not write to the database.
    if cache.get(key, 0) >= most:
        return False
    cache.add(key, 0, timeout=90_000 if days else 3_700)
    return cache.incr(key) <= most
