"""The text of a card."""

from itertools import islice
from typing import Any
from urllib.parse import quote

from django.utils.translation import gettext, ngettext

from muniment.kernel.json import JSONObject
from muniment.languages.writing import number
from muniment.registry_toml.document import Texts
from muniment.web.presenters import company_lists, markdown
from muniment.web.presenters.monograms import colour, initials
from muniment.web.wording.labels import label

SUMMARY_CHARACTERS = 220
NAME_CHARACTERS = 200
NAMES_SHOWN = 3
"""Maximum number of organizations of a person that a card names."""


def company_card(bundle: JSONObject) -> JSONObject:
    """Return what the card of a company says, without its logo and the registry."""
    company = bundle["company"]
    people = len(company_lists.team_of(bundle.get("positions") or [])) or company.get("teamSize") or 0
    proposals = len(bundle.get("proposals") or [])
    facts = [
        (company.get("treasury"), gettext("treasury")),
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
    heading = texts.heading or gettext("The verified record of companies, DAOs and the people behind them")
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
