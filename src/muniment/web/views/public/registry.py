"""The public pages, rendered from the published documents and cached by edition."""

import json
from typing import Any
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.problems import NotFound
from muniment.store.queries import ListQuery, Sort
from muniment.store.reader import Found, ListPage
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
from muniment.web.requests import pagination
from muniment.web.requests.page_cache import published, reader

STATUSES = ("active", "upcoming", "inactive")
SORTS: tuple[Sort, ...] = ("newest", "name")
COMPANY_PARAMETERS = ("q", "status", "type", "industry", "theme", "hasToken", "raising", "sort", "page")
PEOPLE_PARAMETERS = ("q", "sort", "page")
NEWEST_SHOWN = 6
CAP_TABLE_SHOWN = 25
CHANGES_SHOWN = 8
_FLAGS = {"true": True, "false": False}
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


@published(*COMPANY_PARAMETERS)
def companies(request: HttpRequest) -> HttpResponse:
    """List companies: search, filters, pages."""
    query = request.GET
    page, text = pagination.asked_page(query), _search(query)
    status = pagination.chosen(query, "status", STATUSES)
    has_token = pagination.chosen(query, "hasToken", tuple(_FLAGS))
    raising = pagination.chosen(query, "raising", tuple(_FLAGS))
    sort = pagination.chosen(query, "sort", (*SORTS, "relevance"))
    values = {
        **{name: query.get(name) or None for name in ("type", "industry", "theme")},
        "status": status or None,
        "hasToken": _FLAGS.get(has_token),
        "raising": _FLAGS.get(raising),
    }
    found = reader().companies(
        ListQuery(
            page=page,
            page_size=pagination.PAGE_SIZE,
            q=text,
            filters=settings.SCHEMA.listings["company"].select(values).filters,
            sort=_sort(sort),
        )
    )
    rounds = {"true": gettext("Raising now"), "false": gettext("Not raising")}
    context = {
        **_list("companies", request, COMPANY_PARAMETERS, found, sort),
        "q": text,
        "filtered": any(query.get(name) for name in COMPANY_PARAMETERS if name not in {"page", "sort"}),
        "selects": [
            _select("status", gettext("Status"), STATUSES, status),
            _select("type", gettext("Type"), _values("type"), query.get("type", "")),
            _select("industry", gettext("Industry"), _values("industry"), query.get("industry", "")),
            _select("theme", gettext("Theme"), _values("theme"), query.get("theme", "")),
            _select("raising", gettext("Fundraising"), tuple(_FLAGS), raising, rounds),
        ],
    }
    return TemplateResponse(request, "registry/companies.html", context)


@published(*PEOPLE_PARAMETERS)
def people(request: HttpRequest) -> HttpResponse:
    """List people: search and pages."""
    page, text = pagination.asked_page(request.GET), _search(request.GET)
    sort = pagination.chosen(request.GET, "sort", SORTS)
    found = reader().people(ListQuery(page=page, page_size=pagination.PAGE_SIZE, q=text, sort=_sort(sort)))
    context = {**_list("people", request, PEOPLE_PARAMETERS, found, sort), "q": text}
    return TemplateResponse(request, "registry/people.html", context)


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
        "facts": company_facts(facts, found.updated_at),
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


@published("kind")
def frameworks(request: HttpRequest) -> HttpResponse:
    """List the assessment frameworks and programs."""
    kind = pagination.chosen(request.GET, "kind", ("score", "program"))
    chosen = settings.SCHEMA.listings["framework"].select({"kind": kind or None})
    found = _decode(reader().frameworks(ListQuery(filters=chosen.filters)).body)["data"]
    context = {"room": "frameworks", "kind": kind, "frameworks": found}
    return TemplateResponse(request, "registry/frameworks.html", context)


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


def _search(query: QueryDict) -> str:
    return " ".join(query.get("q", "").replace("\0", " ").split())[:200]


def _list(room: str, request: HttpRequest, parameters: tuple[str, ...], found: ListPage, sort: str) -> JSONObject:
    return {
        "room": room,
        room: [_decode(item) for item in found.items],
        "total": found.total,
        "closest": [(each.name, f"/{room}/{quote(each.id)}") for each in found.closest],
        "pager": pagination.pager(request, parameters, found),
        "sorts": _sorts(sort, is_search=bool(_search(request.GET))),
    }


def _sorts(sort: str, *, is_search: bool) -> JSONObject:
    """Return the field of the order; the default has no value, so that a search from any page is by relevance."""
    if is_search:
        words = {"": gettext("Best match first"), "newest": gettext("Newest first"), "name": gettext("Name")}
        return _select("sort", gettext("Sort by"), tuple(words), sort if sort != "relevance" else "", words)
    words = {"": gettext("Newest first"), "name": gettext("Name")}
    return _select("sort", gettext("Sort by"), tuple(words), "name" if sort == "name" else "", words)


def _values(name: str) -> tuple[str, ...]:
    return tuple(reader().values("company", name, 60))


def _sort(chosen: str) -> Sort | None:
    return next((sort for sort in SORTS if sort == chosen), None)


def _select(
    name: str, label: str, values: tuple[str, ...], chosen: str, words: dict[str, str] | None = None
) -> JSONObject:
    shown, words = values if not chosen or chosen in values else (chosen, *values), words or {}
    options = [{"value": value, "label": words.get(value, value), "chosen": value == chosen} for value in shown]
    return {"name": name, "label": label, "options": options}


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
