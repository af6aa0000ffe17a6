"""Compare two reports of the same company and framework (assessment-spec/1, report: owners compare two runs)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import msgspec
from django.db.models import OuterRef, Subquery

from muniment.assessments.models import Report, ReportRun, RunState
from muniment.assessments.operations import get_report, get_run
from muniment.assessments.report_views import SCORES
from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest
from muniment.registry.fields import marks, rows
from muniment.registry.frameworks.specification import REPORTS

MAX_OTHERS: Final = 50
MAX_COMPARED: Final = 100
MAX_TITLE: Final = 120
Course = Literal["worse", "better", "changed", "new", "gone", "evidence", "same"]
_ORDER: Final[tuple[Course, ...]] = ("worse", "better", "changed", "new", "gone", "evidence", "same")
_SAME_RESULT: Final = frozenset({"evidence", "same"})
CHANGED: Final = tuple(course for course in _ORDER if course not in _SAME_RESULT)
_UNSCORED: Final = "not_applicable"


@dataclass(frozen=True, slots=True)
class ComparedCriterion:
    """
    A criterion in both reports; ``before`` or ``after`` is None if that report does not have it.

    ``course`` is ``changed`` if neither is better, as when the criterion no longer applies, and ``evidence`` if only
    the reason or the quotes differ.
    """

    section: str
    title: str
    before: JSONMapping | None
    after: JSONMapping | None
    course: Course


@dataclass(frozen=True, slots=True)
class ComparedSection:
    """A section's score, 0 to 100, in both reports; None if nothing applied or it does not exist there."""

    title: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    Two reports, the earlier first, and their differences; changed criteria come first.

    Args:
        criteria: none if one of the reports keeps them private.
    """

    before: Report
    after: Report
    sections: list[ComparedSection]
    criteria: list[ComparedCriterion]
    changed_total: int
    unchanged_total: int

    @property
    def shows(self) -> str:
        """Return what both reports show; if one keeps its criteria private, both do."""
        both: list[str] = [self.before.shown["shows"], self.after.shown["shows"]]
        return min(both, key=REPORTS.index)

    @property
    def changed(self) -> list[ComparedCriterion]:
        return [criterion for criterion in self.criteria if criterion.course not in _SAME_RESULT]

    @property
    def unchanged(self) -> list[ComparedCriterion]:
        return [criterion for criterion in self.criteria if criterion.course in _SAME_RESULT]

    @property
    def versions(self) -> tuple[int, int]:
        """Return the specification versions of the two reports."""
        return self.before.document["specificationVersion"], self.after.document["specificationVersion"]


def compare_runs(actor: Actor, first_id: str, second_id: str) -> Comparison:
    """
    Compare the reports of two runs, in either order.

    Raises:
        NotFound: one of the runs is unknown, or not the actor's.
        Conflict: one of them has no report.
        BadRequest: they are the same run, or of different companies or frameworks.
    """
    first = get_report(actor, first_id)
    second = get_report(actor, second_id)
    if first.pk == second.pk:
        raise BadRequest("A report cannot be compared with itself.", "Choose another run of the same framework.")
    is_same_company = first.run.company_id == second.run.company_id
    if not is_same_company or first.run.framework_id != second.run.framework_id:
        raise BadRequest("These runs are not of the same listing and framework.", "Choose two runs of the same ones.")
    before, after = sorted((first, second), key=lambda report: (report.created_at, report.pk))
    sections, criteria = compare_documents(before.document, after.document)
    changed_total = sum(criterion.course in CHANGED for criterion in criteria)
    unchanged_total = len(criteria) - changed_total
    if SCORES in {before.shown["shows"], after.shown["shows"]}:
        criteria = []  # a report that shows scores only shows no criteria
    return Comparison(
        before=before,
        after=after,
        sections=sections,
        criteria=criteria,
        changed_total=changed_total,
        unchanged_total=unchanged_total,
    )


def compare_documents(before: JSONMapping, after: JSONMapping) -> tuple[list[ComparedSection], list[ComparedCriterion]]:
    """Compare two reports by the ids of their sections and criteria. Pure."""
    gone_sections = {section["id"]: section for section in before["sections"]}
    sections = []
    for section in after["sections"]:
        previous_score = gone_sections.pop(section["id"], {}).get("score")
        sections.append(ComparedSection(section["title"], previous_score, section["score"]))
    for section in gone_sections.values():
        sections.append(ComparedSection(section["title"], section["score"], None))
    gone_criteria = {criterion["id"]: (title, criterion) for title, criterion in _criteria(before)}
    criteria = []
    for title, criterion in _criteria(after):
        _, previous = gone_criteria.pop(criterion["id"], (title, None))
        criteria.append(ComparedCriterion(title, criterion["title"], previous, criterion, _course(previous, criterion)))
    for title, criterion in gone_criteria.values():
        criteria.append(ComparedCriterion(title, criterion["title"], criterion, None, "gone"))
    criteria.sort(key=lambda criterion: _ORDER.index(criterion.course))
    return sections, criteria


def _criteria(report: JSONMapping) -> Iterator[tuple[str, JSONMapping]]:
    for section in report["sections"]:
        for criterion in section["criteria"]:
            yield section["title"], criterion


def _course(before: JSONMapping | None, after: JSONMapping) -> Course:
    if before is None:
        return "new"
    if any(before[name] != after[name] for name in ("status", "level", "maxLevel")):
        # Levels on different scales cannot be compared.
        is_rescaled = before["maxLevel"] != after["maxLevel"]
        is_unscored = _UNSCORED in {before["status"], after["status"]}
        if is_rescaled or is_unscored or before["level"] == after["level"]:
            return "changed"
        return "better" if after["level"] > before["level"] else "worse"
    if any(before[name] != after[name] for name in ("rationale", "citations")):
        return "evidence"
    return "same"


def to_wire(comparison: Comparison, url: str) -> JSONObject:
    """Return two reports' scores and the criteria that changed, the most urgent first; fewer if all would not fit."""
    changed: list[JSONObject] = []
    for criterion in comparison.changed[:MAX_COMPARED]:
        changed.append(
            {
                "section": _clipped(criterion.section),
                "title": _clipped(criterion.title),
                "course": criterion.course,
                "before": _verdict(criterion.before),
                "after": _verdict(criterion.after),
            }
        )
    sections: list[JSONObject] = []
    for section in comparison.sections[:MAX_COMPARED]:
        sections.append({"title": _clipped(section.title), "before": section.before, "after": section.after})
    return {
        "before": _side(comparison.before),
        "after": _side(comparison.after),
        "shows": comparison.shows,
        "sections": sections,
        "changed": changed,
        "changedTotal": comparison.changed_total,
        "unchangedTotal": comparison.unchanged_total,
        "url": url,
    }


def _side(report: Report) -> JSONObject:
    document = report.document
    names = ("runId", "reportId", "createdAt", "specificationVersion")
    return {**{name: document[name] for name in names}, "score": document["overall"]["score"]}


def _verdict(criterion: JSONMapping | None) -> JSONObject | None:
    if criterion is None:
        return None
    return {name: criterion[name] for name in ("status", "level", "maxLevel")}


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_TITLE else f"{text[:MAX_TITLE].rstrip()}…"


def other_runs(actor: Actor, run_id: str) -> list[ReportRun]:
    """List the runs whose reports can be compared with this one's, newest first; raise NotFound for another's run."""
    row = get_run(actor, run_id).row
    runs = ReportRun.objects.filter(company=row.company, framework=row.framework, state=RunState.SUCCEEDED)
    return list(runs.exclude(pk=row.pk).order_by("-finished_at", "-pk")[:MAX_OTHERS])


class Outcome(NamedTuple):
    """The score of a run's report with its grade, and the score of the run of the same two before it, if any."""

    score: float | None
    grade: str
    before: float | None


class _Overall(msgspec.Struct):
    score: float | None = None
    band: str | None = None


class _Scored(msgspec.Struct):
    overall: _Overall


_decode: Final = msgspec.json.Decoder(_Scored).decode


def outcomes(run_ids: Iterable[str]) -> dict[str, Outcome]:
    """Return what runs with a report came to, by id; callers must be allowed to read the runs."""
    runs = ReportRun.objects.filter(pk__in=list(run_ids), state=RunState.SUCCEEDED)
    earlier = ReportRun.objects.filter(
        company_id=OuterRef("company_id"),
        framework_id=OuterRef("framework_id"),
        state=RunState.SUCCEEDED,
        finished_at__lt=OuterRef("finished_at"),
    )
    previous = Subquery(earlier.order_by("-finished_at", "-pk").values("pk")[:1])
    previous_ids: dict[str, str | None] = dict(runs.annotate(previous=previous).values_list("pk", "previous"))
    if not previous_ids:
        return {}
    run_ids = [*previous_ids, *filter(None, previous_ids.values())]
    # Read as text, of which two values are decoded: a document can have megabytes.
    texts = rows(f"SELECT run_id, document FROM assessments_report WHERE run_id IN ({marks(run_ids)})", run_ids)
    scored = {run_id: _decode(text).overall for run_id, text in texts}
    results = {}
    for run_id, previous_id in previous_ids.items():
        overall = scored.get(run_id)
        if overall is not None:
            before = scored.get(previous_id or "")
            previous_score = before.score if before else None
            results[run_id] = Outcome(overall.score, overall.band or "", previous_score)
    return results
