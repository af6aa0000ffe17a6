"""
The page cache: one reader for the process, and rendered pages.

A public page depends only on its address and on what it reads of the published file. The reader notes that while the
page is rendered, and a publication drops the pages that it concerns; the others are sent as they were rendered.
"""

import functools
import threading
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.template import Context
from django.template.response import SimpleTemplateResponse

from muniment import config
from muniment.kernel.http.public_pages import STAMP, PageStamp
from muniment.kernel.http.representations import KEPT, digest, is_ahead
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import MethodNotAllowed
from muniment.languages.offered import VARY, default, offered
from muniment.languages.speaking import language, speaking
from muniment.registry_toml.applied import applied
from muniment.store.cache import Dependency, ResponseCache, least, note, noting
from muniment.store.reader import Reader
from muniment.web import context
from muniment.web.requests.conditional import Content
from muniment.web.site.loading import rendered

_DEFAULTS: Final[JSONObject] = {
    "me": None,
    "messages": (),
    "preview": None,
    "searched": "",
    "canonical": "",
    "summary": "",
    "card": "",
}
"""Names that templates ask for on every page: for one that is missing, a template looks for 12 microseconds."""
MAX_KEY_CHARACTERS = 1024
"""Pages of longer addresses are not kept."""
REVALIDATE = "public, max-age=0, must-revalidate"
PAGES_BYTES = 24_000_000
PARTS_BYTES = 2_000_000
_lock = threading.Lock()
_reader: Reader | None = None
pages = ResponseCache(PAGES_BYTES)
"""Rendered pages, :class:`CachedPage`, by address."""
parts = ResponseCache(PARTS_BYTES)
"""Rendered parts of pages, :class:`CachedPart`, by name."""


def use(reader: Reader | None) -> None:
    """Make pages use *reader*, which the server shares; None: forget the former one, which is closed."""
    with _lock:
        _use(reader)


def reader() -> Reader:
    """Return the process's reader; without a server, open one."""
    with _lock:
        if _reader is not None:
            return _reader
        settings = config.current()
        size_bytes = settings.cache_mb * 1_000_000
        opened = Reader(settings.published_file, currency=settings.currency, cache_bytes=size_bytes)
        _use(opened)
        return opened


def _use(reader: Reader | None) -> None:
    """Use *reader*, with caches of its own, so that a former one, which may still be read, changes none of them."""
    global _reader, pages, parts  # noqa: PLW0603 - one process, one reader
    pages, parts = ResponseCache(PAGES_BYTES), ResponseCache(PARTS_BYTES)
    if reader is not None:
        reader.keep_current(pages)
        reader.keep_current(parts)
    _reader = reader


class CachedPage(NamedTuple):
    """A rendered page, and what it depends on."""

    status: int
    content: Content
    headers: tuple[tuple[str, str], ...]
    depends: tuple[Dependency, ...]
    may_be_kept: bool = True


class CachedPart(NamedTuple):
    """A rendered part of pages, and what it depends on."""

    html: str
    depends: tuple[Dependency, ...]


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
    Make a view a public page: GET and HEAD, cached until a publication changes what it shows, with ETag.

    Args:
        parameters: the query parameters that the page uses; it ignores others.
        of: returns further ones at each request: a field that an operator declares brings its own.
        daily: the same address may mean something else tomorrow.
        speaks: it is in the visitor's language; otherwise in the default language of the registry.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def public_page(request: HttpRequest, **where: Any) -> HttpResponse:
            if request.method not in {"GET", "HEAD"}:
                raise MethodNotAllowed(str(request.method), "GET, HEAD")
            source = reader()
            source.refresh()
            version, modified_at = source.version, source.modified_at
            asked = _query_of(request, (*parameters, *of()))
            day = f"{now():%Y-%m-%d}" if daily else ""
            number = applied().number
            if "" < modified_at < day:
                # The time of the edition proves nothing on a later day.
                modified_at = f"{day}T00:00:00.000000Z"
            code = language() if speaks else default()
            key = f"{code} {day}{number} {context.address(request)} {request.path}?{asked}"
            kept: CachedPage | None = pages.ready.get(key)
            page = kept
            if page is None:
                with noting() as noted, speaking(code):
                    response = view(request, **where)
                    if response.status_code >= HTTPStatus.MULTIPLE_CHOICES:
                        return response
                    page = _finish(request, response, modified_at, noted)
            spoken = _spoken(code) if speaks else ("", ())
            size_bytes = page.content.size_bytes  # the answer may add an encoding, which is kept with the page
            answer = _answer(request, page, spoken[0])
            if kept is not None:
                is_whole = request.META.get("QUERY_STRING", "") == asked
                _stamp(request, page, answer, version=version, day=day, spoken=spoken, is_whole=is_whole)
                if page.content.size_bytes > size_bytes:
                    pages.grow(key, page, page.content.size_bytes - size_bytes)
            elif len(key) <= MAX_KEY_CHARACTERS and page.may_be_kept:
                pages.put(key, page, size_bytes=page.content.size_bytes, version=version, depends=page.depends)
            return answer

        return public_page

    return decorate


def _query_of(request: HttpRequest, names: Sequence[str]) -> str:
    """Return the parameters with these names, in the order of the names."""
    pairs: list[tuple[str, str]] = []
    for name in names:
        pairs += [(name, value) for value in request.GET.getlist(name)]
    return urlencode(pairs)


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
    *,
    version: int,
    day: str,
    spoken: tuple[str, tuple[str, ...]],
    is_whole: bool,
) -> None:
    """
    Stamp the scope: nothing was rendered, and the page may be sent again, until the end of *day* if given.

    Args:
        version: the version of the file before the page was found; it shows that version or a later one.
        spoken: its language, and those that the visitor's was chosen from.
        is_whole: whether the page uses all of the query: a parameter that it ignores must not make another copy.
    """
    state: dict[str, Any] = request.META.get("asgi.scope", {}).get("state", {})
    if answer.status_code == HTTPStatus.NOT_MODIFIED:
        state[KEPT] = True
    if not is_whole or is_ahead(page.content.modified_at):
        return  # Last-Modified is another one as soon as its stamp is past
    until: float = 0
    if day:
        midnight = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1)
        until = midnight.timestamp()
    content = page.content
    state[STAMP] = PageStamp(content.tag.encode(), content.is_compressible, version, page.depends, until, *spoken)


def kept_part(name: str, render: Callable[[], str]) -> str:
    """Return a part of pages, rendered once; it depends on nothing but its name and what it reads of the file."""
    version = reader().version
    key = f"{language()} {applied().number} {name}"
    part: CachedPart | None = parts.ready.get(key)
    if part is not None:
        note(*part.depends)
        return part.html
    with noting() as noted:
        html = render()
    if len(key) <= MAX_KEY_CHARACTERS:
        depends = least(noted)
        parts.put(key, CachedPart(html, depends), size_bytes=len(html), version=version, depends=depends)
    return html


def _finish(
    request: HttpRequest, response: HttpResponse, modified_at: str, noted: Collection[Dependency]
) -> CachedPage:
    """Render a page; what its template reads is *noted* meanwhile."""
    if isinstance(response, SimpleTemplateResponse):
        response.content = _render(request, response, modified_at)
    may_be_kept = not getattr(response, _ONCE, False)
    # What is not kept may be another page at the same edition, so that the time of the edition proves nothing.
    stamp = modified_at if may_be_kept else ""
    content = Content(response.content, digest(response.content), response["Content-Type"], modified_at=stamp)
    headers = tuple((name, value) for name, value in response.items() if name != "Content-Type")
    return CachedPage(response.status_code, content, headers, least(noted), may_be_kept)


def _render(request: HttpRequest, response: SimpleTemplateResponse, modified_at: str) -> str:
    """Render a page without the context processors, which know the visitor: account, messages and form token."""
    given = response.context_data or {}
    # A printed list, search or comparison names the address of what is on the paper, with its filters.
    own = given.get("printed_address") or given.get("canonical") or f"{context.address(request)}{request.path}"
    printed = {"address": own, "at": modified_at}
    found: Any = response.resolve_template(response.template_name)
    shown = {**context.site(request), **_DEFAULTS, "printed": printed, **given}
    name = str(found.template.name)

    def render() -> str:
        made: str = found.template.render(Context(shown))
        return made

    return rendered(name, render, lambda built_in: built_in.template.render(Context(shown)))
