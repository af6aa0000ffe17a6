"""Two to four organizations side by side. Which ones is in the address, so that a comparison can be shared."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from muniment.kernel.json import JSONObject
from muniment.store.queries import ListQuery
from muniment.store.search_text import fold
from muniment.web.context import address
from muniment.web.lists.search import joined
from muniment.web.presenters.overview import front
from muniment.web.presenters.overview.comparing import Side, charts_of, rows_of, shared_people
from muniment.web.requests.page_cache import published, reader

MOST: Final = 4
FOUND_SHOWN: Final = 6
SHARED_SHOWN: Final = 12
WORDS: Final = 200


class Choice(NamedTuple):
    """An organization that can be added or removed, with the comparison that follows."""

    item: front.Item
    address: str


@published("c", "add", "only", daily=True)
def compare(request: HttpRequest) -> HttpResponse:
    """Compare organizations; ``add`` searches one by name."""
    asked = list(dict.fromkeys(filter(None, request.GET.getlist("c"))))[:MOST]
    bundles = _bundles(asked)
    slugs = [slug for slug in asked if slug in bundles]
    words = " ".join(request.GET.get("add", "").replace("\0", " ").split())[:WORDS]
    found = _found(words, slugs) if len(slugs) < MOST else []
    if words and found and (len(found) == 1 or fold(found[0].name) == fold(words)):
        return HttpResponseRedirect(_address([*slugs, found[0].id]))
    sides = [Side(bundles[slug]) for slug in slugs]
    is_short = request.GET.get("only") == "differences" and len(sides) > 1
    rows, people = rows_of(sides), shared_people(sides)
    differing = [row for row in rows if row.differs]
    context = {
        "room": "companies",
        "chosen": [(side, _address([slug for slug in slugs if slug != side.slug])) for side in sides],
        "slugs": slugs,
        "missing": [slug[:WORDS] for slug in asked if slug not in bundles],
        "has_room": len(slugs) < MOST,
        "is_possible": bool(slugs) or reader().count("company") > 1,
        "words": words,
        "found": [Choice(each, _address([*slugs, each.id])) for each in found],
        "near": [] if words or not sides or len(slugs) == MOST else _near(sides[0].company, slugs),
        "starts": [] if words or sides else _starts(),
        "rows": differing if is_short else rows,
        "differing": len(differing),
        "is_short": is_short,
        "all_address": _address(slugs),
        "short_address": f"{_address(slugs)}&only=differences",
        "people": people[:SHARED_SHOWN],
        "people_more": len(people[SHARED_SHOWN:]),
        "charts": charts_of(sides),
        "canonical": f"{address(request)}{_address(slugs)}",
    }
    return TemplateResponse(request, "registry/compare.html", context)


def _address(slugs: Sequence[str]) -> str:
    return joined("/compare", [("c", slug) for slug in slugs])


def _bundles(slugs: Sequence[str]) -> dict[str, JSONObject]:
    found = reader().documents([("company", slug) for slug in slugs])
    return {key: msgspec.json.decode(each.body)["data"] for (_, key), each in found.items()}


def _found(words: str, slugs: Sequence[str]) -> list[front.Item]:
    if not words:
        return []
    items = reader().companies(ListQuery(q=words, page_size=FOUND_SHOWN + MOST)).items
    return [each for each in map(front.item_of, items) if each.id not in slugs][:FOUND_SHOWN]


def _starts() -> list[Choice]:
    """Return the organizations with the largest treasuries, to begin with."""
    query = ListQuery(sort="treasury", page_size=FOUND_SHOWN)
    return [Choice(each, _address([each.id])) for each in map(front.item_of, reader().companies(query).items)]


def _near(company: JSONObject, slugs: Sequence[str]) -> list[Choice]:
    """Return organizations of the same industry, the largest treasuries first."""
    if not company.get("industry"):
        return []
    chosen = settings.SCHEMA.listings["company"].select({"industry": (company["industry"],)})
    query = ListQuery(filters=chosen.filters, sort="treasury", page_size=FOUND_SHOWN + MOST)
    items = map(front.item_of, reader().companies(query).items)
    return [Choice(each, _address([*slugs, each.id])) for each in items if each.id not in slugs][:FOUND_SHOWN]
