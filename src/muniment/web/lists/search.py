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

import msgspec
from django.conf import settings
from django.http import QueryDict
from django.utils.functional import keep_lazy_text
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.csv_text import SEMICOLON
from muniment.kernel.problems import BadRequest
from muniment.languages import writing
from muniment.languages.translated import translated
from muniment.schema.filters import Criterion, Listing, ReversedRange
from muniment.schema.kinds import Boolean, Country
from muniment.schema.objects import Schema
from muniment.schema.places import state_in
from muniment.searches.news import WantedSearch
from muniment.store.queries import ListQuery
from muniment.web.requests.page_cache import reader
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
        texts = [text for text in map(_clean, query.getlist(self.name)) if text]
        if not self.is_repeated:
            texts = texts[-1:]
        values = sorted({self._canonical(text) for text in texts})
        if len(values) > MAX_VALUES:
            raise BadRequest(
                gettext("%(name)s has too many values.") % {"name": self.name},
                gettext("Choose at most %(count)d.") % {"count": MAX_VALUES},
            )
        return tuple(values)

    def _canonical(self, text: str) -> str:
        """Return *text*, or the value in which all texts of the same meaning end up, such as a country's letters."""
        try:
            value = self.parse(text)
        except ValueError:
            words = {"name": self.name, "value": text[:40], "rule": translated(self.rule)}
            raise BadRequest(
                gettext("%(name)s can't be “%(value)s”.") % words, gettext("It takes %(rule)s.") % words
            ) from None
        # A day is read as the moment at which it begins; the date picker and the address keep the day.
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
        filters = tuple(parameter.name for parameter in self.parameters)
        return ("q", *filters, "sort", "page") if self.has_search else (*filters, "page")


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
        chosen = {}
        for parameter in of.parameters:
            values = parameter.read(query)
            if values:
                chosen[parameter.name] = values
        sort = _clean(query.get("sort", "")) if of.orders else DEFAULT
        orders = ("newest", "relevance", *of.orders)
        if sort and sort not in orders:
            words = {"name": "sort", "value": sort[:40], "allowed": ", ".join(orders)}
            raise BadRequest(
                gettext("%(name)s can't be “%(value)s”.") % words, gettext("Use one of: %(allowed)s.") % words
            )
        # The order that a list has without one has a single address.
        if sort == "relevance" or (sort == "newest" and not q):
            sort = DEFAULT
        return cls(of, q, chosen, sort, asked_page(query))

    def pairs(self, *, page: int | None = None) -> Pairs:
        """Return names and values in the canonical order, without the page unless *page* is beyond the first."""
        pairs = [("q", self.q)] if self.q else []
        pairs += [(parameter.name, value) for parameter, value in self.each()]
        if self.sort:
            pairs.append(("sort", self.sort))
        if page and page > 1:
            pairs.append(("page", str(page)))
        return pairs

    def each(self) -> Iterator[tuple[ListFilter, str]]:
        """Yield every chosen value with its filter, in the canonical order."""
        if not self.chosen:
            return
        for parameter in self.of.parameters:
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
        if self.of.kind == "framework":
            return False
        return self.sort == "newest" or (self.sort == DEFAULT and not self.q)

    @property
    def is_everything(self) -> bool:
        return not (self.q or self.chosen)

    def without_words(self) -> "Search":
        sort = DEFAULT if self.sort == "newest" else self.sort  # without words, the newest are first anyway
        return replace(self, q="", page=1, sort=sort)

    def without_value(self, name: str, value: str) -> "Search":
        chosen = dict(self.chosen)
        values = chosen.pop(name, ())
        others = tuple(other for other in values if other != value)
        if others:
            chosen[name] = others
        return replace(self, chosen=chosen, page=1)

    def sorted_by(self, sort: str) -> "Search":
        return replace(self, sort=sort, page=1)

    def is_canonical(self, query: QueryDict) -> bool:
        """Return whether *query* has what it asks in the canonical order; parameters of others do not count."""
        known = set(self.of.names)
        pairs = []
        for name, values in query.lists():
            if name in known:
                pairs += [(name, value) for value in values]
        return pairs == self.pairs(page=self.page)


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
    places = {criterion: place for place, criterion in enumerate(_SHOWN)}
    criteria = sorted(listing.criteria.values(), key=lambda criterion: places.get(criterion.name, len(places)))
    # Without newest, the first, and relevance, the last, which pages offer by the words of the search.
    sorts = ("name",) if kind == "framework" else listing.sorts[1:-1]
    orders = {sort: _ORDERS.get(sort, sort) for sort in sorts}
    return RegistryList(
        name,
        kind,
        label,
        prompt,
        placeholder,
        none_match,
        order,
        orders,
        tuple(_parameter(listing, criterion) for criterion in criteria),
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
        if parameter.is_repeated:
            value = (*values.get(parameter.name, ()), value)
        values[parameter.name] = value
    try:
        selected = settings.SCHEMA.listings[search.of.kind].select(values)
    except ReversedRange as wrong:
        labels = {parameter.name: parameter.label for parameter in search.of.parameters}
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
    """Return the label of a criterion of a declared field, in the language in which it is shown."""
    if by.name in listing.filters:
        return listing.filters[by.name][0].label
    labels: dict[str, Words] = {}
    for ranged, bounds in listing.ranges.values():
        labels[bounds.low] = _bound_label(gettext_lazy("%(field)s from"), ranged.label)
        labels[bounds.high] = _bound_label(gettext_lazy("%(field)s to"), ranged.label)
    return labels[by.name]


@keep_lazy_text
def _bound_label(words: Words, field: Words) -> str:
    return str(words) % {"field": field}


def _control(listing: Listing, by: Criterion) -> Control:
    if by.name in listing.counted:
        return ""
    if by.schema["type"] == "integer":
        return "number"
    if by.name in listing.filters:
        return "text"
    if by.schema.get("format") in {"date", "date-time"}:
        return "date"
    return "amount"


def _words(listing: Listing, name: str) -> Callable[[], Mapping[str, Words]]:
    """Return a function that returns the labels of the values of a filter."""
    if name == "country":
        return country_names
    shown = _SHOWN.get(name)
    if shown is not None:
        return lambda: shown.words
    if name in listing.filters:
        field, by = listing.filters[name]
        if isinstance(field.kind, Country):
            return country_names
        if by.presence or isinstance(field.kind, Boolean):
            return lambda: {"true": gettext_lazy("Yes"), "false": gettext_lazy("No")}
    return dict


def chips_of(search: Search) -> list[Chip]:
    return [chip for chip, _ in _removals(search)]


def reliefs_of(search: Search, count: Callable[[Search], int]) -> list[Relief]:
    """Return what each filter hides: the number of results without it, the largest first; at most eight are tried."""
    removals = list(_removals(search))
    if len(removals) < 2:
        return []
    reliefs = []
    for chip, less in removals[:MAX_SUGGESTED]:
        total = count(less)
        if total:
            reliefs.append(Relief(chip.text, total, less.filters.address()))
    return sorted(reliefs, key=lambda relief: -relief.total)


def orders_of(search: Search) -> list[Order]:
    """Return the orders that can be chosen; without search words, nothing is ordered by relevance."""
    labels: dict[str, Words] = {DEFAULT: search.of.order}
    if search.q:
        labels[DEFAULT] = gettext("Best match")
        if search.of.kind != "framework":  # whose own order begins with the first published
            labels["newest"] = search.of.order
    labels |= search.of.orders
    orders = []
    for name, label in labels.items():
        orders.append(Order(name, str(label), search.sorted_by(name).address(), name == search.sort))
    return orders


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
    if writing.delimiter() == SEMICOLON:
        form.append(("delimiter", "semicolon"))
    return form


def save_address(search: Search) -> str:
    return joined("/manage/searches/new", [("list", search.of.name), *search.pairs()])


def _removals(search: Search) -> Iterator[tuple[Chip, Search]]:
    if search.q:
        less = search.without_words()
        yield Chip("", gettext("“%(words)s”") % {"words": search.q}, less.address()), less
    for parameter, value in search.each():
        less = search.without_value(parameter.name, value)
        yield Chip(str(parameter.label), shown_value(parameter, value), less.address()), less


def shown_value(parameter: ListFilter, value: str) -> str:
    """Return a chosen value as pages write it: the name of a company chosen by slug, or of a state chosen by code."""
    if parameter.name == "company":
        document = reader().document("company", value)
        if document is not None:
            return msgspec.json.decode(document.body, type=_OfCompany).data.company.name
    if parameter.name == "state" and value[2:3] == "-":
        state = state_in(value[:2], value)
        if state is not None:
            return state.name
    return parameter.label_of(value)


class _Named(msgspec.Struct):
    name: str


class _Company(msgspec.Struct):
    company: _Named


class _OfCompany(msgspec.Struct):
    data: _Company
