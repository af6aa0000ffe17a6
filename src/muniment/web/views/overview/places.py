"""The page of the countries in which companies have addresses, on a map drawn from Natural Earth."""

import functools
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from muniment.languages.writing import number
from muniment.store.lists.facets import Facet
from muniment.store.lists.highlights import placed
from muniment.store.queries import ListQuery
from muniment.web.context import address
from muniment.web.lists.search import joined
from muniment.web.requests.page_cache import published, reader
from muniment.web.wording.places import country_names

COUNTRIES: Final = 300
STATES_SHOWN: Final = 60
"""There are fewer."""


LEVELS: Final = 5
_WORLD: Final = Path(__file__).with_name("world.json")
"""Made by checks/world_map.py."""


class World(msgspec.Struct):
    """The shapes of countries by their two letters, and of places without a code."""

    width: int
    height: int
    countries: dict[str, str]
    others: str


class CountedCountry(NamedTuple):
    """A country with the number *n* of companies that have an address there, and its level on the map."""

    code: str
    name: str
    n: int
    level: int
    is_drawn: bool

    @property
    def address(self) -> str:
        return joined("/companies", [("country", self.code)])


class CountedState(NamedTuple):
    """A state or region with the number *n* of companies that have an address there."""

    name: str
    n: int

    @property
    def address(self) -> str:
        return joined("/companies", [("state", self.name)])


class LegendStep(NamedTuple):
    """A level of the map and the numbers that it stands for."""

    level: int
    label: str


@published()
def world_map(request: HttpRequest) -> HttpResponse:
    """Show how many companies have an address in each country and state, and how many cannot be placed."""
    facets = reader().facets("company", ListQuery(), ("country", "state"), COUNTRIES).by_name
    countries, states = countries_of(facets.get("country")), states_of(facets.get("state"))
    counts, companies = placed(reader()), reader().count("company")
    states_more = len(states) - STATES_SHOWN
    if "state" in facets:
        states_more += facets["state"].more
    drawing = SafeString("")
    if countries:
        drawing = picture(countries)
    context = {
        "room": "map",
        "crumbs": [(gettext("Companies"), "/companies"), (gettext("Map"), "")],
        "countries": countries,
        "has_companies": companies > 0,
        "placed": counts.known,
        "unplaced": counts.unknown,
        "without": companies - counts.known - counts.unknown,
        "states": states[:STATES_SHOWN],
        "states_more": states_more,
        "picture": drawing,
        "steps": steps_of([country for country in countries if country.is_drawn]),
        "undrawn": [country for country in countries if not country.is_drawn],
        "canonical": f"{address(request)}/map",
    }
    return TemplateResponse(request, "registry/map.html", context)


@functools.cache
def world() -> World:
    return msgspec.json.decode(_WORLD.read_bytes(), type=World)


def countries_of(facet: Facet | None) -> list[CountedCountry]:
    """Return the countries of a registry, those with the most companies first."""
    counts = _counts(facet)
    most = max(counts.values(), default=1)
    names, drawn = country_names(), world().countries
    countries = []
    for code, n in counts.items():
        countries.append(CountedCountry(code, names.get(code, code), n, level_of(n, most), is_drawn=code in drawn))
    return sorted(countries, key=lambda country: (-country.n, country.name))


def states_of(facet: Facet | None) -> list[CountedState]:
    """Return the states and regions of a registry, those with the most companies first."""
    return [CountedState(name, n) for name, n in _counts(facet).items()]


def _counts(facet: Facet | None) -> dict[str, int]:
    """Return the number of companies with each value in use, in the order of the facet."""
    if facet is None:
        return {}
    counts = {}
    for counted in facet.values:
        if counted.value and counted.n:
            counts[counted.value] = counted.n
    return counts


def level_of(n: int, most: int) -> int:
    """Return the level of a number, from 1; each stands for as many times more than the one before it."""
    if most <= 1:
        return 1
    return min(LEVELS, 1 + int(LEVELS * math.log(n) / math.log(most)))


def steps_of(countries: Sequence[CountedCountry]) -> list[LegendStep]:
    """Return the levels that the map has, from the least."""
    numbers: dict[int, list[int]] = {}
    for country in countries:
        numbers.setdefault(country.level, []).append(country.n)
    return [LegendStep(level, _range(min(numbers[level]), max(numbers[level]))) for level in sorted(numbers)]


def _range(low: int, high: int) -> str:
    if low == high:
        return number(low)
    return gettext("%(low)s to %(high)s") % {"low": number(low), "high": number(high)}


def picture(countries: Sequence[CountedCountry]) -> SafeString:
    """Draw the map; the table beside it is for everybody, so the picture is for eyes and mice alone."""
    shapes = world()
    codes = {country.code for country in countries}
    empty = "".join(path for code, path in shapes.countries.items() if code not in codes)
    shown = ""
    for country in countries:
        if country.is_drawn:
            shown += _country(country, shapes.countries[country.code])
    return mark_safe(  # noqa: S308 - shapes of ours; names are escaped
        f'<svg class="world" viewBox="0 0 {shapes.width} {shapes.height}" aria-hidden="true">'
        f'<path d="{empty}{shapes.others}"/>{shown}</svg>'
    )


def _country(country: CountedCountry, path: str) -> str:
    count = ngettext("%(count)s company", "%(count)s companies", country.n) % {"count": number(country.n)}
    return (
        f'<a href="{escape(country.address)}" tabindex="-1"><title>{escape(country.name)}: {escape(count)}</title>'
        f'<path class="l{country.level}" d="{path}"/></a>'
    )
