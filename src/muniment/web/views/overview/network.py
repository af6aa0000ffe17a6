"""The page of an organization's people and the other organizations in which they have positions."""

from typing import Final
from urllib.parse import quote

import msgspec
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from muniment.store.lists.ties import connected
from muniment.web.context import address
from muniment.web.presenters import company_lists as lists
from muniment.web.presenters.overview.network import MOST_PEOPLE, OtherOrganization, Tie, network_of, picture
from muniment.web.requests.page_cache import published, reader
from muniment.web.views.public.company_lists import parts_of
from muniment.web.views.public.documents import bundle_of

PEOPLE: Final = 40
"""On a page of the list."""
OTHERS_SHOWN: Final = 12
"""Other organizations of one person in the list; the profile has all."""


class _TiedOrganization(msgspec.Struct):
    name: str
    slug: str = ""


class _TiedPosition(msgspec.Struct):
    company: _TiedOrganization | None = None


class _TiedPerson(msgspec.Struct):
    slug: str
    positions: list[_TiedPosition] = []


class _TiesDocument(msgspec.Struct):
    data: _TiedPerson


_decode = msgspec.json.Decoder(_TiesDocument).decode


@published("page")
def network(request: HttpRequest, slug: str) -> HttpResponse:
    """Draw the network of an organization's people, and list it."""
    bundle = bundle_of(slug)
    company = bundle["company"]
    home = f"/companies/{quote(company['id'])}"
    members = {each.slug: each for each in lists.team_of(bundle.get("positions") or []) if each.slug}
    slugs = connected(reader(), members)
    page = lists.cut(slugs, request.GET.get("page", ""), PEOPLE)
    wanted = dict.fromkeys((*slugs[:MOST_PEOPLE], *page.items))
    others = _others(list(wanted), company["id"])
    ties = {
        each: Tie(each, members[each].name, members[each].titles, members[each].more, others[each])
        for each in wanted
        if others.get(each)
    }
    shown = network_of([ties[each] for each in slugs[:MOST_PEOPLE] if each in ties])
    context = {
        "room": "companies",
        "company": company,
        "home": home,
        "team_address": f"{home}/team",
        "part_title": gettext("Network"),
        "parts": parts_of(bundle, home, "network"),
        "crumbs": [(gettext("Companies"), "/companies"), (company["name"], home), (gettext("Network"), "")],
        "canonical": address(request) + lists.address_of(request.path, page.page),
        "pager": lists.pager(request.path, page),
        "picture": picture(company["name"], shown) if shown.people and page.page == 1 else "",
        "shown": shown,
        "total": len(slugs),
        "members_total": len(members),
        "ties": [ties[each] for each in page.items if each in ties],
        "others_shown": OTHERS_SHOWN,
    }
    return TemplateResponse(request, "company/network.html", context)


def _others(people: list[str], slug: str) -> dict[str, list[OtherOrganization]]:
    """Return the other organizations of each person."""
    found = {}
    for each in reader().documents([("person", person) for person in people]).values():
        person = _decode(each.body).data
        held = {
            position.company.slug: OtherOrganization(position.company.slug, position.company.name)
            for position in person.positions
            if position.company and position.company.slug not in {"", slug}
        }
        found[person.slug] = list(held.values())
    return found
