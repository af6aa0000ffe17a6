"""
The page cache: one reader for the process, and rendered pages by edition.

A public page depends only on its address and the edition, so it is rendered and compressed once per edition.
"""

import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlencode

from cachetools import LRUCache
from django.http import HttpRequest, HttpResponse
from django.template import Context
from django.template.response import SimpleTemplateResponse

from muniment import config
from muniment.kernel.http.public_pages import STAMP, PageStamp
from muniment.kernel.http.representations import KEPT, digest, is_ahead
from muniment.kernel.ids import now
from muniment.kernel.problems import MethodNotAllowed
from muniment.languages.offered import VARY, default, offered
from muniment.languages.speaking import language, speaking
from muniment.registry_toml.applied import applied
from muniment.store.reader import Reader
from muniment.web import context
from muniment.web.requests.conditional import Content
from muniment.web.site.loading import rendered

MAX_KEY_CHARACTERS = 1024
"""Pages of longer addresses are not kept."""
REVALIDATE = "public, max-age=0, must-revalidate"
_lock = threading.Lock()
_reader: Reader | None = None


def use(reader: Reader) -> None:
    """Make pages use *reader*, which the server shares."""
    global _reader  # noqa: PLW0603 - one process, one reader
    with _lock:
        _reader = reader
        pages.clear()
        parts.clear()


def reader() -> Reader:
    """Return the process's reader; without a server, open one."""
    global _reader  # noqa: PLW0603 - one process, one reader
    with _lock:
        if _reader is None:
            settings = config.current()
            size_bytes = settings.cache_mb * 1_000_000
            _reader = Reader(settings.published_file, currency=settings.currency, cache_bytes=size_bytes)
        return _reader


class CachedPage(NamedTuple):
    """A rendered page."""

    version: int
    status: int
    content: Content
    headers: tuple[tuple[str, str], ...]
    may_be_kept: bool = True


pages: LRUCache[str, CachedPage] = LRUCache(24_000_000, getsizeof=lambda page: page.content.size_bytes + 500)
"""Rendered pages by address. Reading and writing need the lock, for both change the order."""
parts: LRUCache[str, str] = LRUCache(2_000_000, getsizeof=lambda html: len(html) + 200)
"""Rendered parts of pages by edition and name. They need the lock as well."""
_version = -1
"""The version of which there are pages and parts."""
View = Callable[..., HttpResponse]
_ONCE = "is_sent_once"


def once_if(is_lacking: bool, response: HttpResponse) -> HttpResponse:  # noqa: FBT001 - reads as a condition
    """Return *response*; if something that belongs on the page could not be shown, it is rendered again next time."""
    setattr(response, _ONCE, is_lacking)
    return response


def published(
    *parameters: str, of: Callable[[], Sequence[str]] = tuple, daily: bool = False, speaks: bool = True
) -> Callable[[View], View]:
    """
    Make a view a public page: GET and HEAD, cached by edition, with ETag.

    Args:
        parameters: the query parameters that the page uses; it ignores others.
        of: returns further ones at each request: a field that an operator declares brings its own.
        daily: the same address may mean something else tomorrow.
        speaks: it is in the visitor's language; otherwise in the default language of the registry.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def answer(request: HttpRequest, **where: Any) -> HttpResponse:
            if request.method not in {"GET", "HEAD"}:
                raise MethodNotAllowed(str(request.method), "GET, HEAD")
            source = reader()
            source.refresh()
            version, modified_at = source.version, source.modified_at
            asked = urlencode([(name, value) for name in (*parameters, *of()) for value in request.GET.getlist(name)])
            day = f"{now():%Y-%m-%d}" if daily else ""
            number = applied().number
            if "" < modified_at < day:
                modified_at = f"{day}T00:00:00.000000Z"  # no stamp: the edition's proves nothing on a later day
            code = language() if speaks else default()
            key = f"{code} {day}{number} {context.address(request)} {request.path}?{asked}"
            with _lock:
                _forget_others(version)
                page = pages.get(key)
            is_kept = page is not None and page.version == version
            if page is None or not is_kept:
                with speaking(code):
                    response = view(request, **where)
                    if response.status_code >= HTTPStatus.MULTIPLE_CHOICES:
                        return response
                    page = _finish(request, response, version, modified_at)
            spoken = _spoken(code) if speaks else ("", ())
            answer = _answer(request, page, spoken[0])
            if is_kept:
                is_whole = request.META.get("QUERY_STRING", "") == asked
                _stamp(request, page, answer, day, spoken, is_whole=is_whole)
            if len(key) <= MAX_KEY_CHARACTERS and page.may_be_kept:
                with _lock, contextlib.suppress(ValueError):  # one page larger than the cache is not kept
                    pages[key] = page  # its size may have grown by an encoding
            return answer

        return answer

    return decorate


def _spoken(code: str) -> tuple[str, tuple[str, ...]]:
    """Return the language of a page, and those that it was chosen from; nothing if there is only one."""
    known = offered()
    return (code, known) if len(known) > 1 else ("", ())


def _answer(request: HttpRequest, page: CachedPage, code: str) -> HttpResponse:
    answer = page.content.respond(request, REVALIDATE, status=page.status)
    for name, value in page.headers:
        answer[name] = value
    if code:
        name_language(answer, code)
    return answer


def name_language(response: HttpResponse, code: str) -> None:
    """Set the headers that name the language of a response and what chose it."""
    response["Content-Language"] = code
    before = response.get("Vary", "")
    response["Vary"] = f"{before}, {VARY}" if before else VARY


def _stamp(
    request: HttpRequest,
    page: CachedPage,
    answer: HttpResponse,
    day: str,
    spoken: tuple[str, tuple[str, ...]],
    *,
    is_whole: bool,
) -> None:
    """
    Stamp the scope: nothing was rendered, and the page may be sent again, until the end of *day* if given.

    Args:
        spoken: its language, and those that the visitor's was chosen from.
        is_whole: whether the page uses all of the query: a parameter that it ignores must not make another copy.
    """
    state: dict[str, Any] = request.META.get("asgi.scope", {}).get("state", {})
    if answer.status_code == HTTPStatus.NOT_MODIFIED:
        state[KEPT] = True
    if not is_whole or is_ahead(page.content.modified_at):
        return  # Last-Modified is another one as soon as its stamp is past
    midnight = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1) if day else None
    stamp = PageStamp(
        page.content.tag.encode(),
        page.content.is_compressible,
        page.version,
        midnight.timestamp() if midnight else 0,
        *spoken,
    )
    state[STAMP] = stamp


def kept_part(name: str, render: Callable[[], str]) -> str:
    """Return a part of pages, rendered once in an edition; it must depend on nothing but that and its name."""
    version = reader().version
    key = f"{language()} {version} {applied().number} {name}"
    with _lock:
        _forget_others(version)
        found = parts.get(key)
    if found is None:
        found = render()
        if len(key) <= MAX_KEY_CHARACTERS:
            with _lock, contextlib.suppress(ValueError):  # larger than all room
                parts[key] = found
    return found


def _forget_others(version: int) -> None:
    """Drop what was rendered of other versions, which is not sent again. Requires the lock."""
    global _version  # noqa: PLW0603 - one process, one reader
    if version != _version:
        _version = version
        pages.clear()
        parts.clear()


def _finish(request: HttpRequest, response: HttpResponse, version: int, modified_at: str) -> CachedPage:
    if isinstance(response, SimpleTemplateResponse):
        response.content = _render(request, response, modified_at)
    content = Content(response.content, digest(response.content), response["Content-Type"], modified_at=modified_at)
    headers = tuple((name, value) for name, value in response.items() if name != "Content-Type")
    return CachedPage(version, response.status_code, content, headers, not getattr(response, _ONCE, False))


def _render(request: HttpRequest, response: SimpleTemplateResponse, modified_at: str) -> str:
    """Render a page without the context processors, which know the visitor: account, messages and form token."""
    printed = {"address": f"{context.address(request)}{request.path}", "at": modified_at}
    found: Any = response.resolve_template(response.template_name)
    shown = {**context.site(request), "me": None, "messages": (), "printed": printed, **(response.context_data or {})}
    name = str(found.template.name)

    def render() -> str:
        made: str = found.template.render(Context(shown))
        return made

    return rendered(name, render, lambda built_in: built_in.template.render(Context(shown)))
