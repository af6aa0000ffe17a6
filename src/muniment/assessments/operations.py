"""
Operations on report runs. Starting one is free; executing it holds the credits, its end captures or releases them.

Source: decisions, section 5, report runs; assessment-spec/1.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Length

from muniment.accounts.models import Account
from muniment.assessments.evaluation.disclosure import shown_by
from muniment.assessments.evaluation.inputs import DocumentText, read_inputs
from muniment.assessments.evaluation.missing_evidence import missing_evidence
from muniment.assessments.evaluation.plugged import BUILT_IN, chosen_evaluator
from muniment.assessments.evaluation.preview import judged_by_rules
from muniment.assessments.models import ACTIVE, Report, ReportRun, RunState
from muniment.assessments.run_views import RUN, RunView, count_criteria, is_expired, read_runs
from muniment.credits import operations as credits_
from muniment.documents import operations as documents
from muniment.documents.models import Document, TextState
from muniment.documents.models import Page as DocumentPage
from muniment.documents.records import own_company
from muniment.jobs import queue
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.fairness import MAX_UNEXECUTED_RUNS
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.kernel.texts import text_fault
from muniment.kernel.wire import timestamp
from muniment.registry.company.access import no_company
from muniment.registry.company.listings import get_company
from muniment.registry.frameworks.authoring import current_specification
from muniment.registry.models import Company, Framework, State
from muniment.registry.sql import marks

KIND: Final = "assessments.executed"
EXPIRES_AFTER_HOURS: Final = 24
MAX_DOCUMENTS: Final = 50
MAX_KEY: Final = 100
JUDGED_CHARACTERS: Final = 200_000
"""The most text of documents that is judged before a run is paid."""
JUDGED_S: Final = 0.5
"""Maximum seconds that this judgment may take."""
_NOT_BY_RULES: Final = marked(
    "What the documents hold is judged only when the run is executed: missing evidence names sources that are absent."
)
_BEING_READ: Final = marked("The text of a document is still being extracted. Prepare the run again in a few seconds.")
_TOO_LONG: Final = marked(
    "The documents are too long to be judged for free: missing evidence names sources that are absent."
)


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run ready to be executed, and the credits that its account can spend."""

    run: RunView
    available: int

    def to_wire(self) -> JSONObject:
        # Judged here, after the transaction: it takes up to half a second, in which others could not write.
        evidence = evidence_of(self.run.row)
        return {
            **self.run.to_wire(),
            "available": self.available,
            "missingEvidence": evidence.missing,
            "evidenceJudged": not evidence.unjudged_because,
            **({"evidenceNote": evidence.unjudged_because} if evidence.unjudged_because else {}),
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
    """

    missing: list[JSONObject]
    unjudged_because: str


def evaluator_now(framework_id: str) -> JSONObject:
    """Return the evaluator that the settings choose; a model and a plugin receive passages of the evidence."""
    name = chosen_evaluator(framework_id)
    if name not in BUILT_IN:
        return {"kind": "plugin", "model": None, "name": name}
    return {"kind": name, "model": settings.MODEL.name if name == "model" else None}


def facts_of(slug: str) -> JSONObject:
    """Return everything a run reads about a company except documents, as plain JSON values."""
    found: JSONObject = msgspec.json.decode(msgspec.json.encode(get_company(SYSTEM, slug).bundle))
    return found


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
    chosen = list(dict.fromkeys(document_ids))
    _check_arguments(chosen, idempotency_key)
    if actor.account_id is None:
        raise no_company(company_slug)
    with transaction.atomic():
        company = own_company(actor, company_slug)
        framework = _framework(framework_id)
        # Before the look for the key: a repeat that comes at once must find the run, not only that it is active.
        Account.objects.select_for_update().get(pk=actor.account_id)
        row = _run_with_key(actor.account_id, idempotency_key) if idempotency_key else None
        if row is not None:
            _require_same(row, company, framework, chosen)
        else:
            row = _new_run(actor, company, framework, chosen)
            row.idempotency_key = idempotency_key or None
            row.save(force_insert=True)
    # The first look at the credits opens their account, which waits for the lock that is held above.
    return StartedRun(get_run(actor, row.pk), credits_.available(actor))


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
    found = Framework.objects.filter(slug=framework_id).first()
    if found is None or not is_runnable(found):
        raise NotFound(
            Phrase("There is no framework with the frameworkId {id!r}.", id=framework_id[:200]),
            "Call list_frameworks for valid ids.",
        )
    return found


def costs_of(framework_ids: Iterable[str]) -> dict[str, int]:
    """Return the credits that a run of each of these frameworks costs, of those that are authored and not closed."""
    authored = Framework.objects.filter(slug__in=list(framework_ids), closed=False, specifications__isnull=False)
    return {slug: _cost(own) for slug, own in authored.values_list("slug", "run_cost").distinct()}


def _cost(own: int | None) -> int:
    return settings.RUN_COST if own is None else own


def is_runnable(framework: Framework) -> bool:
    """Return whether a framework is listed and, for a program, its company is public."""
    is_program = framework.kind == Framework.Kind.PROGRAM
    owner = framework.company if is_program else None
    return framework.listed and (not is_program or (owner is not None and owner.state == State.PUBLISHED))


def _run_with_key(account_id: int, key: str) -> ReportRun | None:
    return ReportRun.objects.filter(account_id=account_id, idempotency_key=key).first()


def _require_same(row: ReportRun, company: Company, framework: Framework, document_ids: list[str]) -> None:
    if (row.company_id, row.framework_id, row.document_ids) != (company.pk, framework.pk, document_ids):
        raise Conflict("This idempotencyKey was used for another run.", "Send a new key for a new run.")


def _require_no_active_run(company: Company, framework: Framework) -> None:
    active = ReportRun.objects.filter(company=company, framework=framework, state__in=ACTIVE).first()
    if active is not None:
        raise Conflict(
            Phrase("A run of this framework for this company is already active: {id}.", id=active.pk),
            "Poll it with get_report_run_status; start another when it has ended.",
        )


def _make_room_for_run(account_id: int) -> None:
    """Refuse another run beyond the limit; the caller has locked the account."""
    waiting = ReportRun.objects.filter(account_id=account_id, state=RunState.CREATED, expires_at__gt=now()).count()
    if waiting >= MAX_UNEXECUTED_RUNS:
        raise Conflict(
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
    specification, facts = row.specification.document, facts_of(row.company.slug)
    because = _unjudged_because(row)
    found: dict[str, JSONObject] | None = None
    if not because:
        chosen = Document.objects.filter(pk__in=row.document_ids)
        texts = [DocumentText(each.pk, each.filename, each.sha256, documents.text_of(each)) for each in chosen]
        deadline = time.monotonic() + JUDGED_S
        inputs = read_inputs(facts, texts, currency=settings.CURRENCY)
        found = judged_by_rules(specification, inputs, deadline=deadline)
        because = "" if found is not None else _TOO_LONG
    unsupported = {name for name, each in (found or {}).items() if each["status"] == "insufficient"}
    return Evidence(missing_evidence(specification, facts, row.document_ids, unsupported), because)


def _unjudged_because(row: ReportRun) -> str:
    """Return why the evidence of a run cannot be judged before it is executed; "" if it can."""
    if chosen_evaluator(row.framework.slug) != "rules":
        return _NOT_BY_RULES
    chosen = Document.objects.filter(pk__in=row.document_ids)
    if chosen.filter(text_state=TextState.WAITING).exists():
        return _BEING_READ
    size = DocumentPage.objects.filter(document__in=chosen).aggregate(characters=Sum(Length("text")))["characters"] or 0
    return _TOO_LONG if size > JUDGED_CHARACTERS else ""


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


def get_run(actor: Actor, run_id: str) -> RunView:
    """Return a run of one of the actor's companies, or raise NotFound."""
    for seen in read_runs(actor, f"{RUN}.id = %s", [run_id]):
        return seen
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
    found = ReportRun.objects.filter(company__ownerships__account_id=actor.account_id)
    if company_slug is not None:
        found = found.filter(company=own_company(actor, company_slug))
    if state is not None:
        found = found.filter(_in_state(state))
    listed = Page.of(found.order_by("-created_at", "-pk").values_list("pk", flat=True), page, page_size)
    if not listed.items:
        return Page([], page, page_size, listed.total)
    clause = f"{RUN}.id IN ({marks(listed.items)}) ORDER BY {RUN}.created_at DESC, {RUN}.id DESC"
    return Page(list(read_runs(actor, clause, listed.items)), page, page_size, listed.total)


def _in_state(state: str) -> Q:
    """Return the condition of a state as owners see it: a run that was not executed in time has expired."""
    late = Q(state=RunState.CREATED, expires_at__lte=now())
    if state == RunState.EXPIRED:
        return Q(state=RunState.EXPIRED) | late
    return Q(state=state) & ~late


def get_report(actor: Actor, run_id: str) -> Report:
    """Return the report of a run; raise NotFound if the run is not the actor's, Conflict if it has no report."""
    seen = get_run(actor, run_id)
    found = Report.objects.select_related("run").filter(run_id=seen.row.pk).first()
    if found is None:
        hint = "Poll get_report_run_status until it has ended." if seen.state in ACTIVE else "Start another run."
        if seen.state == RunState.CREATED:
            hint = "Execute it with execute_report_run."
        raise Conflict(Phrase("The run is {state} and has no report.", state=Phrase(seen.state)), hint)
    return found


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
