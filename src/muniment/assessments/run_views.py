"""Report runs as their owners see them: state, progress and report, read in one statement."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from django.db import connection

from muniment.assessments.models import ACTIVE, ReportRun, RunState
from muniment.jobs.models import Job
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import timestamp
from muniment.registry.models import Company, Framework, FrameworkSpecification

RUN: Final = "assessments_reportrun"
_FINAL: Final = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELED, RunState.EXPIRED})


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
        return {
            "runId": row.pk,
            "companySlug": row.company.slug,
            "frameworkId": row.framework.slug,
            "state": self.state,
            "cost": row.cost,
            "progress": self.progress,
            "shouldPoll": is_active,
            "pollAfterSeconds": 1 if is_active else None,
            "error": row.error or None,
            "createdAt": timestamp(row.created_at),
            "startedAt": _moment(row.started_at),
            "finishedAt": _moment(row.finished_at),
            "reportId": self.report_id,
        }


class Standing(NamedTuple):
    """The progress of a run. A run that is not active is over, or needs its owner."""

    is_active: bool
    done: int
    total: int
    step: str


def _moment(at: datetime | None) -> str | None:
    return timestamp(at) if at else None


def is_expired(row: ReportRun) -> bool:
    """Return whether a run was not executed in time, also before a job marks it."""
    return row.state == RunState.CREATED and row.expires_at <= now()


def standings(run_ids: Iterable[str]) -> dict[str, Standing]:
    """Return how far runs are, by id; the caller has checked whose they are."""
    wanted = list(run_ids)
    jobs = dict(Job.objects.filter(pk__in=wanted).values_list("pk", "progress"))
    found: dict[str, Standing] = {}
    for row in ReportRun.objects.filter(pk__in=wanted).select_related("specification"):
        seen = _progress(row, msgspec.json.encode(jobs.get(row.pk) or {}).decode())
        found[row.pk] = Standing(row.state in ACTIVE, seen["done"], seen["total"], seen["step"])
    return found


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
    total = row.criteria
    if row.state in ACTIVE:
        kept = msgspec.json.decode(job_progress) if job_progress else {}
        step = str(kept.get("step") or row.state).partition(":")[0]
        return {"done": kept.get("done") or 0, "total": total, "step": step}
    return {"done": total if row.state == RunState.SUCCEEDED else 0, "total": total, "step": row.state}
