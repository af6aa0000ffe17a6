"""The front page."""

from collections.abc import Iterable
from typing import Final

import msgspec
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.languages.writing import number
from muniment.registry_toml import applied
from muniment.store.lists.highlights import highlights
from muniment.store.queries import ListQuery
from muniment.web.context import address
from muniment.web.presenters import company_lists as lists
from muniment.web.presenters.overview import front
from muniment.web.requests.page_cache import published, reader
from muniment.web.views.public.registry import json_for_script
from muniment.web.wording.places import country_names

SHOWN: Final = 6
FEW: Final = 3
"""Minimum number of the newest listings shown beside a few changes, so that no half of a row is empty."""
BARS: Final = 8
FRAMEWORKS_SHOWN: Final = 3

_decode = msgspec.json.decode


@published(daily=True)
def home(request: HttpRequest) -> HttpResponse:
    """Show what the registry is, what happens in it now, and where its listings are."""
    source = reader()
    stats = _decode(source.stats().body)["data"]
    top = highlights(source, lists.today(), BARS)
    facets = source.facets("company", ListQuery(), ("type", "industry", "country"), BARS).by_name
    raising, voting = top.raising[:SHOWN], top.voting[:SHOWN]
    parts = _parts(front.item_of(each).id for each in (*raising, *(vote.item for vote in voting)))
    frameworks = sorted(map(front.framework_of, top.frameworks), key=lambda each: not each.is_open)
    charts = [
        (gettext("Largest treasuries"), front.treasury_chart(top.largest), "/companies?sort=treasury"),
        (gettext("By type"), front.facet_chart(gettext("Companies by type"), "type", facets.get("type")), "/companies"),
        (
            gettext("By industry"),
            front.facet_chart(gettext("Companies by industry"), "industry", facets.get("industry")),
            "/companies",
        ),
        (
            gettext("By country"),
            front.facet_chart(gettext("Companies by country"), "country", facets.get("country"), country_names),
            "/map",
        ),
    ]
    updated = top.updated[:SHOWN]
    beside = max(len(updated), FEW) if updated else SHOWN
    newest = source.companies(ListQuery(page=1, page_size=beside)).items
    news = [
        (gettext("Raising now"), front.raising_news(raising, parts), "/companies?raising=true"),
        (gettext("Votes ending soon"), front.voting_news(voting, parts), ""),
        (gettext("New listings"), front.new_news(newest), "/companies"),
        (gettext("Recently changed"), front.updated_news(updated), "/companies?sort=updated"),
    ]
    dataset = front.profile_of_registry(applied.registry_name(), address(request), source.modified_at)
    context = {
        "json_ld": json_for_script(dataset),
        "room": "home",
        "figures": _figures(stats),
        "has_companies": stats["total"],
        "news": [(title, front.news_html(some), to) for title, some, to in news if some],
        "charts": [each for each in charts if each[1]],
        "frameworks": frameworks[:FRAMEWORKS_SHOWN],
    }
    return TemplateResponse(request, "registry/home.html", context)


def _parts(keys: Iterable[str]) -> dict[str, front.Parts]:
    names = [("company", key) for key in dict.fromkeys(keys)]
    return {key: front.parts_of(each.body) for (_, key), each in reader().documents(names).items()}


def _figures(stats: JSONObject) -> list[JSONObject]:
    every = [
        (gettext("companies"), number(stats["total"]), "/companies"),
        (gettext("people"), number(stats["founders"]), "/people"),
        (gettext("raising now"), number(stats["projectsRaising"]), "/companies?raising=true"),
        (gettext("combined treasury"), stats["totalTreasury"], "/companies?sort=treasury"),
        (gettext("frameworks"), number(stats["frameworks"]), "/frameworks"),
    ]
    return [{"label": label, "value": value, "address": to} for label, value, to in every if value not in {"0", "$0"}]
