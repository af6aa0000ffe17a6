"""The page of the countries in which companies have addresses."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from muniment.store.queries import ListQuery
from muniment.web.context import address
from muniment.web.presenters.overview.places import countries_of, picture, steps_of
from muniment.web.requests.page_cache import published, reader

COUNTRIES: Final = 300
"""There are fewer."""


@published()
def world_map(request: HttpRequest) -> HttpResponse:
    """Show how many companies have an address in each country, as a map and as a table."""
    facet = reader().facets("company", ListQuery(), ("country",), COUNTRIES).by_name.get("country")
    countries = countries_of(facet)
    context = {
        "room": "companies",
        "crumbs": [(gettext("Companies"), "/companies"), (gettext("Map"), "")],
        "countries": countries,
        "has_companies": reader().count("company") > 0,
        "picture": picture(countries) if countries else "",
        "steps": steps_of([each for each in countries if each.is_drawn]),
        "undrawn": [each for each in countries if not each.is_drawn],
        "canonical": f"{address(request)}/map",
    }
    return TemplateResponse(request, "registry/map.html", context)
