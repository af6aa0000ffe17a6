"""
Publishing the score of a report, and withdrawing it.

Public are the score with its grade, the framework and the version of its specification, the date, and who judged; the
scores of the sections if the owners say so. Evidence, documents and findings stay private. The transaction that
changes a score also publishes it: on the company, in the list of the framework, and in the badge.
"""

from typing import Final

from django.db import transaction

from muniment.assessments.models import Report
from muniment.assessments.operations import get_report
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, NotFound
from muniment.registry import history
from muniment.registry.company.access import require_reviewer
from muniment.registry.models import Company, Framework, Score, State
from muniment.registry.publishing.publisher import AffectedRows, publish

PUBLISHED: Final = "score published"
WITHDRAWN: Final = "score withdrawn"
_TASK: Final = "withdraw the scores of other accounts' listings"


def score_of(actor: Actor, run_id: str) -> Score | None:
    """Return what is published of the run's listing by its framework, by any report. Raises like `get_report`."""
    run = get_report(actor, run_id).run
    return Score.objects.filter(company=run.company_id, framework=run.framework_id).first()


def is_public(company: Company, framework: Framework) -> bool:
    """Return whether anyone can see a score of a listing by a framework."""
    both = company.published and framework.published
    return both and Score.objects.filter(company=company, framework=framework).exists()


def publish_score(actor: Actor, run_id: str, *, sections: bool = False) -> Score:
    """
    Publish the score of a run's report; it replaces that of an earlier report of the framework.

    Args:
        sections: whether the scores of the sections are public too.

    Raises:
        NotFound: the run is unknown, or not the actor's.
        Conflict: there is no report, or no criterion of it applied; the listing or the framework is not public; the
            score of a later report is.
    """
    with transaction.atomic():
        report = get_report(actor, run_id)
        company, framework = _locked(report)
        known = Score.objects.filter(company=company, framework=framework).first()
        _check(report, company, framework, known)
        document, overall = report.document, report.document["overall"]
        published_sections = _sections(report) if sections else None
        values = {
            "report_id": report.pk,
            "account_id": actor.account_id,
            "score": overall["score"],
            "grade": overall["band"] or "",
            "specification_version": document["specificationVersion"],
            "model": document["evaluator"]["model"] or "",
            "evaluator": document["evaluator"].get("name", ""),
            "sections": published_sections,
            "assessed_at": report.created_at,
            "published_at": now(),
        }
        if known is not None and known.report_id != report.pk:
            values |= {"previous_score": known.score, "previous_at": known.assessed_at}
        score, _ = Score.objects.update_or_create(company=company, framework=framework, defaults=values)
        _publish(actor, PUBLISHED, company, framework, f"{framework.name}: {overall['score']:g}.")
    return score


def withdraw_score(actor: Actor, run_id: str) -> None:
    """
    Withdraw what is published of the run's listing by its framework. Repeating it succeeds.

    Raises:
        NotFound: the run is unknown, or not the actor's.
        Conflict: there is no report.
    """
    with transaction.atomic():
        company, framework = _locked(get_report(actor, run_id))
        deleted, _ = Score.objects.filter(company=company, framework=framework).delete()
        if deleted:
            _publish(actor, WITHDRAWN, company, framework, f"{framework.name}.")


def list_public_scores(actor: Actor, slug: str) -> list[Score]:
    """
    Return the scores of a listing that are published, with their frameworks.

    Raises:
        Forbidden: not a reviewer.
    """
    require_reviewer(actor, _TASK)
    return list(Score.objects.filter(company__slug=slug).select_related("framework").order_by("framework__name", "pk"))


def remove_score(actor: Actor, slug: str, framework_id: str) -> None:
    """
    Withdraw a published score as a reviewer, also where a listing has no owner any more. Repeating it succeeds.

    Raises:
        Forbidden: not a reviewer.
        NotFound: no such listing.
    """
    require_reviewer(actor, _TASK)
    with transaction.atomic():
        company = Company.objects.select_for_update().filter(slug=slug).first()
        if company is None:
            raise NotFound("No listing has this slug.", "Open the listing from the list of companies.")
        for score in Score.objects.filter(company=company, framework__slug=framework_id).select_related("framework"):
            framework = score.framework
            score.delete()
            _publish(actor, WITHDRAWN, company, framework, f"{framework.name}.")


def _locked(report: Report) -> tuple[Company, Framework]:
    """Lock the listing of a report, so that one change of its scores follows the other."""
    company = Company.objects.select_for_update().get(pk=report.run.company_id)
    return company, report.run.framework


def _check(report: Report, company: Company, framework: Framework, known: Score | None) -> None:
    if report.document["overall"]["score"] is None:
        raise Conflict("No criterion of the framework applied, so there is no score.", "Run another framework.")
    if company.state != State.PUBLISHED:
        raise Conflict("The listing is not public, so its scores cannot be.", "Publish the listing first.")
    if not framework.published:
        raise Conflict("The framework is not public any more.", "Run another framework.")
    if known is not None and known.assessed_at > report.created_at:
        raise Conflict(
            "The score of a later report of this framework is public.", "Withdraw it to publish this one instead."
        )


def _sections(report: Report) -> list[dict[str, object]]:
    sections: list[dict[str, object]] = []
    for section in report.document["sections"]:
        shown = {"title": section["title"], "score": section["score"]}
        # A section of which no criterion applied has no score.
        sections.append({name: value for name, value in shown.items() if value is not None})
    return sections


def _publish(actor: Actor, action: str, company: Company, framework: Framework, note: str) -> None:
    """Date both sides, note the change in the listing's history, and publish them."""
    history.entry(actor, action, before={}, after={}, company=company, note=note).save()
    for model, row in ((Company, company), (Framework, framework)):
        model._default_manager.filter(pk=row.pk).update(updated_at=now())  # noqa: SLF001 - Django's public name
    publish(AffectedRows().company(company.pk).framework(framework.pk))
