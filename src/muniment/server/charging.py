"""
Charging: what a request counts against its limits, what is free, and what a refused client is sent. Not of credits.

The application and the fast path both ask here, so that they cannot decide differently. A request counts against the
requests of its address, or against the static files of its address. These are free:

- a 304 of the API from memory to a request that names versions (``If-None-Match`` without ``*``);
- a page that is kept and has not changed: it is charged before that is known, and then given back;
- server cards, and OPTIONS of the tool servers.

Health checks have a limit of their own (``Fairness.probes``; none on the admin listener). All limits, with their sizes,
are in ``Fairness`` (``kernel/fairness.py``).

A call of a tool counts before its work, and nothing is given back if it fails:

- one request: of the address, or of the account on the owner's server (``admit`` and ``Access.admit`` in
  ``mcp/protocol/http.py``). No call is free;
- one of ``writes`` if the tool can change something, before its arguments are read, also for a dry run
  (``ToolServer._start`` in ``mcp/protocol/transport.py``);
- the bytes that a change writes (``limit_written_bytes`` in ``registry/history.py``);
- the CPU of a statement, after it ran (``store/tables/statements.py``).

Credits are taken for reports that succeed (``credits/operations.py``), and for nothing else.
"""

import base64
import gettext
import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from muniment.api.application import Api
from muniment.api.responses import Response, error_response, plain
from muniment.kernel.asgi import Header
from muniment.kernel.fairness import Fairness, Limiter, LimitName, Verdict, too_many
from muniment.kernel.phrases.phrase import marked
from muniment.kernel.problems import Problem
from muniment.languages.catalogues import SHIPPED, compiled_folder
from muniment.languages.offered import base_direction, chosen, offered

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


def may_be_free(headers: Sequence[Header]) -> bool:
    """Return whether the request is free if it is answered by a 304."""
    return is_free(last_value(headers, b"if-none-match") or b"")


def last_value(headers: Sequence[Header], wanted: bytes) -> bytes | None:
    for name, value in reversed(headers):
        if name == wanted:
            return value
    return None


def problem_response(problem: Problem, surface: str, headers: Sequence[Header]) -> Response:
    """Return the response to a request that no surface has answered: JSON, or HTML for a browser."""
    return _made(problem, _language_of_page(surface, headers))


def refusal_response(name: LimitName, verdict: Verdict, surface: str, headers: Sequence[Header]) -> Response:
    """Return the same for a request over the limit *name*, made once for each time to wait."""
    return _refusal(name, verdict.retry_after_s, _language_of_page(surface, headers))


def _language_of_page(surface: str, headers: Sequence[Header]) -> str:
    """Return the language of the page that a browser wants; "" for a program, which gets JSON."""
    if surface not in _OF_PAGES or b"text/html" not in (last_value(headers, b"accept") or b""):
        return ""
    known = offered()
    cookies = last_value(headers, b"cookie") or b""
    return chosen(last_value(headers, b"accept-language") or b"", cookies, known)


@lru_cache(512)
def _refusal(name: LimitName, retry_after_s: int, language: str) -> Response:
    return _made(too_many(name, retry_after_s), language)


def _made(problem: Problem, language: str) -> Response:
    if not language:
        return error_response(problem)
    status = int(problem.status)
    style = _PAGE.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    headers = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{digest}'",
        "Content-Language": language,
        **problem.headers,
    }
    title, text = _words(problem)
    said = _catalogue(language).gettext
    # Without templates: the limit was hit, or the pages have not started.
    body = Template(_PAGE).substitute(
        language=language,
        direction=base_direction(language),
        status=status,
        title=escape(said(title)),
        text=escape(said(text).format(wait_s=problem.headers.get("Retry-After", ""))),
        again=escape(said(marked("Load again"))),
    )
    return plain(status, headers, body.encode(), content_type=b"text/html; charset=utf-8")


def _words(problem: Problem) -> tuple[str, str]:
    """Return what a person is told: not of pages and tags, which are for programs."""
    match int(problem.status):
        case 429:
            return marked("Too many requests"), marked(
                "Many requests came from your address in a short time. Wait {wait_s} s, then load the page again."
            )
        case 503:
            return marked("Temporarily unavailable"), marked(
                "The registry is starting or under maintenance. Nothing is lost. Load the page again in a moment."
            )
        case _:
            return marked("Something went wrong"), marked(
                "The registry could not answer. Load the page again. If that does not help, try again later."
            )


@lru_cache(16)
def _catalogue(language: str) -> gettext.NullTranslations:
    """Return the messages of a language, those of the operator before those that ship, without Django."""
    part, _, region = language.partition("-")
    names = [f"{part}_{region.upper()}", f"{part}_{region.title()}", part] if region else [part]
    catalogue = gettext.NullTranslations()
    for folder in (compiled_folder(), SHIPPED):
        found = gettext.translation("django", folder, names, fallback=True)
        if isinstance(catalogue, gettext.GNUTranslations):
            catalogue.add_fallback(found)
        else:
            catalogue = found
    return catalogue


_PAGE: Final = Path(__file__).with_name("refusal.template").read_text()
"""The page of a refusal, complete in itself: nothing else may be asked for, and a file may be refused as well."""
