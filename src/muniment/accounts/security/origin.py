"""Where a request comes from: the client's address and browser, for the security log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from django.http import HttpRequest, HttpResponse

from muniment.accounts.security.models import MAX_AGENT_CHARACTERS


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
    shown = "".join(character if character.isprintable() else " " for character in agent[:MAX_AGENT_CHARACTERS])
    return Origin(address[:45], shown.strip(), request_id[:128])
