"""Frameworks with confidential texts, and runs over fictional companies."""

import itertools
from typing import Any

from make.registry import published, reviewer
from muniment.assessments import operations
from muniment.assessments.models import Report
from muniment.jobs import queue
from muniment.kernel.actor import Actor
from muniment.registry.frameworks.authoring import author_framework, create_framework

_numbers = itertools.count(1)
SECRETS = ("secret-guidance", "secret-descriptor", "secret-term", "secret-requirement", "7.125")
"""Occur in :func:`specification` and must occur nowhere else."""


def specification(criteria: int = 3, **more: Any) -> dict[str, Any]:
    """Make a specification: a size, the annual accounts, and words to look for."""
    made: list[dict[str, Any]] = [
        {
            "id": "team",
            "title": "Enough hands",
            "weight": 7.125,
            "requirement": "secret-requirement about the team",
            "guidance": "secret-guidance",
            "levels": [{"level": 4, "descriptor": "secret-descriptor"}],
            "checks": [{"path": "company.teamSize", "op": ">=", "value": 3, "level": 4}],
        },
        {
            "id": "accounts",
            "title": "Accounts",
            "weight": 7.125,
            "requirement": "secret-requirement about accounts",
            "evidence": {"sources": ["documents"]},
            "checks": [{"op": "anyPhrase", "terms": ["annual accounts", "secret-term"], "level": 2}],
            "remediation": "Publish the accounts.",
        },
    ]
    made += [
        {"id": f"w{n}", "title": f"Moorings {n}", "weight": 1, "requirement": "secret-requirement of moorings"}
        for n in range(criteria - len(made))
    ]
    return {
        "schema": "assessment-spec/1",
        "version": 1,
        "scale": {"min": 0, "max": 4},
        "overall": {"bands": [{"min": 60, "label": "High"}, {"min": 0, "label": "Low"}]},
        "sections": [{"id": "all", "title": "Everything", "weight": 7.125, "criteria": made}],
        **more,
    }


def framework(criteria: int = 3, *, reports: str | None = "remediation", **more: Any) -> str:
    """Create an open framework and return its id; *reports* is what its reports show, None for the default."""
    made = create_framework(reviewer(), **{"name": f"Plain Harbour {next(_numbers)}", "kind": "score", **more})
    shows = {} if reports is None else {"reports": reports}
    author_framework(reviewer(), made.slug, {**specification(criteria), **shows})
    return str(made.slug)


def program(runner: Actor, **more: Any) -> str:
    """Create an open program run by a new company of *runner*, and return its id."""
    return framework(kind="program", company=company(runner, name=f"Harbour Fund {next(_numbers)}"), **more)


def company(owner: Actor, **fields: Any) -> str:
    """Create a published company of five people and return its slug."""
    return published(owner, **{"teamSize": 5, "description": "We mend boats.", **fields}).slug


def do_jobs() -> None:
    """Run all queued jobs in this thread; also inside a test's transaction, which never commits."""
    while run := queue.claim("tests"):
        result = run.handler.work(run)
        if not run.finished and run._held().exists():
            run.finish(result)


def finished(owner: Actor, slug: str = "", of: str = "", document_ids: tuple[str, ...] = ()) -> Report:
    """Run a framework to its end."""
    started = operations.start_run(owner, slug or company(owner), of or framework(), document_ids=document_ids)
    operations.execute_run(owner, started.run.row.pk)
    do_jobs()
    return operations.get_report(owner, started.run.row.pk)
