"""Cards for other sites: what they say, as a picture, as a frame, and by oEmbed."""

import base64
from collections.abc import Callable
from html import escape
from http import HTTPStatus
from itertools import islice
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import msgspec
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext, ngettext

from muniment.kernel.http.addresses import rate_key
from muniment.kernel.http.representations import digest, etag, is_known
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import NotFound, Unavailable
from muniment.kernel.wire import PICTURE_PATH
from muniment.languages import writing
from muniment.languages.catalogues import SOURCE
from muniment.languages.offered import default
from muniment.languages.speaking import speaking
from muniment.languages.writing import number
from muniment.registry.company import pictures
from muniment.registry.company.redrawing import SMALL
from muniment.registry_toml import applied
from muniment.registry_toml.document import Texts
from muniment.schema.company import TREASURY_NOTE
from muniment.web.branding import accents
from muniment.web.cards import drawing
from muniment.web.cards.renderer import card_picture
from muniment.web.context import address, own_address
from muniment.web.presenters import company_lists, markdown, scores
from muniment.web.presenters.marks import colour, initials
from muniment.web.requests.page_cache import published, reader
from muniment.web.requests.pagination import whole_number
from muniment.web.requests.security_headers import POLICY
from muniment.web.views.public.documents import document
from muniment.web.wording.labels import label

DESIGN: Final = "4"
"""Changes with the look of cards, so that kept ones are drawn again."""
KEPT: Final = "public, max-age=3600"
FRAME_WIDTH, FRAME_HEIGHT = 480, 210
FRAMED: Final = POLICY.replace("frame-ancestors 'none'", "frame-ancestors *").replace("script-src 'self'; ", "")


SUMMARY_CHARACTERS = 220
NAME_CHARACTERS = 200
NAMES_SHOWN = 3
"""Maximum number of organizations of a person that a card names."""


def registry_picture(request: HttpRequest) -> HttpResponse:
    """Draw the card of the registry, for pages that have none of their own."""
    source = reader()
    source.refresh()
    settings, stats = applied.current(), source.stats()

    def content() -> tuple[JSONObject, object]:
        card = registry_card(applied.registry_name(), msgspec.json.decode(stats.body)["data"], settings.texts)
        return card, settings.brand.mark

    return _drawn(request, "registry", f"{stats.etag} {settings.texts}", content)


def company_picture(request: HttpRequest, slug: str) -> HttpResponse:
    """Draw the card of a company."""
    return _picture(request, "company", slug, lambda bundle: (company_card(bundle), bundle["company"].get("logo")))


def person_picture(request: HttpRequest, slug: str) -> HttpResponse:
    """Draw the card of a person."""
    return _picture(request, "person", slug, lambda person: (person_card(person), person.get("picture")))


def framework_picture(request: HttpRequest, framework_id: str) -> HttpResponse:
    """Draw the card of a framework, with the logo of its organization."""
    return _picture(
        request,
        "framework",
        framework_id,
        lambda framework: (framework_card(framework), (framework.get("company") or {}).get("logo")),
    )


def assessment_picture(request: HttpRequest, slug: str, framework_id: str) -> HttpResponse:
    """Draw the card of a published report."""

    def content(bundle: JSONObject) -> tuple[JSONObject, object]:
        company = bundle["company"]
        return assessment_card(company, _score(company, framework_id)), company.get("logo")

    return _picture(request, "company", slug, content, framework_id)


def _picture(
    request: HttpRequest,
    kind: str,
    key: str,
    content: Callable[[JSONObject], tuple[JSONObject, object]],
    part: str = "",
) -> HttpResponse:
    """
    Return the card of a published document.

    Args:
        content: returns what the card says of the document, and its logo.
        part: tells several cards of one document apart.
    """
    reader().refresh()
    found = document(kind, key)
    name = f"{kind} {key}/{part}"
    return _drawn(request, name, found.etag, lambda: content(msgspec.json.decode(found.body)["data"]))


def _drawn(
    request: HttpRequest, card_name: str, version: str, content: Callable[[], tuple[JSONObject, object]]
) -> HttpResponse:
    """
    Return the picture of a card.

    Args:
        card_name: tells cards apart.
        version: changes with the content.
        content: returns what the card says, and its logo; not called if the client has the picture.
    """
    base, name, brand = address(request), applied.registry_name(), applied.current().brand
    # A card is another picture in another language.
    language = "" if default() == SOURCE else f" {default()}"
    drawing_key = digest(f"{DESIGN} {version} {base} {name}{language} {brand.accent}{brand.mark}".encode())
    headers = {"ETag": etag(drawing_key.encode(), b"").decode(), "Cache-Control": KEPT}
    if is_known(drawing_key.encode(), request.headers.get("If-None-Match", "").encode()):
        return HttpResponse(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    with speaking(default()):
        card, logo = content()
    card |= {"site": name, "host": urlsplit(base).netloc, "logo": _logo(logo)}
    card |= {"accent": accents(applied.current())[0], "has_own_mark": bool(brand.mark)}
    client = rate_key(request.META.get("REMOTE_ADDR", ""))
    picture = card_picture(f"{base} {card_name}", drawing_key, card, client)
    return HttpResponse(picture, content_type="image/png", headers=headers)


def _score(company: JSONObject, framework_id: str) -> JSONObject:
    for score in scores.assessments(company):
        if score["frameworkId"] == framework_id:
            return score
    raise NotFound(gettext("This score is not published."), gettext("Its owners may have withdrawn it."))


def _logo(logo: object) -> str:
    """Return the hosted logo or picture in base64; empty if there is none, or the database with it is away."""
    match = PICTURE_PATH.fullmatch(own_address(logo))
    if match is None:
        return ""
    try:
        content = pictures.picture_bytes(match["digest"], SMALL)
    except (DatabaseError, InterfaceError, Unavailable):
        return ""
    return base64.b64encode(content).decode() if content else ""


@published()
def company_frame(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the card of a company as a page that other sites may put into a frame."""
    bundle: JSONObject = msgspec.json.decode(document("company", slug).body)["data"]
    card = company_card(bundle)
    context = {"card": card, "company": bundle["company"], "home": f"{address(request)}{card['address']}"}
    response = TemplateResponse(request, "company/embedded.html", context)
    response["Content-Security-Policy"] = FRAMED
    response["X-Frame-Options"] = "ALLOWALL"
    response["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return response


@published("url", "maxwidth", "maxheight", "format", speaks=False)
def oembed(request: HttpRequest) -> HttpResponse:
    """
    Describe how to embed the page of a company, as oEmbed 1.0.

    Source: https://oembed.com, sections 2.2 and 2.3.
    """
    if request.GET.get("format", "json") != "json":
        return HttpResponse("Only json is available.", status=HTTPStatus.NOT_IMPLEMENTED, content_type="text/plain")
    slug = _slug_of(request.GET.get("url", "")[:2_000], address(request))
    company = msgspec.json.decode(document("company", slug).body)["data"]["company"]
    base, name = address(request), applied.registry_name()
    home = f"{base}/companies/{slug}"
    width, height = _fitting(request, "maxwidth", FRAME_WIDTH), _fitting(request, "maxheight", FRAME_HEIGHT)
    frame = (
        f'<iframe src="{home}/embed" width="{width}" height="{height}" title="{escape(company["name"])}"'
        ' loading="lazy" sandbox="allow-popups allow-popups-to-escape-sandbox" style="border:0"></iframe>'
    )
    answer = {
        "version": "1.0",
        "type": "rich",
        "provider_name": name,
        "provider_url": base,
        "title": company["name"],
        "html": frame,
        "width": width,
        "height": height,
        "cache_age": 3_600,
        "thumbnail_url": f"{home}/card.png",
        "thumbnail_width": drawing.DRAWN_WIDTH,
        "thumbnail_height": drawing.DRAWN_HEIGHT,
    }
    return JsonResponse(answer, headers={"Access-Control-Allow-Origin": "*"})


def _slug_of(url: str, base: str) -> str:
    """Return the slug that an address of this instance names; raise NotFound for any other."""
    try:
        page = urlsplit(url)
    except ValueError:
        page = urlsplit("")
    is_here = bool(page.netloc) and page.netloc.lower() == urlsplit(base).netloc.lower()
    parts = unquote(page.path).strip("/").split("/")
    if not is_here or len(parts) != 2 or parts[0] != "companies":
        raise NotFound(gettext("This is not the address of a company here."), gettext("Check the url parameter."))
    return parts[1]


def _fitting(request: HttpRequest, name: str, size: int) -> int:
    """Return the usual size, or a smaller one that the site asks for; anything that is no size counts as none."""
    return min(size, whole_number(request.GET.get(name, ""), 5) or size)


def company_card(bundle: JSONObject) -> JSONObject:
    """Return what the card of a company says, without its logo and the registry."""
    company = bundle["company"]
    return {
        **_company(company),
        "above": _joined(label(company.get("type") or ""), label(company.get("industry") or "")),
        "summary": _summary(company.get("description") or _prose(company.get("body") or "")),
        "facts": _facts(bundle),
    }


def _facts(bundle: JSONObject) -> list[tuple[str, str]]:
    """Return the figures of a company with their labels."""
    company = bundle["company"]
    people = len(company_lists.team_of(bundle.get("positions") or [])) or company.get("teamSize") or 0
    proposals = len(bundle.get("proposals") or [])
    facts = []
    if company.get("treasury"):
        facts.append((writing.amount(company["treasury"]), company.get(TREASURY_NOTE) or gettext("treasury")))
    if people:
        facts.append((number(people), ngettext("person", "people", people)))
    if proposals:
        facts.append((number(proposals), ngettext("proposal", "proposals", proposals)))
    if company.get("symbol"):
        facts.append((company["symbol"], gettext("token")))
    return facts


def registry_card(name: str, stats: JSONObject, texts: Texts) -> JSONObject:
    """Return what the card of the registry says, without its mark."""
    counted = [
        (stats["total"], ngettext("company", "companies", stats["total"])),
        (stats["founders"], ngettext("person", "people", stats["founders"])),
        (stats["frameworks"], ngettext("framework", "frameworks", stats["frameworks"])),
    ]
    heading = texts.heading or gettext("A public record of organizations and the people behind them")
    return {
        "name": name[:NAME_CHARACTERS],
        "address": "/",
        "above": texts.tagline or gettext("Public registry"),
        "summary": _summary(heading),
        "facts": [(number(value), label) for value, label in counted if value],
    }


def person_card(person: JSONObject) -> JSONObject:
    """Return what the card of a person says, without its picture and the registry."""
    positions = person.get("positions") or []
    organizations = company_lists.organizations_of(positions)
    names = dict.fromkeys(organization.company.get("name") for organization in organizations)
    facts = [
        (len(organizations), ngettext("organization", "organizations", len(organizations))),
        (len(positions), ngettext("position", "positions", len(positions))),
    ]
    return {
        **_named(person["name"], "people", person["slug"]),
        "letters": initials(person["name"], is_person=True),
        "above": _joined(*islice(names, NAMES_SHOWN)),
        "summary": _summary(person.get("bio")),
        "facts": [(number(value), label) for value, label in facts if value],
    }


def framework_card(framework: JSONObject) -> JSONObject:
    """Return what the card of a framework says, without the logo of its organization and the registry."""
    kind = gettext("Program") if framework["kind"] == "program" else gettext("Scoring framework")
    scores = framework.get("scoreCount") or 0
    state = gettext("Open") if framework["isOpen"] else gettext("Not open")
    facts = [(state, gettext("status"))]
    if scores:
        facts.append((number(scores), ngettext("published score", "published scores", scores)))
    return {
        **_named(framework["frameworkName"], "frameworks", framework["frameworkId"]),
        "above": _joined(kind, (framework.get("company") or {}).get("name")),
        "summary": _summary(framework["description"]),
        "facts": facts,
    }


def assessment_card(company: JSONObject, assessment: JSONObject) -> JSONObject:
    """Return what the card of a published report says."""
    facts: list[tuple[Any, str]] = [(f"{assessment['score']:g}", gettext("of 100"))]
    if assessment.get("grade"):
        facts.append((assessment["grade"], gettext("grade")))
    return {
        **_company(company),
        "above": gettext("Assessment"),
        "summary": assessment["frameworkName"],
        "facts": facts,
    }


def _company(company: JSONObject) -> JSONObject:
    return _named(company["name"], "companies", company["id"])


def _named(name: str, room: str, key: str) -> JSONObject:
    name = name[:NAME_CHARACTERS]
    address = f"/{room}/{quote(key, safe='')}"
    return {"name": name, "address": address, "letters": initials(name), "colour": colour(key)}


def _joined(*parts: str | None) -> str:
    return " · ".join(filter(None, parts))


def _prose(text: str) -> str:
    """Return a text that begins with a sentence; nothing for one that is lists below headings."""
    if text.lstrip().startswith(("#", "-", "*", "|", "<")):
        return ""
    return text


def _summary(text: str | None) -> str:
    return markdown.plain(text or "", SUMMARY_CHARACTERS)
