"""The way from draft to published, what reviewers decide, and what is public in each state."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from make.registry import (
    SPECIFICATION,
    agent_of,
    changes,
    document,
    draft,
    item,
    keys,
    owner,
    published,
    reviewer,
)
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.company import operations
from muniment.registry.company.company_change import BadFields, CompanyChange
from muniment.registry.company.editing import owned
from muniment.registry.frameworks import operations as frameworks
from muniment.registry.models import Framework, PendingChange
from muniment.registry.people import profiles
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.publishing import publisher
from muniment.registry.review import decisions

pytestmark = pytest.mark.django_db


def test_a_listing_goes_from_draft_over_changes_requested_to_published():
    me, judge = owner(), reviewer()
    mine = draft(me)
    decisions.submit_company(me, mine.slug)
    decisions.request_changes(judge, mine.slug, "Name your board.")
    seen = operations.get_company(me, mine.slug)
    assert (seen.state, seen.reviewer_note) == ("changes_requested", "Name your board.")
    assert document("company", mine.slug) is None
    operations.update_company(
        me, mine.slug, CompanyChange(positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    )
    assert document("person", "ada-moss") is None
    version = decisions.submit_company(me, mine.slug).version
    decisions.approve_company(judge, mine.slug, expected_version=version)
    assert "createdAt" in document("company", mine.slug)["company"]
    assert document("person", "ada-moss")["positions"][0]["company"]["slug"] == mine.slug
    assert [entry.action for entry in operations.company_history(me, mine.slug).items] == [
        "approved", "submitted", "updated", "changes requested", "submitted", "created"
    ]  # fmt: skip


@pytest.mark.requirement("reviewed.only", "reviewed.program", "reviewed.person")
def test_an_unlisted_listing_leaves_everything_public_and_returns_to_its_old_place():
    me, judge = owner(), reviewer()
    first = published(me, positions=[{"person": {"name": "Ada Moss"}}])
    second = published(me)
    program = frameworks.create_framework(judge, name="Fund", kind="program", company=first.slug)
    score = frameworks.create_framework(judge, name="Score", kind="score", company=first.slug)
    order = keys("company")
    decisions.unlist_company(judge, first.slug, "Closed down.")
    assert keys("company") == [second.slug]
    assert (keys("person"), keys("framework")) == ([], [score.slug])
    assert item("framework", score.slug)["company"] is None
    assert ("company", first.slug, "unlisted") in changes()
    assert ("framework", program.slug, "unlisted") in changes()
    decisions.relist_company(judge, first.slug)
    assert (keys("company"), keys("person"), keys("framework")) == (order, ["ada-moss"], [program.slug, score.slug])


def test_each_decision_is_taken_once():
    me, judge = owner(), reviewer()
    mine = draft(me)
    with pytest.raises(Conflict, match="draft and cannot be approved"):
        decisions.approve_company(judge, mine.slug)
    decisions.submit_company(me, mine.slug)
    with pytest.raises(Conflict, match="submitted and cannot be submitted"):
        decisions.submit_company(me, mine.slug)
    operations.update_company(me, mine.slug, CompanyChange(industry="Energy"))
    with pytest.raises(Conflict, match="somebody changed it"):
        decisions.approve_company(judge, mine.slug, expected_version=2)
    decisions.reject_company(judge, mine.slug, "Not an organization.")
    with pytest.raises(Conflict, match="rejected and cannot be approved"):
        decisions.approve_company(reviewer(), mine.slug)


@pytest.mark.parametrize("who", ["owner", "visitor", "reviewer's token"])
def test_only_reviewers_at_work_decide(who):
    me = owner()
    mine = draft(me)
    decisions.submit_company(me, mine.slug)
    actor = {"owner": lambda: me, "visitor": lambda: VISITOR, "reviewer's token": lambda: agent_of(reviewer())}[who]()
    for decide in (
        lambda: decisions.approve_company(actor, mine.slug),
        lambda: decisions.request_changes(actor, mine.slug, "x"),
        lambda: decisions.reject_company(actor, mine.slug, "x"),
        lambda: decisions.unlist_company(actor, mine.slug, "x"),
        lambda: decisions.relist_company(actor, mine.slug),
        lambda: decisions.decide_change(actor, 1, approve=True),
        lambda: frameworks.create_framework(actor, name="A", kind="score"),
        lambda: frameworks.update_framework(actor, "a", name="B"),
        lambda: frameworks.author_framework(actor, "a", SPECIFICATION),
        lambda: profiles.join_person(actor, "ada", 1),
    ):
        with pytest.raises(Forbidden):
            decide()
    assert document("company", mine.slug) is None


def test_a_note_must_say_something():
    me = owner()
    mine = draft(me)
    decisions.submit_company(me, mine.slug)
    with pytest.raises(BadRequest, match="note is empty"):
        decisions.request_changes(reviewer(), mine.slug, "  ")


@pytest.mark.parametrize("approve", [True, False])
def test_a_change_that_does_not_exist_is_not_found(approve):
    with pytest.raises(NotFound):
        decisions.decide_change(reviewer(), 4_711, approve=approve, note="No.")


def test_a_change_is_declined_with_a_reason_only():
    me = owner()
    mine = published(me)
    operations.update_company(me, mine.slug, CompanyChange(name="Newer"))
    change = PendingChange.objects.get()
    with pytest.raises(BadRequest):
        decisions.decide_change(reviewer(), change.pk, approve=False, note=" ")
    change.refresh_from_db()
    assert change.decision == ""


@pytest.mark.django_db(transaction=True)
def test_hooks_are_told_after_commit_and_not_of_what_was_rolled_back(monkeypatch):
    editions: list[int] = []
    decided: list[str] = []
    monkeypatch.setattr(publisher, "on_published", [editions.append])
    monkeypatch.setattr(decisions, "on_decided", [lambda company, step, note: decided.append(step)])
    me = owner()
    mine = published(me)
    assert (editions, decided) == ([1], ["submitted", "approved"])
    with pytest.raises(BadFields):
        operations.update_company(me, mine.slug, CompanyChange(description="x", website="no address"))
    operations.update_company(me, mine.slug, CompanyChange(description="y"))
    assert editions == [1, 2]


@pytest.mark.requirement("framework.is-open", "framework.specification-private")
def test_a_framework_is_open_once_authored_until_its_reviewer_closes_it():
    made = frameworks.create_framework(COMMAND, name="Open Score", kind="score", description="What it weighs.")
    assert item("framework", "open-score")["isOpen"] is False
    first = frameworks.author_framework(COMMAND, made.slug, SPECIFICATION)
    assert frameworks.author_framework(COMMAND, made.slug, SPECIFICATION) == first
    assert item("framework", "open-score")["isOpen"] is True
    assert "requirement" not in str(document("framework", "open-score"))
    frameworks.update_framework(COMMAND, made.slug, closed=True)
    assert item("framework", "open-score")["isOpen"] is False
    frameworks.update_framework(COMMAND, made.slug, closed=False, run_cost=25)
    second = frameworks.author_framework(COMMAND, made.slug, {**SPECIFICATION, "scale": {"min": 0, "max": 9}})
    assert (first.version, second.version, second.document["version"]) == (1, 2, 2)
    assert frameworks.current_specification(made.slug) == second
    assert "runCost" not in document("framework", "open-score")


def test_a_malformed_framework_is_refused_by_its_fields():
    with pytest.raises(BadFields) as problem:
        frameworks.create_framework(COMMAND, name="", kind="program", framework_id="a b")
    assert [fault.field for fault in problem.value.faults] == ["name", "frameworkId", "company"]
    frameworks.create_framework(COMMAND, name="A", kind="score")
    with pytest.raises(BadFields, match="is taken"):
        frameworks.create_framework(COMMAND, name="A", kind="score")
    with pytest.raises(BadFields, match="is no company here"):
        frameworks.create_framework(COMMAND, name="B", kind="program", company="nobody")
    with pytest.raises(BadFields, match=r"sections\[0\].criteria\[0\].weight is not a number above 0"):
        frameworks.author_framework(COMMAND, "a", _with_weight(0))
    with pytest.raises(NotFound):
        frameworks.author_framework(COMMAND, "nobody", SPECIFICATION)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"description": "\ud800"}, "description"),
        ({"run_cost": -1}, "runCost"),
        ({"run_cost": 2**31}, "runCost"),
    ],
)
def test_a_framework_refuses_a_value_that_its_field_does_not_take(change, field):
    frameworks.create_framework(COMMAND, name="A", kind="score")
    before = Framework.objects.values().get()
    with pytest.raises(BadFields) as problem:
        frameworks.update_framework(COMMAND, "a", **change)
    assert [fault.field for fault in problem.value.faults] == [field]
    assert Framework.objects.values().get() == before
    frameworks.update_framework(COMMAND, "a", run_cost=2**31 - 1)
    with pytest.raises(NotFound):
        frameworks.update_framework(COMMAND, "nobody", name="B")


def _with_weight(weight):
    section = SPECIFICATION["sections"][0]
    criteria = [{**section["criteria"][0], "weight": weight}]
    return {**SPECIFICATION, "sections": [{**section, "criteria": criteria}]}


def test_a_profile_is_edited_by_its_own_account_alone_and_is_public_at_once():
    me, judge = owner(), reviewer()
    mine = published(me, positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    with pytest.raises(BadRequest, match="No person is joined"):
        profiles.update_profile(me, ProfileChange(bio="Me."))
    profiles.join_person(judge, "ada-moss", me.account_id)
    update = profiles.update_profile(me, ProfileChange(name="Ada M. Moss", bio="Sails."))
    assert update.applied == ["name", "bio"]
    assert document("person", "ada-moss")["bio"] == "Sails."
    assert document("company", mine.slug)["positions"][0]["person"]["name"] == "Ada M. Moss"
    profiles.update_profile(me, ProfileChange(bio=None))
    assert document("person", "ada-moss")["bio"] is None
    assert profiles.update_profile(me, ProfileChange(bio="Dry."), dry_run=True).diff == {
        "bio": {"before": None, "after": "Dry."}
    }
    assert document("person", "ada-moss")["bio"] is None
    stranger = owner()
    assert profiles.get_profile(stranger) is None
    with pytest.raises(BadRequest):
        profiles.update_profile(stranger, ProfileChange(bio="Theirs."))
    with pytest.raises(Conflict):
        profiles.join_person(judge, "ada-moss", stranger.account_id)
    decisions.unlist_company(judge, mine.slug, "Closed.")
    assert document("person", "ada-moss")["positions"] == []


@pytest.mark.parametrize("change", [{"name": " "}, {"name": None}, {"bio": 5}, {"bio": "x" * 20_001}, {"bio": "\0"}])
def test_a_profile_refuses_what_its_fields_do_not_take(change):
    me = owner()
    person = profiles.create_profile(me, ProfileChange(name="Bo"))
    assert document("person", person.slug) is None
    with pytest.raises(BadFields):
        profiles.update_profile(me, ProfileChange(**change))
    with pytest.raises(Conflict):
        profiles.create_profile(me, ProfileChange(name="Bo again"))


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_who_decides_on_a_change_holds_its_listing_first_as_who_asks_for_one():
    me = owner()
    mine = published(me, name="Old Name")
    operations.update_company(me, mine.slug, CompanyChange(name="Newer"))
    change, judge = PendingChange.objects.get(), reviewer()

    def decide():
        try:
            return decisions.decide_change(judge, change.pk, approve=True)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            owned(me, mine.slug, lock=True)
            deciding = pool.submit(decide)
            with pytest.raises(TimeoutError):
                deciding.result(0.3)
            PendingChange.objects.select_for_update(nowait=True).get(pk=change.pk)
        assert deciding.result(10).decision == "approved"
