"""
A specification that is too large for one form, edited by section.

Each step is stored in the reviewer's draft: a page holds one part of it, and nothing is published before the end.
"""

import re
from copy import deepcopy
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest, Conflict, NotFound, Problem
from muniment.registry.company.changes import BadFields
from muniment.registry.frameworks import authoring
from muniment.registry.frameworks.specification import SOURCES, faults_of
from muniment.registry.models import Framework, SpecificationDraft
from muniment.web.authoring.specification_form import (
    EMPTY,
    EVALUATOR_WORDS,
    MAX_CRITERIA,
    REPORT_WORDS,
    fields_of,
    new_criterion,
    new_section,
    part_of,
    typed_fields,
    with_general,
    with_part,
)
from muniment.web.presenters import company_lists as lists
from muniment.web.presenters import reports
from muniment.web.requests.access import actor_of
from muniment.web.requests.pages import manage_page, show_problem

SECTIONS_SHOWN: Final = 50
FAULTS_SHOWN: Final = 20
CRITERIA_PREVIEWED: Final = 100
_MOVE: Final = re.compile(r"(remove|up)-(band|section|criterion):([0-9]{1,5})")
_PLACE: Final = re.compile(r"sections\[([0-9]+)\](?:\.criteria\[([0-9]+)\])?")


def edit(request: HttpRequest, framework: Framework, preview: Any) -> HttpResponse:
    """
    Show and change the draft: the whole of it, or the section that the address names.

    Args:
        preview: returns the report of a valid document.
    """
    draft = authoring.find_draft(actor_of(request), framework)
    current = authoring.current_specification(framework.slug)
    document = draft.document if draft else (current.document if current else dict(EMPTY))
    version = draft.version if draft else (current.version if current else 0)
    asked = request.GET.get("section", "")
    if asked:
        if not (asked.isascii() and asked.isdigit() and len(asked) < 6 and int(asked) < len(document["sections"])):
            raise NotFound(gettext("The draft has no such section."), gettext("Its sections are on its own page."))
        return _section(request, framework, draft, document, version)
    return _overview(request, framework, draft, document, version, preview)


def _overview(  # noqa: PLR0917 - what is edited, and where it is from
    request: HttpRequest,
    framework: Framework,
    draft: SpecificationDraft | None,
    document: JSONObject,
    version: int,
    preview: Any,
) -> HttpResponse:
    shown, typed = None, None
    if request.method == "POST":
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
                made = authoring.author_framework(actor_of(request), framework.slug, document, expected_version=version)
                authoring.discard_draft(actor_of(request), framework)
                messages.success(request, gettext("Version %(number)s published.") % {"number": made.version})
                return HttpResponseRedirect(f"/review/frameworks/{framework.slug}")
        except (BadFields, BadRequest, Conflict) as refusal:
            show_problem(request, refusal)
        else:
            typed = None
            if do == "preview" and not faults_of(document):
                shown = _of_sections(preview(request, document))
            elif do == "add-section":
                return HttpResponseRedirect(f"{_home(framework)}?section={len(document['sections']) - 1}")
            elif do not in {"preview", "publish"}:
                return HttpResponseRedirect(_home(framework))
    faults = faults_of(document)
    asked_for = request.method == "POST" and request.POST.get("do") in {"preview", "publish"}
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
        "criteria_total": sum(len(each["criteria"]) for each in document["sections"]),
        "faults": _faults(framework, faults[:FAULTS_SHOWN]),
        "faults_more": len(faults[FAULTS_SHOWN:]),
        "was_asked_for": asked_for,
        "preview": shown,
        "listing": request.POST.get("listing", ""),
    }
    status = 422 if faults and asked_for else 0
    return _page(request, framework, version, "review/specification_parts.html", context, status)


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
    return _page(request, framework, version, "review/specification_section.html", context, 0)


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


def _page(  # noqa: PLR0917 - what is shown, and of what
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
