"""The public pages of companies and people, with their JSON-LD for search engines."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext, ngettext

from muniment.kernel.json import JSONObject
from muniment.kernel.wire import PICTURE_PATH
from muniment.languages.writing import number
from muniment.schema.company import TREASURY_NOTE
from muniment.store.lists import ties
from muniment.web.context import address
from muniment.web.lists.search import joined
from muniment.web.presenters import company_lists as lists
from muniment.web.presenters import markdown, scores
from muniment.web.presenters.company import (
    company_facts,
    company_tiles,
    further_fields,
    has_short_note,
    links_of,
    listed_day,
    places_of,
    proposal_row,
    rounds_of,
    safe_link,
    shares,
    votes_over_time,
)
from muniment.web.presenters.frameworks import frameworks_of
from muniment.web.presenters.plugin_sections import plugged_sections
from muniment.web.requests.page_cache import once_if, published, reader
from muniment.web.views.public import updates
from muniment.web.views.public.company_lists import changes_of, parts_of, slugs_of
from muniment.web.views.public.documents import bundle_of, document
from muniment.web.wording.labels import labelled

BODY_CHARACTERS = 4_000
BODY_CHARACTERS_BEFORE_LISTS = 1_600
"""Maximum characters of the text above lists, so that visitors find the lists below it."""
ITEMS_OF_TEXT = 15
"""Items of lists in a text that is rather a list, of which the beginning says enough."""
LEAD_CHARACTERS = 400
"""Maximum characters of the summary; a longer one is cut on the page."""
ASSESSMENTS_SHOWN = 6
FRAMEWORKS_SHOWN = 6
MEMBERS_SHOWN = 12
PROPOSALS_SHOWN = 5
ROUNDS_SHOWN = 12
HOLDERS_SHOWN = 10
CHANGES_SHOWN = 8
RELATED_SHOWN = 6
ORGANIZATIONS_SHOWN = 30
"""Maximum organizations shown of one person; the page of all positions has the rest."""
MANY_OF_ONE: Final = 4
"""Positions in an organization, on average, beside which its name would be alone in a column."""
FEW_FACTS = 2
"""As many links, or additional members, are shown among the other facts of a company."""
POSITIONS_SHOWN = 100
POSITIONS_DESCRIBED = 50
"""Maximum positions in the JSON-LD of a page, which names the page of all of them."""
MOST_COMPARED = 4

_decode = msgspec.json.decode


@published(daily=True)
def company(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one company: facts, and of its text and its long lists the beginning with a link to the whole."""
    bundle = bundle_of(slug)
    context = company_context(request, bundle)
    plugged = plugged_sections("company", bundle)
    context["plugged"] = plugged.sections
    # They are on this page alone, so only this page has their tabs.
    for section in plugged.sections:
        tab = {"label": section["title"], "address": f"#{section['anchor']}", "count": 0, "here": False}
        context["parts"].append(tab)
    return once_if(not plugged.is_complete, TemplateResponse(request, "registry/company.html", context))


def company_context(request: HttpRequest, bundle: JSONObject, home: str = "") -> JSONObject:
    """
    Return the context of a company's page.

    Args:
        home: the address of the page; by default the public one.
    """
    facts = bundle["company"]
    home = home or f"/companies/{quote(facts['id'])}"
    positions, holders = bundle.get("positions") or [], bundle.get("capTable") or []
    proposals, rounds = bundle.get("proposals") or [], rounds_of(bundle)
    has_lists = any((positions, holders, proposals, rounds, bundle.get("distribution")))
    members = lists.team_of(positions)
    assessments = scores.assessments(facts)
    frameworks = frameworks_of(reader(), facts["id"])
    links = links_of(facts)
    website = _website(facts, links)
    changes = changes_of(facts["id"], CHANGES_SHOWN + 1)
    shown_changes = changes[:CHANGES_SHOWN]
    figures = _figures(bundle, home, len(members), was_listed_before=_was_listed_before(facts, shown_changes))
    further = further_fields(_without_note(facts), settings.SCHEMA.company)
    sections = _sections_of_facts(figures["facts"], links, website, further)
    context = {
        "room": "companies",
        "has_claims": True,
        "updates": updates.offered_for("company", facts["id"]),
        "home": home,
        "suggest_address": f"{home}/suggest",
        "crumbs": [(gettext("Companies"), "/companies"), (facts["name"], "")],
        "company": {"logo": None, "maintainedByOwner": False, **facts},
        "chips": _chips(facts),
        "tiles": figures["tiles"],
        **sections,
        "website": website,
        **_text(facts, has_lists=has_lists),
        "assessments": assessments[:ASSESSMENTS_SHOWN],
        "assessments_total": len(assessments),
        "frameworks": frameworks[:FRAMEWORKS_SHOWN],
        "frameworks_total": len(frameworks),
        "members": members[:MEMBERS_SHOWN],
        "members_total": len(members),
        "positions_total": len(positions),
        "proposals": [proposal_row(row) for row in lists.by_relevance(proposals, lists.today())[:PROPOSALS_SHOWN]],
        "proposals_total": len(proposals),
        "votes_over_time": votes_over_time(proposals),
        "rounds": rounds[:ROUNDS_SHOWN],
        "rounds_total": len(rounds),
        "has_more_rounds": len(rounds) > ROUNDS_SHOWN,
        "holders": lists.holders_shown(holders[:HOLDERS_SHOWN], facts.get("symbol") or ""),
        "holders_total": len(holders),
        "holders_have_names": lists.have_names(holders),
        "completeness": lists.completeness_of(holders),
        "concentration": lists.concentration_of(holders),
        **shares(bundle),
        "related": _related(facts["id"], positions),
        "question": _question(address(request), facts["name"], home),
        "json_ld": json_for_script(profile_of_company(facts, positions, links, address(request))),
        "summary": markdown.plain(facts.get("description") or facts.get("body") or "", 200),
        "canonical": f"{address(request)}{home}",
        "changes": shown_changes,
        "has_more_changes": len(changes) > CHANGES_SHOWN,
    }
    has_network = bool(context["related"])
    return {**context, "parts": parts_of(bundle, home, "", has_network=has_network)}


def _question(base: str, name: str, home: str) -> str:
    """Return a question for an agent about a company or a person, which names the tool server."""
    words = gettext("What does the registry at %(address)s say about %(name)s, %(home)s?")
    return words % {"address": f"{base}/api/mcp", "name": name, "home": f"{base}{home}"}


def _sections_of_facts(
    facts: list[JSONObject], links: list[JSONObject], website: JSONObject | None, further: list[JSONObject]
) -> JSONObject:
    """Return the facts, the links and the further fields: a heading over a row or two says less than these rows."""
    if len(links) <= FEW_FACTS:
        facts = [*facts, *(link for link in links if link is not website)]  # which is at the top already
        links = []
    if len(further) <= FEW_FACTS:
        facts = [*facts, *further]
        further = []
    return {"facts": facts, "links": links, "further": further}


def _was_listed_before(company: JSONObject, changes: Sequence[JSONObject]) -> bool:
    """Return whether a page shows that a company was added to this registry after it was listed: at its source."""
    if not (changes and changes[-1]["is_first"]):
        return False
    listed = listed_day(company)
    added: str = changes[-1]["at"]
    return "" < listed < added[: len(listed)]


def _figures(bundle: JSONObject, home: str, team_size: int, *, was_listed_before: bool) -> JSONObject:
    """Return the tiles and the facts of a company."""
    facts = bundle["company"]
    tiles = company_tiles(bundle, home, team_size)
    rows = company_facts(facts, facts["updatedAt"], was_listed_before=was_listed_before)
    if len(tiles) == 1:  # a figure alone is a fact
        return {"tiles": [], "facts": [*tiles, *rows]}
    return {"tiles": tiles, "facts": rows}


def _website(facts: JSONObject, links: list[JSONObject]) -> JSONObject | None:
    website = safe_link(facts.get("website"))
    for link in links:
        if link["address"] == website:
            return link
    return None


def _text(facts: JSONObject, *, has_lists: bool) -> JSONObject:
    """Return the summary of a company, and the beginning of its text."""
    description = facts.get("description") or ""
    text = facts.get("body") or ""
    # The page cuts a longer description, so the text keeps a paragraph that says it whole.
    if len(description) <= LEAD_CHARACTERS:
        text = lists.text_beyond(text, description)
    most = BODY_CHARACTERS
    if has_lists or text.count("\n- ") > ITEMS_OF_TEXT:
        most = BODY_CHARACTERS_BEFORE_LISTS
    parts = lists.parts_of(text, most)
    return {
        "lead": lists.lead_of(description, text),
        "body": parts[0],
        "has_more_body": len(parts) > 1,
        "is_team_first": bool(description),  # it says what the organization is; without it, the text does
    }


@published()
def person(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one person and the organizations in which they hold positions."""
    facts = _decode(document("person", slug).body)["data"]
    home = f"/people/{quote(facts['slug'])}"
    positions = facts.get("positions") or []
    organizations = lists.organizations_of(positions)
    plugged = plugged_sections("person", facts)
    context = {
        "room": "people",
        "has_claims": True,
        "updates": updates.offered_for("person", facts["slug"]),
        "home": home,
        "crumbs": [(gettext("People"), "/people"), (facts["name"], "")],
        "person": {"picture": None, **facts},
        "plugged": plugged.sections,
        "role": _role(positions),
        "tiles": _person_tiles(len(organizations), len(positions), home),
        "organizations": organizations[:ORGANIZATIONS_SHOWN],
        "compare_address": _comparison(organizations),
        "changes": changes_of(facts["slug"], CHANGES_SHOWN, "person"),
        "question": _question(address(request), facts["name"], home),
        "positions_total": len(positions),
        "has_more_positions": len(organizations) > ORGANIZATIONS_SHOWN
        or any(organization.more for organization in organizations),
        "further": further_fields(facts, settings.SCHEMA.person),
        "json_ld": json_for_script(profile_of_person(facts, address(request))),
        "summary": markdown.plain(facts.get("bio") or "", 200),
        "canonical": f"{address(request)}{home}",
    }
    return once_if(not plugged.is_complete, TemplateResponse(request, "registry/person.html", context))


def _role(positions: list[JSONObject]) -> str:
    """Return a person's first position, and how many others there are: ``Chair, Quay Trust · 3 more positions``."""
    if not positions:
        return ""
    first, more = positions[0], len(positions) - 1
    organization = (first.get("company") or {}).get("name")
    role = ", ".join(filter(None, (first.get("title"), organization)))
    if not more:
        return role
    words = ngettext("%(role)s · %(more)s more position", "%(role)s · %(more)s more positions", more)
    return words % {"role": role, "more": number(more)}


def _person_tiles(organizations: int, positions: int, home: str) -> list[JSONObject]:
    """Return the numbers of a person; a single position, or one in each organization, is on the page itself."""
    if positions <= 1 or positions == organizations <= ORGANIZATIONS_SHOWN:
        return []
    return [
        {
            "label": ngettext("Organization", "Organizations", organizations),
            "value": number(organizations),
            "address": "",
        },
        {
            "label": ngettext("Position", "Positions", positions),
            "value": number(positions),
            "address": f"{home}/positions",
        },
    ]


def _comparison(organizations: list[lists.Organization]) -> str:
    """Return the address of a comparison of a person's organizations, if there are as many as it takes."""
    pairs = []
    for organization in organizations:
        slug = organization.company.get("slug")
        if slug:
            pairs.append(("c", slug))
    return joined("/compare", pairs) if 2 <= len(pairs) <= MOST_COMPARED else ""


@published("page")
def positions(request: HttpRequest, slug: str) -> HttpResponse:
    """Show all positions of one person."""
    facts = _decode(document("person", slug).body)["data"]
    home = f"/people/{quote(facts['slug'])}"
    page = lists.cut(facts.get("positions") or [], request.GET.get("page", ""), POSITIONS_SHOWN)
    context = {
        "room": "people",
        "person": facts,
        "home": home,
        "positions": page.items,
        "is_of_few": len(lists.organizations_of(page.items)) * MANY_OF_ONE <= len(page.items),
        "total": page.total,
        "pager": lists.pager(request.path, page),
        "crumbs": [(gettext("People"), "/people"), (facts["name"], home), (gettext("Positions"), "")],
        "canonical": address(request) + lists.address_of(request.path, page.page),
    }
    return TemplateResponse(request, "registry/positions.html", context)


def _related(slug: str, positions: list[JSONObject]) -> list[JSONObject]:
    """Return the organizations that share people with a company, those with the most first."""
    connected = ties.connected(reader(), slugs_of(positions))
    related = []
    for tie in ties.shared(ties.others_of(reader(), connected, slug))[:RELATED_SHOWN]:
        organization = tie.organization
        related.append(
            {"slug": organization.slug, "name": organization.name, "logo": organization.logo, "shared": tie.people}
        )
    return related


def json_for_script(value: object) -> str:
    """Return JSON that is safe inside a script element: no character in it can end the element."""
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")


def _without_note(facts: JSONObject) -> JSONObject:
    """Return the members of a company without the note of its treasury where the figure says it."""
    if not facts.get("treasury") or not has_short_note(facts):
        return facts
    return {name: value for name, value in facts.items() if name != TREASURY_NOTE}


def _chips(facts: JSONObject) -> list[dict[str, str]]:
    """Return the type, the industry and the themes of a company, each word once, as links to the companies with it."""
    values = [(name, facts[name]) for name in ("type", "industry") if facts.get(name)]
    shown = {value.casefold() for _, value in values}
    for theme in (facts.get("themes") or [])[:12]:
        if theme.casefold() not in shown:
            values.append(("theme", theme))
    return [{"label": labelled(name, value), "address": f"/companies?{name}={quote(value)}"} for name, value in values]


def profile_of_company(
    company: JSONObject, positions: list[JSONObject], links: list[JSONObject], base: str
) -> JSONObject:
    """
    Describe a company in the schema.org vocabulary.

    Args:
        links: what :func:`links_of` returns.
    """
    page = f"{base}/companies/{quote(company['id'])}"
    identifiers = [{"@type": "PropertyValue", "propertyID": "slug", "value": company["id"]}]
    if company.get("symbol"):
        identifiers.append({"@type": "PropertyValue", "propertyID": "token symbol", "value": company["symbol"]})
    places = places_of(company)
    members = []
    for position in positions[:POSITIONS_DESCRIBED]:
        if position.get("person"):
            members.append(_organization_role(position, base))
    profile = {
        "@context": "https://schema.org",
        "@type": "Organization",
        "@id": page,
        "name": company["name"],
        "description": company.get("description"),
        "url": safe_link(company.get("website")),
        "sameAs": [link["address"] for link in links if link["address"].startswith("http")],
        "identifier": identifiers,
        "logo": _image(company.get("logo"), base),
        "address": _postal_address(places[0]) if places else None,
        "member": members,
        "subjectOf": _whole_list(f"{page}/team", len(positions)),
    }
    return {name: value for name, value in profile.items() if value}


def _whole_list(page: str, total: int) -> JSONObject | None:
    """Describe the page with all positions, if there are more than a profile describes."""
    if total <= POSITIONS_DESCRIBED:
        return None
    return {
        "@type": "CollectionPage",
        "url": page,
        "mainEntity": {"@type": "ItemList", "numberOfItems": total},
    }


def _organization_role(position: JSONObject, base: str) -> JSONObject:
    """Describe a position and the person who has it; only people with a page have an address."""
    person = {"@type": "Person", "name": position["person"]["name"]}
    slug = position["person"].get("slug")
    if slug:
        person["url"] = f"{base}/people/{quote(slug)}"
    return {"@type": "OrganizationRole", "roleName": position.get("title", ""), "member": person}


def _image(logo: Any, base: str) -> JSONObject | None:
    """Describe the picture that this instance serves of a logo."""
    if not isinstance(logo, dict) or not PICTURE_PATH.fullmatch(str(logo.get("url"))):
        return None
    return {"@type": "ImageObject", "url": f"{base}{logo['url']}", "width": logo["width"], "height": logo["height"]}


def _postal_address(place: JSONObject) -> JSONObject:
    names = {
        "streetAddress": "address_1",
        "addressLocality": "city",
        "addressRegion": "state",
        "postalCode": "zip",
        "addressCountry": "country",
    }
    described = {"@type": "PostalAddress"}
    for theirs, ours in names.items():
        if place.get(ours):
            described[theirs] = place[ours]
    return described


def profile_of_person(person: JSONObject, base: str) -> JSONObject:
    """Describe a person in the schema.org vocabulary."""
    positions = person.get("positions") or []
    page = f"{base}/people/{quote(person['slug'])}"
    roles = []
    for position in positions[:POSITIONS_DESCRIBED]:
        company = position.get("company")
        if company:
            company_page = f"{base}/companies/{quote(company.get('slug') or company['id'])}"
            organization = {"@type": "Organization", "name": company["name"], "url": company_page}
            role = {"@type": "OrganizationRole", "roleName": position.get("title", ""), "worksFor": organization}
            roles.append(role)
    profile = {
        "@context": "https://schema.org",
        "@type": "Person",
        "@id": page,
        "name": person["name"],
        "description": person.get("bio"),
        "worksFor": roles,
        "subjectOf": _whole_list(f"{page}/positions", len(positions)),
    }
    return {name: value for name, value in profile.items() if value}
