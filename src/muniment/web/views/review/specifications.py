"""
A framework's specification by form: sections, criteria, levels; with a preview of the report.

One that is too large for a form is edited by section. Each step is stored in the reviewer's draft: a page holds one
part of it, and nothing is published before the end.
"""

import json
import re
from copy import deepcopy
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
from muniment.kernel.problems import BadRequest, Conflict, NotFound, Problem
from muniment.languages.translated import translated
from muniment.languages.writing import digits
from muniment.registry.company.changes import BadFields
from muniment.registry.frameworks import authoring
from muniment.registry.frameworks.specification import SOURCES, faults_of
from muniment.registry.models import Company, Framework, FrameworkSpecification, SpecificationDraft, State
from muniment.web.authoring.specification_form import (
    EMPTY,
    EVALUATOR_WORDS,
    MAX_CRITERIA,
    REPORT_WORDS,
    CriterionFields,
    SectionFields,
    SpecificationFields,
    document_of,
    fields_of,
    new_criterion,
    new_section,
    part_of,
    typed_fields,
    with_general,
    with_part,
    with_scale,
)
from muniment.web.presenters import company_lists as lists
from muniment.web.presenters import reports
from muniment.web.presenters.charts import ChartSlice, bar
from muniment.web.requests.access import actor_of, reviewer
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page, show_problem

_EDIT: Final = re.compile(r"(add|remove|up)-(band|section|criterion)(?::([0-9]{1,4})(?:\.([0-9]{1,4}))?)?")
_PLACE: Final = re.compile(r"sections\[([0-9]+)\](?:\.criteria\[([0-9]+)\])?")
SECTIONS_SHOWN: Final = 50
FAULTS_SHOWN: Final = 20
CRITERIA_PREVIEWED: Final = 100
SHOWING_FAULTS: Final = {"preview", "publish"}
"""Buttons that need a valid document: after them, the page shows its faults."""
_MOVE: Final = re.compile(r"(remove|up)-(band|section|criterion):([0-9]{1,5})")


@reviewer()
@once
def specification(request: HttpRequest, framework_id: str) -> HttpResponse:
    """Show a specification as a form; add and move its parts, preview the report, publish the next version."""
    framework = Framework.objects.filter(slug=framework_id).select_related("company").first()
    if framework is None:
        raise NotFound(gettext("This framework doesn't exist."), gettext("All frameworks are at /review/frameworks."))
    if _is_by_section(request, framework):
        return edit(request, framework, _preview)
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


def edit(request: HttpRequest, framework: Framework, preview: Any) -> HttpResponse:
    """
    Show and change the draft: the whole of it, or the section that the address names.

    Args:
        preview: returns the report of a valid document.
    """
    draft = authoring.find_draft(actor_of(request), framework)
    current = authoring.current_specification(framework.slug)
    if draft:
        document, version = draft.document, draft.version
    elif current:
        document, version = current.document, current.version
    else:
        document, version = dict(EMPTY), 0
    asked = request.GET.get("section", "")
    if asked:
        if not (asked.isascii() and asked.isdigit() and len(asked) < 6 and int(asked) < len(document["sections"])):
            raise NotFound(gettext("The draft has no such section."), gettext("Its sections are on its own page."))
        return _section(request, framework, draft, document, version)
    if request.method == "POST":
        return _changed_overview(request, framework, draft, document, version, preview)
    return _overview(request, framework, draft, document, version)


def _changed_overview(  # noqa: PLR0917 - what is edited, and where it is from
    request: HttpRequest,
    framework: Framework,
    draft: SpecificationDraft | None,
    document: JSONObject,
    version: int,
    preview: Any,
) -> HttpResponse:
    """Answer the submitted form of the overview: its general values, and buttons for the document and its sections."""
    do, typed = request.POST.get("do", ""), typed_fields(request.POST)
    if do == "discard":
        authoring.discard_draft(actor_of(request), framework)
        messages.success(request, gettext("Draft discarded."))
        return HttpResponseRedirect(f"/review/frameworks/{framework.slug}")
    try:
        changed = _rearranged(with_general(document, typed), do)
        draft = _stored(request, framework, changed, document, draft, version)
        document = draft.document if draft else changed
        if do == "publish" and not faults_of(document):
            return _published(request, framework, document, version)
    except (BadFields, BadRequest, Conflict) as refusal:
        show_problem(request, refusal)
        return _overview(request, framework, draft, document, version, typed=typed)
    if do == "add-section":
        new_place = len(document["sections"]) - 1
        return HttpResponseRedirect(f"{_home(framework)}?section={new_place}")
    if do not in SHOWING_FAULTS:
        return HttpResponseRedirect(_home(framework))
    report = None
    if do == "preview" and not faults_of(document):
        report = _of_sections(preview(request, document))
    return _overview(request, framework, draft, document, version, report=report)


def _published(request: HttpRequest, framework: Framework, document: JSONObject, version: int) -> HttpResponse:
    """Publish the draft as the next version, and return to its framework."""
    made = authoring.author_framework(actor_of(request), framework.slug, document, expected_version=version)
    authoring.discard_draft(actor_of(request), framework)
    messages.success(request, gettext("Version %(number)s published.") % {"number": made.version})
    return HttpResponseRedirect(f"/review/frameworks/{framework.slug}")


def _overview(
    request: HttpRequest,
    framework: Framework,
    draft: SpecificationDraft | None,
    document: JSONObject,
    version: int,
    *,
    typed: SpecificationFields | None = None,
    report: JSONObject | None = None,
) -> HttpResponse:
    """
    Show the general part of a specification and the list of its sections.

    Args:
        typed: the fields of a form that was refused, shown instead of the document's.
        report: the preview that the form asks for.
    """
    faults = faults_of(document)
    shows_faults = request.POST.get("do") in SHOWING_FAULTS
    rows = [
        {"place": place, "section": section, "address": f"{_home(framework)}?section={place}"}
        for place, section in enumerate(document["sections"])
    ]
    page = lists.cut(rows, request.GET.get("page", ""), SECTIONS_SHOWN)
    context = {
        "draft": draft,
        "fields": typed or fields_of({**document, "sections": []}),
        "rows": page.items,
        "pager": lists.pager(_home(framework), page),
        "criteria_total": sum(len(section["criteria"]) for section in document["sections"]),
        "faults": _faults(framework, faults[:FAULTS_SHOWN]),
        "faults_more": len(faults[FAULTS_SHOWN:]),
        "was_asked_for": shows_faults,
        "preview": report,
        "listing": request.POST.get("listing", ""),
    }
    status = 422 if faults and shows_faults else 0
    return _parts_page(request, framework, version, "review/specification_parts.html", context, status)


def _section(
    request: HttpRequest, framework: Framework, draft: SpecificationDraft | None, document: JSONObject, version: int
) -> HttpResponse:
    place = int(request.GET["section"])
    criteria = document["sections"][place]["criteria"]
    page = lists.cut(criteria, request.GET.get("page", ""), MAX_CRITERIA)
    first = (page.page - 1) * MAX_CRITERIA
    fields = part_of(document, place, first)
    here = f"{_home(framework)}?section={place}"
    if request.method == "POST":
        typed = typed_fields(_with_scale(request, document))
        do = request.POST.get("do", "")
        try:
            if not typed.sections:
                raise BadRequest(gettext("The form has no section."), gettext("Open the form again."))
            fields = typed
            changed = with_part(document, place, first, typed.sections[0])
            at = _move_criterion(changed["sections"][place]["criteria"], do, first)
            _stored(request, framework, changed, document, draft, version)
        except Problem as refusal:
            show_problem(request, refusal)
        else:
            messages.success(request, gettext("Saved in your draft. It is not published yet."))
            if do == "next" and place + 1 < len(document["sections"]):
                return HttpResponseRedirect(f"{_home(framework)}?section={place + 1}")
            if do in {"next", "back"}:
                return HttpResponseRedirect(_home(framework))
            number = at // MAX_CRITERIA + 1
            shown = f"&page={number}" if number > 1 else ""
            anchor = "" if do == "save" else f"#s.0.c.{at % MAX_CRITERIA}"
            return HttpResponseRedirect(f"{here}{shown}{anchor}")
    faults = [each for each in faults_of(document) if each[0].startswith(f"sections[{place}]")]
    context = {
        "draft": draft,
        "place": place,
        "number": place + 1,
        "sections_total": len(document["sections"]),
        "has_next": place + 1 < len(document["sections"]),
        "fields": fields,
        "section": fields.sections[0],
        "first": first,
        "up_to": first + len(fields.sections[0].criteria),
        "total": len(criteria),
        "pager": lists.pager(_home(framework), page, {"section": str(place)}),
        "faults": _faults(framework, faults[:FAULTS_SHOWN]),
        "faults_more": len(faults[FAULTS_SHOWN:]),
    }
    return _parts_page(request, framework, version, "review/specification_section.html", context, 0)


def _with_scale(request: HttpRequest, document: JSONMapping) -> Any:
    """Return what was typed with the scale of the document, which decides which levels there are."""
    form = request.POST.copy()
    form["scale.min"], form["scale.max"] = (str(document["scale"][name]) for name in ("min", "max"))
    return form


def _stored(  # noqa: PLR0917 - what is edited, and where it is from
    request: HttpRequest,
    framework: Framework,
    changed: JSONObject,
    document: JSONObject,
    draft: SpecificationDraft | None,
    version: int,
) -> SpecificationDraft | None:
    """Store the draft if something changed; raise Conflict if the form was opened with another revision of it."""
    text = request.POST.get("revision", "")
    revision = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if revision != (draft.revision if draft else 0):
        raise Conflict(
            gettext("Your draft was changed in another tab."),
            gettext("Open the page again and repeat the last change."),
        )
    if changed == document:
        return draft
    return authoring.save_draft(actor_of(request), framework, changed, version=version, revision=revision)


def _rearranged(document: JSONObject, do: str) -> JSONObject:
    """Return *document* with a band or a section added, removed or moved up, if it is there."""
    made = deepcopy(document)
    if do == "add-section":
        made["sections"].append(new_section())
    elif do == "add-band":
        overall = made.setdefault("overall", {"method": "weighted_mean"})
        overall["bands"] = [*(overall.get("bands") or []), {"min": 0, "label": ""}]
    elif (found := _MOVE.fullmatch(do)) and found[2] in {"band", "section"}:
        rows = made["sections"] if found[2] == "section" else (made.get("overall") or {}).get("bands") or []
        _move(rows, found[1], int(found[3]))
    return made


def _move_criterion(criteria: list[JSONObject], do: str, first: int) -> int:
    """Add, remove or move up a criterion, and return the place to show."""
    if do == "add-criterion":
        criteria.append(new_criterion())
        return len(criteria) - 1
    if (found := _MOVE.fullmatch(do)) and found[2] == "criterion":
        place = first + int(found[3])
        _move(criteria, found[1], place)
        return max(0, min(place - (found[1] == "up"), len(criteria) - 1))
    return first


def _move(rows: list[Any], act: str, place: int) -> None:
    if place < len(rows):
        row = rows.pop(place)
        if act == "up":
            rows.insert(max(0, place - 1), row)


def _of_sections(report: JSONObject) -> JSONObject:
    """Return a report with the scores of its sections alone, if its criteria are many."""
    total = sum(len(each["criteria"]) for each in report["sections"])
    return {**report, "sections": []} if total > CRITERIA_PREVIEWED else report


def _faults(framework: Framework, faults: list[tuple[str, str]]) -> list[JSONObject]:
    """Return faults with the address of the part of the form that they are in."""
    return [{"path": path, "reason": why, "address": _address(framework, path)} for path, why in faults]


def _address(framework: Framework, path: str) -> str:
    found = _PLACE.match(path)
    if found is None:
        return _home(framework)
    criterion = int(found[2] or 0)
    number = criterion // MAX_CRITERIA + 1
    anchor = f"#s.0.c.{criterion % MAX_CRITERIA}" if found[2] else ""
    return f"{_home(framework)}?section={found[1]}{f'&page={number}' if number > 1 else ''}{anchor}"


def _home(framework: Framework) -> str:
    return f"/review/frameworks/{framework.slug}/specification"


def _parts_page(  # noqa: PLR0917 - what is shown, and of what
    request: HttpRequest, framework: Framework, version: int, template: str, context: JSONObject, status: int
) -> HttpResponse:
    crumbs = [
        (gettext("Frameworks"), "/review/frameworks"),
        (framework.name, f"/review/frameworks/{framework.slug}"),
    ]
    if "section" in context:
        crumbs.append((gettext("Specification"), _home(framework)))
        crumbs.append((gettext("Section %(number)s") % {"number": context["number"]}, ""))
    else:
        crumbs.append((gettext("Specification"), ""))
    return manage_page(
        request,
        template,
        {
            "tab": "frameworks",
            "framework": framework,
            "home": _home(framework),
            "version": version,
            "sources": [(name, str(reports.SOURCES[name])) for name in SOURCES],
            "evaluators": EVALUATOR_WORDS.items(),
            "report_words": REPORT_WORDS,
            "crumbs": crumbs,
            **context,
        },
        status=status,
    )
