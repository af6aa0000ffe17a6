"""The pages of the documentation."""

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import NotFound
from muniment.store.published_document import KINDS
from muniment.store.queries import ListQuery
from muniment.store.search.everything import COLLECTIONS
from muniment.web.context import address
from muniment.web.reference import rest
from muniment.web.reference.guides import COMPANY, GUIDES, render
from muniment.web.reference.interfaces import described
from muniment.web.reference.schemas import inline, members
from muniment.web.requests.page_cache import published, reader


@published()
def home(request: HttpRequest) -> HttpResponse:
    """Show what there is to read, and the first request."""
    sample = f"curl '{address(request)}/api/v1/companies?pageSize=5'"
    return _page(request, "home", "home", gettext("Documentation"), sample=sample, guides=GUIDES)


@published()
def guide(request: HttpRequest, key: str) -> HttpResponse:
    """Show a guide."""
    keys = [guide.key for guide in GUIDES]
    if key not in keys:
        raise _missing()
    place = keys.index(key)
    following = None
    if key != keys[-1]:
        following = GUIDES[place + 1]
    shown = {
        "text": render(key, address(request), _known().get("companies") or COMPANY),
        "purpose": GUIDES[place].purpose,
        "following": following,
    }
    return _page(request, "guide", f"guides/{key}", str(GUIDES[place].title), **shown)


@published()
def rest_group(request: HttpRequest, key: str) -> HttpResponse:
    """Show the operations of one kind of resource."""
    for group in rest.groups(described().openapi, address(request), _known()):
        if group.key == key:
            title = gettext("REST API: %(group)s") % {"group": group.title}
            return _page(request, "rest", f"rest/{key}", title, group=group)
    raise _missing()


@published()
def rest_objects(request: HttpRequest) -> HttpResponse:
    """Show the objects of all answers."""
    objects = rest.objects(described().openapi)
    return _page(request, "objects", "rest/objects", gettext("REST API: Objects"), objects=objects)


@published()
def tools(request: HttpRequest, key: str) -> HttpResponse:
    """Show the tools of one server."""
    is_owner = key == "owner"
    server = described().owner if is_owner else described().public
    rows = []
    rows_by_part: dict[str, list[JSONObject]] = {}
    for tool in server.tools:
        arguments, scope = tool["inputSchema"].get("properties", {}), server.scopes.get(tool["name"], "")
        row = {
            "name": tool["name"],
            "title": tool["title"],
            "description": inline(tool["description"], arguments),
            "scope": scope,
            "asks_first": "confirm" in arguments,
            "arguments": members(tool["inputSchema"], depth=1),
        }
        rows.append(row)
        rows_by_part.setdefault(part_of(scope), []).append(row)
    shown = {"url": f"{address(request)}{server.path}", "instructions": server.instructions, "is_owner": is_owner}
    if not is_owner:
        return _page(request, "tools", f"tools/{key}", gettext("Public tools"), tools=rows, **shown)
    labels = {
        "companies": gettext("Listings"),
        "profile": gettext("Profile"),
        "documents": gettext("Documents"),
        "reports": gettext("Credits and reports"),
        "": gettext("Frameworks"),
    }
    shown["parts"] = [(label, rows_by_part[part]) for part, label in labels.items() if part in rows_by_part]
    return _page(request, "tools", f"tools/{key}", gettext("Owner tools"), tools=rows, **shown)


def part_of(scope: str) -> str:
    """Return the part of the account that a scope is about; reports are paid with credits."""
    part = scope.partition(":")[0]
    return "reports" if part in {"credits", "applications"} else part


def _page(request: HttpRequest, template: str, key: str, title: str, **shown: object) -> HttpResponse:
    groups = [(tag["name"].lower(), tag["name"]) for tag in described().openapi["tags"]]
    context = {"room": "connect", "key": key, "title": title, "all_guides": GUIDES, "all_groups": groups, **shown}
    return TemplateResponse(request, f"reference/{template}.html", context)


def _known() -> dict[str, str]:
    """Return the key of one document of each kind, by the collection in addresses."""
    known = {}
    for kind in KINDS:
        for key in reader().keys(kind, "", 1):
            known[COLLECTIONS[kind]] = key
    # A sample for the cap table should not answer with an empty list, nor be hard to type.
    chosen = settings.SCHEMA.listings["company"].select({"hasCapTable": True})
    companies = reader().companies(ListQuery(filters=chosen.filters, sort="treasury")).items
    slugs = [str(msgspec.json.decode(company)["id"]) for company in companies]
    slugs.sort(key=lambda slug: not slug.isascii())
    if slugs:
        known["companies"] = slugs[0]
    return known


def _missing() -> NotFound:
    return NotFound(gettext("There is no such page in the documentation."), gettext("See /docs for all of them."))
