"""
The job of a report run: snapshot, judge, finish. A restarted job continues from its checkpoints.

The report, the end of the job and the payment share one transaction, which a worker that lost its lease
cannot commit.

Source: assessment-spec/1, flow; decisions, section 5, report runs.
"""

import logging
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Any, Final

import msgspec
from django.conf import settings
from django.db import transaction

from muniment.assessments.evaluation.aggregation import aggregate
from muniment.assessments.evaluation.disclosure import shown_by
from muniment.assessments.evaluation.inputs import DocumentText, Inputs, input_hash, read_inputs
from muniment.assessments.evaluation.judgement import Evaluator, Judged, Usage, settle
from muniment.assessments.evaluation.language_model.endpoint import ModelUnavailable
from muniment.assessments.evaluation.language_model.evaluator import UNUSABLE, LanguageModel
from muniment.assessments.evaluation.plugged import BUILT_IN, chosen_evaluator, plugged_evaluator
from muniment.assessments.evaluation.rules import Rules
from muniment.assessments.models import ACTIVE, Report, ReportRun, RunState
from muniment.assessments.operations import KIND, facts_of
from muniment.credits import operations as credits_
from muniment.documents import operations as documents
from muniment.documents.models import Document, TextState
from muniment.jobs import handlers
from muniment.jobs.handlers import Abandoned, HandedBack
from muniment.jobs.queue import JobRun, is_killed
from muniment.kernel.ids import new_id, now
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.phrases.phrase import Joined, marked
from muniment.kernel.phrases.storing import packed, unpacked
from muniment.kernel.wire import timestamp

PER_ACCOUNT: Final = 2
TEXT_WAIT_S: Final = 300
_PAUSE_S: Final = 0.2
_UNREADABLE: Final = "The run failed. Nothing was charged."
_KILLED: Final = marked(
    "The server stopped several times during this run. Nothing was charged; tell the registry's operator."
)
UNAVAILABLE: Final = "The language model is unavailable. Nothing was charged; start another run later."

log = logging.getLogger(__name__)


def execute(run: JobRun) -> None:
    row = _begin(run)
    chosen = list(Document.objects.filter(pk__in=row.document_ids))
    _wait_for_texts(run, chosen)
    specification = row.specification.document
    criteria = list(chain.from_iterable(section["criteria"] for section in specification["sections"]))
    # Stored as text: the order of keys affects the judgement, and a database may change it.
    snapshot = run.step(
        "snapshot", lambda: msgspec.json.encode(facts_of(row.company.slug)).decode(), done=0, total=len(criteria)
    )
    facts = msgspec.json.decode(snapshot)
    chosen.sort(key=lambda document: row.document_ids.index(document.pk))
    texts = [
        DocumentText(document.pk, document.filename, document.sha256, documents.text_of(document))
        for document in chosen
    ]
    scale = (specification["scale"]["min"], specification["scale"]["max"])
    question = _Assessment(criteria, scale, read_inputs(facts, texts, currency=settings.CURRENCY))
    settled, spent = _read_checkpoints(run)
    evaluator = choose_evaluator(spent, row.framework.slug)
    try:
        _judge(run, evaluator, question, settled)
    except ModelUnavailable as error:
        if not error.for_good:
            raise
        log.error("report run failed: %s", error)  # noqa: TRY400 - a traceback adds nothing
        raise Abandoned(UNAVAILABLE) from None
    if evaluator.spent.tokens:
        log.info("language model used", extra={"run": row.pk, "tokens": evaluator.spent.tokens})
    judges = {criterion["evaluator"] for criterion in settled.values()}
    if evaluator.kind not in judges and any(criterion["note"] == UNUSABLE for criterion in settled.values()):
        raise Abandoned(UNAVAILABLE)  # the owner was promised a model's judgement
    run.check()
    _finish(run, row, input_hash(facts, texts, specification), aggregate(specification, settled), evaluator)


def _begin(run: JobRun) -> ReportRun:
    active = ReportRun.objects.select_related("company", "framework", "specification").filter(state__in=ACTIVE)
    row = active.filter(pk=run.payload["runId"]).first()
    if row is None:
        raise Abandoned("the run has already ended")
    ReportRun.objects.filter(pk=row.pk, state=RunState.QUEUED).update(state=RunState.RUNNING, started_at=now())
    return row


def _read_checkpoints(run: JobRun) -> tuple[JSONObject, Usage]:
    """Return the criteria that earlier attempts settled, by id, and what they spent."""
    settled: JSONObject = {}
    tokens, seconds = 0, 0.0
    for output in run.kept("judge:"):
        checkpoint = msgspec.json.decode(output, type=_Checkpoint)
        settled.update({criterion["id"]: criterion for criterion in unpacked(checkpoint.settled)})
        # Each checkpoint counts the usage from the start of the run.
        tokens = max(tokens, checkpoint.tokens)
        seconds = max(seconds, checkpoint.seconds)
    return settled, Usage(tokens, seconds)


def choose_evaluator(spent: Usage, framework_id: str) -> Evaluator:
    """Return the evaluator that the settings choose; without the plugin that they name, the run is tried again."""
    name = chosen_evaluator(framework_id)
    if name not in BUILT_IN:
        return plugged_evaluator(name)
    return LanguageModel(settings.MODEL, spent) if name == "model" else Rules()


@dataclass(frozen=True, slots=True)
class _Assessment:
    """The input of an evaluator."""

    criteria: list[Any]
    scale: tuple[float, float]
    inputs: Inputs


class _Checkpoint(msgspec.Struct):
    """A checkpoint: settled criteria in the report's form, and the usage so far."""

    settled: list[JSONObject]
    tokens: int = 0
    seconds: float = 0.0


def _judge(run: JobRun, evaluator: Evaluator, question: _Assessment, settled: JSONObject) -> None:
    """Judge the criteria missing in *settled* and add them to it, with a checkpoint for each batch."""
    criteria = question.criteria
    places = {criterion["id"]: number for number, criterion in enumerate(criteria)}
    missing = [criterion for criterion in criteria if criterion["id"] not in settled]
    batch: list[JSONObject] = []

    def keep() -> None:
        spent = evaluator.spent
        output = msgspec.json.encode(_Checkpoint(packed(batch), spent.tokens, spent.seconds)).decode()
        settled.update({criterion["id"]: criterion for criterion in batch})
        run.checkpoint(f"judge:{places[batch[0]['id']]}", output, done=len(settled), total=len(criteria))
        batch.clear()

    run.check()
    with closing(evaluator.judge(missing, question.scale, question.inputs)) as judging:
        for judged in judging:
            if judged is not None:
                batch.append(_settle_criterion(missing[judged.number], judged, question))
            if len(batch) >= evaluator.batch:
                keep()
            if not batch:
                run.check()
    if batch:
        keep()


def _settle_criterion(criterion: JSONMapping, judged: Judged, question: _Assessment) -> JSONObject:
    shown = settle(criterion, question.scale, judged.judgement, question.inputs)
    if judged.note:
        shown["rationale"] = Joined(" ", filter(None, (shown["rationale"], judged.note)))
    return {**shown, "evaluator": judged.by, "note": judged.note}


def _wait_for_texts(run: JobRun, chosen: list[Document]) -> None:
    """Wait for the jobs that extract the documents' text; after a limit, judge without it."""
    limit = now() - timedelta(seconds=TEXT_WAIT_S)
    if any(each.text_state == TextState.WAITING and each.changed_at > limit for each in chosen):
        time.sleep(_PAUSE_S)
        raise HandedBack(run.id)


def _finish(run: JobRun, row: ReportRun, hashed: str, found: JSONObject, evaluator: Evaluator) -> None:
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
        "shows": shown_by(row.specification.document),
        **found,
        "evaluator": {
            "kind": evaluator.kind,
            "model": evaluator.model,
            "promptHash": evaluator.prompt_hash,
            **({"name": chosen_evaluator(row.framework.slug)} if evaluator.kind == "plugin" else {}),
        },
    }
    with transaction.atomic():
        run.finish()
        Report.objects.create(pk=report_id, run=row, document=document, created_at=moment)
        ReportRun.objects.filter(pk=row.pk).update(state=RunState.SUCCEEDED, finished_at=moment, error="")
        credits_.capture(row.pk)
        documents.unpin(row.pk)


def ended(job_id: str, payload: JSONObject, ending: handlers.Ending, error: str) -> None:  # noqa: ARG001 - the queue's signature
    """Release the credits of a run that failed or was canceled. The reason stays in the log: it may quote documents."""
    run_id, state, shown = payload["runId"], RunState.FAILED, _UNREADABLE
    if ending == "canceled":
        state, shown = RunState.CANCELED, ""
    elif error == UNAVAILABLE or error.startswith(f"{ModelUnavailable.__name__}:"):
        shown = UNAVAILABLE
    elif is_killed(error):
        shown = _KILLED
    active = ReportRun.objects.filter(pk=run_id, state__in=ACTIVE)
    if active.update(state=state, error=shown, finished_at=now()):
        credits_.release(run_id)
        documents.unpin(run_id)


handlers.register(
    handlers.Handler(
        kind=KIND,
        work=execute,
        lease_s=15,
        max_attempts=4,
        # The texts that it reads come out of confined processes, and a run that is paid outlives several restarts.
        max_kills=4,
        back_off_s=10,  # 70 s in all: most outages of a model end within a minute
        per_group=PER_ACCOUNT,
        ended=ended,
    )
)
