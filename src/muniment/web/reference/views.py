"""The pages of the documentation."""

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

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
    found = next((each for each in GUIDES if each.key == key), None)
    if found is None:
        raise _missing()
    text = render(key, address(request), _known().get("companies") or COMPANY)
    place = GUIDES.index(found)
    following = GUIDES[place + 1] if place + 1 < len(GUIDES) else None
    return _page(
        request, "guide", f"guides/{key}", str(found.title), text=text, purpose=found.purpose, following=following
    )


@published()
def rest_group(request: HttpRequest, key: str) -> HttpResponse:
    """Show the operations of one kind of resource."""
    groups = rest.groups(described().openapi, address(request), _known())
    group = next((each for each in groups if each.key == key), None)
    if group is None:
        raise _missing()
    return _page(request, "rest", f"rest/{key}", gettext("REST API: %(group)s") % {"group": group.title}, group=group)


@published()
def rest_objects(request: HttpRequest) -> HttpResponse:
    """Show the objects of all answers."""
    objects = rest.objects(described().openapi)
    return _page(request, "objects", "rest/objects", gettext("REST API: Objects"), objects=objects)


@published()
def tools(request: HttpRequest, key: str) -> HttpResponse:
    """Show the tools of one server."""
    server = described().owner if key == "owner" else described().public
    rows = [
        {
            "name": tool["name"],
            "title": tool["title"],
            "description": inline(tool["description"], tool["inputSchema"].get("properties", {})),
            "scope": server.scopes.get(tool["name"], ""),
            "asks_first": "confirm" in tool["inputSchema"].get("properties", {}),
            "arguments": members(tool["inputSchema"], depth=1),
        }
        for tool in server.tools
    ]
    parts = (
        ("companies", gettext("Listings")),
        ("profile", gettext("Profile")),
        ("documents", gettext("Documents")),
        ("reports", gettext("Credits and reports")),
        ("", gettext("Frameworks")),
    )
    title = gettext("Owner tools") if key == "owner" else gettext("Public tools")
    shown = {"url": f"{address(request)}{server.path}", "instructions": server.instructions, "is_owner": key == "owner"}
    if key == "owner":
        grouped = [(label, [each for each in rows if part_of(each["scope"]) == of]) for of, label in parts]
        shown["parts"] = [(label, found) for label, found in grouped if found]
    return _page(request, "tools", f"tools/{key}", title, tools=rows, **shown)


def part_of(scope: str) -> str:
    """Return the part of the account that a scope is about; reports are paid with credits."""
    of = scope.partition(":")[0]
    return "reports" if of in {"credits", "applications"} else of


def _page(request: HttpRequest, template: str, key: str, title: str, **shown: object) -> HttpResponse:
    groups = [(tag["name"].lower(), tag["name"]) for tag in described().openapi["tags"]]
    context = {"room": "connect", "key": key, "title": title, "all_guides": GUIDES, "all_groups": groups, **shown}
    return TemplateResponse(request, f"reference/{template}.html", context)


def _known() -> dict[str, str]:
    """Return the key of one document of each kind, by the collection in addresses."""
    found = {COLLECTIONS[kind]: key for kind in KINDS for key in reader().keys(kind, "", 1)}
    # A sample for the cap table should not answer with an empty list.
    chosen = settings.SCHEMA.listings["company"].select({"hasCapTable": True})
    full = reader().companies(ListQuery(filters=chosen.filters, sort="treasury")).items
    slugs = sorted((str(msgspec.json.decode(each)["id"]) for each in full), key=lambda slug: not slug.isascii())
    return found | ({"companies": slugs[0]} if slugs else {})


def _missing() -> NotFound:
    return NotFound(gettext("There is no such page in the documentation."), gettext("See /docs for all of them."))
