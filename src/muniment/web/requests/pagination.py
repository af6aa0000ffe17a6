"""Pagination of lists: query parameters and the links of a pager."""

import re
from collections.abc import Callable
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


def whole_number(text: str, digits: int = 9) -> int | None:
    """Return the number that a form or an address writes in at most *digits* digits; None for any other text."""
    # int() takes signs, underscores and the digits of other scripts as well, and refuses thousands of digits.
    if text.isascii() and text.isdigit() and len(text) <= digits:
        return int(text)
    return None


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


def pager(
    request: HttpRequest, parameters: tuple[str, ...], found: Page[Any], *, name: str = "page", path: str = ""
) -> Pager:
    """
    Return the links to the first page, the last, and those around the current one.

    Args:
        path: the address of the list, if it differs from that of the request.
    """
    path = path or request.path

    def to(number: int | None) -> str:
        if number is None:
            return ""
        values = {key: request.GET.get(key, "") for key in parameters}
        if name in values:
            values[name] = str(number)
        if values.get(name) == "1":
            del values[name]  # the first page has the address without a number
        kept = {key: value for key, value in values.items() if value}
        return f"{path}?{urlencode(kept)}" if kept else path

    return pager_of(found, to)


def pager_of(found: Page[Any], to: Callable[[int | None], str]) -> Pager:
    """Return the links of a pager; *to* returns the address of a page, and an empty string without a number."""
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
        to(found.previous_page),
        to(found.next_page),
        links,
    )
