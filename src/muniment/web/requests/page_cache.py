"""
The published documents as pages need them: one reader for the process, and finished pages kept by edition.

A public page depends on nothing but its address and the edition, so it is rendered once and sent as it
stands, compressed, until something is published.
"""

import functools
import gzip
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlencode

import brotli
from django.http import HttpRequest, HttpResponse
from django.template.response import SimpleTemplateResponse

from muniment import config
from muniment.kernel.problems import MethodNotAllowed
from muniment.store.reader import Reader
from muniment.web import context

_lock = threading.Lock()
_reader: Reader | None = None


def use(reader: Reader) -> None:
    """Make *reader* the one that pages read: the server shares its own."""
    global _reader  # noqa: PLW0603 - one process, one reader
    with _lock:
        _reader = reader
        pages.clear()


def reader() -> Reader:
    """Give the process's reader; without a server, one of our own over the published file."""
    global _reader  # noqa: PLW0603 - one process, one reader
    if _reader is None:
        settings = config.current()
        with _lock:
            if _reader is None:
                _reader = Reader(
                    settings.published_file, currency=settings.currency, cache_bytes=settings.cache_mb * 1_000_000
                )
    return _reader


class Finished(NamedTuple):
    """A page as it is sent."""

    edition: int
    status: int
    content_type: str
    etag: str
    body: bytes
    brotli: bytes
    gzip: bytes
    headers: tuple[tuple[str, str], ...]

    @property
    def size(self) -> int:
        """Say how many bytes the page keeps."""
        return len(self.body) + len(self.brotli) + len(self.gzip) + 500


class PageCache:
    """Finished pages by address, the least used ones leaving first; those of an older edition are not given."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._kept: OrderedDict[str, Finished] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: str, edition: int) -> Finished | None:
        """Give the page at *key* if it shows *edition*."""
        with self._lock:
            found = self._kept.get(key)
            if found is None or found.edition != edition:
                return None
            self._kept.move_to_end(key)
            return found

    def put(self, key: str, page: Finished) -> None:
        """Keep *page*, letting others go where the room is used up."""
        with self._lock:
            old = self._kept.pop(key, None)
            self._bytes += page.size - (old.size if old else 0)
            self._kept[key] = page
            while self._bytes > self._limit:
                _, gone = self._kept.popitem(last=False)
                self._bytes -= gone.size

    def clear(self) -> None:
        """Let every page go."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0


pages = PageCache(24_000_000)
View = Callable[..., HttpResponse]


def published(*parameters: str) -> Callable[[View], View]:
    """
    Make a view a public page: GET and HEAD, kept by edition, with ETag.

    Args:
        parameters: the query parameters that the page knows; others neither matter nor make a page of their own.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def answer(request: HttpRequest, **where: Any) -> HttpResponse:
            if request.method not in {"GET", "HEAD"}:
                raise MethodNotAllowed(str(request.method), "GET, HEAD")
            source = reader()
            source.refresh()
            edition = source.edition
            asked = urlencode([(name, request.GET[name]) for name in parameters if request.GET.get(name)])
            key = f"{context.address(request)} {request.path}?{asked}"
            page = pages.get(key, edition)
            if page is None:
                response = view(request, **where)
                if response.status_code >= HTTPStatus.MULTIPLE_CHOICES:
                    return response
                page = _finish(response, edition)
                pages.put(key, page)
            return _send(request, page)

        return answer

    return decorate


def _finish(response: HttpResponse, edition: int) -> Finished:
    if isinstance(response, SimpleTemplateResponse):
        # What is told once, to one browser, waits for a page that is made for that browser alone.
        response.context_data = {**(response.context_data or {}), "messages": ()}
        response.render()
    body = response.content
    return Finished(
        edition,
        response.status_code,
        response["Content-Type"],
        hashlib.blake2b(body, digest_size=12).hexdigest(),
        body,
        brotli.compress(body, quality=5),
        gzip.compress(body, 6, mtime=0),
        tuple((name, value) for name, value in response.items() if name != "Content-Type"),
    )


def _send(request: HttpRequest, page: Finished) -> HttpResponse:
    accepts = request.headers.get("Accept-Encoding", "")
    encoding = "br" if "br" in accepts else "gzip" if "gzip" in accepts else ""
    tag = f'"{page.etag}{"-" + encoding if encoding else ""}"'
    asked = [part.strip().removeprefix("W/") for part in request.headers.get("If-None-Match", "").split(",")]
    if "*" in asked or any(part.strip('"').split("-")[0] == page.etag for part in asked):
        response = HttpResponse(status=HTTPStatus.NOT_MODIFIED)
        del response["Content-Type"]
    else:
        body = page.brotli if encoding == "br" else page.gzip if encoding == "gzip" else page.body
        response = HttpResponse(body, status=page.status, content_type=page.content_type)
        if encoding:
            response["Content-Encoding"] = encoding
    response["ETag"] = tag
    response["Cache-Control"] = "public, max-age=0, must-revalidate"
    response["Vary"] = "Accept-Encoding"
    for name, value in page.headers:
        response[name] = value
    return response
