"""Reports and applications as personal data of people whom they name."""

import pytest

from make.documents import uploaded
from make.registry import owner
from make.reports import company, finished, program
from muniment.assessments import applications
from muniment.registry.people.erasing import find_mentions

pytestmark = pytest.mark.django_db
NAME = "Ottoline Quay"


@pytest.fixture(autouse=True)
def _stand(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10


def test_reports_and_applications_that_name_a_person_are_listed_for_the_operator():
    me, runner = owner("applicant@example.org"), owner("runner@example.org")
    slug, of = company(me), program(runner)
    paper = uploaded(me, slug, f"The annual accounts were approved by {NAME}.".encode())
    report = finished(me, slug, of, (paper.pk,))
    application = applications.submit_application(me, report.run_id)
    applications.decide_application(runner, application.pk, accept=True, note=f"{NAME} will call you.")
    mentions = {(mention.what, mention.where, mention.field): mention.address for mention in find_mentions(NAME)}
    page = f"/review/companies/{slug}"
    assert mentions["report", f"{slug}: {report.run_id}", "document"] == page
    assert mentions["application", f"{slug}: {application.pk}", "note"] == page
