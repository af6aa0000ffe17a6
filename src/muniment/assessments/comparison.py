"""Compare two reports of the same company and framework (assessment-spec/1, report: owners compare two runs)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import msgspec
from django.db.models import OuterRef, Subquery

from muniment.assessments.evaluation.disclosure import SCORES
from muniment.assessments.models import Report, ReportRun, RunState
from muniment.assessments.operations import get_report, get_run
from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONMapping
from muniment.kernel.problems import BadRequest
from muniment.registry.frameworks.specification import REPORTS
from muniment.registry.sql import marks, rows

MAX_OTHERS: Final = 50
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
        both: list[str] = [each.shown["shows"] for each in (self.before, self.after)]
        return min(both, key=REPORTS.index)

    @property
    def changed(self) -> list[ComparedCriterion]:
        return [each for each in self.criteria if each.course not in _SAME_RESULT]

    @property
    def unchanged(self) -> list[ComparedCriterion]:
        return [each for each in self.criteria if each.course in _SAME_RESULT]

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
    first, second = get_report(actor, first_id), get_report(actor, second_id)
    if first.pk == second.pk:
        raise BadRequest("A report cannot be compared with itself.", "Choose another run of the same framework.")
    subjects = {(each.run.company_id, each.run.framework_id) for each in (first, second)}
    if len(subjects) > 1:
        raise BadRequest("These runs are not of the same listing and framework.", "Choose two runs of the same ones.")
    before, after = sorted((first, second), key=lambda each: (each.created_at, each.pk))
    sections, criteria = compare_documents(before.document, after.document)
    changed_total = sum(each.course in CHANGED for each in criteria)
    totals = changed_total, len(criteria) - changed_total
    hides = SCORES in {before.shown["shows"], after.shown["shows"]}
    return Comparison(before, after, sections, [] if hides else criteria, *totals)


def other_runs(actor: Actor, run_id: str) -> list[ReportRun]:
    """List the runs whose reports can be compared with this one's, newest first; raise NotFound for another's run."""
    row = get_run(actor, run_id).row
    found = ReportRun.objects.filter(company=row.company, framework=row.framework, state=RunState.SUCCEEDED)
    return list(found.exclude(pk=row.pk).order_by("-finished_at", "-pk")[:MAX_OTHERS])


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
    same = {name: OuterRef(name) for name in ("company_id", "framework_id")}
    earlier = ReportRun.objects.filter(**same, state=RunState.SUCCEEDED, finished_at__lt=OuterRef("finished_at"))
    found = ReportRun.objects.filter(pk__in=list(run_ids), state=RunState.SUCCEEDED)
    before = Subquery(earlier.order_by("-finished_at", "-pk").values("pk")[:1])
    pairs = dict(found.annotate(before=before).values_list("pk", "before"))
    wanted = [name for pair in pairs.items() for name in pair if name]
    if not wanted:
        return {}
    texts = rows(f"SELECT run_id, document FROM assessments_report WHERE run_id IN ({marks(wanted)})", wanted)
    scored = {run_id: _decode(text).overall for run_id, text in texts}
    return {
        run_id: Outcome(
            scored[run_id].score,
            scored[run_id].band or "",
            scored[previous].score if previous in scored else None,
        )
        for run_id, previous in pairs.items()
        if run_id in scored
    }


def compare_documents(before: JSONMapping, after: JSONMapping) -> tuple[list[ComparedSection], list[ComparedCriterion]]:
    """Compare two reports by the ids of their sections and criteria. Pure."""
    gone = {section["id"]: section for section in before["sections"]}
    sections = []
    for section in after["sections"]:
        previous_score = gone.pop(section["id"], {}).get("score")
        sections.append(ComparedSection(section["title"], previous_score, section["score"]))
    sections += [ComparedSection(section["title"], section["score"], None) for section in gone.values()]
    old = {criterion["id"]: (title, criterion) for title, criterion in _criteria(before)}
    criteria = []
    for title, criterion in _criteria(after):
        _, previous = old.pop(criterion["id"], (title, None))
        criteria.append(ComparedCriterion(title, criterion["title"], previous, criterion, _course(previous, criterion)))
    criteria += [
        ComparedCriterion(title, criterion["title"], criterion, None, "gone") for title, criterion in old.values()
    ]
    criteria.sort(key=lambda each: _ORDER.index(each.course))
    return sections, criteria


def _criteria(report: JSONMapping) -> Iterator[tuple[str, JSONMapping]]:
    for section in report["sections"]:
        for criterion in section["criteria"]:
            yield section["title"], criterion


def _course(before: JSONMapping | None, after: JSONMapping) -> Course:
    if before is None:
        return "new"
    if (before["status"], before["level"], before["maxLevel"]) != (after["status"], after["level"], after["maxLevel"]):
        # Levels on different scales cannot be compared.
        is_rescaled = before["maxLevel"] != after["maxLevel"]
        if is_rescaled or _UNSCORED in {before["status"], after["status"]} or before["level"] == after["level"]:
            return "changed"
        return "better" if after["level"] > before["level"] else "worse"
    seen = ("rationale", "citations")
    return "same" if all(before[key] == after[key] for key in seen) else "evidence"
