"""
The lists of the registry: what an address asks of one, the query that answers it, and the links of its page.

The schema declares filters, ranges and orders. Here they get the words of the pages, and an order; one without words
is shown last, under the label of its field.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, cast
from urllib.parse import urlencode

from django.conf import settings
from django.http import QueryDict
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.csv_text import SEMICOLON
from muniment.kernel.problems import BadRequest
from muniment.languages import writing
from muniment.languages.translated import translated
from muniment.schema.filters import Criterion, Listing, ReversedRange
from muniment.schema.kinds import Boolean, Country
from muniment.schema.objects import Schema
from muniment.searches.news import WantedSearch
from muniment.store.queries import ListQuery
from muniment.web.requests.pages import Words
from muniment.web.requests.pagination import PAGE_SIZE, asked_page
from muniment.web.wording.labels import labelled
from muniment.web.wording.places import country_names

MAX_CHARACTERS: Final = 200
MAX_VALUES: Final = 20
"""Maximum number of values of one parameter on a page."""
DEFAULT: Final = ""
"""The order of a list without one: by relevance with search words, its own without."""
ListName = Literal["companies", "people", "frameworks"]
Control = Literal["", "text", "amount", "number", "date"]
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class ListFilter:
    """
    A filter of a list.

    Args:
        parse: returns the value of a text, or raises ValueError.
        rule: completes the sentence "it takes …".
        words: returns the labels of values that are codes.
        is_repeated: several values can be chosen, any of which matches.
        control: the input in which it is typed; none for what is chosen by links.
        hint: an example of what is typed.
    """

    name: str
    label: Words
    parse: Callable[[str], Any] = str
    rule: str = ""
    words: Callable[[], Mapping[str, Words]] = dict
    is_repeated: bool = False
    control: Control = ""
    hint: str = ""

    def label_of(self, value: str) -> str:
        return str(self.words().get(value) or labelled(self.name, value))

    def read(self, query: QueryDict) -> tuple[str, ...]:
        """
        Return the values that *query* has, sorted; of those of a single parameter, the last.

        Raises:
            BadRequest: a value breaks the rule, or there are too many.
        """
        given = [text for text in map(_clean, query.getlist(self.name)) if text]
        if not self.is_repeated:
            return tuple(map(self._canonical, given[-1:]))
        found = sorted(set(map(self._canonical, given)))
        if len(found) > MAX_VALUES:
            raise BadRequest(
                gettext("%(name)s has too many values.") % {"name": self.name},
                gettext("Choose at most %(count)d.") % {"count": MAX_VALUES},
            )
        return tuple(found)

    def _canonical(self, text: str) -> str:
        """Return *text*, or the value in which all texts of the same meaning end up, such as a country's letters."""
        try:
            value = self.parse(text)
        except ValueError:
            shown = {"name": self.name, "value": text[:40], "rule": translated(self.rule)}
            raise BadRequest(
                gettext("%(name)s can't be “%(value)s”.") % shown, gettext("It takes %(rule)s.") % shown
            ) from None
        return value if isinstance(value, str) and self.control != "date" else text


@dataclass(frozen=True)
class RegistryList:
    """
    A list of the registry and its parameters in the canonical order.

    Args:
        name: its path, and its name in the API.
        kind: what it lists.
        prompt: names the box of the search words; empty for a list without one.
        placeholder: what these can be.
        none_match: says that a search has no results.
        order: the name of its own order.
        orders: the others, by their names in the API.
    """

    name: ListName
    kind: Literal["company", "person", "framework"]
    label: Words
    prompt: Words
    placeholder: Words
    none_match: Words
    order: Words
    orders: Mapping[str, Words]
    parameters: tuple[ListFilter, ...]

    @property
    def path(self) -> str:
        return f"/{self.name}"

    @property
    def has_search(self) -> bool:
        return bool(self.prompt)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the query parameters that the page reads."""
        own = tuple(each.name for each in self.parameters)
        return ("q", *own, "sort", "page") if self.has_search else (*own, "page")


@dataclass(frozen=True)
class Search:
    """A list with what is asked of it."""

    of: RegistryList
    q: str = ""
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sort: str = DEFAULT
    page: int = 1

    @classmethod
    def read(cls, of: RegistryList, query: QueryDict) -> "Search":
        """
        Return what *query* asks of a list; empty values ask nothing.

        Raises:
            BadRequest: invalid page, order or value.
        """
        q = _clean(query.get("q", "")) if of.has_search else ""
        read = {parameter.name: parameter.read(query) for parameter in of.parameters}
        chosen = {name: values for name, values in read.items() if values}
        sort = _clean(query.get("sort", "")) if of.orders else DEFAULT
        orders = ("newest", "relevance", *of.orders)
        if sort and sort not in orders:
            shown = {"name": "sort", "value": sort[:40], "allowed": ", ".join(orders)}
            raise BadRequest(
                gettext("%(name)s can't be “%(value)s”.") % shown, gettext("Use one of: %(allowed)s.") % shown
            )
        if sort == "relevance" or (sort == "newest" and not q):
            sort = DEFAULT
        return cls(of, q, chosen, sort, asked_page(query))

    def pairs(self, *, page: int | None = None) -> Pairs:
        """Return names and values in the canonical order, without the page unless *page* is beyond the first."""
        found = [("q", self.q)] if self.q else []
        found += [(parameter.name, value) for parameter, value in self.each()]
        found += [("sort", self.sort)] if self.sort else []
        return [*found, ("page", str(page))] if page and page > 1 else found

    def each(self) -> Iterator[tuple[ListFilter, str]]:
        """Return every chosen value with its filter, in the canonical order."""
        for parameter in self.of.parameters if self.chosen else ():
            for value in self.chosen.get(parameter.name, ()):
                yield parameter, value

    def address(self, *, page: int | None = None) -> str:
        return joined(self.of.path, self.pairs(page=page))

    @property
    def filters(self) -> "Search":
        """Return a search with the same filters in the default order, from the first page."""
        return replace(self, sort=DEFAULT, page=1)

    @property
    def is_newest_first(self) -> bool:
        return self.of.kind != "framework" and (self.sort == "newest" or (self.sort == DEFAULT and not self.q))

    @property
    def is_everything(self) -> bool:
        return not (self.q or self.chosen)

    def without_words(self) -> "Search":
        return replace(self, q="", page=1, sort=DEFAULT if self.sort == "newest" else self.sort)

    def without_value(self, name: str, value: str) -> "Search":
        kept = tuple(each for each in self.chosen.get(name, ()) if each != value)
        rest = {each: values for each, values in self.chosen.items() if each != name}
        return replace(self, chosen={**rest, name: kept} if kept else rest, page=1)

    def sorted_by(self, sort: str) -> "Search":
        return replace(self, sort=sort, page=1)

    def is_canonical(self, query: QueryDict) -> bool:
        """Return whether *query* has what it asks in the canonical order; parameters of others do not count."""
        known = set(self.of.names)
        asked = [(name, value) for name, values in query.lists() if name in known for value in values]
        return asked == self.pairs(page=self.page)


class _Shown(NamedTuple):
    label: Words
    words: Mapping[str, Words] = MappingProxyType({})


_SHOWN: Final = {
    "type": _Shown(gettext_lazy("Type")),
    "industry": _Shown(gettext_lazy("Industry")),
    "theme": _Shown(gettext_lazy("Theme")),
    "country": _Shown(gettext_lazy("Country")),
    "raising": _Shown(
        gettext_lazy("Fundraising"), {"true": gettext_lazy("Raising now"), "false": gettext_lazy("Not raising")}
    ),
    "hasToken": _Shown(gettext_lazy("Token"), {"true": gettext_lazy("Has a token"), "false": gettext_lazy("No token")}),
    "hasCapTable": _Shown(
        gettext_lazy("Cap table"), {"true": gettext_lazy("Has a cap table"), "false": gettext_lazy("No cap table")}
    ),
    "status": _Shown(
        gettext_lazy("Status"),
        {"active": gettext_lazy("Active"), "upcoming": gettext_lazy("Upcoming"), "inactive": gettext_lazy("Inactive")},
    ),
    "kind": _Shown(gettext_lazy("Kind"), {"score": gettext_lazy("Score"), "program": gettext_lazy("Program")}),
    "isOpen": _Shown(gettext_lazy("Availability"), {"true": gettext_lazy("Open"), "false": gettext_lazy("Not open")}),
    "company": _Shown(gettext_lazy("Company")),
    "title": _Shown(gettext_lazy("Title")),
    "state": _Shown(gettext_lazy("State or region")),
    "city": _Shown(gettext_lazy("City")),
    "treasuryMin": _Shown(gettext_lazy("Treasury from")),
    "treasuryMax": _Shown(gettext_lazy("Treasury to")),
    "teamMin": _Shown(gettext_lazy("Team from")),
    "teamMax": _Shown(gettext_lazy("Team to")),
    "minCompanies": _Shown(gettext_lazy("Companies, at least")),
    "listedFrom": _Shown(gettext_lazy("Listed from")),
    "listedTo": _Shown(gettext_lazy("Listed to")),
    "updatedSince": _Shown(gettext_lazy("Updated since")),
}
_ORDERS: Final = {
    "name": gettext_lazy("Name"),
    "treasury": gettext_lazy("Treasury"),
    "team": gettext_lazy("Team size"),
    "companies": gettext_lazy("Companies"),
    "updated": gettext_lazy("Updated"),
}
LISTS: Final[dict[ListName, tuple[Any, ...]]] = {
    "companies": (
        "company",
        gettext_lazy("Companies"),
        gettext_lazy("Search companies"),
        gettext_lazy("Name, symbol or theme"),
        gettext_lazy("No companies match"),
        gettext_lazy("Newest"),
    ),
    "people": (
        "person",
        gettext_lazy("People"),
        gettext_lazy("Search people"),
        gettext_lazy("Name or title"),
        gettext_lazy("No people match"),
        gettext_lazy("Newest"),
    ),
    "frameworks": (
        "framework",
        gettext_lazy("Frameworks"),
        gettext_lazy("Search frameworks"),
        gettext_lazy("Name or criterion"),
        gettext_lazy("No frameworks match"),
        gettext_lazy("First published"),
    ),
}


_made: Final[dict[ListName, tuple[Schema, RegistryList]]] = {}
"""Each list as the schema has it that it was made of: an operator may declare other fields."""


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


def joined(path: str, pairs: Pairs) -> str:
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _clean(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())[:MAX_CHARACTERS].rstrip()


def registry_list(name: ListName) -> RegistryList:
    schema, made = _made.get(name, (None, None))
    if made is None or schema is not settings.SCHEMA:
        schema = settings.SCHEMA
        made = _registry_list(name, schema)
        _made[name] = schema, made
    return made


def _registry_list(name: ListName, schema: Schema) -> RegistryList:
    kind, label, prompt, placeholder, none_match, order = LISTS[name]
    listing = schema.listings[kind]
    places = {each: place for place, each in enumerate(_SHOWN)}
    criteria = sorted(listing.criteria.values(), key=lambda each: places.get(each.name, len(places)))
    sorts = ("name",) if kind == "framework" else listing.sorts[1:-1]
    orders = {each: _ORDERS.get(each, each) for each in sorts}
    return RegistryList(
        name,
        kind,
        label,
        prompt,
        placeholder,
        none_match,
        order,
        orders,
        tuple(_parameter(listing, each) for each in criteria),
    )


def names_of(name: ListName) -> tuple[str, ...]:
    """Return the names of the query parameters that the page of a list reads."""
    return registry_list(name).names


def list_query(search: Search, *, page_size: int = PAGE_SIZE) -> ListQuery:
    """
    Return the query of a search.

    Raises:
        BadRequest: the lower bound of a range is above the upper one.
    """
    values: dict[str, Any] = {}
    for parameter, text in search.each():
        value = parameter.parse(text)
        values[parameter.name] = (*values.get(parameter.name, ()), value) if parameter.is_repeated else value
    try:
        selected = settings.SCHEMA.listings[search.of.kind].select(values)
    except ReversedRange as wrong:
        labels = {name: _label(search.of, name) for name in (wrong.low, wrong.high)}
        raise BadRequest(
            gettext("“%(low)s” is greater than “%(high)s”.") % {"low": labels[wrong.low], "high": labels[wrong.high]},
            gettext("Swap the two, or remove one."),
        ) from None
    return ListQuery(
        page=search.page,
        page_size=page_size,
        q=search.q,
        sort=search.sort or None,  # type: ignore[arg-type]  # an order of the list
        filters=selected.filters,
        ranges=selected.ranges,
    )


def _parameter(listing: Listing, by: Criterion) -> ListFilter:
    shown = _SHOWN.get(by.name)
    label = shown.label if shown else _declared_label(listing, by)
    return ListFilter(
        by.name, label, by.parse, by.rule, _words(listing, by.name), by.several, _control(listing, by), by.example
    )


def _declared_label(listing: Listing, by: Criterion) -> Words:
    """Return the label of a criterion of a declared field."""
    if by.name in listing.filters:
        return listing.filters[by.name][0].label
    field, bounds = next(each for each in listing.ranges.values() if by.name in {each[1].low, each[1].high})
    words = gettext_lazy("%(field)s from") if by.name == bounds.low else gettext_lazy("%(field)s to")
    return words % {"field": field.label}


def _control(listing: Listing, by: Criterion) -> Control:
    if by.name in listing.counted:
        return ""
    if by.schema["type"] == "integer":
        return "number"
    if by.name in listing.filters:
        return "text"
    return "date" if by.schema.get("format") in {"date", "date-time"} else "amount"


def _words(listing: Listing, name: str) -> Callable[[], Mapping[str, Words]]:
    field, filter_ = listing.filters.get(name, (None, None))
    if name == "country" or (field is not None and isinstance(field.kind, Country)):
        return country_names
    is_yes_or_no = filter_ is not None and (filter_.presence or isinstance(field.kind, Boolean)) if field else False
    if is_yes_or_no and name not in _SHOWN:
        return lambda: {"true": gettext_lazy("Yes"), "false": gettext_lazy("No")}
    shown = _SHOWN.get(name)
    return (lambda: shown.words) if shown else dict


def _label(of: RegistryList, name: str) -> str:
    return next(str(each.label) for each in of.parameters if each.name == name)


def chips_of(search: Search) -> list[Chip]:
    return [chip for chip, _ in _removals(search)]


def reliefs_of(search: Search, count: Callable[[Search], int]) -> list[Relief]:
    """Return what each filter hides: the number of results without it, the largest first; at most eight are tried."""
    removals = list(_removals(search))
    if len(removals) < 2:
        return []
    tried = (Relief(chip.text, count(less), less.filters.address()) for chip, less in removals[:MAX_SUGGESTED])
    return sorted((each for each in tried if each.total), key=lambda each: -each.total)


def orders_of(search: Search) -> list[Order]:
    """Return the orders that can be chosen; without search words, nothing is ordered by relevance."""
    own = search.of.order
    named: dict[str, Words] = {DEFAULT: gettext("Best match") if search.q else own}
    if search.q and search.of.kind != "framework":  # the list's own order is of the first published
        named["newest"] = own
    return [
        Order(name, str(label), search.sorted_by(name).address(), name == search.sort)
        for name, label in {**named, **search.of.orders}.items()
    ]


def title_of(search: Search) -> str:
    """Return what the search is for, in a line."""
    return ", ".join(chip.text for chip in chips_of(search)) or str(search.of.label)


def wanted_search(name: str, query: str) -> WantedSearch:
    """Return a search by the query string of its page; raise BadRequest if that is invalid."""
    search = Search.read(registry_list(cast("ListName", name)), QueryDict(query)).filters
    return WantedSearch(search.address().partition("?")[2], title_of(search), list_query(search))


def feed_address(search: Search) -> str:
    return joined(f"{search.of.path}.atom", search.filters.pairs())


def json_feed_address(search: Search) -> str:
    return joined(f"{search.of.path}.feed.json", search.filters.pairs())


def json_address(search: Search) -> str:
    """Return the list in the API; empty for a search that the API does not have."""
    if search.of.kind == "framework" and (search.q or search.sort):
        return ""
    return joined(f"/api/v1{search.of.path}", search.pairs(page=search.page))


def csv_address(search: Search) -> str:
    """Return the whole list, with its filters and in its order, as a file for spreadsheets."""
    return joined(f"/api/v1{search.of.path}", [*search.pairs(), *for_spreadsheets()])


def for_spreadsheets() -> Pairs:
    """Return the parameters with which a list of the API is a file that the visitor's spreadsheet opens."""
    form = [("format", "csv"), ("bom", "1")]
    return [*form, ("delimiter", "semicolon")] if writing.delimiter() == SEMICOLON else form


def save_address(search: Search) -> str:
    return joined("/manage/searches/new", [("list", search.of.name), *search.pairs()])


def _removals(search: Search) -> Iterator[tuple[Chip, Search]]:
    if search.q:
        less = search.without_words()
        yield Chip("", gettext("“%(words)s”") % {"words": search.q}, less.address()), less
    for parameter, value in search.each():
        less = search.without_value(parameter.name, value)
        yield Chip(str(parameter.label), parameter.label_of(value), less.address()), less
