"""The public pages, rendered from the published documents and cached by edition."""

import json
from typing import Any
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy

from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.problems import NotFound
from muniment.store.queries import ListQuery
from muniment.store.reader import Found
from muniment.web.context import address
from muniment.web.presenters import markdown
from muniment.web.presenters.company import (
    company_facts,
    day,
    further_fields,
    links_of,
    profile_of_company,
    profile_of_person,
    rounds_of,
    shares,
)
from muniment.web.presenters.differences import label_of
from muniment.web.requests.page_cache import published, reader
from muniment.web.translating import gettext

NEWEST_SHOWN = 6
CAP_TABLE_SHOWN = 25
CHANGES_SHOWN = 8
_CHANGES = {
    "published": gettext_lazy("Published"),
    "updated": gettext_lazy("Updated"),
    "unlisted": gettext_lazy("Unlisted"),
}

_decode = msgspec.json.decode


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


@published("holders")
def company(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one company: facts, body, team, proposals, distribution, cap table."""
    found = _document("company", slug)
    bundle = _decode(found.body)["data"]
    facts = bundle["company"]
    holders = _holders(request, bundle.get("capTable") or [])
    context = {
        "room": "companies",
        "has_claims": True,
        "suggest_address": f"/companies/{quote(slug)}/suggest",
        "crumbs": [(gettext("Companies"), "/companies"), (facts["name"], "")],
        "company": facts,
        "chips": _chips(facts),
        "facts": company_facts(facts, facts["updatedAt"]),
        "links": links_of(facts),
        "further": further_fields(facts, settings.SCHEMA.company),
        "positions": bundle.get("positions") or [],
        "rounds": rounds_of(bundle),
        "holders": holders.items,
        "holders_total": holders.total,
        "holders_pager": _holders_pager(request, holders),
        **shares(bundle),
        "json_ld": json_for_script(profile_of_company(facts, bundle.get("positions") or [], address(request))),
        "summary": markdown.plain(facts.get("description") or facts.get("body") or "", 200),
        "canonical": f"{address(request)}/companies/{quote(slug)}",
        "changes": [
            {
                "what": _CHANGES.get(row.change, row.change),
                "fields": ", ".join(dict.fromkeys(label_of(name) for name in row.fields or ())),
                "day": day(row.at),
                "at": row.at,
            }
            for row in reader().changes_of("company", slug, CHANGES_SHOWN)
        ],
    }
    return TemplateResponse(request, "registry/company.html", context)


@published()
def person(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one person and the companies they hold a position in."""
    facts = _decode(_document("person", slug).body)["data"]
    context = {
        "room": "people",
        "has_claims": True,
        "crumbs": [(gettext("People"), "/people"), (facts["name"], "")],
        "person": facts,
        "further": further_fields(facts, settings.SCHEMA.person),
        "json_ld": json_for_script(profile_of_person(facts, address(request))),
        "summary": markdown.plain(facts.get("bio") or "", 200),
        "canonical": f"{address(request)}/people/{quote(slug)}",
    }
    return TemplateResponse(request, "registry/person.html", context)


@published()
def framework(request: HttpRequest, framework_id: str) -> HttpResponse:
    """Show one framework and the company behind it."""
    facts = _decode(_document("framework", framework_id).body)["data"]
    context = {
        "room": "frameworks",
        "crumbs": [(gettext("Frameworks"), "/frameworks"), (facts["frameworkName"], "")],
        "framework": facts,
        "summary": markdown.plain(facts["description"], 200),
        "canonical": f"{address(request)}/frameworks/{quote(framework_id)}",
    }
    return TemplateResponse(request, "registry/framework.html", context)


def json_for_script(value: object) -> str:
    """Return JSON that is safe inside a script element: no character in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")


def _document(kind: str, key: str) -> Found:
    """Return a published document, or raise NotFound with the nearest slugs."""
    found = reader().document(kind, key)
    if found is not None:
        return found
    folder, message = {
        "company": ("companies", gettext("No company has the slug “%(key)s”.")),
        "person": ("people", gettext("No person has the slug “%(key)s”.")),
        "framework": ("frameworks", gettext("No framework has the id “%(key)s”.")),
    }[kind]
    problem = NotFound(message % {"key": key[:200]}, gettext("Check the address or search."))
    nearest = [(near, f"/{folder}/{quote(near)}") for near in reader().nearest(kind, key)[:3]]
    problem.nearest = nearest  # type: ignore[attr-defined]  # for the page of trouble, which looks for it
    raise problem


def _chips(facts: JSONObject) -> list[dict[str, str]]:
    named = [(name, facts[name]) for name in ("type", "industry") if facts.get(name)]
    named += [("theme", theme) for theme in (facts.get("themes") or [])[:12]]
    return [{"label": value, "address": f"/companies?{name}={quote(value)}"} for name, value in named]


def _holders(request: HttpRequest, holders: list[JSONObject]) -> Page[JSONObject]:
    text = request.GET.get("holders", "1")
    asked = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 1
    page = min(max(asked, 1), Page(holders, 1, CAP_TABLE_SHOWN, len(holders)).page_count)
    start = (page - 1) * CAP_TABLE_SHOWN
    return Page(holders[start : start + CAP_TABLE_SHOWN], page, CAP_TABLE_SHOWN, len(holders))


def _holders_pager(request: HttpRequest, found: Page[Any]) -> JSONObject:
    return {
        "page": found.page,
        "page_count": found.page_count,
        "previous": f"{request.path}?holders={found.previous_page}#cap-table" if found.previous_page else "",
        "next": f"{request.path}?holders={found.next_page}#cap-table" if found.next_page else "",
        "links": [],
    }
