"""
The job of a run: snapshot, judge, finish; what is finished is kept, and not done again after a crash.

The report, the end of the job and the payment share one transaction, which a worker that lost its lease
cannot commit.

Source: assessment-spec/1, flow; decisions, section 5, report runs.
"""

import time
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Any, Final

import msgspec
from django.conf import settings
from django.db import transaction

from muniment.assessments.evaluation.aggregation import aggregate, evaluator_of
from muniment.assessments.evaluation.inputs import DocumentText, Inputs, input_hash, read_inputs
from muniment.assessments.evaluation.judgement import Evaluator, settle
from muniment.assessments.evaluation.rules import Rules
from muniment.assessments.models import ACTIVE, Report, ReportRun, State
from muniment.assessments.operations import KIND, facts_of
from muniment.credits import operations as credits_
from muniment.documents import operations as documents
from muniment.documents.models import Document, TextState
from muniment.jobs import handlers
from muniment.jobs.queue import Abandoned, HandedBack, Run
from muniment.kernel.ids import new_id, now
from muniment.kernel.wire import timestamp

BATCH: Final = 8
"""Criteria between two checkpoints."""
PER_ACCOUNT: Final = 2
TEXT_WAIT_S: Final = 300
_PAUSE_S: Final = 0.2
_UNREADABLE: Final = "The run could not be finished. Nothing was charged."


def execute(run: Run) -> None:
    """Do one attempt at a run."""
    row = (
        ReportRun.objects.select_related("company", "framework", "specification")
        .filter(pk=run.payload["runId"], state__in=ACTIVE)
        .first()
    )
    if row is None:
        raise Abandoned("the run has ended")
    ReportRun.objects.filter(pk=row.pk, state=State.QUEUED).update(state=State.RUNNING, started_at=now())
    chosen = list(Document.objects.filter(pk__in=row.document_ids))
    _wait_for_texts(run, chosen)
    specification = row.specification.document
    criteria = list(chain.from_iterable(section["criteria"] for section in specification["sections"]))
    total = len(criteria)
    # Kept as text: the order of keys is part of what is judged, and a database may turn it round.
    snapshot = run.step(
        "snapshot", lambda: msgspec.json.encode(facts_of(row.company.slug)).decode(), done=0, total=total
    )
    facts = msgspec.json.decode(snapshot)
    texts = [_text(document) for document in sorted(chosen, key=lambda each: row.document_ids.index(each.pk))]
    inputs = read_inputs(facts, texts, currency=settings.CURRENCY)
    evaluator = Rules()
    scale = (specification["scale"]["min"], specification["scale"]["max"])
    settled: dict[str, Any] = {}
    for start in range(0, total, BATCH):
        batch = criteria[start : start + BATCH]
        kept = run.step(
            f"judge:{start}",
            partial(_judged, batch, scale, inputs, evaluator),
            done=start + len(batch),
            total=total,
        )
        settled.update({each["id"]: each for each in msgspec.json.decode(kept)})
    run.check()
    _finish(run, row, input_hash(facts, texts, specification), aggregate(specification, settled), evaluator)


def _judged(batch: list[Any], scale: tuple[float, float], inputs: Inputs, evaluator: Evaluator) -> str:
    found = [settle(each, scale, evaluator.judge(each, scale, inputs), inputs) for each in batch]
    return msgspec.json.encode(found).decode()


def _wait_for_texts(run: Run, chosen: list[Document]) -> None:
    """Let the jobs that read the chosen documents go first; one that takes too long is judged without."""
    patience = now() - timedelta(seconds=TEXT_WAIT_S)
    if any(each.text_state == TextState.WAITING and each.changed_at > patience for each in chosen):
        time.sleep(_PAUSE_S)
        raise HandedBack(run.id)


def _text(document: Document) -> DocumentText:
    return DocumentText(document.pk, document.filename, document.sha256, documents.text_of(document))


def _finish(run: Run, row: ReportRun, hashed: str, found: dict[str, Any], evaluator: Evaluator) -> None:
    moment, report_id = now(), new_id()
    document = {
        "reportId": report_id,
        "runId": row.pk,
        "frameworkId": row.framework.slug,
        "frameworkName": row.framework.name,
        "specificationVersion": row.specification.version,
        "companySlug": row.company.slug,
        "companyName": row.company.name,
        "createdAt": timestamp(moment),
        "inputHash": hashed,
        **found,
        "evaluator": evaluator_of(evaluator),
    }
    with transaction.atomic():
        run.finish()
        Report.objects.create(pk=report_id, run=row, document=document, created_at=moment)
        ReportRun.objects.filter(pk=row.pk).update(state=State.SUCCEEDED, finished_at=moment, error="")
        credits_.capture(row.pk)
        documents.unpin(row.pk)


def ended(job_id: str, payload: dict[str, Any], ending: handlers.Ending, error: str) -> None:  # noqa: ARG001 - the queue's form
    """Give back what was held for a run that failed or was canceled. The reason stays in the log: it may quote."""
    run_id = payload["runId"]
    moved = ReportRun.objects.filter(pk=run_id, state__in=ACTIVE).update(
        state=State.CANCELED if ending == "canceled" else State.FAILED,
        error="" if ending == "canceled" else _UNREADABLE,
        finished_at=now(),
    )
    if moved:
        credits_.release(run_id)
        documents.unpin(run_id)


handlers.register(
    handlers.Handler(kind=KIND, work=execute, lease_s=15, max_attempts=4, per_group=PER_ACCOUNT, ended=ended)
)
