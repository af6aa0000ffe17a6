"""The texts of reports and applications, among which a person who was erased is looked for."""

from muniment.assessments.models import Application, Report
from muniment.registry.people.mentions import TEXTS, Searched


def _report(row: Report) -> tuple[str, str]:
    return f"{row.run.company.slug}: {row.run_id}", f"/review/companies/{row.run.company.slug}"


def _application(row: Application) -> tuple[str, str]:
    return f"{row.applicant.slug}: {row.pk}", f"/review/companies/{row.applicant.slug}"


def register() -> None:
    TEXTS.append(Searched(Report, "report", _report, ("run", "run__company")))
    TEXTS.append(Searched(Application, "application", _application, ("applicant",)))
