"""The list pages: search, filters with counts, orders, pages; and any search as an Atom feed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import get_template
from django.template.response import TemplateResponse
from django.utils.safestring import mark_safe

from muniment.kernel.json import JSONObject
from muniment.languages.writing import number
from muniment.store.lists.facets import Facet
from muniment.store.reader import ListPage
from muniment.store.search.closest import Closest
from muniment.web.context import address
from muniment.web.lists import links
from muniment.web.lists.catalog import list_query, names_of, registry_list
from muniment.web.lists.facets import COUNTED, panel
from muniment.web.lists.rows import company_rows, framework_rows, person_rows
from muniment.web.lists.search import ListName, Search
from muniment.web.lists.value_chips import value_chips
from muniment.web.presenters.machine_readable.atom import Feed, atom
from muniment.web.requests import pagination
from muniment.web.requests.page_cache import kept_part, published, reader
from muniment.web.wording.guidance import guidance

FEED_ENTRIES: Final = 50
_ROWS: Final[dict[ListName, Callable[[Sequence[bytes]], Sequence[Any]]]] = {
    "companies": company_rows,
    "people": lambda items: person_rows(items, _documents_of_people),
    "frameworks": framework_rows,
}


class _Frameworks(msgspec.Struct):
    data: list[msgspec.Raw]
    closest: list[Closest] = []
    hint: str = ""


@published(of=partial(names_of, "companies"))
def companies(request: HttpRequest) -> HttpResponse:
    """List companies."""
    return _list_page(request, "companies")


@published(of=partial(names_of, "people"))
def people(request: HttpRequest) -> HttpResponse:
    """List people."""
    return _list_page(request, "people")


@published(of=partial(names_of, "frameworks"))
def frameworks(request: HttpRequest) -> HttpResponse:
    """List the assessment frameworks and programs."""
    return _list_page(request, "frameworks")


@published(of=partial(names_of, "companies"), speaks=False)
def companies_feed(request: HttpRequest) -> HttpResponse:
    """Return the latest companies of a search as an Atom feed."""
    return _feed(request, "companies")


@published(of=partial(names_of, "people"), speaks=False)
def people_feed(request: HttpRequest) -> HttpResponse:
    """Return the latest people of a search as an Atom feed."""
    return _feed(request, "people")


@published(of=partial(names_of, "frameworks"), speaks=False)
def frameworks_feed(request: HttpRequest) -> HttpResponse:
    """Return the frameworks of a search as an Atom feed."""
    return _feed(request, "frameworks")


def find(search: Search, page_size: int = pagination.PAGE_SIZE) -> ListPage:
    """
    Return a page of what a search finds.

    Raises:
        BadRequest: the lower bound of a range is above the upper one.
    """
    query = list_query(search, page_size=page_size)
    match search.of.kind:
        case "company":
            return reader().companies(query)
        case "person":
            return reader().people(query)
    if search.q or search.sort:
        return reader().page("framework", query)
    found = reader().frameworks(query)
    listed = msgspec.json.decode(found.body, type=_Frameworks)
    start = (search.page - 1) * page_size
    return ListPage(
        [bytes(each) for each in listed.data[start : start + page_size]],
        search.page,
        page_size,
        len(listed.data),
        found.version,
        found.modified_at,
        closest=tuple(listed.closest),
        hint=listed.hint,
    )


def facets(search: Search) -> Mapping[str, Facet]:
    """Return the values of each filter with the number of results that they would leave."""
    kind = search.of.kind
    return reader().facets(kind, list_query(search), settings.SCHEMA.listings[kind].counted, COUNTED).by_name


def _next_of(*, is_blank: bool) -> JSONObject:
    """Return where an empty list leads: to the companies if there are any, else to the form that lists one."""
    has_companies = not is_blank or reader().count("company") > 0
    return {
        "has_companies": has_companies,
        "next_address": "/companies" if has_companies else "/manage/companies/new",
    }


def _list_page(request: HttpRequest, name: ListName) -> HttpResponse:
    search = Search.read(registry_list(name), request.GET)
    if not search.is_canonical(request.GET):
        return HttpResponseRedirect(search.address(page=search.page))
    found = find(search)
    is_blank = not (found.total or found.closest or search.chosen or search.q)
    filters = "" if is_blank else _filters(search)
    context: JSONObject = {
        "is_blank": is_blank,
        **_next_of(is_blank=is_blank),
        "room": name,
        "search": search,
        "title": links.title(search),
        "canonical": f"{address(request)}{search.address(page=search.page)}",
        "filters": mark_safe(filters),  # noqa: S308 - a rendered template
        "has_filters": "<details" in filters,
        "items": _ROWS[name](found.items),
        "total": found.total,
        "total_shown": f"{number(found.total)}+" if found.is_cut else number(found.total),
        "chips": links.chips(search),
        "value_chips": value_chips(search, search.q) if search.q else (),
        "orders": links.orders(search),
        "closest": _by_reason(search, found.closest),
        "hint": guidance(found.hint, {each.name: each.label for each in search.of.parameters}),
        "reliefs": [] if found.total else links.reliefs(search, lambda less: find(less, 1).total),
        "pager": pagination.pager_of(found, lambda number: search.address(page=number) if number else ""),
        "feed_address": links.feed_address(search),
        "json_address": links.json_address(search),
        "save_address": links.save_address(search),
    }
    return TemplateResponse(request, f"registry/{name}.html", context)


def _documents_of_people(slugs: Sequence[str]) -> Mapping[str, bytes]:
    return {key: each.body for (_, key), each in reader().documents([("person", slug) for slug in slugs]).items()}


def _filters(search: Search) -> str:
    """Return the filters beside a list as HTML: all pages of a search have the same."""

    def render() -> str:
        template = get_template("part/filters.html")
        return str(template.render({"panel": panel(search, facets(search))}))

    return kept_part(f"filters {search.address()}", render)


def _by_reason(search: Search, closest: Sequence[Closest]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return names and addresses of similar documents, under each reason."""
    near: dict[str, list[tuple[str, str]]] = {}
    for each in closest:
        near.setdefault(guidance(each.why), []).append((each.name, f"{search.of.path}/{quote(each.id)}"))
    return list(near.items())


def _feed(request: HttpRequest, name: ListName) -> HttpResponse:
    search = Search.read(registry_list(name), request.GET).filters
    latest = replace(search, sort="updated") if "updated" in search.of.orders else search
    items = [msgspec.json.decode(each) for each in find(latest, FEED_ENTRIES).items]
    title = links.title(search) if not search.is_everything else str(search.of.label)
    feed = Feed(address(request), title, links.feed_address(search), search.address(), items, search.of.path)
    return HttpResponse(atom(feed), content_type="application/atom+xml; charset=utf-8")
