"""What the demo's owner finds beside listings: documents, a finished report, an application."""

import pytest

from muniment.accounts.models import Account
from muniment.assessments import demo_examples
from muniment.assessments.models import Application, Report
from muniment.documents.models import Document
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.registry.demo_accounts import OWNER, load_demo

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("blobs")]


@pytest.fixture
def blobs(settings, tmp_path):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10


def work():
    """Run all jobs, without the pauses between their attempts."""
    Job.objects.update(run_at=now())
    while run := queue.claim("tests"):
        try:
            result = run.handler.work(run)
        except demo_examples.Postponed:
            Job.objects.filter(pk=run.id).update(state="queued", run_at=now())
            continue
        if not run.finished and run._held().exists():
            run.finish(result)


def test_the_demos_owner_has_documents_a_report_and_an_application_once():
    load_demo(renews=True)
    demo_examples.request_examples()
    demo_examples.request_examples()
    work()
    work()
    documents = Document.objects.values_list("filename", flat=True)
    assert set(documents) == {"Board charter 2026.md", "Annual accounts 2025.md", "Field trial report.md"}
    scores = [report.document["overall"]["score"] for report in Report.objects.all()]
    assert len(scores) == 2
    assert min(scores) > 40, "the examples show what reports find"
    assert Application.objects.get().account_id == Account.objects.get(email=OWNER).pk
