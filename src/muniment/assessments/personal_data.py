"""Reports as personal data: in the archive and the deletion of an account, and among the texts that name a person."""

from collections.abc import Iterator
from typing import Final

from muniment.accounts.models import Account
from muniment.accounts.personal_data import ArchiveEntry, Part
from muniment.assessments.models import Application, Report, ReportRun, ShareLink
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import timestamp
from muniment.registry.models import Ownership, Score
from muniment.registry.own_data import abandoned_drafts
from muniment.registry.people.erasing import Searched


def _export(account: Account) -> Iterator[ArchiveEntry]:
    runs = ReportRun.objects.filter(account=account).select_related("company", "framework").order_by("created_at", "pk")
    yield ArchiveEntry("report-runs.json", [_run(row) for row in runs])
    for report in Report.objects.filter(run__account=account).order_by("created_at", "pk").iterator():
        yield ArchiveEntry(f"reports/{report.run_id}.json", report.shown)
    scores = Score.objects.filter(account=account).select_related("company", "framework").order_by("pk")
    yield ArchiveEntry("published-scores.json", [_score(row) for row in scores])
    links = ShareLink.objects.filter(account=account).select_related("report").order_by("pk")
    yield ArchiveEntry("share-links.json", [_link(row) for row in links])
    applications = Application.objects.filter(account=account).select_related("applicant", "framework").order_by("pk")
    yield ArchiveEntry("applications.json", [_exported_application(row) for row in applications])


def _run(row: ReportRun) -> JSONObject:
    return {
        "runId": row.pk,
        "company": row.company.slug,
        "framework": row.framework.slug,
        "state": row.state,
        "cost": row.cost,
        "documents": row.document_ids,
        "createdAt": timestamp(row.created_at),
    }


def _score(row: Score) -> JSONObject:
    return {
        "company": row.company.slug,
        "framework": row.framework.slug,
        "reportId": row.report_id,
        "score": row.score,
        "grade": row.grade,
        "sections": row.sections,
        "assessedAt": timestamp(row.assessed_at),
        "publishedAt": timestamp(row.published_at),
    }


def _link(row: ShareLink) -> JSONObject:
    """Return a link without its secret, which an archive must not contain."""
    opened_at = timestamp(row.opened_at) if row.opened_at else None
    return {
        "runId": row.report.run_id,
        "name": row.name,
        "createdAt": timestamp(row.created_at),
        "openedAt": opened_at,
    }


def _exported_application(row: Application) -> JSONObject:
    return {
        "applicationId": row.pk,
        "company": row.applicant.slug,
        "program": row.framework.slug,
        "state": row.state,
        "note": row.note,
        "submittedAt": timestamp(row.submitted_at),
    }


def _delete(account: Account) -> None:
    drafts = abandoned_drafts(account)
    others = Ownership.objects.exclude(account=account).values("company_id")
    left = ShareLink.objects.filter(report__run__company__ownerships__account=account)
    left.exclude(report__run__company__in=others).delete()  # no owner is left to revoke them
    Application.objects.filter(applicant__in=drafts).delete()
    Report.objects.filter(run__company__in=drafts).delete()
    ReportRun.objects.filter(company__in=drafts).delete()
    ReportRun.objects.filter(account=account).update(idempotency_key=None)


PART = Part(name="assessments", export=_export, delete=_delete)


def _report(row: Report) -> tuple[str, str]:
    return f"{row.run.company.slug}: {row.run_id}", f"/review/companies/{row.run.company.slug}"


def _application(row: Application) -> tuple[str, str]:
    return f"{row.applicant.slug}: {row.pk}", f"/review/companies/{row.applicant.slug}"


SEARCHED: Final = (
    Searched(Report, "report", _report, ("run", "run__company")),
    Searched(Application, "application", _application, ("applicant",)),
)
