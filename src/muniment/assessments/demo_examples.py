"""
What the demo's owner has beside listings: documents, a finished report, and an application to a program.

A job makes them after the start, so that the first answer waits for none of it.
"""

from typing import Final

from muniment.accounts.models import Account
from muniment.assessments import applications, operations
from muniment.assessments.models import Application, Report, RunState
from muniment.documents import uploads
from muniment.documents.models import Document
from muniment.jobs import handlers, queue
from muniment.jobs.handlers import Postponed
from muniment.jobs.queue import JobRun
from muniment.kernel.actor import Actor
from muniment.registry.demo_accounts import DEMO, OWNER
from muniment.registry.models import Company, State

KIND: Final = "demo.examples"
SCORE: Final = "plain-governance"
PROGRAM: Final = "harrow-bay-works-2027"
PAUSE_S: Final = 1


def request_examples() -> None:
    """Ask for the examples, once for an instance."""
    queue.enqueue(KIND, unique_key=KIND)


def make_examples(_: JobRun) -> None:
    """Upload the documents and run both frameworks; when their reports are there, apply to the program."""
    account = Account.objects.get(email=OWNER)
    actor = account.actor("command", "demo")
    company = Company.objects.filter(ownerships__account=account, state=State.PUBLISHED).order_by("pk").last()
    if company is None:
        return
    documents = _documents(actor, company)
    runs = {framework: _run(actor, company, framework, documents) for framework in (SCORE, PROGRAM)}
    reports = Report.objects.filter(run_id__in=runs.values()).count()
    if reports < len(runs):
        raise Postponed("the demo's reports are not finished", pause_s=PAUSE_S, is_excused=True)
    if not Application.objects.filter(applicant=company).exists():
        applications.submit_application(actor, runs[PROGRAM])


def _documents(actor: Actor, company: Company) -> list[str]:
    """Return the ids of the demo's documents; upload those that are missing."""
    known = dict(Document.objects.filter(company=company).values_list("filename", "pk"))
    found = []
    for file in sorted((DEMO / "documents").iterdir()):
        if file.name not in known:
            made = uploads.upload_document(
                actor, company.slug, file.name, file.read_bytes(), content_type="text/markdown"
            )
            known[file.name] = made.pk
        found.append(known[file.name])
    return found


def _run(actor: Actor, company: Company, framework: str, documents: list[str]) -> str:
    """Return the run of a framework; prepare and execute it the first time."""
    key = f"demo {framework}"
    started = operations.start_run(actor, company.slug, framework, document_ids=documents, idempotency_key=key).run.row
    if started.state == RunState.CREATED:
        operations.execute_run(actor, started.pk)
    return started.pk


handlers.register(handlers.Handler(kind=KIND, work=make_examples, max_attempts=3))
