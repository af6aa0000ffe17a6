"""A framework's specification by form: sections, criteria, levels; with a preview of the report."""

import json
import re
from functools import cache
from importlib import resources
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment.assessments.evaluation.preview import preview_report
from muniment.assessments.operations import facts_of
from muniment.assessments.report_views import STATUSES
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.languages.translated import translated
from muniment.languages.writing import digits
from muniment.registry.company.changes import BadFields
from muniment.registry.frameworks import authoring
from muniment.registry.frameworks.specification import SOURCES, faults_of
from muniment.registry.models import Company, Framework, FrameworkSpecification, State
from muniment.web.authoring.specification_form import (
    EMPTY,
    EVALUATOR_WORDS,
    REPORT_WORDS,
    CriterionFields,
    SectionFields,
    SpecificationFields,
    document_of,
    fields_of,
    typed_fields,
    with_scale,
)
from muniment.web.presenters import reports
from muniment.web.presenters.charts import ChartSlice, bar
from muniment.web.requests.access import actor_of, reviewer
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page, show_problem
from muniment.web.views.review import specification_parts

_EDIT: Final = re.compile(r"(add|remove|up)-(band|section|criterion)(?::([0-9]{1,4})(?:\.([0-9]{1,4}))?)?")
_PLACE: Final = re.compile(r"sections\[([0-9]+)\](?:\.criteria\[([0-9]+)\])?")


@reviewer()
@once
def specification(request: HttpRequest, framework_id: str) -> HttpResponse:
    """Show a specification as a form; add and move its parts, preview the report, publish the next version."""
    framework = Framework.objects.filter(slug=framework_id).select_related("company").first()
    if framework is None:
        raise NotFound(gettext("This framework doesn't exist."), gettext("All frameworks are at /review/frameworks."))
    if _is_by_section(request, framework):
        return specification_parts.edit(request, framework, _preview)
    if request.method != "POST":
        current = authoring.current_specification(framework_id)
        stored = current.document if current else EMPTY
        return _page(request, framework, fields_of(stored), current.version if current else 0)
    return _changed(request, framework)


def _changed(request: HttpRequest, framework: Framework) -> HttpResponse:
    """Answer the submitted form of a whole specification."""
    framework_id = framework.slug
    version, stored = _opened_with(request, framework)
    fields, do = typed_fields(request.POST), request.POST.get("do", "")
    if match := _EDIT.fullmatch(do):
        _edit(fields, *match.groups())
        if fields.is_large:
            document = document_of(fields, stored)
            authoring.save_draft(actor_of(request), framework, document, version=version, revision=0)
            messages.info(request, gettext("The specification is edited by section from here on."))
            return HttpResponseRedirect(f"/review/frameworks/{framework_id}/specification")
        return _page(request, framework, fields, version)
    document = document_of(fields, stored)
    faults = faults_of(document)
    if faults or do != "publish":
        shown = None if faults else _preview(request, document)
        return _page(request, framework, fields, version, faults=faults, preview=shown)
    try:
        made = authoring.author_framework(actor_of(request), framework_id, document, expected_version=version)
    except (BadFields, Conflict) as refusal:
        show_problem(request, refusal)
        return _page(request, framework, fields, version)
    messages.success(request, gettext("Version %(number)s published.") % {"number": made.version})
    return HttpResponseRedirect(f"/review/frameworks/{framework_id}")


def _is_by_section(request: HttpRequest, framework: Framework) -> bool:
    """Return whether the specification is too large for one form, or has a draft because it was."""
    if authoring.find_draft(actor_of(request), framework) is not None:
        return True
    if request.method == "POST" and "version" in request.POST:
        return False  # the form of the whole
    current = authoring.current_specification(framework.slug)
    return current is not None and fields_of(current.document).is_large


def _opened_with(request: HttpRequest, framework: Framework) -> tuple[int, JSONObject]:
    """Return the version that the form was opened with, and its document; versions never change."""
    text = request.POST.get("version", "")
    version = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if version == 0:
        return 0, dict(EMPTY)
    found = FrameworkSpecification.objects.filter(framework=framework, version=version).first()
    if found is None:
        raise BadRequest(gettext("The form has no version."), gettext("Open the form again."))
    return version, found.document


def _edit(fields: SpecificationFields, act: str, part: str, first: str | None, second: str | None) -> None:
    """Add, remove or move up a band, a section or a criterion; a place that is not there changes nothing."""
    rows: list[Any] = fields.bands if part == "band" else fields.sections
    place = first
    if part == "criterion":
        if first is None or int(first) >= len(fields.sections):
            return
        rows, place = fields.sections[int(first)].criteria, second
    if act == "add":
        rows.append(_new(fields, part))
    elif place is not None and int(place) < len(rows):
        row = rows.pop(int(place))
        if act == "up":
            rows.insert(max(0, int(place) - 1), row)


def _new(fields: SpecificationFields, part: str) -> Any:
    if part == "band":
        return ("", "", "")
    criterion = CriterionFields(levels=with_scale({}, fields.scale_min, fields.scale_max))
    return SectionFields(criteria=[criterion]) if part == "section" else criterion


def _preview(request: HttpRequest, document: JSONObject) -> JSONObject:
    """Return the report about the listing that the reviewer chose, or the demo listing."""
    slug = request.POST.get("listing", "").strip()[:200]
    company = Company.objects.filter(slug=slug, state=State.PUBLISHED).first() if slug else None
    if slug and company is None:
        refusal = NotFound(gettext("There is no such listing."), gettext("The preview shows the demo listing."))
        show_problem(request, refusal)
    facts = facts_of(company.slug) if company else _demo_listing()
    found = preview_report(document, facts, currency=settings.CURRENCY)
    sections = [{**each, "criteria": list(map(_judged, each["criteria"]))} for each in found["sections"]]
    scores = [
        ChartSlice(each["title"], each["score"], digits(f"{each['score']:g}"))
        for each in sections
        if each["score"] is not None
    ]
    title, described = gettext("Score by section"), gettext("Each section's score out of 100.")
    return {
        "about": facts["company"]["name"],
        "overall": found["overall"],
        "sections": sections,
        "scores": bar(title, described, scores, unit=gettext("Score"), of=100),
    }


def _judged(criterion: JSONMapping) -> JSONObject:
    status = criterion["status"]
    return {**criterion, "word": gettext(STATUSES[status]), "tone": reports.TONES.get(status, "")}


@cache
def _demo_listing() -> JSONMapping:
    """Return the first listing of the demo registry, which is fictional."""
    lines = resources.files("muniment.demo").joinpath("companies.jsonl").read_text("utf-8")
    found: JSONObject = json.loads(lines.partition("\n")[0])
    return found


def _page(
    request: HttpRequest,
    framework: Framework,
    fields: SpecificationFields,
    version: int,
    *,
    faults: list[tuple[str, str]] | None = None,
    preview: JSONObject | None = None,
) -> HttpResponse:
    context = {
        "tab": "frameworks",
        "framework": framework,
        "fields": fields,
        "version": version,
        "faults": [{"path": path, "reason": translated(why), "anchor": _anchor(path)} for path, why in faults or []],
        "faulty": {_anchor(path) for path, _ in faults or []},
        "preview": preview,
        "listing": request.POST.get("listing", ""),
        "sources": [(name, str(reports.SOURCES[name])) for name in SOURCES],
        "evaluators": EVALUATOR_WORDS.items(),
        "report_words": REPORT_WORDS,
        "crumbs": [
            (gettext("Frameworks"), "/review/frameworks"),
            (framework.name, f"/review/frameworks/{framework.slug}"),
            (gettext("Specification"), ""),
        ],
    }
    return manage_page(request, "review/specification.html", context, status=422 if faults else 0)


def _anchor(path: str) -> str:
    """Return the part of the form that a fault is in."""
    found = _PLACE.match(path)
    if found is None:
        return "general"
    return f"s.{found[1]}" if found[2] is None else f"s.{found[1]}.c.{found[2]}"
