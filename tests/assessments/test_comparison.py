"""Two reports side by side: which criteria improved, which did not, and why."""

import pytest

from make.registry import owner
from make.reports import company, finished, framework
from muniment.assessments import comparison
from muniment.assessments import operations as runs
from muniment.assessments.models import ReportRun
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _prices(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10


@pytest.fixture
def two():
    """Run a framework twice over a listing that lost most of its team; return owner, listing, framework, both runs."""
    me, of = owner(), framework()
    slug = company(me)
    first = finished(me, slug, of).run_id
    update_company(me, slug, CompanyChange(teamSize=1))
    return me, slug, of, first, finished(me, slug, of).run_id


def test_two_runs_are_compared_earlier_first_in_either_order(two):
    me, _, _, first, second = two
    for ids in ((first, second), (second, first)):
        found = comparison.compare_runs(me, *ids)
        assert (found.before.run_id, found.after.run_id) == (first, second)
        [changed] = found.changed
        assert (changed.title, changed.course) == ("Enough hands", "worse")
        assert [each.course for each in found.unchanged] == ["same", "same"]
        [section] = found.sections
        assert section.before > section.after
        assert found.versions == (1, 1)


def test_a_run_is_compared_with_another_of_the_same_listing_and_framework_only(two):
    me, slug, of, first, _ = two
    with pytest.raises(BadRequest):
        comparison.compare_runs(me, first, first)
    for other in (finished(me, slug), finished(me, company(me), of)):
        with pytest.raises(BadRequest):
            comparison.compare_runs(me, first, other.run_id)


def test_each_run_has_its_score_and_that_of_the_run_before_it(two):
    me, slug, of, first, second = two
    finished(me, slug)  # of another framework
    waiting = runs.start_run(me, slug, of).run.row.pk
    found = comparison.outcomes([first, second, waiting])
    assert set(found) == {first, second}
    assert found[first].before is None
    assert found[second].before == found[first].score > found[second].score
    assert {each.grade for each in found.values()} <= {"High", "Low"}
    assert comparison.outcomes([waiting]) == comparison.outcomes([]) == {}


def test_a_run_without_a_report_is_not_compared(two):
    me, slug, of, first, _ = two
    with pytest.raises(Conflict):
        comparison.compare_runs(me, first, runs.start_run(me, slug, of).run.row.pk)


def test_strangers_compare_nothing(two):
    _, _, _, first, second = two
    for actor in (owner(), VISITOR):
        with pytest.raises(NotFound):
            comparison.compare_runs(actor, first, second)
        with pytest.raises(NotFound):
            comparison.other_runs(actor, first)


def test_the_other_runs_are_those_with_a_report_newest_first(two):
    me, slug, of, first, second = two
    third = finished(me, slug, of).run_id
    finished(me, slug)  # of another framework
    finished(me, company(me), of)  # of another listing
    canceled = runs.start_run(me, slug, of).run.row.pk
    runs.cancel_run(me, canceled)
    assert [each.pk for each in comparison.other_runs(me, first)] == [third, second]
    assert ReportRun.objects.filter(state="canceled").exists()


def criterion(**changes):
    found = {"id": "a", "title": "A", "status": "partial", "level": 2, "maxLevel": 4, "rationale": "R", "citations": []}
    return {**found, **changes}


def document(*criteria, score=50, section="s"):
    return {"sections": [{"id": section, "title": "S", "score": score, "criteria": list(criteria)}]}


@pytest.mark.parametrize(
    ("before", "after", "course"),
    [
        ({}, {}, "same"),
        ({}, {"rationale": "Other words"}, "evidence"),
        ({}, {"citations": [{"quote": "q"}]}, "evidence"),
        ({}, {"level": 3}, "better"),
        ({}, {"level": 1}, "worse"),
        ({}, {"level": 4, "status": "met"}, "better"),
        ({}, {"status": "insufficient"}, "changed"),
        ({}, {"level": 3, "maxLevel": 10}, "changed"),
        ({}, {"status": "not_applicable", "level": None}, "changed"),
        ({"status": "not_applicable", "level": None}, {}, "changed"),
    ],
)
def test_the_course_of_a_criterion(before, after, course):
    _, [found] = comparison.compare_documents(document(criterion(**before)), document(criterion(**after)))
    assert found.course == course


def test_criteria_and_sections_that_only_one_report_has_are_new_or_gone():
    before = document(criterion(id="old"), criterion(id="kept", level=1), score=10, section="first")
    after = document(criterion(id="new"), criterion(id="kept"), score=20, section="second")
    sections, criteria = comparison.compare_documents(before, after)
    assert [(each.before, each.after) for each in sections] == [(None, 20), (10, None)]
    assert [(each.course, (each.after or each.before)["id"]) for each in criteria] == [
        ("better", "kept"), ("new", "new"), ("gone", "old")
    ]  # fmt: skip
