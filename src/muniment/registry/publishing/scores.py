"""The published scores of reports, as the documents of companies and frameworks show them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, F

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import number, summary_path, timestamp
from muniment.registry.logos.shown import fetched_logo
from muniment.registry.models import Company, Score, State
from muniment.registry.sql import marks, rows
from muniment.schema.framework import TOP_SCORES
from muniment.store.lists.scores import FACET, written


def assessments_of(companies: Iterable[int]) -> dict[int, list[JSONObject]]:
    """Return the published scores of companies by public frameworks, the latest report first."""
    found: dict[int, list[JSONObject]] = defaultdict(list)
    if not (keys := list(companies)):
        return found
    public = Score.objects.filter(company_id__in=keys, framework__published=True)
    of_others = ("company_id", "company__slug", "framework__slug", "framework__name")
    for row in public.order_by("-assessed_at", "framework__slug").values(*of_others, *_COLUMNS):
        framework_id = row["framework__slug"]
        sections = {} if row["sections"] is None else {"sections": row["sections"]}
        found[row["company_id"]].append(
            {
                "frameworkId": framework_id,
                "frameworkName": row["framework__name"],
                **_shown(row, row["company__slug"], framework_id),
                "specificationVersion": row["specification_version"],
                "evaluator": _evaluator(row),
                **sections,
            }
        )
    return found


def _evaluator(row: JSONObject) -> str:
    if row["evaluator"]:
        return "plugin"
    return "model" if row["model"] else "rules"


def facets_of(assessments: Iterable[JSONObject]) -> dict[str, tuple[str, ...]]:
    """Return the values by which the list of a framework's scores finds a company."""
    return {FACET + each["frameworkId"]: (written(each["score"]),) for each in assessments}


def frameworks_showing(companies: Sequence[int]) -> list[int]:
    """Return the frameworks of *companies* and those that they have a score of, in the order of publication."""
    if not companies:
        return []
    asked = marks(companies)
    found = rows(
        f"SELECT id, publication_number FROM registry_framework WHERE company_id IN ({asked})"
        " UNION SELECT framework.id, framework.publication_number FROM registry_framework framework"
        f" JOIN registry_score score ON score.framework_id = framework.id WHERE score.company_id IN ({asked})"
        " ORDER BY publication_number, id",
        [*companies, *companies],
    )
    return [key for key, _ in found]


def companies_with(frameworks: Iterable[int]) -> list[int]:
    """Return the companies that show a score of one of *frameworks*, dated like the change of these."""
    if not (asked := list(frameworks)):
        return []
    found = Score.objects.filter(framework_id__in=asked).order_by("pk")
    keys = list(found.values_list("company_id", flat=True))
    Company.objects.filter(pk__in=keys).update(updated_at=now())
    return keys


def counts_of(frameworks: Iterable[int]) -> dict[int, int]:
    """Return how many public companies have published their score, by framework."""
    found = _public().filter(framework_id__in=list(frameworks)).order_by().values_list("framework_id")
    return dict(found.annotate(n=Count("pk")))


def best_of(framework: int) -> list[JSONObject]:
    """Return the best scores of a framework, in the order of the list of all."""
    newest = [F(f"company__{column}").desc(nulls_last=True) for column in ("listed_on", "publication_number")]
    of_company = [f"company__{column}" for column in ("slug", "name", "symbol", "icon")]
    public = _public().filter(framework_id=framework).annotate(company__logo_digest=fetched_logo("company__"))
    of_company.append("company__logo_digest")
    found = public.order_by("-score", *newest)
    ranked: list[JSONObject] = []
    for place, row in enumerate(found.values("framework__slug", *of_company, *_COLUMNS)[:TOP_SCORES], 1):
        score = _shown(row, row["company__slug"], row["framework__slug"])
        rank = ranked[-1]["rank"] if ranked and ranked[-1]["score"] == score["score"] else place
        company = {name.removeprefix("company__"): row[name] for name in of_company}
        ranked.append({"rank": rank, "company": company, **score})
    return ranked


_COLUMNS = (
    *("score", "grade", "assessed_at", "previous_score", "previous_at"),
    *("specification_version", "model", "evaluator", "sections"),
)


def _public() -> Any:
    return Score.objects.filter(company__state=State.PUBLISHED)


def _shown(row: JSONObject, company: str, framework_id: str) -> JSONObject:
    """Return the members of a score that companies and frameworks share; empty ones are left out."""
    members = {
        "score": number(row["score"]),
        "grade": row["grade"] or None,
        "assessedAt": timestamp(row["assessed_at"]),
        "previousScore": None if row["previous_score"] is None else number(row["previous_score"]),
        "previousAssessedAt": _moment(row["previous_at"]),
        "url": summary_path(company, framework_id),
    }
    return {name: value for name, value in members.items() if value is not None}


def _moment(at: datetime | None) -> str | None:
    return timestamp(at) if at else None
