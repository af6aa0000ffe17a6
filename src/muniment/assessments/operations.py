"""
What owners do with report runs.

A run that is started costs nothing; executing it holds the credits, its end takes them or gives them back.

Source: decisions, section 5, report runs; assessment-spec/1.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from muniment.assessments.models import ACTIVE, Report, ReportRun, State
from muniment.credits import operations as credits_
from muniment.documents import operations as documents
from muniment.documents.records import own_company
from muniment.jobs import queue
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.ids import now
from muniment.kernel.pagination import Page
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.kernel.texts import text_fault
from muniment.kernel.wire import timestamp
from muniment.registry.company.editing import missing
from muniment.registry.company.operations import get_company
from muniment.registry.frameworks.operations import current_specification
from muniment.registry.frameworks.specification import SOURCES
from muniment.registry.models import Company, Framework, FrameworkSpecification
from muniment.registry.reading import columns

KIND: Final = "assessments.executed"
LIVES_HOURS: Final = 24
MAX_DOCUMENTS: Final = 50
MAX_KEY: Final = 100
_RUN: Final = "assessments_reportrun"
_FINAL: Final = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELED, State.EXPIRED})
_EMPTY: Final = {
    "profile": "Fill in the listing's profile.",
    "positions": "List the people and their titles.",
    "proposals": "List the proposals with their votes.",
    "capTable": "List the token holders.",
    "distribution": "Describe how tokens are distributed.",
    "documents": "Send documents with upload_document or create_document_upload, and name them in documentIds.",
}


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run as its owners see it, with how far it is."""

    row: ReportRun
    progress: dict[str, Any]
    report_id: str | None

    @property
    def state(self) -> str:
        """Give where the run stands; one that nobody executed in time has expired."""
        return State.EXPIRED if _is_expired(self.row) else self.row.state

    @property
    def is_final(self) -> bool:
        """Tell whether nothing will change any more."""
        return self.state in _FINAL

    def to_wire(self) -> dict[str, Any]:
        """Give the run as the tools show it."""
        row, polls = self.row, self.state in ACTIVE
        return {
            "runId": row.pk,
            "companySlug": row.company.slug,
            "frameworkId": row.framework.slug,
            "state": self.state,
            "cost": row.cost,
            "progress": self.progress,
            "shouldPoll": polls,
            "pollAfterSeconds": 1 if polls else None,
            "error": row.error or None,
            "createdAt": timestamp(row.created_at),
            "startedAt": _moment(row.started_at),
            "finishedAt": _moment(row.finished_at),
            "reportId": self.report_id,
        }


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that waits to be executed: what it costs, and what it would look for in vain."""

    run: SeenRun
    available: int
    missing_evidence: list[dict[str, Any]]

    def to_wire(self) -> dict[str, Any]:
        """Give it as the tools show it."""
        return {
            **self.run.to_wire(),
            "available": self.available,
            "missingEvidence": self.missing_evidence,
            "evaluator": evaluator_now(),
            "expiresAt": timestamp(self.run.row.expires_at),
        }


def evaluator_now() -> dict[str, Any]:
    """Give who judges runs as things stand: with a model, passages of what is judged go to the service that runs it."""
    model = settings.MODEL.name if settings.MODEL.url else None
    return {"kind": "model" if model else "rules", "model": model}


def _moment(at: datetime | None) -> str | None:
    return timestamp(at) if at else None


def _is_expired(row: ReportRun) -> bool:
    return row.state == State.CREATED and row.expires_at <= now()


def facts_of(slug: str) -> dict[str, Any]:
    """Give everything that a run looks at of a company beside documents, as plain JSON values."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(get_company(SYSTEM, slug).bundle))
    return found


# ------------------------------------------------------------------ starting


def start_run(
    actor: Actor,
    company_slug: str,
    framework_id: str,
    *,
    document_ids: Sequence[str] = (),
    idempotency_key: str | None = None,
) -> StartedRun:
    """
    Prepare a run of a framework over a company: freezes the specification and the price, spends nothing.

    Args:
        document_ids: ready documents of this company that may be quoted.
        idempotency_key: sent again with the same values, it gives the same run.

    Raises:
        NotFound: the company or a document is not the actor's; there is no such framework.
        Conflict: the framework is closed; a run of the two is under way; the key was used for another run.
    """
    chosen = list(dict.fromkeys(document_ids))
    _check(chosen, idempotency_key)
    if actor.account_id is None:
        raise missing(company_slug)
    with transaction.atomic():
        company = own_company(actor, company_slug)
        framework = _framework(framework_id)
        if idempotency_key and (standing := _of_key(actor.account_id, idempotency_key)):
            return _again(actor, standing, company, framework, chosen)
        specification = current_specification(framework_id)
        if specification is None or framework.closed:
            raise Conflict(
                f"The framework {framework_id!r} takes no runs: it is closed.",
                "list_frameworks shows with isOpen which ones do.",
            )
        _refuse_a_second(company, framework)
        for document_id in chosen:
            _usable(actor, company, document_id)
        row = ReportRun(
            company=company,
            framework=framework,
            specification=specification,
            account_id=actor.account_id,
            via=actor.via,
            document_ids=chosen,
            criteria=_counted(specification),
            cost=settings.RUN_COST if framework.run_cost is None else framework.run_cost,
            idempotency_key=idempotency_key or None,
            expires_at=now() + timedelta(hours=LIVES_HOURS),
        )
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError:
            standing = ReportRun.objects.get(account_id=actor.account_id, idempotency_key=idempotency_key)
            return _again(actor, standing, company, framework, chosen)
        return _started(actor, row)


def _check(document_ids: list[str], key: str | None) -> None:
    if len(document_ids) > MAX_DOCUMENTS:
        raise BadRequest(f"{len(document_ids)} documents are named.", f"A run takes at most {MAX_DOCUMENTS}.")
    if key is not None and (not 1 <= len(key) <= MAX_KEY or text_fault(key)):
        raise BadRequest("The idempotencyKey is not a text of 1 to 100 characters.", "A fresh UUID will do.")


def _framework(framework_id: str) -> Framework:
    found = Framework.objects.filter(slug=framework_id).first()
    if found is None or not (found.listed or found.published):
        raise NotFound(
            f"There is no framework with the frameworkId {framework_id[:200]!r}.", "list_frameworks lists them."
        )
    return found


def _of_key(account_id: int, key: str) -> ReportRun | None:
    return ReportRun.objects.filter(account_id=account_id, idempotency_key=key).first()


def _again(actor: Actor, row: ReportRun, company: Company, framework: Framework, document_ids: list[str]) -> StartedRun:
    if (row.company_id, row.framework_id, row.document_ids) != (company.pk, framework.pk, document_ids):
        raise Conflict("This idempotencyKey was used for another run.", "Send a fresh key for a new run.")
    return _started(actor, row)


def _refuse_a_second(company: Company, framework: Framework) -> None:
    active = ReportRun.objects.filter(company=company, framework=framework, state__in=ACTIVE).first()
    if active is not None:
        raise Conflict(
            f"A run of this framework over this company is under way: {active.pk}.",
            "get_report_run_status follows it; start another once it has ended.",
        )


def _usable(actor: Actor, company: Company, document_id: str) -> None:
    document = documents.get_document(actor, document_id)
    if document.company_id != company.pk:
        raise BadRequest(
            f"The document {document_id!r} belongs to another company.",
            f"list_my_documents with companySlug {company.slug!r} lists this company's.",
        )
    if document.state != "ready":
        raise Conflict(
            f"The document {document_id!r} is {document.state}, not ready.",
            "complete_document_upload makes it ready; or leave it out.",
        )


def _started(actor: Actor, row: ReportRun) -> StartedRun:
    lacking = missing_evidence(row.specification.document, facts_of(row.company.slug), row.document_ids)
    return StartedRun(get_run(actor, row.pk), credits_.available(actor), lacking)


def missing_evidence(
    specification: Mapping[str, Any], facts: Mapping[str, Any], document_ids: Sequence[str]
) -> list[dict[str, Any]]:
    """Tell which kinds of evidence are asked for and empty, by how many criteria, and what to do. Pure."""
    asked: Counter[str] = Counter()
    for section in specification["sections"]:
        for criterion in section["criteria"]:
            sources = set((criterion.get("evidence") or {}).get("sources") or ())
            sources |= {check.get("in", "documents") for check in criterion.get("checks") or () if "terms" in check}
            if not sources and not criterion.get("checks"):
                sources = {"documents"}
            asked.update(sources)
    there = {"profile", *(part for part in SOURCES if facts.get(part)), *(["documents"] if document_ids else [])}
    return [
        {"source": source, "criteria": asked[source], "hint": _EMPTY[source]}
        for source in SOURCES
        if asked[source] and source not in there
    ]


# ------------------------------------------------------------------ executing


def execute_run(actor: Actor, run_id: str) -> SeenRun:
    """
    Hold the credits and queue the run. Executing it again gives the same run.

    Raises:
        NotFound: unknown, or not the actor's.
        Conflict: it has expired; somebody else started it; too few credits; another run is under way;
            the framework has been closed since.
    """
    try:
        with transaction.atomic():
            row = _own(actor, run_id)
            if row.state == State.EXPIRED or _is_expired(row):
                raise Conflict(
                    "The run has expired: nobody executed it in time.",
                    "start_report_run starts a new one; give it a fresh idempotencyKey, or none.",
                )
            if row.state != State.CREATED:
                return get_run(actor, run_id)
            if row.account_id != actor.account_id:
                raise Conflict("Another owner started this run, and would pay for it.", "Start one of your own.")
            if row.framework.closed:
                raise Conflict("The framework has been closed since.", "list_frameworks shows which are open.")
            _refuse_a_second(row.company, row.framework)
            documents.pin(row.pk, row.company, row.document_ids)
            credits_.hold(actor, row.pk, row.cost, note=f"{row.framework.name}: {row.company.name}"[:200])
            row.state = State.QUEUED
            row.save(update_fields=["state"])
            queue.enqueue(KIND, {"runId": row.pk}, job_id=row.pk, group=f"account:{row.account_id}")
            return get_run(actor, run_id)
    except IntegrityError:
        raise Conflict(
            "A run of this framework over this company is under way.", "Execute this one once that one has ended."
        ) from None


def cancel_run(actor: Actor, run_id: str) -> SeenRun:
    """
    Stop a run: at once if nobody works on it, else at its next checkpoint. Its credits come back.

    Raises:
        NotFound: unknown, or not the actor's.
    """
    with transaction.atomic():
        row = _own(actor, run_id)
        if row.state == State.CREATED:
            row.state, row.finished_at = State.CANCELED, now()
            row.save(update_fields=["state", "finished_at"])
            return get_run(actor, run_id)
    queue.cancel(run_id)
    return get_run(actor, run_id)


def expire_runs() -> int:
    """Settle the runs that nobody executed in time; they read as expired before that, too."""
    late = ReportRun.objects.filter(state=State.CREATED, expires_at__lte=now())
    return late.update(state=State.EXPIRED, finished_at=F("expires_at"))


# ------------------------------------------------------------------ looking


def get_run(actor: Actor, run_id: str) -> SeenRun:
    """
    Give a run of one of the actor's companies.

    Raises:
        NotFound: unknown, or not the actor's.
    """
    for seen in _seen(actor, f"{_RUN}.id = %s", [run_id]):
        return seen
    raise _unknown(run_id)


def list_runs(actor: Actor, *, page: int = 1, page_size: int = 25) -> Page[SeenRun]:
    """List the runs of the actor's companies, newest first."""
    total = 0
    if actor.account_id is not None:
        total = ReportRun.objects.filter(company__ownerships__account_id=actor.account_id).count()
    start = (page - 1) * page_size
    newest = f"true ORDER BY {_RUN}.created_at DESC, {_RUN}.id DESC LIMIT %s OFFSET %s"
    items = list(_seen(actor, newest, [page_size, start])) if start < total else []
    return Page(items, page, page_size, total)


def get_report(actor: Actor, run_id: str) -> Report:
    """
    Give the report that a run ended in.

    Raises:
        NotFound: unknown, or not the actor's.
        Conflict: the run has none, or none yet; says how it stands.
    """
    seen = get_run(actor, run_id)
    found = Report.objects.select_related("run").filter(run_id=seen.row.pk).first()
    if found is None:
        way = {
            State.CREATED: "execute_report_run runs it.",
            State.QUEUED: "get_report_run_status tells when it has ended.",
            State.RUNNING: "get_report_run_status tells when it has ended.",
        }
        raise Conflict(
            f"The run is {seen.state}: there is no report.", way.get(State(seen.state), "Start another run.")
        )
    return found


def _own(actor: Actor, run_id: str) -> ReportRun:
    """Give a run of one of the actor's companies, locked."""
    row = None
    if actor.account_id is not None:
        own = ReportRun.objects.filter(company__ownerships__account_id=actor.account_id)
        row = own.select_related("company", "framework").select_for_update(of=("self",)).filter(pk=run_id).first()
    if row is None:
        raise _unknown(run_id)
    return row


def _unknown(run_id: str) -> NotFound:
    return NotFound(f"You have no report run {run_id[:60]!r}.", "start_report_run gives a runId.")


def _seen(actor: Actor, clause: str, parameters: list[Any]) -> Iterator[SeenRun]:
    """Give the actor's runs that meet *clause*, in one statement: who follows a run asks again and again."""
    if actor.account_id is None:
        return
    found = columns(
        ReportRun,
        f"JOIN registry_company company ON company.id = {_RUN}.company_id"
        f" JOIN registry_framework framework ON framework.id = {_RUN}.framework_id"
        f" LEFT JOIN jobs_job job ON job.id = {_RUN}.id"
        f" LEFT JOIN assessments_report report ON report.run_id = {_RUN}.id"
        " WHERE EXISTS (SELECT 1 FROM registry_ownership"
        f" WHERE company_id = {_RUN}.company_id AND account_id = %s) AND {clause}",
        [actor.account_id, *parameters],
        more=("company.slug", "company.name", "framework.slug", "framework.name", "job.progress", "report.id"),
    )
    named, using = ("id", "slug", "name"), connection.alias
    for each in found:
        *own, company_slug, company_name, framework_slug, framework_name, told, report_id = each.values()
        row = ReportRun.from_db(using, list(each)[: len(own)], own)
        # What is not named here is read when somebody asks for it.
        row.company = Company.from_db(using, named, (row.company_id, company_slug, company_name))
        row.framework = Framework.from_db(using, named, (row.framework_id, framework_slug, framework_name))
        yield SeenRun(row, _progress(row, told), report_id)


def _counted(specification: FrameworkSpecification) -> int:
    return sum(len(section["criteria"]) for section in specification.document["sections"])


def _progress(row: ReportRun, told: str | None) -> dict[str, Any]:
    """Tell how far a run is; *told* is what its job keeps of it, as stored."""
    total = row.criteria or _counted(row.specification)  # a process of before they were counted made it
    if row.state in ACTIVE:
        kept = msgspec.json.decode(told) if told else {}
        step = str(kept.get("step") or row.state).partition(":")[0]
        return {"done": kept.get("done") or 0, "total": total, "step": step}
    return {"done": total if row.state == State.SUCCEEDED else 0, "total": total, "step": row.state}
