"""
A report run from its preparation to its report, in the order in which it happens.

Preparing one is free; executing it holds the credits, its end captures or releases them. A job judges: a restarted one
continues from its checkpoints. The report, the end of the job and the payment share one transaction, which a worker
that lost its lease cannot commit.

Source: decisions, section 5, report runs; assessment-spec/1.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, F, OuterRef, Q, Sum
from django.db.models.functions import Length

from muniment.accounts.models import Account
from muniment.assessments.evaluation.evaluators import choose_evaluator, chosen_evaluator, evaluator_now
from muniment.assessments.evaluation.inputs import DocumentText, Inputs, input_hash, read_inputs
from muniment.assessments.evaluation.judgement import Evaluator, Judged, Usage, aggregate, settle
from muniment.assessments.evaluation.language_model.endpoint import ModelUnavailable
from muniment.assessments.evaluation.language_model.evaluator import UNUSABLE
from muniment.assessments.evaluation.preview import judged_by_rules, missing_evidence
from muniment.assessments.models import ACTIVE, Report, ReportRun, RunState
from muniment.assessments.report_views import shown_by
from muniment.credits import operations as credits_
from muniment.documents import operations as documents
from muniment.documents.models import Document, TextState
from muniment.documents.models import Page as DocumentPage
from muniment.documents.records import own_company
from muniment.jobs import handlers, queue
from muniment.jobs.handlers import Abandoned, HandedBack
from muniment.jobs.models import Job
from muniment.jobs.queue import JobRun, is_killed
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.fairness import MAX_UNEXECUTED_RUNS
from muniment.kernel.ids import new_id, now
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Joined, Phrase, marked
from muniment.kernel.phrases.storing import packed, unpacked
from muniment.kernel.problems import BadRequest, Conflict, LimitReached, NotFound
from muniment.kernel.texts import text_fault
from muniment.kernel.wire import timestamp
from muniment.mail import places
from muniment.registry.company.access import no_company
from muniment.registry.company.listings import get_company
from muniment.registry.company.owned_rows import newest_page
from muniment.registry.fields import marks
from muniment.registry.frameworks.authoring import current_specification
from muniment.registry.models import Company, Framework, FrameworkSpecification, Ownership, State
from muniment.webhooks import events

KIND: Final = "assessments.executed"
RUN: Final = "assessments_reportrun"
EXPIRES_AFTER_HOURS: Final = 24
MAX_DOCUMENTS: Final = 50
MAX_KEY: Final = 100
JUDGED_CHARACTERS: Final = 200_000
"""The most text of documents that is judged before a run is paid."""
JUDGED_S: Final = 0.5
"""Maximum seconds that this judgment may take."""
PER_ACCOUNT: Final = 2
TEXT_WAIT_S: Final = 300
_PAUSE_S: Final = 0.2
_FINAL: Final = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELED, RunState.EXPIRED})
_NOT_BY_RULES: Final = marked(
    "What the documents hold is judged only when the run is executed: missing evidence names sources that are absent."
)
_BEING_READ: Final = marked("The text of a document is still being extracted. Prepare the run again in a few seconds.")
_TOO_LONG: Final = marked(
    "The documents are too long to be judged for free: missing evidence names sources that are absent."
)
_UNREADABLE: Final = "The run failed. Nothing was charged."
_KILLED: Final = marked(
    "The server stopped several times during this run. Nothing was charged; tell the registry's operator."
)
UNAVAILABLE: Final = "The language model is unavailable. Nothing was charged; start another run later."
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as its owners see it, with its progress."""

    row: ReportRun
    progress: JSONObject
    report_id: str | None

    @property
    def state(self) -> str:
        """Return the run's state; a run that was not executed in time has expired."""
        return RunState.EXPIRED if is_expired(self.row) else self.row.state

    @property
    def is_final(self) -> bool:
        return self.state in _FINAL

    def to_wire(self) -> JSONObject:
        row, is_active = self.row, self.state in ACTIVE
        poll_after_s = 1 if is_active else None
        return {
            "runId": row.pk,
            "companySlug": row.company.slug,
            "frameworkId": row.framework.slug,
            "state": self.state,
            "cost": row.cost,
            "progress": self.progress,
            "shouldPoll": is_active,
            "pollAfterSeconds": poll_after_s,
            "error": row.error or None,
            "createdAt": timestamp(row.created_at),
            "startedAt": _moment(row.started_at),
            "finishedAt": _moment(row.finished_at),
            "reportId": self.report_id,
        }


def is_expired(row: ReportRun) -> bool:
    """Return whether a run was not executed in time, also before a job marks it."""
    return row.state == RunState.CREATED and row.expires_at <= now()


def _moment(at: datetime | None) -> str | None:
    return timestamp(at) if at else None


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run ready to be executed, and the credits that its account can spend."""

    run: RunView
    available: int

    def to_wire(self) -> JSONObject:
        # Judged here, after the transaction: it takes up to half a second, in which others could not write.
        evidence = evidence_of(self.run.row)
        note = {"evidenceNote": evidence.unjudged_because} if evidence.unjudged_because else {}
        return {
            **self.run.to_wire(),
            "available": self.available,
            "missingEvidence": evidence.missing,
            "evidenceJudged": not evidence.unjudged_because,
            **note,
            "reportShows": shown_by(self.run.row.specification.document),
            "evaluator": evaluator_now(self.run.row.framework.slug),
            "expiresAt": timestamp(self.run.row.expires_at),
        }


@dataclass(frozen=True, slots=True)
class Evidence:
    """
    The preview of a run before it is paid.

    Args:
        missing: see :func:`missing_evidence`.
        unjudged_because: why *missing* tells only which sources there are, not what they hold; "" if it tells both.
        finds_nothing: no criterion that applies has evidence, so that the score is certain to be 0.
    """

    missing: list[JSONObject]
    unjudged_because: str
    finds_nothing: bool


def costs_of(framework_ids: Iterable[str]) -> dict[str, int]:
    """Return the credits that a run of each of these frameworks costs, of those that are authored and not closed."""
    authored = Framework.objects.filter(slug__in=list(framework_ids), closed=False, specifications__isnull=False)
    return {slug: _cost(own_cost) for slug, own_cost in authored.values_list("slug", "run_cost").distinct()}


def _cost(own_cost: int | None) -> int:
    return settings.RUN_COST if own_cost is None else own_cost


def is_runnable(framework: Framework) -> bool:
    """Return whether a framework is listed and, for a program, its company is public."""
    if not framework.listed:
        return False
    if framework.kind != Framework.Kind.PROGRAM:
        return True
    return framework.company is not None and framework.company.state == State.PUBLISHED


def start_run(
    actor: Actor,
    company_slug: str,
    framework_id: str,
    *,
    document_ids: Sequence[str] = (),
    idempotency_key: str | None = None,
) -> StartedRun:
    """
    Prepare a run of a framework against a company: fix the specification and the price, charge nothing.

    Args:
        document_ids: ready documents of this company that may be quoted.
        idempotency_key: repeated with the same values, it returns the same run.

    Raises:
        NotFound: the company or a document is not the actor's; the framework is unknown.
        Conflict: the framework is closed; a run of the two is active; the key was used for another run; the account
            has too many runs that are not executed.
    """
    chosen_ids = list(dict.fromkeys(document_ids))
    _check_arguments(chosen_ids, idempotency_key)
    if actor.account_id is None:
        raise no_company(company_slug)
    with transaction.atomic():
        company = own_company(actor, company_slug)
        framework = _framework(framework_id)
        # Before the look for the key: a repeat that comes at once must find the run, not only that it is active.
        Account.objects.select_for_update().get(pk=actor.account_id)
        row = _run_with_key(actor.account_id, idempotency_key) if idempotency_key else None
        if row is not None:
            _require_same(row, company, framework, chosen_ids)
        else:
            row = _new_run(actor, company, framework, chosen_ids)
            row.idempotency_key = idempotency_key or None
            row.save(force_insert=True)
    # The first look at the credits opens their account, which waits for the lock that is held above.
    return StartedRun(get_run(actor, row.pk), credits_.available(actor))


def _check_arguments(document_ids: list[str], key: str | None) -> None:
    if len(document_ids) > MAX_DOCUMENTS:
        count = len(document_ids)
        raise BadRequest(
            Phrase("documentIds has {count} items.", count=count),
            Phrase("A run takes at most {limit} documents.", limit=MAX_DOCUMENTS),
        )
    if key is not None and (not 1 <= len(key) <= MAX_KEY or text_fault(key)):
        raise BadRequest("The idempotencyKey is not text of 1 to 100 characters.", "Use a new UUID.")


def _framework(framework_id: str) -> Framework:
    framework = Framework.objects.filter(slug=framework_id).first()
    if framework is None or not is_runnable(framework):
        raise NotFound(
            Phrase("There is no framework with the frameworkId {id!r}.", id=framework_id[:200]),
            "Call list_frameworks for valid ids.",
        )
    return framework


def _run_with_key(account_id: int, key: str) -> ReportRun | None:
    return ReportRun.objects.filter(account_id=account_id, idempotency_key=key).first()


def _require_same(row: ReportRun, company: Company, framework: Framework, document_ids: list[str]) -> None:
    if (row.company_id, row.framework_id, row.document_ids) != (company.pk, framework.pk, document_ids):
        raise Conflict("This idempotencyKey was used for another run.", "Send a new key for a new run.")


def _new_run(actor: Actor, company: Company, framework: Framework, document_ids: list[str]) -> ReportRun:
    """Return a run that is not saved yet; raise Conflict if there can be none. The caller has locked the account."""
    assert actor.account_id is not None  # noqa: S101 - the caller has found its company
    specification = current_specification(framework.slug)
    if specification is None or framework.closed:
        raise Conflict(
            Phrase("The framework {id!r} is closed and takes no runs.", id=framework.slug),
            "Choose one with isOpen true in list_frameworks.",
        )
    _make_room_for_run(actor.account_id)
    _require_no_active_run(company, framework)
    for document_id in document_ids:
        _check_document(actor, company, document_id)
    return ReportRun(
        company=company,
        framework=framework,
        specification=specification,
        account_id=actor.account_id,
        via=actor.via,
        document_ids=document_ids,
        criteria=count_criteria(specification),
        cost=_cost(framework.run_cost),
        expires_at=now() + timedelta(hours=EXPIRES_AFTER_HOURS),
    )


def _make_room_for_run(account_id: int) -> None:
    """Refuse another run beyond the limit; the caller has locked the account."""
    waiting = ReportRun.objects.filter(account_id=account_id, state=RunState.CREATED, expires_at__gt=now()).count()
    if waiting >= MAX_UNEXECUTED_RUNS:
        raise LimitReached(
            Phrase(
                "You have {waiting} report runs that are not executed; at most {limit} are allowed.",
                waiting=waiting,
                limit=MAX_UNEXECUTED_RUNS,
            ),
            Phrase(
                "Execute or cancel some of them; each expires {hours} hours after it was prepared.",
                hours=EXPIRES_AFTER_HOURS,
            ),
        )


def _require_no_active_run(company: Company, framework: Framework) -> None:
    active = ReportRun.objects.filter(company=company, framework=framework, state__in=ACTIVE).first()
    if active is not None:
        raise Conflict(
            Phrase("A run of this framework for this company is already active: {id}.", id=active.pk),
            "Poll it with get_report_run_status; start another when it has ended.",
        )


def _check_document(actor: Actor, company: Company, document_id: str) -> None:
    document = documents.get_document(actor, document_id)
    if document.company_id != company.pk:
        raise BadRequest(
            Phrase("The document {id!r} belongs to another company.", id=document_id),
            Phrase("Call list_my_documents with companySlug {slug!r} for its documents.", slug=company.slug),
        )
    if document.state != "ready":
        raise Conflict(
            Phrase("The document {id!r} is {state}, not ready.", id=document_id, state=Phrase(document.state)),
            "Call complete_document_upload, or leave it out.",
        )


def evidence_of(row: ReportRun) -> Evidence:
    """
    Return which evidence a prepared run would not find, for free.

    Rules judge the documents' text right away, unless it is long. A language model reads it only in the run.
    """
    specification = row.specification.document
    facts = facts_of(row.company.slug)
    unsupported: set[str] = set()
    finds_nothing = False
    unjudged_because = _unjudged_because(row)
    if not unjudged_because:
        texts = _texts_of(Document.objects.filter(pk__in=row.document_ids))
        deadline = time.monotonic() + JUDGED_S
        inputs = read_inputs(facts, texts, currency=settings.CURRENCY)
        settled = judged_by_rules(specification, inputs, deadline=deadline)
        if settled is None:
            unjudged_because = _TOO_LONG
        else:
            applying = set()
            for criterion_id, criterion in settled.items():
                if criterion["status"] != "not_applicable":
                    applying.add(criterion_id)
                if criterion["status"] == "insufficient":
                    unsupported.add(criterion_id)
            finds_nothing = bool(applying) and applying == unsupported
    missing = missing_evidence(specification, facts, row.document_ids, unsupported)
    return Evidence(missing, unjudged_because, finds_nothing)


def _texts_of(chosen: Iterable[Document]) -> list[DocumentText]:
    texts = []
    for document in chosen:
        pages = documents.text_of(document)
        texts.append(DocumentText(document.pk, document.filename, document.sha256, pages))
    return texts


def _unjudged_because(row: ReportRun) -> str:
    """Return why the evidence of a run cannot be judged before it is executed; "" if it can."""
    if chosen_evaluator(row.framework.slug) != "rules":
        return _NOT_BY_RULES
    chosen = Document.objects.filter(pk__in=row.document_ids)
    if chosen.filter(text_state=TextState.WAITING).exists():
        return _BEING_READ
    pages = DocumentPage.objects.filter(document__in=chosen)
    characters = pages.aggregate(characters=Sum(Length("text")))["characters"] or 0
    return _TOO_LONG if characters > JUDGED_CHARACTERS else ""


def facts_of(slug: str) -> JSONObject:
    """Return everything a run reads about a company except documents, as plain JSON values."""
    facts: JSONObject = msgspec.json.decode(msgspec.json.encode(get_company(SYSTEM, slug).bundle))
    return facts


def execute_run(actor: Actor, run_id: str) -> RunView:
    """
    Hold the credits and queue the run. Executing it again returns the same run.

    Raises:
        NotFound: unknown, or not the actor's.
        Conflict: it has expired; its price has changed since it was shown; another owner started it; not enough
            credits; another run is active; the framework was closed in the meantime.
    """
    try:
        with transaction.atomic():
            row = _lock_run(actor, run_id)
            if row.state == RunState.EXPIRED or is_expired(row):
                raise Conflict(
                    "The run has expired because it was not executed in time.",
                    "Start a new one with start_report_run, with a new idempotencyKey or none.",
                )
            if row.state != RunState.CREATED:
                return get_run(actor, run_id)
            if row.account_id != actor.account_id:
                raise Conflict("Another owner started this run and would pay for it.", "Start your own run.")
            if row.framework.closed or not is_runnable(row.framework):
                raise Conflict("The framework was closed in the meantime.", "Call list_frameworks for open ones.")
            _require_shown_price(row)
            _require_no_active_run(row.company, row.framework)
            documents.pin(row.pk, row.company, row.document_ids)
            credits_.hold(actor, row.pk, row.cost, note=f"{row.framework.name}: {row.company.name}"[:200])
            row.state = RunState.QUEUED
            row.save(update_fields=["state"])
            queue.enqueue(KIND, {"runId": row.pk}, job_id=row.pk, group=f"account:{row.account_id}")
            return get_run(actor, run_id)
    except IntegrityError:
        raise Conflict(
            "A run of this framework for this company is already active.", "Execute this one when it has ended."
        ) from None


def _require_shown_price(row: ReportRun) -> None:
    """Refuse a run whose price has changed since it was prepared: its owner has agreed to the former one."""
    price = _cost(row.framework.run_cost)
    if price != row.cost:
        raise Conflict(
            Phrase(
                "The price of this run has changed: it costs {price} credits now, and was shown as {shown}. "
                "Nothing was charged.",
                price=price,
                shown=row.cost,
            ),
            "To run it at the new price, prepare another run with start_report_run, with a new idempotencyKey or none.",
        )


def cancel_run(actor: Actor, run_id: str) -> RunView:
    """Cancel a run, or raise NotFound: at once if no worker has it, otherwise at its next checkpoint."""
    with transaction.atomic():
        row = _lock_run(actor, run_id)
        if row.state == RunState.CREATED:
            row.state, row.finished_at = RunState.CANCELED, now()
            row.save(update_fields=["state", "finished_at"])
            return get_run(actor, run_id)
    queue.cancel(run_id)
    return get_run(actor, run_id)


def expire_runs() -> int:
    """Mark runs that were not executed in time as expired; reads treat them as expired before that."""
    late = ReportRun.objects.filter(state=RunState.CREATED, expires_at__lte=now())
    return late.update(state=RunState.EXPIRED, finished_at=F("expires_at"))


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
    texts = _texts_of(chosen)
    scale = (specification["scale"]["min"], specification["scale"]["max"])
    assessment = _Assessment(criteria, scale, read_inputs(facts, texts, currency=settings.CURRENCY))
    settled, spent = _read_checkpoints(run)
    evaluator = choose_evaluator(spent, row.framework.slug)
    try:
        _judge(run, evaluator, assessment, settled)
    except ModelUnavailable as error:
        if not error.for_good:
            raise
        log.error("report run failed: %s", error)  # noqa: TRY400 - a traceback adds nothing
        raise Abandoned(UNAVAILABLE) from None
    if evaluator.spent.tokens:
        log.info("language model used", extra={"run": row.pk, "tokens": evaluator.spent.tokens})
    has_judged = any(criterion["evaluator"] == evaluator.kind for criterion in settled.values())
    if not has_judged and any(criterion["note"] == UNUSABLE for criterion in settled.values()):
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


def _wait_for_texts(run: JobRun, chosen: list[Document]) -> None:
    """Wait for the jobs that extract the documents' text; after a limit, judge without it."""
    limit = now() - timedelta(seconds=TEXT_WAIT_S)
    for document in chosen:
        if document.text_state == TextState.WAITING and document.changed_at > limit:
            time.sleep(_PAUSE_S)
            raise HandedBack(run.id)


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


def _judge(run: JobRun, evaluator: Evaluator, assessment: _Assessment, settled: JSONObject) -> None:
    """Judge the criteria missing in *settled* and add them to it, with a checkpoint for each batch."""
    criteria = assessment.criteria
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
    with closing(evaluator.judge(missing, assessment.scale, assessment.inputs)) as judging:
        for judged in judging:
            if judged is not None:
                batch.append(_settle_criterion(missing[judged.number], judged, assessment))
            if len(batch) >= evaluator.batch:
                keep()
            if not batch:
                run.check()
    if batch:
        keep()


def _settle_criterion(criterion: JSONMapping, judged: Judged, assessment: _Assessment) -> JSONObject:
    result = settle(criterion, assessment.scale, judged.judgement, assessment.inputs)
    if judged.note:
        result["rationale"] = Joined(" ", filter(None, (result["rationale"], judged.note)))
    return {**result, "evaluator": judged.by, "note": judged.note}


def _finish(run: JobRun, row: ReportRun, inputs_hash: str, scores: JSONObject, evaluator: Evaluator) -> None:
    created_at = now()
    report_id = new_id()
    judged_by = {"kind": evaluator.kind, "model": evaluator.model, "promptHash": evaluator.prompt_hash}
    if evaluator.kind == "plugin":
        judged_by["name"] = chosen_evaluator(row.framework.slug)
    document = {
        "reportId": report_id,
        "runId": row.pk,
        "frameworkId": row.framework.slug,
        "frameworkName": row.framework.name,
        "specificationVersion": row.specification.version,
        "companySlug": row.company.slug,
        "companyName": row.company.name,
        "createdAt": timestamp(created_at),
        "inputHash": inputs_hash,
        "shows": shown_by(row.specification.document),
        **scores,
        "evaluator": judged_by,
    }
    with transaction.atomic():
        run.finish()
        Report.objects.create(pk=report_id, run=row, document=document, created_at=created_at)
        ReportRun.objects.filter(pk=row.pk).update(state=RunState.SUCCEEDED, finished_at=created_at, error="")
        credits_.capture(row.pk)
        documents.unpin(row.pk)
        _tell_webhooks(row, "report.succeeded")


def _tell_webhooks(row: ReportRun, kind: str) -> None:
    """Record the end of a run for the webhooks of its account, in the caller's transaction."""
    told = {
        "run": row.pk,
        "framework": row.framework.slug,
        "company": row.company.slug,
        "url": f"{places.base_url()}/manage/reports/{row.pk}",
    }
    events.record(kind, told, accounts=[row.account_id], listing=row.company.slug)


def ended(job_id: str, payload: JSONObject, ending: handlers.Ending, error: str) -> None:  # noqa: ARG001 - the queue's signature
    """Release the credits of a run that failed or was canceled. The reason stays in the log: it may quote documents."""
    run_id = payload["runId"]
    state = RunState.FAILED
    shown = _UNREADABLE
    if ending == "canceled":
        state = RunState.CANCELED
        shown = ""
    elif error == UNAVAILABLE or error.startswith(f"{ModelUnavailable.__name__}:"):
        shown = UNAVAILABLE
    elif is_killed(error):
        shown = _KILLED
    active = ReportRun.objects.filter(pk=run_id, state__in=ACTIVE)
    if active.update(state=state, error=shown, finished_at=now()):
        if state == RunState.FAILED:
            _tell_webhooks(ReportRun.objects.select_related("company", "framework").get(pk=run_id), "report.failed")
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


def get_run(actor: Actor, run_id: str) -> RunView:
    """Return a run of one of the actor's companies, or raise NotFound."""
    for run in read_runs(actor, f"{RUN}.id = %s", [run_id]):
        return run
    raise _no_run(run_id)


def list_runs(
    actor: Actor, company_slug: str | None = None, *, state: str | None = None, page: int = 1, page_size: int = 25
) -> Page[RunView]:
    """
    List the runs of the actor's companies, newest first.

    Args:
        company_slug: only those of this company.
        state: only those in this state.

    Raises:
        NotFound: the company is unknown or not owned.
    """
    if actor.account_id is None:
        return Page([], page, page_size, 0)
    company = None if company_slug is None else own_company(actor, company_slug)
    runs = ReportRun.objects.all() if state is None else ReportRun.objects.filter(_in_state(state))
    listed = newest_page(runs, actor.account_id, page, page_size, company=company)
    if not listed.items:
        return Page([], page, page_size, listed.total)
    clause = f"{RUN}.id IN ({marks(listed.items)}) ORDER BY {RUN}.created_at DESC, {RUN}.id DESC"
    return Page(list(read_runs(actor, clause, listed.items)), page, page_size, listed.total)


def last_assessed(actor: Actor) -> str:
    """Return the slug of the listing of its own that the account assessed last; empty without one."""
    if actor.account_id is None:
        return ""
    runs = ReportRun.objects.filter(account_id=actor.account_id).order_by("-created_at", "-pk")
    # The account owns the listings of nearly all of its runs, so the first rows of the index answer it.
    is_owned = Exists(Ownership.objects.filter(account_id=actor.account_id, company=OuterRef("company")))
    return runs.filter(is_owned).values_list("company__slug", flat=True).first() or ""


def _in_state(state: str) -> Q:
    """Return the condition of a state as owners see it: a run that was not executed in time has expired."""
    late = Q(state=RunState.CREATED, expires_at__lte=now())
    if state == RunState.EXPIRED:
        return Q(state=RunState.EXPIRED) | late
    return Q(state=state) & ~late


def get_report(actor: Actor, run_id: str) -> Report:
    """Return the report of a run; raise NotFound if the run is not the actor's, Conflict if it has no report."""
    run = get_run(actor, run_id)
    report = Report.objects.select_related("run").filter(run_id=run.row.pk).first()
    if report is not None:
        return report
    if run.state == RunState.CREATED:
        hint = "Execute it with execute_report_run."
    elif run.state in ACTIVE:
        hint = "Poll get_report_run_status until it has ended."
    else:
        hint = "Start another run."
    raise Conflict(Phrase("The run is {state} and has no report.", state=Phrase(run.state)), hint)


def _lock_run(actor: Actor, run_id: str) -> ReportRun:
    if actor.account_id is not None:
        own = ReportRun.objects.filter(company__ownerships__account_id=actor.account_id, pk=run_id)
        for row in own.select_related("company", "framework").select_for_update(of=("self",)):
            return row
    raise _no_run(run_id)


def _no_run(run_id: str) -> NotFound:
    return NotFound(
        Phrase("Report run {id!r} not found.", id=run_id[:60]), "Call list_my_runs for the ids of your runs."
    )


def read_runs(actor: Actor, clause: str, parameters: list[Any]) -> Iterator[RunView]:
    """Return the actor's runs that meet *clause*, in one statement, because clients poll it."""
    if actor.account_id is None:
        return
    statement = (
        f"SELECT {RUN}.*, company.slug AS company_slug, company.name AS company_name,"
        " framework.slug AS framework_slug, framework.name AS framework_name,"
        " job.progress AS job_progress, report.id AS made_id"
        f" FROM {RUN} JOIN registry_company company ON company.id = {RUN}.company_id"
        f" JOIN registry_framework framework ON framework.id = {RUN}.framework_id"
        f" LEFT JOIN jobs_job job ON job.id = {RUN}.id"
        f" LEFT JOIN assessments_report report ON report.run_id = {RUN}.id"
        " WHERE EXISTS (SELECT 1 FROM registry_ownership"
        f" WHERE company_id = {RUN}.company_id AND account_id = %s) AND {clause}"
    )
    named, using = ("id", "slug", "name"), connection.alias
    for row in ReportRun.objects.raw(statement, [actor.account_id, *parameters]):
        shown: Any = row  # with the statement's further columns
        # Django loads the other columns on access.
        row.company = Company.from_db(using, named, (row.company_id, shown.company_slug, shown.company_name))
        row.framework = Framework.from_db(using, named, (row.framework_id, shown.framework_slug, shown.framework_name))
        yield RunView(row, _progress(row, shown.job_progress), shown.made_id)


def count_criteria(specification: FrameworkSpecification) -> int:
    return sum(len(section["criteria"]) for section in specification.document["sections"])


def _progress(row: ReportRun, job_progress: str | None) -> JSONObject:
    """Return a run's progress; *job_progress* is the stored progress of its job."""
    done = row.criteria if row.state == RunState.SUCCEEDED else 0
    step = row.state
    if row.state in ACTIVE:
        stored = msgspec.json.decode(job_progress) if job_progress else {}
        done = stored.get("done") or 0
        step = str(stored.get("step") or row.state).partition(":")[0]
    return {"done": done, "total": row.criteria, "step": step}


class Standing(NamedTuple):
    """The progress of a run. A run that is not active is over, or needs its owner."""

    is_active: bool
    done: int
    total: int
    step: str


def standings(run_ids: Iterable[str]) -> dict[str, Standing]:
    """Return how far runs are, by id; the caller has checked whose they are."""
    wanted = list(run_ids)
    job_progress = dict(Job.objects.filter(pk__in=wanted).values_list("pk", "progress"))
    by_id: dict[str, Standing] = {}
    for row in ReportRun.objects.filter(pk__in=wanted).select_related("specification"):
        progress = _progress(row, msgspec.json.encode(job_progress.get(row.pk) or {}).decode())
        by_id[row.pk] = Standing(row.state in ACTIVE, progress["done"], progress["total"], progress["step"])
    return by_id
