"""The links of a list page: what is chosen and how to remove it, the orders, and the list in other forms."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from django.utils.translation import gettext

from muniment.web.lists.search import DEFAULT, Search, joined
from muniment.web.requests.pages import Words

MAX_SUGGESTED: Final = 8
"""Filters of a search without results whose removal is tried."""


class Chip(NamedTuple):
    """
    One thing that is chosen.

    Args:
        label: the filter; empty for search words.
        address: the list without it.
    """

    label: str
    value: str
    address: str

    @property
    def text(self) -> str:
        return f"{self.label}: {self.value}" if self.label else self.value


class Order(NamedTuple):
    """An order of the list."""

    name: str
    label: str
    address: str
    is_chosen: bool


class Relief(NamedTuple):
    """A search without results, less one filter."""

    removed: str
    total: int
    address: str


def chips(search: Search) -> list[Chip]:
    return [chip for chip, _ in _removals(search)]


def reliefs(search: Search, count: Callable[[Search], int]) -> list[Relief]:
    """Return what each filter hides: the number of results without it, the largest first; at most eight are tried."""
    removals = list(_removals(search))
    if len(removals) < 2:
        return []
    tried = (Relief(chip.text, count(less), less.filters.address()) for chip, less in removals[:MAX_SUGGESTED])
    return sorted((each for each in tried if each.total), key=lambda each: -each.total)


def orders(search: Search) -> list[Order]:
    """Return the orders that can be chosen; without search words, nothing is ordered by relevance."""
    own = search.of.order
    named: dict[str, Words] = {DEFAULT: gettext("Best match") if search.q else own}
    if search.q and search.of.kind != "framework":  # the list's own order is of the first published
        named["newest"] = own
    return [
        Order(name, str(label), search.sorted_by(name).address(), name == search.sort)
        for name, label in {**named, **search.of.orders}.items()
    ]


def title(search: Search) -> str:
    """Return what the search is for, in a line."""
    return ", ".join(chip.text for chip in chips(search)) or str(search.of.label)


def feed_address(search: Search) -> str:
    return joined(f"{search.of.path}.atom", search.filters.pairs())


def json_address(search: Search) -> str:
    """Return the list in the API; empty for a search that the API does not have."""
    if search.of.kind == "framework" and (search.q or search.sort):
        return ""
    return joined(f"/api/v1{search.of.path}", search.pairs(page=search.page))


def save_address(search: Search) -> str:
    return joined("/manage/searches/new", [("list", search.of.name), *search.pairs()])


def _removals(search: Search) -> Iterator[tuple[Chip, Search]]:
    if search.q:
        less = search.without_words()
        yield Chip("", gettext("“%(words)s”") % {"words": search.q}, less.address()), less
    for parameter, value in search.each():
        less = search.without_value(parameter.name, value)
        yield Chip(str(parameter.label), parameter.label_of(value), less.address()), less
