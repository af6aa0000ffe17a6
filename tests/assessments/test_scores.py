"""Owners publish the score of a report, on the company and in the list of its framework, and withdraw it."""

import json

import pytest
from django.db import connection

from make.registry import bodies, changes, document, item, owner, reviewer
from make.reports import SECRETS, company, finished, framework, program
from muniment.assessments import operations as runs
from muniment.assessments import scores
from muniment.assessments.models import Report
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import Conflict, Forbidden, NotFound
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import leave_company, update_company
from muniment.registry.frameworks.authoring import update_framework
from muniment.registry.models import HistoryEntry, Ownership, Score
from muniment.registry.publishing import republishing
from muniment.registry.review.workflow import relist_own_company, unlist_company, unlist_own_company
from muniment.store.lists import scores as lists

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _prices(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10


@pytest.fixture
def me():
    return owner()


def shown(slug):
    return document("company", slug)["company"].get("assessments")


def league(framework_id):
    """Return the published list of a framework's scores: rank and company."""
    if connection.vendor != "sqlite":
        best = (document("framework", framework_id) or {}).get("topScores", ())
        return [(row["rank"], row["company"]["slug"]) for row in best]
    rows = (json.loads(row.shown(framework_id)) for row in lists.ranked(connection.connection, framework_id, 0, 100))
    return [(row["rank"], row["company"]["slug"]) for row in rows]


def no_difference():
    """Whatever is published is what its source says."""
    for kind in ("company", "framework"):
        keys = republishing.public_keys(kind, 0, 1_000)
        assert list(republishing.differences(kind, keys)) == []


def test_a_published_score_is_on_the_company_and_in_the_list_of_its_framework(me):
    report = finished(me)
    slug, framework_id = report.run.company.slug, report.run.framework.slug
    overall = report.document["overall"]
    assert shown(slug) is None
    assert "scoreCount" not in document("framework", framework_id)
    before = len(changes())

    scores.publish_score(me, report.run_id)
    [assessment] = shown(slug)
    assert assessment == {
        "frameworkId": framework_id,
        "frameworkName": report.run.framework.name,
        "score": overall["score"],
        "grade": overall["band"],
        "assessedAt": report.document["createdAt"],
        "url": f"/companies/{slug}/assessments/{framework_id}",
        "specificationVersion": 1,
        "evaluator": "rules",
    }
    assert item("company", slug)["assessments"] == [assessment]
    found = document("framework", framework_id)
    assert (found["scoreCount"], item("framework", framework_id)["scoreCount"]) == (1, 1)
    [best] = found["topScores"]
    assert (best["rank"], best["company"]["slug"], best["score"]) == (1, slug, overall["score"])
    assert "topScores" not in item("framework", framework_id)
    assert league(framework_id) == [(1, slug)]
    assert changes()[before:] == [("company", slug, "updated"), ("framework", framework_id, "updated")]
    assert scores.score_of(me, report.run_id).report_id == report.pk
    no_difference()


def test_neither_findings_nor_evidence_are_published_and_sections_only_if_the_owner_says_so(me):
    report = finished(me)
    slug = report.run.company.slug
    scores.publish_score(me, report.run_id)
    assert "sections" not in shown(slug)[0]
    scores.publish_score(me, report.run_id, sections=True)
    [assessment] = shown(slug)
    assert assessment["sections"] == [{"title": "Everything", "score": report.document["sections"][0]["score"]}]
    assert "previousScore" not in assessment
    public = b"".join(bodies().values()).decode()
    for private in (*SECRETS, "Enough hands", "Publish the accounts.", report.document["inputHash"]):
        assert private not in public
    scores.publish_score(me, report.run_id)
    assert "sections" not in shown(slug)[0]


def test_a_newer_score_replaces_the_older_one_and_says_what_it_was(me):
    first = finished(me)
    slug, framework_id = first.run.company.slug, first.run.framework.slug
    scores.publish_score(me, first.run_id)
    update_company(me, slug, CompanyChange(teamSize=1))
    second = finished(me, slug, framework_id)
    assert second.document["overall"]["score"] < first.document["overall"]["score"]
    for _ in range(2):  # publishing it again keeps what it replaced
        scores.publish_score(me, second.run_id)
        [assessment] = shown(slug)
        assert assessment["score"] == second.document["overall"]["score"]
        assert assessment["previousScore"] == first.document["overall"]["score"]
        assert assessment["previousAssessedAt"] == first.document["createdAt"]
    assert document("framework", framework_id)["scoreCount"] == 1
    with pytest.raises(Conflict, match="later report"):
        scores.publish_score(me, first.run_id)
    scores.withdraw_score(me, second.run_id)
    scores.publish_score(me, first.run_id)
    assert "previousScore" not in shown(slug)[0]
    no_difference()


def test_a_withdrawn_score_is_gone_everywhere_and_withdrawing_again_changes_nothing(me):
    report = finished(me)
    slug, framework_id = report.run.company.slug, report.run.framework.slug
    scores.publish_score(me, report.run_id)
    scores.withdraw_score(me, report.run_id)
    before = len(changes())
    scores.withdraw_score(me, report.run_id)
    assert len(changes()) == before
    assert shown(slug) is None
    assert document("framework", framework_id).keys().isdisjoint({"scoreCount", "topScores"})
    assert league(framework_id) == []
    assert not Score.objects.exists()
    actions = HistoryEntry.objects.filter(company__slug=slug).order_by("pk").values_list("action", "note")
    name = report.run.framework.name
    score = report.document["overall"]["score"]
    assert list(actions)[-2:] == [("score published", f"{name}: {score:g}."), ("score withdrawn", f"{name}.")]
    no_difference()


@pytest.mark.parametrize("who", ["visitor", "another owner", "reviewer"])
def test_a_stranger_publishes_and_withdraws_nothing(me, who):
    mine, public = finished(me), finished(me)
    scores.publish_score(me, public.run_id)
    actor = {"visitor": lambda: VISITOR, "another owner": owner, "reviewer": reviewer}[who]()
    for attempt in (
        lambda: scores.publish_score(actor, mine.run_id),
        lambda: scores.withdraw_score(actor, public.run_id),
        lambda: scores.score_of(actor, public.run_id),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert [each.report_id for each in Score.objects.all()] == [public.pk]


def test_a_co_owner_withdraws_what_another_has_published_who_then_left(me):
    report = finished(me)
    other = owner()
    Ownership.objects.create(account_id=other.account_id, company=report.run.company)
    scores.publish_score(me, report.run_id)
    leave_company(me, report.run.company.slug)
    assert shown(report.run.company.slug)
    with pytest.raises(NotFound):
        scores.withdraw_score(me, report.run_id)
    scores.withdraw_score(other, report.run_id)
    assert shown(report.run.company.slug) is None


def test_a_reviewer_withdraws_the_score_of_a_listing_whose_last_owner_left(me):
    report = finished(me)
    slug, framework_id = report.run.company.slug, report.run.framework.slug
    scores.publish_score(me, report.run_id)
    leave_company(me, slug)
    for stranger in (VISITOR, me, owner()):
        with pytest.raises(Forbidden):
            scores.list_public_scores(stranger, slug)
        with pytest.raises(Forbidden):
            scores.remove_score(stranger, slug, framework_id)
    desk = reviewer()
    assert [each.framework.slug for each in scores.list_public_scores(desk, slug)] == [framework_id]
    assert shown(slug)
    for _ in range(2):
        scores.remove_score(desk, slug, framework_id)
    assert (shown(slug), league(framework_id), scores.list_public_scores(desk, slug)) == (None, [], [])
    taken = HistoryEntry.objects.filter(company__slug=slug, action="score withdrawn").values_list("account", flat=True)
    assert list(taken) == [desk.account_id]
    with pytest.raises(NotFound):
        scores.remove_score(desk, "no-such-listing", framework_id)
    no_difference()


def test_a_run_without_a_report_or_a_score_publishes_nothing(me):
    slug, framework_id = company(me), framework()
    started = runs.start_run(me, slug, framework_id).run.row.pk
    with pytest.raises(Conflict, match="has no report"):
        scores.publish_score(me, started)
    report = finished(me)
    report.document["overall"]["score"] = None
    Report.objects.filter(pk=report.pk).update(document=report.document)
    with pytest.raises(Conflict, match="no score"):
        scores.publish_score(me, report.run_id)


def test_the_scores_of_an_unlisted_company_are_public_nowhere_until_it_is_listed_again(me):
    report = finished(me)
    slug, framework_id = report.run.company.slug, report.run.framework.slug
    scores.publish_score(me, report.run_id)
    unlist_own_company(me, slug)
    assert document("company", slug) is None
    assert "scoreCount" not in document("framework", framework_id)
    assert league(framework_id) == []
    with pytest.raises(Conflict, match="listing is not public"):
        scores.publish_score(me, report.run_id)
    relist_own_company(me, slug)
    assert shown(slug)
    assert league(framework_id) == [(1, slug)]
    no_difference()


def test_a_withdrawal_reaches_the_scores_of_a_listing_that_a_reviewer_took_down(me):
    report = finished(me)
    scores.publish_score(me, report.run_id)
    unlist_company(reviewer(), report.run.company.slug, note="Not theirs.")
    scores.withdraw_score(me, report.run_id)
    assert not Score.objects.exists()


def test_the_scores_of_an_unlisted_framework_leave_the_companies(me):
    report = finished(me)
    slug, framework_id = report.run.company.slug, report.run.framework.slug
    scores.publish_score(me, report.run_id)
    update_framework(reviewer(), framework_id, listed=False)
    assert shown(slug) is None
    assert league(framework_id) == []
    with pytest.raises(Conflict, match="framework is not public"):
        scores.publish_score(me, report.run_id)
    update_framework(reviewer(), framework_id, listed=True)
    assert shown(slug)
    no_difference()


def test_the_scores_of_a_program_follow_the_company_that_runs_it(me):
    runner = owner()
    report = finished(me, of=program(runner))
    slug, runs_it = report.run.company.slug, report.run.framework.company.slug
    scores.publish_score(me, report.run_id)
    unlist_own_company(runner, runs_it)
    assert shown(slug) is None
    relist_own_company(runner, runs_it)
    assert shown(slug)
    no_difference()


def test_new_names_of_the_company_and_of_the_framework_are_shown_with_the_score(me):
    report = finished(me)
    slug, framework_id = report.run.company.slug, report.run.framework.slug
    scores.publish_score(me, report.run_id)
    update_framework(reviewer(), framework_id, name="Deep Harbour")
    assert shown(slug)[0]["frameworkName"] == "Deep Harbour"
    update_company(reviewer(), slug, CompanyChange(name="Renamed Boats"))
    assert document("framework", framework_id)["topScores"][0]["company"]["name"] == "Renamed Boats"
    no_difference()


def test_equal_scores_share_a_rank_and_the_newest_listing_is_first(me):
    framework_id = framework()
    sizes = (5, 1, 5, 1)
    slugs = [company(me, teamSize=size) for size in sizes]
    for slug in slugs:
        scores.publish_score(me, finished(me, slug, framework_id).run_id)
    ranked = [(1, slugs[2]), (1, slugs[0]), (3, slugs[3]), (3, slugs[1])]
    assert league(framework_id) == ranked
    best = document("framework", framework_id)["topScores"]
    assert [(row["rank"], row["company"]["slug"]) for row in best] == ranked


@pytest.mark.sqlite  # the list is read from the published file, which is the database there
def test_a_page_in_the_middle_of_the_list_continues_its_ranks(me):
    framework_id = framework()
    for size in (5, 5, 5, 1):
        scores.publish_score(me, finished(me, company(me, teamSize=size), framework_id).run_id)
    pages = (lists.ranked(connection.connection, framework_id, start, 2) for start in (0, 1, 2, 4))
    assert [[row.rank for row in page] for page in pages] == [[1, 1], [1, 1], [1, 4], []]
    assert lists.count(connection.connection, framework_id) == 4
    assert lists.count(connection.connection, "unknown") == 0
