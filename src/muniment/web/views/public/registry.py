"""The public pages, rendered from the published documents and cached by edition."""

import json
from itertools import islice
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from muniment.kernel.json import JSONObject
from muniment.store.queries import ListQuery
from muniment.web.context import address
from muniment.web.presenters import company_lists as lists
from muniment.web.presenters import markdown
from muniment.web.presenters.company import (
    company_facts,
    company_tiles,
    further_fields,
    links_of,
    profile_of_company,
    profile_of_person,
    proposal_row,
    rounds_of,
    shares,
)
from muniment.web.requests.page_cache import published, reader
from muniment.web.translating import gettext
from muniment.web.views.public.company_lists import changes_of
from muniment.web.views.public.documents import bundle_of, document

NEWEST_SHOWN = 6
BODY_CHARACTERS = 4_000
MEMBERS_SHOWN = 12
PROPOSALS_SHOWN = 5
ROUNDS_SHOWN = 12
HOLDERS_SHOWN = 10
CHANGES_SHOWN = 8
RELATED_SHOWN = 6
MEMBERS_COMPARED = 20
"""The people whose other positions tell which organizations are related."""
ORGANIZATIONS_SHOWN = 30
"""Of one person; the page of all positions has the rest."""
POSITIONS_SHOWN = 100

_decode = msgspec.json.decode


class _Organization(msgspec.Struct):
    name: str
    slug: str = ""
    icon: str | None = None


class _Position(msgspec.Struct):
    company: _Organization | None = None


class _Person(msgspec.Struct):
    positions: list[_Position] = []


class _PersonDocument(msgspec.Struct):
    data: _Person


_decode_person = msgspec.json.Decoder(_PersonDocument).decode


@published()
def home(request: HttpRequest) -> HttpResponse:
    """Show the registry's figures, the newest listings, and how to connect an agent."""
    source = reader()
    stats = _decode(source.stats().body)["data"]
    newest = source.companies(ListQuery(page=1, page_size=NEWEST_SHOWN))
    frameworks = _decode(source.frameworks().body)["data"]
    context = {
        "figures": [
            {"label": gettext("reviewed companies"), "value": f"{stats['total']:,}"},
            {"label": gettext("people"), "value": f"{stats['founders']:,}"},
            {"label": gettext("raising now"), "value": f"{stats['projectsRaising']:,}"},
            {"label": gettext("combined treasury"), "value": stats["totalTreasury"]},
            {"label": gettext("frameworks"), "value": f"{stats['frameworks']:,}"},
        ],
        "newest": [_decode(item) for item in newest.items],
        "frameworks": [framework for framework in frameworks if framework["isOpen"]][:3] or frameworks[:3],
    }
    return TemplateResponse(request, "registry/home.html", context)


@published(daily=True)
def company(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one company: facts, and of its text and its long lists the beginning with a link to the whole."""
    bundle = bundle_of(slug)
    facts = bundle["company"]
    home = f"/companies/{quote(facts['id'])}"
    positions, holders = bundle.get("positions") or [], bundle.get("capTable") or []
    proposals, rounds = bundle.get("proposals") or [], rounds_of(bundle)
    members = lists.team_of(positions)
    body = lists.parts_of(facts.get("body") or "", BODY_CHARACTERS)
    changes = changes_of(slug, CHANGES_SHOWN + 1)
    context = {
        "room": "companies",
        "has_claims": True,
        "home": home,
        "suggest_address": f"{home}/suggest",
        "crumbs": [(gettext("Companies"), "/companies"), (facts["name"], "")],
        "company": facts,
        "chips": _chips(facts),
        "tiles": company_tiles(bundle, home, len(members)),
        "facts": company_facts(facts, facts["updatedAt"]),
        "links": links_of(facts),
        "further": further_fields(facts, settings.SCHEMA.company),
        "body": body[0],
        "has_more_body": len(body) > 1,
        "members": members[:MEMBERS_SHOWN],
        "members_total": len(members),
        "positions_total": len(positions),
        "proposals": [proposal_row(row) for row in lists.by_relevance(proposals, lists.today())[:PROPOSALS_SHOWN]],
        "proposals_total": len(proposals),
        "rounds": rounds[:ROUNDS_SHOWN],
        "has_more_rounds": len(rounds) > ROUNDS_SHOWN,
        "holders": holders[:HOLDERS_SHOWN],
        "holders_total": len(holders),
        "concentration": lists.concentration_of(holders),
        **shares(bundle),
        "related": _related(facts["id"], positions),
        "question": gettext("What does the registry at %(address)s say about %(name)s (%(home)s)?")
        % {"address": f"{address(request)}/api/mcp", "name": facts["name"], "home": f"{address(request)}{home}"},
        "json_ld": json_for_script(profile_of_company(facts, positions, address(request))),
        "summary": markdown.plain(facts.get("description") or facts.get("body") or "", 200),
        "canonical": f"{address(request)}{home}",
        "changes": changes[:CHANGES_SHOWN],
        "has_more_changes": len(changes) > CHANGES_SHOWN,
    }
    context["sections"] = [
        (anchor, label, count)
        for anchor, label, is_there, count in (
            ("about", gettext("About"), facts.get("body"), 0),
            ("team", gettext("Team"), positions, len(members)),
            ("proposals", gettext("Proposals"), proposals, len(proposals)),
            ("distribution", gettext("Token distribution"), context["distribution"], 0),
            ("cap-table", gettext("Cap table"), holders, len(holders)),
            ("funding", gettext("Funding"), rounds, len(rounds)),
            ("related", gettext("Related organizations"), context["related"], 0),
            ("history", gettext("History"), changes, 0),
        )
        if is_there
    ]
    return TemplateResponse(request, "registry/company.html", context)


@published()
def person(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one person and the organizations in which they hold positions."""
    facts = _decode(document("person", slug).body)["data"]
    home = f"/people/{quote(facts['slug'])}"
    positions = facts.get("positions") or []
    organizations = lists.organizations_of(positions)
    context = {
        "room": "people",
        "has_claims": True,
        "home": home,
        "crumbs": [(gettext("People"), "/people"), (facts["name"], "")],
        "person": facts,
        "organizations": organizations[:ORGANIZATIONS_SHOWN],
        "positions_total": len(positions),
        "has_more_positions": len(organizations) > ORGANIZATIONS_SHOWN or any(each.more for each in organizations),
        "further": further_fields(facts, settings.SCHEMA.person),
        "json_ld": json_for_script(profile_of_person(facts, address(request))),
        "summary": markdown.plain(facts.get("bio") or "", 200),
        "canonical": f"{address(request)}{home}",
    }
    return TemplateResponse(request, "registry/person.html", context)


@published("page")
def positions(request: HttpRequest, slug: str) -> HttpResponse:
    """Show all positions of one person."""
    facts = _decode(document("person", slug).body)["data"]
    home = f"/people/{quote(facts['slug'])}"
    page = lists.cut(facts.get("positions") or [], request.GET.get("page", ""), POSITIONS_SHOWN)
    context = {
        "room": "people",
        "person": facts,
        "positions": page.items,
        "total": page.total,
        "pager": lists.pager(request.path, page),
        "crumbs": [(gettext("People"), "/people"), (facts["name"], home), (gettext("Positions"), "")],
        "canonical": f"{address(request)}{request.path}" + (f"?page={page.page}" if page.page > 1 else ""),
    }
    return TemplateResponse(request, "registry/positions.html", context)


@published()
def framework(request: HttpRequest, framework_id: str) -> HttpResponse:
    """Show one framework and the company behind it."""
    facts = _decode(document("framework", framework_id).body)["data"]
    context = {
        "room": "frameworks",
        "crumbs": [(gettext("Frameworks"), "/frameworks"), (facts["frameworkName"], "")],
        "framework": facts,
        "summary": markdown.plain(facts["description"], 200),
        "canonical": f"{address(request)}/frameworks/{quote(framework_id)}",
    }
    return TemplateResponse(request, "registry/framework.html", context)


def _related(slug: str, positions: list[JSONObject]) -> list[JSONObject]:
    """Return the organizations that share people with a company, those with the most first."""
    people = dict.fromkeys(row["person"]["slug"] for row in positions if (row.get("person") or {}).get("slug"))
    names = [("person", person) for person in islice(people, MEMBERS_COMPARED)]
    found: dict[str, JSONObject] = {}
    for each in reader().documents(names).values():
        others = {row.company.slug: row.company for row in _decode_person(each.body).data.positions if row.company}
        for other in others.values():
            if other.slug and other.slug != slug:
                row = {"slug": other.slug, "name": other.name, "icon": other.icon, "shared": 0}
                found.setdefault(other.slug, row)["shared"] += 1
    return sorted(found.values(), key=lambda row: (-row["shared"], row["name"]))[:RELATED_SHOWN]


def json_for_script(value: object) -> str:
    """Return JSON that is safe inside a script element: no character in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")


def _chips(facts: JSONObject) -> list[dict[str, str]]:
    named = [(name, facts[name]) for name in ("type", "industry") if facts.get(name)]
    named += [("theme", theme) for theme in (facts.get("themes") or [])[:12]]
    return [{"label": value, "address": f"/companies?{name}={quote(value)}"} for name, value in named]
