"""The page of a framework: what it assesses, who runs it, and the scores that companies have published."""

import bisect
from typing import Final
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.web.context import address
from muniment.web.presenters import company_lists, markdown, scores
from muniment.web.presenters import company_lists as lists
from muniment.web.presenters.company import day, day_or_text, fact, further_fields
from muniment.web.presenters.frameworks import FrameworkItem, frameworks_of, natural
from muniment.web.requests.page_cache import published, reader
from muniment.web.views.public.documents import document

OTHERS_SHOWN: Final = 6
DESCRIPTION_CHARACTERS: Final = 1_600


@published(daily=True)
def framework(request: HttpRequest, framework_id: str) -> HttpResponse:
    """Show one framework, the company behind it, and its league table."""
    facts = msgspec.json.decode(document("framework", framework_id).body)["data"]
    organization = facts.get("company") or {}
    others = _others(framework_id, organization.get("slug") or "")
    others_address = ""
    if len(others) > OTHERS_SHOWN:
        others_address = f"/frameworks?company={quote(organization['slug'])}"
    described = []
    if facts["description"]:
        described = lists.parts_of(facts["description"], DESCRIPTION_CHARACTERS)
    context = {
        "room": "frameworks",
        "crumbs": [(gettext("Frameworks"), "/frameworks"), (facts["frameworkName"], "")],
        "framework": {"scoreCount": 0, **facts},
        "facts": framework_facts(facts),
        "described": described,
        "standing": standing_of(facts),
        "scores": scores.ranked(facts.get("topScores") or (), framework_id),
        "others": _near(others, facts["frameworkName"]),
        "others_address": others_address,
        "further": further_fields(facts, settings.SCHEMA.framework),
        "summary": markdown.plain(facts["description"], 200),
        "canonical": f"{address(request)}/frameworks/{quote(framework_id)}",
    }
    return TemplateResponse(request, "registry/framework.html", context)


def _others(framework_id: str, organization: str) -> list[FrameworkItem]:
    """Return other frameworks of the same organization by name, at most a page of them."""
    if not organization:
        return []
    frameworks = frameworks_of(reader(), organization)
    return [framework for framework in frameworks if framework.framework_id != framework_id]


def _near(others: list[FrameworkItem], name: str) -> list[FrameworkItem]:
    """Return those whose names are next to *name*: a tenth part is next to the ninth."""
    place = bisect.bisect(others, natural(name), key=lambda other: natural(other.framework_name))
    start = max(0, min(place - OTHERS_SHOWN // 2, len(others) - OTHERS_SHOWN))
    return others[start : start + OTHERS_SHOWN]


def framework_facts(framework: JSONObject) -> list[JSONObject]:
    """Return the facts of a framework."""
    kinds = {"score": gettext("Score, for any company"), "program": gettext("Program, for applicants")}
    status = gettext("Open") if framework["isOpen"] else gettext("Not open")
    updated = day(framework["updatedAt"]) if framework.get("updatedAt") else ""
    facts = [
        (gettext("Kind"), kinds.get(framework["kind"], framework["kind"])),
        (gettext("Status"), status),
        (gettext("Opens"), day_or_text(framework.get("opensOn"))),
        (gettext("Closes"), day_or_text(framework.get("closesOn"))),
        (gettext("Updated"), updated),
    ]
    return [fact(label, value) for label, value in facts if value]


def standing_of(framework: JSONObject) -> str:
    """Return what the days of a program say today, in UTC; empty if they say nothing."""
    opens, closes, today = framework.get("opensOn") or "", framework.get("closesOn") or "", company_lists.today()
    if closes and closes < today:
        return gettext("Applications closed on %(day)s.") % {"day": day_or_text(closes)}
    if opens > today:
        return gettext("Applications open on %(day)s.") % {"day": day_or_text(opens)}
    if closes:
        return gettext("Applications close on %(day)s.") % {"day": day_or_text(closes)}
    return ""
