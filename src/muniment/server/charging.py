"""
Charging: what a request counts against, what is free, and what a refused client is sent.

The application and the fast path both ask here, so that they cannot decide differently.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Final

from muniment.api.application import Api
from muniment.api.responses import Response, error_response, plain
from muniment.kernel.asgi import Header
from muniment.kernel.fairness import Fairness, Limiter, LimitName, Verdict, too_many
from muniment.kernel.problems import Problem

WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_JSON_TWIN: Final = re.compile(r"/(?:(?:companies|people|frameworks)(?:/[^/]+)?|stats)\.json")
"""Appending ``.json`` to a page's address gives its API response."""
_ROOMS: Final = {"static": "static", "oauth": "oauth", "accounts": "accounts"}
_OF_PAGES: Final = frozenset({"accounts", "oauth", "pages", "static"})


class Charging:
    """The rules of *limits* for requests by client address; the tool servers charge by their own."""

    def __init__(self, limits: Fairness) -> None:
        self.limits = limits
        self.api: Api | None = None

    def is_twin(self, path: str) -> bool:
        """Return whether *path* is a page's address with ``.json``, and not the page of a slug that ends so."""
        if not path.endswith(".json") or not _JSON_TWIN.fullmatch(path):
            return False
        kind, _, key = path[1:].partition("/")
        return not (key and self.api is not None and self.api.names(kind, key))

    def surface(self, path: str) -> str:
        """Return the surface of a request that is for no tool server, no server card and no health check."""
        is_api = is_of_api(path) or path.startswith("/exports/")
        if is_api or (self.api is not None and self.api.owns(path)) or self.is_twin(path):
            return "api"
        return _ROOMS.get(path[1 : path.find("/", 1)], "pages")

    def limit(self, surface: str) -> tuple[LimitName, Limiter]:
        """Return the limit that requests to *surface* count against: browsers load several files with a page."""
        return ("assets", self.limits.assets) if surface == "static" else ("requests", self.limits.requests)

    @staticmethod
    def shown(surface: str, verdict: Verdict) -> Verdict | None:
        """Return what the headers of the response tell: they describe the limit of requests only."""
        return None if surface == "static" else verdict

    def take_for_ready(self, surface: str, client: str, *, is_free: bool) -> Verdict | None:
        """
        Charge a response that is ready in memory; return None if its headers show no limit.

        It must not be sent if the verdict does not allow it.

        Args:
            is_free: it is a 304, which :func:`is_free` and not the work of making it allows without charge.
        """
        if surface == "mcp":
            return None  # server cards are free
        _, limiter = self.limit(surface)
        if is_free and surface == "api":
            return limiter.peek(client)
        if is_free and surface != "static":
            # The ordinary path charges a page before it knows that it has not changed, and then gives it back.
            return limiter.refusal(client) or limiter.peek(client)
        verdict = limiter.take(client)
        return self.shown(surface, verdict) if verdict.allowed else verdict


def is_of_api(path: str) -> bool:
    """Return whether *path* is for the API, also in upper case, which is none of its resources: its 404 is JSON."""
    return path[:5].lower() == "/api/" or path.lower() == "/api"


def is_free(if_none_match: bytes) -> bool:
    """Return whether a 304 is free: with ``*`` any work would be answered by a free 304."""
    return if_none_match.strip() not in {b"", b"*"}


def names_versions(headers: Sequence[Header]) -> bool:
    """Return whether the request is free if it is answered by a 304."""
    return is_free(last_value(headers, b"if-none-match") or b"")


def last_value(headers: Sequence[Header], wanted: bytes) -> bytes | None:
    for name, value in reversed(headers):
        if name == wanted:
            return value
    return None


def problem_response(problem: Problem, surface: str, headers: Sequence[Header]) -> Response:
    """Return the response to a request that no surface has answered: JSON, or HTML for a browser."""
    return _made(problem, is_page=_wants_page(surface, headers))


def refusal_response(name: LimitName, verdict: Verdict, surface: str, headers: Sequence[Header]) -> Response:
    """Return the same for a request over the limit *name*, made once for each time to wait."""
    return _refusal(name, verdict.retry_after_s, _wants_page(surface, headers))


def _wants_page(surface: str, headers: Sequence[Header]) -> bool:
    return surface in _OF_PAGES and b"text/html" in (last_value(headers, b"accept") or b"")


@lru_cache(512)
def _refusal(name: LimitName, retry_after_s: int, is_page: bool) -> Response:  # noqa: FBT001 - a key of the cache
    return _made(too_many(name, retry_after_s), is_page=is_page)


def _made(problem: Problem, *, is_page: bool) -> Response:
    if not is_page:
        return error_response(problem)
    # Without templates: the limit was hit, or the pages have not started.
    body = _PAGE.format(message=escape(problem.message), hint=escape(problem.hint)).encode()
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'", **problem.headers}
    return plain(int(problem.status), headers, body, content_type=b"text/html; charset=utf-8")


_PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{message}</title><h1>{message}</h1><p>{hint}</p></html>
"""
