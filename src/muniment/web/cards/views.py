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

    def said() -> tuple[JSONObject, object]:
        card = registry_card(applied.registry_name(), msgspec.json.decode(stats.body)["data"], settings.texts)
        return card, settings.brand.mark

    return _drawn(request, "registry", f"{stats.etag} {settings.texts}", said)


def company_picture(request: HttpRequest, slug: str) -> HttpResponse:
    """Draw the card of a company."""
    return _picture(request, "company", slug, _of_company)


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

    def said(bundle: JSONObject) -> tuple[JSONObject, object]:
        company = bundle["company"]
        return assessment_card(company, _score(company, framework_id)), company.get("logo")

    return _picture(request, "company", slug, said, framework_id)


def _of_company(bundle: JSONObject) -> tuple[JSONObject, object]:
    return company_card(bundle), bundle["company"].get("logo")


def _picture(
    request: HttpRequest, kind: str, key: str, said: Callable[[JSONObject], tuple[JSONObject, object]], part: str = ""
) -> HttpResponse:
    """
    Return the card of a published document.

    Args:
        said: returns what the card says of the document, and its logo.
        part: tells several cards of one document apart.
    """
    reader().refresh()
    found = document(kind, key)
    return _drawn(request, f"{kind} {key}/{part}", found.etag, lambda: said(msgspec.json.decode(found.body)["data"]))


def _drawn(
    request: HttpRequest, what: str, version: str, said: Callable[[], tuple[JSONObject, object]]
) -> HttpResponse:
    """
    Return the picture of a card.

    Args:
        what: the name of the card.
        version: changes with what it says.
        said: returns what it says, and its logo.
    """
    base, name, brand = address(request), applied.registry_name(), applied.current().brand
    made = digest(f"{DESIGN} {version} {base} {name}{_spoken()} {brand.accent}{brand.mark}".encode())
    headers = {"ETag": etag(made.encode(), b"").decode(), "Cache-Control": KEPT}
    if is_known(made.encode(), request.headers.get("If-None-Match", "").encode()):
        return HttpResponse(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    with speaking(default()):
        card, logo = said()
    card |= {"site": name, "host": urlsplit(base).netloc, "logo": _logo(logo)}
    card |= {"accent": accents(applied.current())[0], "has_own_mark": bool(brand.mark)}
    client = rate_key(request.META.get("REMOTE_ADDR", ""))
    drawn = card_picture(f"{base} {what}", made, card, client)
    return HttpResponse(drawn, content_type="image/png", headers=headers)


def _spoken() -> str:
    """Return the language of cards if it is not that of the code, so that a card is another one in another language."""
    return "" if default() == SOURCE else f" {default()}"


def _score(company: JSONObject, framework_id: str) -> JSONObject:
    found = next((each for each in scores.assessments(company) if each["frameworkId"] == framework_id), None)
    if found is None:
        raise NotFound(gettext("This score is not published."), gettext("Its owners may have withdrawn it."))
    return found


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
    found = {
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
    return JsonResponse(found, headers={"Access-Control-Allow-Origin": "*"})


def _slug_of(url: str, base: str) -> str:
    """Return the slug that an address of this instance names; raise NotFound for any other."""
    try:
        asked, here = urlsplit(url), urlsplit(base)
    except ValueError:
        asked = here = urlsplit("")
    parts = unquote(asked.path).strip("/").split("/")
    if not asked.netloc or asked.netloc.lower() != here.netloc.lower() or len(parts) != 2 or parts[0] != "companies":
        raise NotFound(gettext("This is not the address of a company here."), gettext("Check the url parameter."))
    return parts[1]


def _fitting(request: HttpRequest, name: str, size: int) -> int:
    asked = request.GET.get(name, "")
    return min(size, int(asked)) if asked.isascii() and asked.isdecimal() and len(asked) < 6 and int(asked) else size


def company_card(bundle: JSONObject) -> JSONObject:
    """Return what the card of a company says, without its logo and the registry."""
    company = bundle["company"]
    people = len(company_lists.team_of(bundle.get("positions") or [])) or company.get("teamSize") or 0
    proposals = len(bundle.get("proposals") or [])
    facts = [
        (writing.amount(company.get("treasury") or ""), company.get(TREASURY_NOTE) or gettext("treasury")),
        (number(people) if people else "", ngettext("person", "people", people)),
        (number(proposals) if proposals else "", ngettext("proposal", "proposals", proposals)),
        (company.get("symbol"), gettext("token")),
    ]
    return {
        **_company(company),
        "above": _joined(label(company.get("type") or ""), label(company.get("industry") or "")),
        "summary": _summary(company.get("description") or _prose(company.get("body") or "")),
        "facts": [each for each in facts if each[0]],
    }


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
    held = company_lists.organizations_of(positions)
    names = dict.fromkeys(each.company.get("name") for each in held)
    facts = [
        (len(held), ngettext("organization", "organizations", len(held))),
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
    facts = [
        (state, gettext("status")),
        (number(scores) if scores else "", ngettext("published score", "published scores", scores)),
    ]
    return {
        **_named(framework["frameworkName"], "frameworks", framework["frameworkId"]),
        "above": _joined(kind, (framework.get("company") or {}).get("name")),
        "summary": _summary(framework["description"]),
        "facts": [each for each in facts if each[0]],
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
    return "" if text.lstrip().startswith(("#", "-", "*", "|", "<")) else text


def _summary(text: str | None) -> str:
    return markdown.plain(text or "", SUMMARY_CHARACTERS)
