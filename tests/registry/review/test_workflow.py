"""The way from draft to published, what reviewers decide, and what is public in each state."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.dispatch import receiver

from make.accounts import Letters
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
from muniment.accounts.models import Account
from muniment.kernel.actor import VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.company import listings
from muniment.registry.company.access import owned
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.frameworks import authoring as frameworks
from muniment.registry.models import Company, PendingChange
from muniment.registry.people import profiles
from muniment.registry.publishing import publisher
from muniment.registry.review import notifications, workflow

pytestmark = pytest.mark.django_db


def test_a_listing_goes_from_draft_over_changes_requested_to_published():
    me, judge = owner(), reviewer()
    mine = draft(me)
    workflow.submit_company(me, mine.slug)
    workflow.request_changes(judge, mine.slug, "Name your board.")
    seen = listings.get_company(me, mine.slug)
    assert (seen.state, seen.reviewer_note) == ("changes_requested", "Name your board.")
    assert document("company", mine.slug) is None
    listings.update_company(
        me, mine.slug, CompanyChange(positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    )
    assert document("person", "ada-moss") is None
    version = workflow.submit_company(me, mine.slug).version
    workflow.approve_company(judge, mine.slug, expected_version=version)
    assert "createdAt" in document("company", mine.slug)["company"]
    assert document("person", "ada-moss")["positions"][0]["company"]["slug"] == mine.slug
    assert [entry.action for entry in listings.company_history(me, mine.slug).items] == [
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
    workflow.unlist_company(judge, first.slug, "Closed down.")
    assert keys("company") == [second.slug]
    assert (keys("person"), keys("framework")) == ([], [score.slug])
    assert item("framework", score.slug)["company"] is None
    assert ("company", first.slug, "unlisted") in changes()
    assert ("framework", program.slug, "unlisted") in changes()
    workflow.relist_company(judge, first.slug)
    assert (keys("company"), keys("person"), keys("framework")) == (order, ["ada-moss"], [program.slug, score.slug])


def test_each_decision_is_taken_once():
    me, judge = owner(), reviewer()
    mine = draft(me)
    with pytest.raises(Conflict, match="draft and cannot be approved"):
        workflow.approve_company(judge, mine.slug)
    workflow.submit_company(me, mine.slug)
    with pytest.raises(Conflict, match="submitted and cannot be submitted"):
        workflow.submit_company(me, mine.slug)
    listings.update_company(me, mine.slug, CompanyChange(industry="Energy"))
    with pytest.raises(Conflict, match="it has changed since"):
        workflow.approve_company(judge, mine.slug, expected_version=2)
    workflow.reject_company(judge, mine.slug, "Not an organization.")
    with pytest.raises(Conflict, match="rejected and cannot be approved"):
        workflow.approve_company(reviewer(), mine.slug)


@pytest.mark.parametrize("who", ["owner", "visitor", "reviewer's token"])
def test_only_reviewers_at_work_decide(who):
    me = owner()
    mine = draft(me)
    workflow.submit_company(me, mine.slug)
    actor = {"owner": lambda: me, "visitor": lambda: VISITOR, "reviewer's token": lambda: agent_of(reviewer())}[who]()
    for decide in (
        lambda: workflow.approve_company(actor, mine.slug),
        lambda: workflow.request_changes(actor, mine.slug, "x"),
        lambda: workflow.reject_company(actor, mine.slug, "x"),
        lambda: workflow.unlist_company(actor, mine.slug, "x"),
        lambda: workflow.relist_company(actor, mine.slug),
        lambda: workflow.decide_change(actor, 1, approve=True),
        lambda: frameworks.create_framework(actor, name="A", kind="score"),
        lambda: frameworks.update_framework(actor, "a", name="B"),
        lambda: frameworks.author_framework(actor, "a", SPECIFICATION),
        lambda: profiles.join_person(actor, "ada", 1),
    ):
        with pytest.raises(Forbidden):
            decide()
    assert document("company", mine.slug) is None


STEPS = {
    "submitted": (workflow.submit_company, "draft", "submitted"),
    "approved": (workflow.approve_company, "submitted", "published"),
    "changes requested": (workflow.request_changes, "submitted", "changes_requested"),
    "rejected": (workflow.reject_company, "submitted", "rejected"),
    "unlisted": (workflow.unlist_company, "published", "unlisted"),
    "relisted": (workflow.relist_company, "unlisted", "published"),
}
WITH_NOTE = ("changes requested", "rejected", "unlisted")


@pytest.mark.parametrize("step", STEPS)
def test_each_step_moves_the_listing_and_is_in_the_history(step):
    decide, before, after = STEPS[step]
    me, judge = owner(), reviewer()
    mine = draft(me)
    Company.objects.update(state=before, reviewer_note="An earlier note.", version=7)
    moved = decide(me if step == "submitted" else judge, mine.slug, *(["See the letter."] if step in WITH_NOTE else []))
    kept = Company.objects.get()
    assert (moved.pk, kept.state, kept.version) == (kept.pk, after, 8)
    assert kept.reviewer_note == ("See the letter." if step in WITH_NOTE else "")
    assert (kept.submitted_at is not None) is (step == "submitted")
    assert kept.listed_on == (now().date() if step == "approved" else None)
    entry = listings.company_history(me, mine.slug).items[0]
    assert (entry.action, entry.before, entry.after) == (step, {"state": before}, {"state": after})
    assert entry.note == ("See the letter." if step in WITH_NOTE else "")
    assert (document("company", mine.slug) is not None) is (after == "published")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("state", ["draft", "submitted", "changes_requested", "published", "rejected", "unlisted"])
def test_a_step_starts_from_its_own_state_alone(step, state):
    decide, before, _ = STEPS[step]
    if state == before or (step, state) == ("submitted", "changes_requested"):
        return
    me = owner()
    mine = draft(me)
    Company.objects.update(state=state)
    with pytest.raises(Conflict):
        decide(me if step == "submitted" else reviewer(), mine.slug, *(["No."] if step in WITH_NOTE else []))
    kept = Company.objects.get()
    assert (kept.state, kept.version, len(listings.company_history(me, mine.slug).items)) == (state, 1, 1)


def test_a_listing_that_returns_keeps_the_day_it_was_first_listed():
    me, judge = owner(), reviewer()
    mine = published(me)
    Company.objects.update(listed_on="2024-05-01")
    workflow.unlist_company(judge, mine.slug, "Closed.")
    workflow.relist_company(judge, mine.slug, note="Open again.")
    assert Company.objects.get().listed_on.isoformat() == "2024-05-01"
    assert listings.company_history(me, mine.slug).items[0].note == "Open again."


@pytest.mark.parametrize("note", ["", " \n"])
@pytest.mark.parametrize("step", WITH_NOTE)
def test_a_step_against_the_owner_needs_a_reason(step, note):
    decide, before, _ = STEPS[step]
    draft(owner())
    Company.objects.update(state=before)
    with pytest.raises(BadRequest):
        decide(reviewer(), Company.objects.get().slug, note)
    assert Company.objects.get().state == before


@pytest.mark.parametrize("approve", [True, False])
def test_the_owners_are_mailed_each_decision_with_its_note(approve, settings, django_capture_on_commit_callbacks):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    me, other, left = (Account.objects.create_user(f"{name}@harbour.example") for name in ("me", "other", "left"))
    mine = published(me.actor("web"), name="Tidal Works")
    for more in (other, left):
        listings.add_owner(me.actor("web"), mine.slug, more.pk)
    Account.objects.filter(pk=left.pk).update(is_active=False)
    listings.update_company(me.actor("web"), mine.slug, CompanyChange(name="Newer"))
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        workflow.decide_change(reviewer(), PendingChange.objects.get().pk, approve=approve, note="Seen your letter.")
    for address in (me.email, other.email):
        [(_, text)] = letters.to(address)
        assert "Seen your letter." in text
        page = f"/companies/{mine.slug}" if approve else f"/manage/companies/{mine.slug}"
        assert f"the page {page} of this registry" in text
    assert letters.to(left.email) == []


def test_a_note_must_say_something():
    me = owner()
    mine = draft(me)
    workflow.submit_company(me, mine.slug)
    with pytest.raises(BadRequest, match="Write a note first"):
        workflow.request_changes(reviewer(), mine.slug, "  ")


@pytest.mark.parametrize("approve", [True, False])
def test_a_change_that_does_not_exist_is_not_found(approve):
    with pytest.raises(NotFound):
        workflow.decide_change(reviewer(), 4_711, approve=approve, note="No.")


def test_a_change_is_declined_with_a_reason_only():
    me = owner()
    mine = published(me)
    listings.update_company(me, mine.slug, CompanyChange(name="Newer"))
    change = PendingChange.objects.get()
    with pytest.raises(BadRequest):
        workflow.decide_change(reviewer(), change.pk, approve=False, note=" ")
    change.refresh_from_db()
    assert change.decision == ""


@pytest.mark.django_db(transaction=True)
def test_hooks_are_called_after_the_commit_and_not_after_a_rollback(monkeypatch):
    editions: list[int] = []
    decided: list[str] = []
    monkeypatch.setattr(notifications, "notify_owners", lambda company, step, note: decided.append(step))

    @receiver(publisher.published)
    def hear(edition, **_):
        editions.append(edition)

    me = owner()
    mine = published(me)
    assert (editions, decided) == ([1], ["submitted", "approved"])
    with pytest.raises(BadFields):
        listings.update_company(me, mine.slug, CompanyChange(description="x", website="no address"))
    listings.update_company(me, mine.slug, CompanyChange(description="y"))
    assert editions == [1, 2]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_decision_locks_the_listing_before_the_change_as_an_edit_does():
    me = owner()
    mine = published(me, name="Old Name")
    listings.update_company(me, mine.slug, CompanyChange(name="Newer"))
    change, judge = PendingChange.objects.get(), reviewer()

    def decide():
        try:
            return workflow.decide_change(judge, change.pk, approve=True)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            owned(me, mine.slug, lock=True)
            deciding = pool.submit(decide)
            with pytest.raises(TimeoutError):
                deciding.result(0.3)
            PendingChange.objects.select_for_update(nowait=True).get(pk=change.pk)
        assert deciding.result(60).decision == "approved"


def test_name_symbol_and_type_of_a_published_listing_wait_for_a_reviewer():
    me = owner()
    mine = published(me, name="Old Name")
    update = listings.update_company(me, mine.slug, CompanyChange(name="New Name", symbol="NEW", industry="Energy"))
    assert (update.applied, update.awaiting_review) == (["industry"], ["name", "symbol"])
    assert document("company", mine.slug)["company"]["name"] == "Old Name"
    assert update.company.pending_changes == {"name": "New Name", "symbol": "NEW"}
    judge, waiting = reviewer(), PendingChange.objects.get()
    workflow.decide_change(judge, waiting.pk, approve=True)
    assert document("company", mine.slug)["company"]["symbol"] == "NEW"
    with pytest.raises(Conflict, match="already approved"):
        workflow.decide_change(reviewer(), waiting.pk, approve=False, note="No.")


def test_a_decision_is_about_the_listing_of_the_change():
    me = owner()
    other, mine = published(me, name="Alder"), published(me, name="Birch")
    listings.update_company(me, mine.slug, CompanyChange(symbol="BRCH"))
    change = PendingChange.objects.get().pk
    workflow.decide_change(reviewer(), change, approve=False, note="Why?")
    workflow.reopen_change(reviewer(), change)
    assert listings.company_history(me, mine.slug).items[0].action == "change reopened"
    workflow.decide_change(reviewer(), change, approve=True)
    assert document("company", mine.slug)["company"]["symbol"] == "BRCH"
    assert document("company", other.slug)["company"].get("symbol") is None


def test_a_pending_change_names_the_credential_that_made_it():
    me = owner()
    mine = published(me, name="Old Name")
    listings.update_company(agent_of(me), mine.slug, CompanyChange(name="New Name", industry="Energy"))
    waiting = PendingChange.objects.get()
    assert (waiting.account_id, waiting.via, waiting.credential) == (me.account_id, "token", "my token")
    assert waiting.changes == {"name": "New Name"}
    asked = next(entry for entry in listings.company_history(me, mine.slug).items if entry.action == "asked")
    assert (asked.before, asked.after) == ({"name": "Old Name"}, {"name": "New Name"})


def test_a_reviewer_approves_the_change_that_was_shown_and_no_later_one():
    me = owner()
    mine = published(me, name="Old Name")
    listings.update_company(me, mine.slug, CompanyChange(name="Harmless"))
    seen = PendingChange.objects.get()
    listings.update_company(me, mine.slug, CompanyChange(name="Something Else", symbol="ELSE"))
    with pytest.raises(Conflict, match="already withdrawn"):
        workflow.decide_change(reviewer(), seen.pk, approve=True)
    assert document("company", mine.slug)["company"]["name"] == "Old Name"
    waits = PendingChange.objects.get(decision="")
    assert (waits.changes, waits.asked_at) == ({"name": "Something Else", "symbol": "ELSE"}, seen.asked_at)
    listings.update_company(me, mine.slug, CompanyChange(symbol="ELSE"))
    workflow.decide_change(reviewer(), waits.pk, approve=True)
    assert document("company", mine.slug)["company"]["name"] == "Something Else"


def test_a_declined_change_leaves_the_published_value_and_a_withdrawn_one_is_gone():
    me = owner()
    mine = published(me, name="Old Name")
    listings.update_company(me, mine.slug, CompanyChange(name="Newer"))
    judge = reviewer()
    declined = workflow.decide_change(judge, PendingChange.objects.get().pk, approve=False, note=" Not your mark. ")
    assert (declined.decision, declined.note, declined.decided_by_id) == (
        "rejected",
        "Not your mark.",
        judge.account_id,
    )
    assert declined.decided_at >= declined.asked_at
    assert document("company", mine.slug)["company"]["name"] == "Old Name"
    entry = listings.company_history(me, mine.slug).items[0]
    assert (entry.action, entry.account_id, entry.note) == ("change refused", judge.account_id, " Not your mark. ")
    assert (entry.before, entry.after) == ({}, {})
    listings.update_company(me, mine.slug, CompanyChange(name="Newest"))
    listings.update_company(me, mine.slug, CompanyChange(name="Old Name"))
    assert listings.get_company(me, mine.slug).pending_changes == {}


def test_a_reviewer_marks_a_published_listing_as_reviewed_and_no_edit_is_interrupted():
    me = owner()
    mine = published(me)
    Company.objects.update(reviewed_at=now() - timedelta(days=400))
    version = listings.get_company(me, mine.slug).version
    workflow.confirm_company(reviewer(), mine.slug)
    assert now() - Company.objects.get().reviewed_at < timedelta(minutes=5)
    assert listings.company_history(me, mine.slug).items[0].action == "reviewed again"
    listings.update_company(me, mine.slug, CompanyChange(description="Newer."), expected_version=version)


def test_only_a_reviewer_marks_a_listing_and_only_a_published_one():
    me = owner()
    unpublished = draft(me)
    with pytest.raises(Conflict, match="is not published"):
        workflow.confirm_company(reviewer(), unpublished.slug)
    with pytest.raises(Forbidden):
        workflow.confirm_company(me, published(me).slug)
