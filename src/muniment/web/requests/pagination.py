"""Pagination of lists: query parameters and the links of a pager."""

import re
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext

from muniment.kernel.pagination import Page
from muniment.kernel.problems import BadRequest

PAGE_SIZE = 25


class Link(NamedTuple):
    """A page number in a pager; without an address, a gap."""

    label: str
    address: str = ""
    here: bool = False


class Pager(NamedTuple):
    """The current page of a list, and links to others."""

    page: int
    page_count: int
    total: int
    previous: str
    next: str
    links: list[Link]


def asked_page(query: QueryDict, name: str = "page") -> int:
    """
    Return the requested page number.

    Raises:
        BadRequest: it is not an integer from 1.
    """
    text = query.get(name) or "1"
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise BadRequest(
            gettext("Page “%(page)s” doesn't exist.") % {"page": text[:40]}, gettext("Page numbers start at 1.")
        )
    return int(text)


def chosen(query: QueryDict, name: str, allowed: tuple[str, ...]) -> str:
    """
    Return the value of a parameter with a closed set of values; an empty string without one.

    Raises:
        BadRequest: the value is not in the set.
    """
    value = query.get(name, "")
    if value and value not in allowed:
        values = {"name": name, "value": value[:40], "allowed": ", ".join(allowed)}
        raise BadRequest(
            gettext("%(name)s can't be “%(value)s”.") % values, gettext("Use one of: %(allowed)s.") % values
        )
    return value


def address(
    request: HttpRequest, parameters: tuple[str, ...], name: str = "page", *, path: str = "", **changes: object
) -> str:
    """Return this page's address, or that of *path*, with some parameters changed, without unknown or empty ones."""
    values = {name: request.GET.get(name, "") for name in parameters} | changes
    kept = {name: str(value) for name, value in values.items() if value not in {"", None}}
    if kept.get(name) == "1":
        del kept[name]
    path = path or request.path
    return f"{path}?{urlencode(kept)}" if kept else path


def pager(
    request: HttpRequest, parameters: tuple[str, ...], found: Page[Any], *, name: str = "page", path: str = ""
) -> Pager:
    """
    Return the links to the first page, the last, and those around the current one.

    Args:
        path: the address of the list, if it differs from that of the request.
    """

    def to(number: int) -> str:
        return address(request, parameters, name, path=path, **{name: number})

    page, page_count = found.page, found.page_count
    near = sorted({1, page_count, *range(max(1, page - 2), min(page_count, page + 2) + 1)})
    links: list[Link] = []
    for number, before in zip(near, [0, *near], strict=False):
        if number > before + 1:
            links.append(Link("…"))
        links.append(Link(str(number), to(number), number == page))
    return Pager(
        page,
        page_count,
        found.total,
        to(found.previous_page) if found.previous_page else "",
        to(found.next_page) if found.next_page else "",
        links,
    )
