"""
The lists of the registry, and the queries that answer them.

The schema declares filters, ranges and orders. Here they get the words of the pages, and an order; one without words
is shown last, under the label of its field.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.problems import BadRequest
from muniment.schema.filters import Criterion, Listing, ReversedRange
from muniment.schema.kinds import Country
from muniment.schema.objects import Schema
from muniment.store.queries import ListQuery
from muniment.web.lists.search import Control, ListFilter, ListName, RegistryList, Search
from muniment.web.requests.pages import Words
from muniment.web.requests.pagination import PAGE_SIZE
from muniment.web.wording.places import country_names


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
    if field is not None and filter_ is not None and filter_.presence and name not in _SHOWN:
        return lambda: {"true": gettext_lazy("Yes"), "false": gettext_lazy("No")}
    shown = _SHOWN.get(name)
    return (lambda: shown.words) if shown else dict


def _label(of: RegistryList, name: str) -> str:
    return next(str(each.label) for each in of.parameters if each.name == name)
