"""Report runs and reports: start, follow, read, share."""

from collections.abc import Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlencode

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy

from muniment.assessments import applications, comparison, operations, sharing
from muniment.assessments import scores as publishing
from muniment.assessments.evaluation.evaluators import evaluator_now
from muniment.assessments.models import Report
from muniment.assessments.operations import RunView
from muniment.assessments.report_views import SCORES, STATUSES, to_markdown
from muniment.credits.operations import available
from muniment.documents.operations import page_of_documents, ready_documents
from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import Problem
from muniment.kernel.wire import summary_path
from muniment.languages.writing import digits
from muniment.registry.company.listings import list_companies
from muniment.registry.models import Framework
from muniment.web.authoring.checks import place_of
from muniment.web.context import address, proof_address
from muniment.web.presenters import reports, scores
from muniment.web.presenters.charts import ChartPair, paired_bar
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.once import fresh_token
from muniment.web.requests.pages import manage_page, problems_shown, show_problem
from muniment.web.requests.pagination import asked_page, pager
from muniment.web.views.manage.documents import ListingChoices, listing_choices

HOME: Final = "/manage/reports"
PARAMETERS: Final = ("company", "framework", "listing", "files", "page")
RUNS_COMPARED: Final = 2
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
    frameworks = Framework.objects.filter(published=True, closed=False, specifications__isnull=False).distinct()
    choices = listing_choices(actor, given, given.get("company", "") or operations.last_assessed(actor))
    slug = choices.chosen or _first_offered(actor, choices)
    documents = None
    if slug:
        documents = _quotable(actor, slug, given)
    runs = operations.list_runs(actor, page=asked_page(request.GET))
    outcomes = comparison.outcomes(run.row.pk for run in runs.items)
    context = {
        "runs": runs,
        "rows": [_listed(run, outcomes.get(run.row.pk)) for run in runs.items],
        "is_comparable": len(outcomes) > 1,
        "pager": pager(request, PARAMETERS, runs),
        "choices": replace(choices, chosen=slug),
        "framework": given.get("framework", ""),
        "frameworks": _grouped(frameworks.order_by("name", "slug")),
        "documents": documents,
        "available": available(actor),
        "key": fresh_token(),
    }
    return manage_page(request, "manage/reports.html", context, status=status)


def _grouped(frameworks: Iterable[Framework]) -> list[tuple[str, list[tuple[str, str, int]]]]:
    """Return slug, name and price of each framework, scores apart from programs."""
    score_options: list[tuple[str, str, int]] = []
    program_options: list[tuple[str, str, int]] = []
    for framework in frameworks:
        cost = settings.RUN_COST if framework.run_cost is None else framework.run_cost
        option = (framework.slug, framework.name, cost)
        if framework.kind == Framework.Kind.PROGRAM:
            program_options.append(option)
        else:
            score_options.append(option)
    groups = ((gettext("Scores"), score_options), (gettext("Programs"), program_options))
    return [(label, options) for label, options in groups if options]


def _first_offered(actor: Actor, choices: ListingChoices) -> str:
    """Return the first listing that a search found; without search words, the one that changed last."""
    if not choices.words:
        latest = list_companies(actor, page_size=1).items
        return latest[0].slug if latest else ""
    return choices.listings[0][0] if choices.listings else ""


def _listed(run: RunView, outcome: comparison.Outcome | None) -> JSONObject:
    """Return a run as a row of the table."""
    row: JSONObject = {"run": run, "outcome": outcome, "score": "", "trend": None}
    if outcome is not None and outcome.score is not None:
        row["score"] = digits(f"{outcome.score:g}")
        row["trend"] = scores.trend(outcome.score, outcome.before)
    return row


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
    page = page_of_documents(actor, slug, page=asked_page(given, "files"), page_size=DOCUMENTS_AT_ONCE, ready=True)
    selected = ready_documents(actor, slug, given.getlist("documents")[:MAX_CHOSEN])
    ids_of_page = {document.pk for document in page.items}
    first = (page.page - 1) * page.page_size
    return {
        "items": [*(document for document in selected if document.pk not in ids_of_page), *page.items],
        "ticked": {document.pk for document in selected},
        "total": page.total,
        "first": first + 1,
        "last": first + len(page.items),
        "previous": page.previous_page,
        "next": page.next_page,
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


def _run(request: HttpRequest, actor: Actor, seen: RunView) -> HttpResponse:
    if seen.report_id is None:
        return _unfinished_run(request, actor, seen)
    report = operations.get_report(actor, seen.row.pk)
    links = []
    for link in sharing.list_links(actor, seen.row.pk):
        links.append((link, f"{address(request)}/reports/shared/{link.token}"))
    context = {
        "run": seen,
        "mine": True,
        **reports.shown(report, actor),
        **_published(request, actor, report),
        "links": links,
        "max_name": sharing.MAX_NAME,
        "others": comparison.other_runs(actor, seen.row.pk),
        "application": applications.application_of(report),
    }
    return manage_page(request, "manage/report.html", context)


def _unfinished_run(request: HttpRequest, actor: Actor, seen: RunView) -> HttpResponse:
    """Show a run without a report; of one that was only prepared, also the evidence that it lacks."""
    context: JSONObject = {
        "run": seen,
        "mine": True,
        "available": available(actor),
        "missing_evidence": [],
        "evidence_note": "",
        "finds_nothing": False,
        "unused": 0,
        "evaluator": evaluator_now(seen.row.framework.slug),
    }
    if seen.state == "created":
        evidence = operations.evidence_of(seen.row)
        for missing in evidence.missing:
            source = missing["source"]
            word, place = reports.SOURCES.get(source, source), place_of(source)
            context["missing_evidence"].append({**missing, "word": word, "place": place})
        context["evidence_note"], context["finds_nothing"] = evidence.unjudged_because, evidence.finds_nothing
        documents = page_of_documents(actor, seen.row.company.slug, page_size=1, ready=True)
        context["unused"] = documents.total - len(seen.row.document_ids)
    return manage_page(request, "manage/run.html", context)


def _published(request: HttpRequest, actor: Actor, report: Report) -> JSONObject:
    """Return what is public of the report's listing by its framework, and whether this report may replace it."""
    known = publishing.score_of(actor, report.run_id)
    document = report.document
    slug, framework_id = document["companySlug"], document["frameworkId"]
    is_mine = known is not None and known.report_id == report.pk
    is_later = known is not None and known.assessed_at > report.created_at
    shown: JSONObject = {"known": known, "is_published": is_mine, "is_outdated": is_later and not is_mine}
    if known is not None:
        left, right = scores.badge_text(document["frameworkName"], known.score, known.grade)
        shown["embed"] = scores.embed(address(request), slug, framework_id, f"{left}: {right}")
        shown["known_score"] = scores.with_grade(known.score, known.grade)
        shown["summary_address"] = summary_path(slug, framework_id)
        other = Report.objects.filter(pk=known.report_id).first()
        shown["known_run"] = other.run_id if other else ""
    return shown


@signed_in()
def publish(request: HttpRequest, run_id: str) -> HttpResponse:
    """Ask what of a report's score becomes public, and publish it."""
    actor, back = actor_of(request), f"{HOME}/{run_id}"
    if request.method == "POST":
        with problems_shown(request):
            score = publishing.publish_score(actor, run_id, sections="sections" in request.POST)
            page = summary_path(score.company.slug, score.framework.slug)
            link = format_html('<a href="{}">{}</a>', page, gettext("View the published summary"))
            messages.success(request, format_html("{} {}", gettext("Score published."), link))
        return HttpResponseRedirect(back)
    report = operations.get_report(actor, run_id)
    published_score = publishing.score_of(actor, run_id)
    replaced_score = None
    if published_score is not None and published_score.report_id != report.pk:
        replaced_score = published_score
    overall = report.document["overall"]
    score_with_grade: str | None = None
    if overall["score"] is not None:
        score_with_grade = scores.with_grade(overall["score"], overall["band"])
    context = {
        "report": report.document,
        "score": score_with_grade,
        "created": report.created_at,
        "known": replaced_score,
        "has_sections": published_score is not None and published_score.sections is not None,
        "back": back,
        "crumbs": [
            (gettext("Manage"), "/manage"),
            (gettext("Reports"), HOME),
            (gettext("Report"), back),
            (gettext("Publish score"), ""),
        ],
    }
    return manage_page(request, "manage/publish_score.html", context)


@signed_in("POST")
def act(request: HttpRequest, run_id: str, action: str) -> HttpResponse:
    """Execute, cancel, share, submit, or withdraw the score."""
    actor = actor_of(request)
    with problems_shown(request):
        if action == "execute":
            operations.execute_run(actor, run_id)
        elif action == "cancel":
            operations.cancel_run(actor, run_id)
        elif action == "share":
            sharing.share_report(actor, run_id, name=request.POST.get("name", ""))
            messages.success(request, gettext("Link created. Anyone with it can read the report."))
            return HttpResponseRedirect(f"{HOME}/{run_id}#links")
        elif action == "revoke":
            sharing.revoke_link(actor, run_id, request.POST.get("link", ""))
            messages.success(request, gettext("Link revoked."))
            return HttpResponseRedirect(f"{HOME}/{run_id}#links")
        elif action == "submit":
            application = applications.submit_application(actor, run_id)
            words = gettext("Report submitted. %(name)s can read it now. We'll email you when they decide.")
            messages.success(request, words % {"name": application.receiver.name})
        else:
            publishing.withdraw_score(actor, run_id)
            messages.success(request, gettext("Score withdrawn. It is no longer public."))
    return HttpResponseRedirect(f"{HOME}/{run_id}")


@signed_in("GET", "HEAD")
def compare(request: HttpRequest) -> HttpResponse:
    """Show two runs of the same listing and framework side by side."""
    result = None
    chosen = [*request.GET.getlist("run"), *request.GET.getlist("with")]
    if len(chosen) != RUNS_COMPARED:
        messages.error(request, gettext("Choose two runs of the same listing and framework to compare."))
        return HttpResponseRedirect(HOME)
    with problems_shown(request):
        result = comparison.compare_runs(actor_of(request), *chosen)
    if result is None:
        return HttpResponseRedirect(HOME)
    pairs = [ChartPair(section.title, section.before, section.after) for section in result.sections]
    before, after = result.before.document["overall"]["score"], result.after.document["overall"]["score"]
    description = gettext("Each section's score out of 100, before and after.")
    context = {
        "found": result,
        "hides_criteria": result.shows == SCORES,
        "changed": [_compared(criterion) for criterion in result.changed],
        "unchanged": [_compared(criterion) for criterion in result.unchanged],
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
    return {
        "section": criterion.section,
        "title": criterion.title,
        "word": word,
        "tone": tone,
        "before": _with_status(criterion.before),
        "after": _with_status(criterion.after),
    }


def _with_status(result: JSONMapping | None) -> JSONObject | None:
    """Return the result of a criterion with its status in words; None without one."""
    if not result:
        return None
    status = result["status"]
    return {**result, "word": gettext(STATUSES[status]), "tone": reports.TONES.get(status, "")}


@signed_in("GET", "HEAD")
def as_markdown(request: HttpRequest, run_id: str) -> HttpResponse:
    """Send a report as Markdown, with the address of the proof if its score is public."""
    actor = actor_of(request)
    report = operations.get_report(actor, run_id)
    document = report.shown
    text = to_markdown(document)
    known = publishing.score_of(actor, run_id)
    is_published = known is not None and known.report_id == report.pk
    if is_published and publishing.is_public(report.run.company, report.run.framework):
        proof = proof_address(request, "company", document["companySlug"])
        text += f"\nThe score is published. Proof of its publication in the public log of the registry: {proof}\n"
    response = HttpResponse(text, content_type="text/markdown; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="report-{document["reportId"]}.md"'
    return response


def shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show a report to anyone with its share link."""
    report = sharing.shared_report(token)
    company, framework = report.run.company, report.run.framework
    public = {"company_address": "", "framework_address": "", "summary_address": ""}
    if company.published:
        public["company_address"] = f"/companies/{quote(company.slug)}"
    if framework.published:
        public["framework_address"] = f"/frameworks/{quote(framework.slug)}"
    if publishing.is_public(company, framework):
        public["summary_address"] = summary_path(company.slug, framework.slug)
    page = render(request, "manage/report.html", {**reports.shown(report), **public, "mine": False})
    page["Cache-Control"] = "private, no-store"
    page["Referrer-Policy"] = "no-referrer"  # the address is the credential
    page["X-Robots-Tag"] = "noindex"
    return page
