"""Report runs and reports: start, follow, read, share."""

from html import escape
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy

from muniment.assessments import applications, comparison, operations, sharing
from muniment.assessments.evaluation.markdown import STATUSES, to_markdown
from muniment.assessments.evaluation.missing_evidence import missing_evidence
from muniment.credits.operations import available
from muniment.documents.operations import list_documents, ready_documents
from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Problem
from muniment.registry.models import Framework
from muniment.web.context import address
from muniment.web.presenters import reports
from muniment.web.presenters.charts import ChartPair, paired_bar
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.once import fresh_token
from muniment.web.requests.pages import manage_page, problems_shown, show_problem
from muniment.web.requests.pagination import asked_page, pager
from muniment.web.views.manage.documents import companies_of

HOME: Final = "/manage/reports"
PARAMETERS: Final = ("company", "framework", "files", "page")
DOCUMENTS_AT_ONCE: Final = 50
MAX_CHOSEN: Final = 2 * operations.MAX_DOCUMENTS
"""Limit of selected documents in an address: more than a run accepts, so that the error loses no selection."""


@signed_in()
def home(request: HttpRequest) -> HttpResponse:
    """List runs; prepare one."""
    actor = actor_of(request)
    return _prepare(request, actor) if request.method == "POST" else _home(request, actor, request.GET)


def _home(request: HttpRequest, actor: Actor, given: QueryDict, *, status: int = HTTPStatus.OK) -> HttpResponse:
    """Show the runs, and the form with the *given* selection."""
    named = companies_of(request)
    frameworks = Framework.objects.filter(published=True, closed=False, specifications__isnull=False).distinct()
    asked = given.get("company", "")
    slug = asked if asked in dict(named) else named[0][0] if named else ""
    runs = operations.list_runs(actor, page=asked_page(request.GET))
    context = {
        "runs": runs,
        "pager": pager(request, PARAMETERS, runs),
        "companies": named,
        "chosen": {"company": slug, "name": dict(named).get(slug), "framework": given.get("framework", "")},
        "frameworks": [
            (each.slug, each.name, settings.RUN_COST if each.run_cost is None else each.run_cost)
            for each in frameworks.order_by("name", "slug")
        ],
        "documents": _quotable(actor, slug, given) if slug else None,
        "available": available(actor),
        "key": fresh_token(),
    }
    return manage_page(request, "manage/reports.html", context, status=status)


def _prepare(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Prepare a run, or show another page of documents and keep the selection."""
    given = request.POST
    if "files" not in given:
        try:
            started = operations.start_run(
                actor,
                given.get("company", ""),
                given.get("framework", ""),
                document_ids=given.getlist("documents"),
                idempotency_key=given.get("key") or None,
            )
        except Problem as problem:
            show_problem(request, problem)
            return _home(request, actor, given, status=problem.status)
        return HttpResponseRedirect(f"{HOME}/{started.run.row.pk}")
    chosen = {key: given[key] for key in ("company", "framework", "files") if given.get(key)}
    query = urlencode({**chosen, "documents": given.getlist("documents")[:MAX_CHOSEN]}, doseq=True)
    return HttpResponseRedirect(f"{HOME}?{query}#documents")


def _quotable(actor: Actor, slug: str, given: QueryDict) -> JSONObject:
    """Return a page of the listing's documents, preceded by those selected on other pages."""
    found = list_documents(actor, slug, page=asked_page(given, "files"), page_size=DOCUMENTS_AT_ONCE, ready=True)
    chosen = ready_documents(actor, slug, given.getlist("documents")[:MAX_CHOSEN])
    here = {each.pk for each in found.items}
    first = (found.page - 1) * found.page_size
    return {
        "items": [*(each for each in chosen if each.pk not in here), *found.items],
        "ticked": {each.pk for each in chosen},
        "total": found.total,
        "first": first + 1,
        "last": first + len(found.items),
        "previous": found.previous_page,
        "next": found.next_page,
    }


@signed_in("GET", "HEAD")
def run(request: HttpRequest, run_id: str) -> HttpResponse:
    """Show a run's progress, or its report."""
    actor = actor_of(request)
    seen = operations.get_run(actor, run_id)
    page = _run(request, actor, seen)
    if "HX-Request" in request.headers and (seen.is_final or seen.report_id):
        # Progress replaces a part of the page; a finished run replaces the page.
        page["HX-Retarget"] = page["HX-Reselect"] = "#main"
    return page


def _run(request: HttpRequest, actor: Actor, seen: operations.RunView) -> HttpResponse:
    context: JSONObject = {"run": seen, "mine": True}
    if seen.report_id is None:
        lacking: list[JSONObject] = []
        if seen.state == "created":
            facts = operations.facts_of(seen.row.company.slug)
            lacking = [
                {**each, "word": reports.SOURCES.get(each["source"], each["source"])}
                for each in missing_evidence(seen.row.specification.document, facts, seen.row.document_ids)
            ]
        waiting = {"available": available(actor), "missing_evidence": lacking, "evaluator": operations.evaluator_now()}
        return manage_page(request, "manage/run.html", {**context, **waiting})
    report = operations.get_report(actor, seen.row.pk)
    context |= {
        **reports.shown(report, actor),
        "badge": f"{address(request)}/reports/{report.pk}/badge.svg" if report.badge else "",
        "report_row": report,
        "others": comparison.other_runs(actor, seen.row.pk),
        "application": applications.application_of(report),
    }
    return manage_page(request, "manage/report.html", context)


@signed_in("POST")
def act(request: HttpRequest, run_id: str, action: str) -> HttpResponse:
    """Execute, cancel, share, submit, or show the badge."""
    actor = actor_of(request)
    with problems_shown(request):
        if action == "execute":
            operations.execute_run(actor, run_id)
        elif action == "cancel":
            operations.cancel_run(actor, run_id)
        elif action == "share":
            link = f"{address(request)}/reports/shared/{sharing.share_report(actor, run_id)}"
            copied = render_to_string("part/copy.html", {"text": link, "label": gettext("Share link")})
            told = gettext("Anyone with this link can read the report. Copy it now: we show it only once.")
            messages.success(request, format_html("{}{}", told, copied))
        elif action == "submit":
            made = applications.submit_application(actor, run_id)
            told = gettext("Report submitted. %(name)s can read it now. We'll email you when they decide.")
            messages.success(request, told % {"name": made.receiver.name})
        elif action == "unshare":
            sharing.unshare_report(actor, run_id)
            messages.success(request, gettext("Link disabled."))
        else:
            sharing.set_badge(actor, run_id, shown=action == "badge")
    return HttpResponseRedirect(f"{HOME}/{run_id}")


@signed_in("GET", "HEAD")
def compare(request: HttpRequest) -> HttpResponse:
    """Show two runs of the same listing and framework side by side."""
    found = None
    with problems_shown(request):
        found = comparison.compare_runs(actor_of(request), request.GET.get("run", ""), request.GET.get("with", ""))
    if found is None:
        return HttpResponseRedirect(HOME)
    pairs = [ChartPair(each.title, each.before, each.after) for each in found.sections]
    before, after = (each.document["overall"]["score"] for each in (found.before, found.after))
    description = gettext("Each section's score out of 100, before and after.")
    context = {
        "found": found,
        "changed": [_compared(each) for each in found.changed],
        "unchanged": [_compared(each) for each in found.unchanged],
        "overall": ChartPair(gettext("Overall"), before, after),
        "scores": paired_bar(gettext("Score by section"), description, pairs, of=100),
    }
    return manage_page(request, "manage/compare.html", context)


COURSES: Final = {
    "worse": (gettext_lazy("Worse"), "bad"),
    "better": (gettext_lazy("Better"), "good"),
    "changed": (gettext_lazy("Changed"), "wait"),
    "new": (gettext_lazy("New"), ""),
    "gone": (gettext_lazy("Removed"), ""),
    "evidence": (gettext_lazy("Different evidence"), ""),
    "same": (gettext_lazy("Same"), ""),
}
"""Name and tone of each course of a criterion."""


def _compared(criterion: comparison.ComparedCriterion) -> JSONObject:
    word, tone = COURSES[criterion.course]
    before, after = (
        {**each, "word": STATUSES[each["status"]], "tone": reports.TONES.get(each["status"], "")} if each else None
        for each in (criterion.before, criterion.after)
    )
    section, title = criterion.section, criterion.title
    return {"section": section, "title": title, "word": word, "tone": tone, "before": before, "after": after}


@signed_in("GET", "HEAD")
def as_markdown(request: HttpRequest, run_id: str) -> HttpResponse:
    document = operations.get_report(actor_of(request), run_id).document
    answer = HttpResponse(to_markdown(document), content_type="text/markdown; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="report-{document["reportId"]}.md"'
    return answer


def shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show a report to anyone with its share link."""
    page = render(request, "manage/report.html", {**reports.shown(sharing.shared_report(token)), "mine": False})
    page["Cache-Control"] = "private, no-store"
    page["Referrer-Policy"] = "no-referrer"
    page["X-Robots-Tag"] = "noindex"
    return page


def badge(request: HttpRequest, report_id: str) -> HttpResponse:  # noqa: ARG001 - Django's signature
    """Return a report's score as a picture, if its owners publish it."""
    document = sharing.badge_of(report_id).document
    overall = document["overall"]
    score = gettext("none") if overall["score"] is None else f"{overall['score']:g}"
    right = f"{score} {overall['band'] or ''}".strip()[:24]
    left = document["frameworkName"][:40]
    answer = HttpResponse(_badge(left, right), content_type="image/svg+xml; charset=utf-8")
    answer["Cache-Control"] = "public, max-age=300"
    return answer


def _badge(left: str, right: str) -> str:
    widths = (len(left) * 7 + 14, len(right) * 7 + 14)
    whole = sum(widths)
    label = escape(f"{left}: {right}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{label}">'
        f'<title>{label}</title><rect width="{whole}" height="20" rx="3" fill="#1f4e5f"/>'
        f'<rect width="{widths[0]}" height="20" rx="3" fill="#444"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{widths[0] / 2:g}" y="14">{escape(left)}</text>'
        f'<text x="{widths[0] + widths[1] / 2:g}" y="14">{escape(right)}</text></g></svg>'
    )
