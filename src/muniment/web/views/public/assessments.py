"""The public pages of assessments: what a company has published, the scores of a framework, and badges."""

from typing import Final
from urllib.parse import quote

import msgspec
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.problems import NotFound
from muniment.kernel.wire import summary_path
from muniment.languages.writing import digits
from muniment.web.context import address, proof_address
from muniment.web.lists.search import for_spreadsheets, joined
from muniment.web.presenters import company_lists as lists
from muniment.web.presenters import scores
from muniment.web.presenters.company import day
from muniment.web.requests.page_cache import published, reader
from muniment.web.views.public.company_lists import parts_of
from muniment.web.views.public.documents import bundle_of, document

ASSESSMENTS: Final = 50
SCORES: Final = 100


@published("page")
def of_company(request: HttpRequest, slug: str) -> HttpResponse:
    """Show all scores that a company has published."""
    bundle = bundle_of(slug)
    company, home = bundle["company"], _home(bundle["company"])
    page = lists.cut(scores.assessments(company), request.GET.get("page", ""), ASSESSMENTS)
    title = gettext("Assessments")
    context = {
        **_frame(request, company, home, [(title, "")]),
        "part_title": title,
        "parts": parts_of(bundle, home, "assessments"),
        "assessments": page.items,
        "pager": lists.pager(request.path, page),
        "canonical": address(request) + lists.address_of(request.path, page.page),
    }
    return TemplateResponse(request, "company/assessments.html", context)


@published()
def summary(request: HttpRequest, slug: str, framework_id: str) -> HttpResponse:
    """Show what a company has published of its report by one framework."""
    company, home = _company(slug)
    found = _assessment(company, framework_id)
    name = found["frameworkName"]
    framework = reader().document("framework", framework_id)
    facts = msgspec.json.decode(framework.body)["data"] if framework else {}
    evaluators = {
        "model": gettext("Rules and a language model"),
        "plugin": gettext("An evaluator of this registry"),
    }
    evaluator = evaluators.get(found["evaluator"], gettext("Fixed rules, no language model"))
    framework_address = f"/frameworks/{quote(framework_id, safe='')}"
    shown = [
        (gettext("Framework"), name, framework_address),
        (gettext("Version"), found["specificationVersion"], ""),
        (gettext("Assessed"), found["day"], ""),
        (gettext("Method"), evaluator, ""),
    ]
    if found.get("previousAssessedAt"):
        before = gettext("%(score)s on %(day)s") % {
            "score": digits(f"{found['previousScore']:g}"),
            "day": day(found["previousAssessedAt"]),
        }
        shown.append((gettext("Score before"), before, ""))
    left, right = scores.badge_text(name, found["score"], found["grade"])
    words = gettext("Score of %(company)s by %(framework)s: %(score)s of 100.")
    context = {
        **_frame(request, company, home, [(gettext("Assessments"), f"{home}/assessments"), (name, "")]),
        "found": found,
        "framework": facts,
        "framework_address": framework_address,
        "facts": [{"label": label, "value": value, "address": to} for label, value, to in shown],
        "chart": scores.sections_chart(found.get("sections") or ()),
        "embed": scores.embed(address(request), slug, framework_id, f"{left}: {right}"),
        "summary": words % {"company": company["name"], "framework": name, "score": found["value"]},
        "canonical": address(request) + summary_path(slug, framework_id),
    }
    return TemplateResponse(request, "company/assessment.html", context)


@published(speaks=False)
def badge(request: HttpRequest, slug: str, framework_id: str) -> HttpResponse:
    """Draw the published score of a company by one framework."""
    company, _ = _company(slug)
    found = _assessment(company, framework_id)
    text = scores.badge_text(found["frameworkName"], found["score"], found["grade"])
    picture = scores.badge(*text, proof_address(request, "company", slug))
    return HttpResponse(picture, content_type="image/svg+xml; charset=utf-8")


@published("page")
def of_framework(request: HttpRequest, framework_id: str) -> HttpResponse:
    """Show the published scores of a framework, the best first."""
    framework = msgspec.json.decode(document("framework", framework_id).body)["data"]
    total = framework.get("scoreCount") or 0
    asked = request.GET.get("page", "")
    number = lists.cut(range(total), asked, SCORES).page
    found = reader().scores(framework_id, number, SCORES)
    page: Page[bytes] = Page(found.items, number, SCORES, found.total)
    home = f"/frameworks/{quote(framework_id, safe='')}"
    title = gettext("Published scores")
    csv_address = joined(f"/api/v1{home}/scores", for_spreadsheets()) if found.total else ""
    context = {
        "room": "frameworks",
        "framework": framework,
        "home": home,
        "part_title": title,
        "total": found.total,
        "scores": scores.ranked(map(msgspec.json.decode, found.items), framework_id),
        "pager": lists.pager(request.path, page),
        "csv_address": csv_address,
        "crumbs": [(gettext("Frameworks"), "/frameworks"), (framework["frameworkName"], home), (title, "")],
        "canonical": address(request) + lists.address_of(request.path, number),
    }
    return TemplateResponse(request, "registry/scores.html", context)


def _company(slug: str) -> tuple[JSONObject, str]:
    company: JSONObject = bundle_of(slug)["company"]
    return company, _home(company)


def _home(company: JSONObject) -> str:
    return f"/companies/{quote(company['id'])}"


def _assessment(company: JSONObject, framework_id: str) -> JSONObject:
    """Return a published score; raise NotFound if there is none."""
    for score in scores.assessments(company):
        if score["frameworkId"] == framework_id:
            return score
    message = gettext("%(name)s has not published a score for this framework.") % {"name": company["name"]}
    raise NotFound(message, gettext("Its owners may have withdrawn it."))


def _frame(request: HttpRequest, company: JSONObject, home: str, here: list[tuple[str, str]]) -> JSONObject:
    return {
        "room": "companies",
        "company": company,
        "home": home,
        "crumbs": [(gettext("Companies"), "/companies"), (company["name"], home), *here],
        "canonical": address(request) + request.path,
    }
