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
from muniment.web.presenters.scores import sections_chart
from muniment.web.requests.access import actor_of, reviewer
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page, show_problem
from muniment.web.requests.pagination import whole_number

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
    match = _EDIT.fullmatch(do)
    if match:
        _edit(fields, *match.groups())
        if fields.is_large:
            document = document_of(fields, stored)
            authoring.save_draft(actor_of(request), framework, document, version=version, revision=0)
            messages.info(request, gettext("The specification is edited by section from here on."))
            return HttpResponseRedirect(f"/review/frameworks/{framework_id}/specification")
        return _page(request, framework, fields, version)
    document = document_of(fields, stored)
    faults = faults_of(document)
    if faults:
        return _page(request, framework, fields, version, faults=faults)
    if do != "publish":
        return _page(request, framework, fields, version, preview=_preview(request, document))
    try:
        published = authoring.author_framework(actor_of(request), framework_id, document, expected_version=version)
    except (BadFields, Conflict) as refusal:
        show_problem(request, refusal)
        return _page(request, framework, fields, version)
    messages.success(request, gettext("Version %(number)s published.") % {"number": published.version})
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
    version = whole_number(request.POST.get("version", ""))
    if version == 0:
        return 0, dict(EMPTY)
    if version is not None:
        stored = FrameworkSpecification.objects.filter(framework=framework, version=version).first()
        if stored is not None:
            return version, stored.document
    raise BadRequest(gettext("The form has no version."), gettext("Open the form again."))


def _edit(fields: SpecificationFields, act: str, part: str, first: str | None, second: str | None) -> None:
    """Add, remove or move up a band, a section or a criterion; a place that is not there changes nothing."""
    rows: list[Any] = fields.bands if part == "band" else fields.sections
    place = first
    if part == "criterion":
        # The first number is that of its section.
        if first is None or int(first) >= len(fields.sections):
            return
        rows, place = fields.sections[int(first)].criteria, second
    if act == "add":
        rows.append(_new(fields, part))
    elif place is not None:
        _move(rows, act, int(place))


def _new(fields: SpecificationFields, part: str) -> Any:
    if part == "band":
        return ("", "", "")
    criterion = CriterionFields(levels=with_scale({}, fields.scale_min, fields.scale_max))
    if part == "section":
        return SectionFields(criteria=[criterion])
    return criterion


def _preview(request: HttpRequest, document: JSONObject) -> JSONObject:
    """Return the report about the listing that the reviewer chose, or the demo listing."""
    slug = request.POST.get("listing", "").strip()[:200]
    company = Company.objects.filter(slug=slug, state=State.PUBLISHED).first() if slug else None
    if slug and company is None:
        refusal = NotFound(gettext("There is no such listing."), gettext("The preview shows the demo listing."))
        show_problem(request, refusal)
    facts = facts_of(company.slug) if company else _demo_listing()
    report = preview_report(document, facts, currency=settings.CURRENCY)
    sections = []
    for section in report["sections"]:
        sections.append({**section, "criteria": [_judged(criterion) for criterion in section["criteria"]]})
    return {
        "about": facts["company"]["name"],
        "overall": report["overall"],
        "sections": sections,
        "scores": sections_chart(sections),
    }


def _judged(criterion: JSONMapping) -> JSONObject:
    status = criterion["status"]
    return {**criterion, "word": gettext(STATUSES[status]), "tone": reports.TONES.get(status, "")}


@cache
def _demo_listing() -> JSONMapping:
    """Return the first listing of the demo registry, which is fictional."""
    lines = resources.files("muniment.demo").joinpath("companies.jsonl").read_text("utf-8")
    listing: JSONObject = json.loads(lines.partition("\n")[0])
    return listing


def _page(
    request: HttpRequest,
    framework: Framework,
    fields: SpecificationFields,
    version: int,
    *,
    faults: list[tuple[str, str]] | None = None,
    preview: JSONObject | None = None,
) -> HttpResponse:
    shown_faults = []
    for path, reason in faults or ():
        shown_faults.append({"path": path, "reason": translated(reason), "anchor": _anchor(path)})
    context = {
        "tab": "frameworks",
        "framework": framework,
        "fields": fields,
        "version": version,
        "faults": shown_faults,
        "faulty": {fault["anchor"] for fault in shown_faults},
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
    place = _PLACE.match(path)
    if place is None:
        return "general"
    section, criterion = place.groups()
    return f"s.{section}" if criterion is None else f"s.{section}.c.{criterion}"


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
    if request.GET.get("section"):
        place = whole_number(request.GET["section"], 5)
        if place is None or place >= len(document["sections"]):
            raise NotFound(gettext("The draft has no such section."), gettext("Its sections are on its own page."))
        return _section(request, framework, draft, document, version, place)
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
    published = authoring.author_framework(actor_of(request), framework.slug, document, expected_version=version)
    authoring.discard_draft(actor_of(request), framework)
    messages.success(request, gettext("Version %(number)s published.") % {"number": published.version})
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
    rows = []
    for place, section in enumerate(document["sections"]):
        rows.append({"place": place, "section": section, "address": f"{_home(framework)}?section={place}"})
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


def _section(  # noqa: PLR0917 - what is edited, and where it is from
    request: HttpRequest,
    framework: Framework,
    draft: SpecificationDraft | None,
    document: JSONObject,
    version: int,
    place: int,
) -> HttpResponse:
    """Show a section with a page of its criteria; store a submitted one in the draft."""
    criteria = document["sections"][place]["criteria"]
    page = lists.cut(criteria, request.GET.get("page", ""), MAX_CRITERIA)
    first = (page.page - 1) * MAX_CRITERIA
    fields = part_of(document, place, first)
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
            return HttpResponseRedirect(_following(framework, document, do, place, at))
    faults = [(path, reason) for path, reason in faults_of(document) if path.startswith(f"sections[{place}]")]
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


def _following(framework: Framework, document: JSONObject, do: str, place: int, at: int) -> str:
    """
    Return the address that a button of a section leads to, after its section was saved.

    Args:
        at: the criterion that was moved or added, which the page shows.
    """
    home = _home(framework)
    if do == "next" and place + 1 < len(document["sections"]):
        return f"{home}?section={place + 1}"
    if do in {"next", "back"}:
        return home
    address = f"{home}?section={place}"
    number = at // MAX_CRITERIA + 1
    if number > 1:
        address += f"&page={number}"
    if do != "save":
        address += f"#s.0.c.{at % MAX_CRITERIA}"
    return address


def _with_scale(request: HttpRequest, document: JSONMapping) -> Any:
    """Return what was typed with the scale of the document, which decides which levels there are."""
    form = request.POST.copy()
    form["scale.min"], form["scale.max"] = str(document["scale"]["min"]), str(document["scale"]["max"])
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
    revision = whole_number(request.POST.get("revision", ""))
    stored_revision = draft.revision if draft else 0
    if revision != stored_revision:
        raise Conflict(
            gettext("Your draft was changed in another tab."),
            gettext("Open the page again and repeat the last change."),
        )
    if changed == document:
        return draft
    return authoring.save_draft(actor_of(request), framework, changed, version=version, revision=revision)


def _rearranged(document: JSONObject, do: str) -> JSONObject:
    """Return *document* with a band or a section added, removed or moved up, if it is there."""
    rearranged = deepcopy(document)
    move = _MOVE.fullmatch(do)
    if do == "add-section":
        rearranged["sections"].append(new_section())
    elif do == "add-band":
        overall = rearranged.setdefault("overall", {"method": "weighted_mean"})
        overall["bands"] = [*(overall.get("bands") or []), {"min": 0, "label": ""}]
    elif move and move[2] == "section":
        _move(rearranged["sections"], move[1], int(move[3]))
    elif move and move[2] == "band":
        _move((rearranged.get("overall") or {}).get("bands") or [], move[1], int(move[3]))
    return rearranged


def _move_criterion(criteria: list[JSONObject], do: str, first: int) -> int:
    """Add, remove or move up a criterion, and return the place to show."""
    if do == "add-criterion":
        criteria.append(new_criterion())
        return len(criteria) - 1
    move = _MOVE.fullmatch(do)
    if move and move[2] == "criterion":
        place = first + int(move[3])
        _move(criteria, move[1], place)
        if move[1] == "up":
            place -= 1
        return max(0, min(place, len(criteria) - 1))
    return first


def _move(rows: list[Any], act: str, place: int) -> None:
    """Remove a row or move it up; a place that is not there changes nothing."""
    if place < len(rows):
        row = rows.pop(place)
        if act == "up":
            rows.insert(max(0, place - 1), row)


def _of_sections(report: JSONObject) -> JSONObject:
    """Return a report with the scores of its sections alone, if its criteria are many."""
    total = sum(len(section["criteria"]) for section in report["sections"])
    if total > CRITERIA_PREVIEWED:
        return {**report, "sections": []}
    return report


def _faults(framework: Framework, faults: list[tuple[str, str]]) -> list[JSONObject]:
    """Return faults with the address of the part of the form that they are in."""
    return [{"path": path, "reason": reason, "address": _address(framework, path)} for path, reason in faults]


def _address(framework: Framework, path: str) -> str:
    """Return the address of the part of the form that a fault is in: criteria are on pages of their section."""
    place = _PLACE.match(path)
    if place is None:
        return _home(framework)
    section, criterion = place.groups()
    address = f"{_home(framework)}?section={section}"
    if criterion is None:
        return address
    number = int(criterion) // MAX_CRITERIA + 1
    if number > 1:
        address += f"&page={number}"
    return f"{address}#s.0.c.{int(criterion) % MAX_CRITERIA}"


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
