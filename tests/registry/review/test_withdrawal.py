"""What owners take back: drafts, submissions, published listings; and what a reviewer took down."""

from functools import partial

import pytest

from make.accounts import Letters
from make.registry import agent_of, changes, document, draft, keys, owner, published, reviewer
from make.reports import finished
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.frameworks import authoring as frameworks
from muniment.registry.inbox import items
from muniment.registry.models import Company, GivenSlug, HistoryEntry, PendingChange, Person, Taking
from muniment.registry.review import workflow
from services.crowd import at_once

pytestmark = pytest.mark.django_db
STEPS = (
    workflow.delete_draft,
    workflow.withdraw_submission,
    workflow.unlist_own_company,
    workflow.relist_own_company,
)


def newest(slug):
    entry = HistoryEntry.objects.filter(company__slug=slug).latest("pk")
    return entry.action, entry.account_id, entry.before, entry.after


@pytest.mark.parametrize("who", ["visitor", "other owner", "reviewer's token", "former owner"])
@pytest.mark.parametrize("state", ["draft", "submitted", "published"])
def test_a_stranger_takes_nothing_back(who, state):
    me, former = owner(), owner()
    slug = (published if state == "published" else draft)(me).slug
    if state == "submitted":
        workflow.submit_company(me, slug)
    listings.add_owner(me, slug, former.account_id)
    listings.leave_company(former, slug)
    actor = {
        "visitor": lambda: VISITOR,
        "other owner": owner,
        "reviewer's token": lambda: agent_of(reviewer()),
        "former owner": lambda: former,
    }[who]()
    for step in STEPS:
        with pytest.raises(NotFound, match="no company with the slug"):
            step(actor, slug)
    assert listings.get_company(me, slug).state == state


@pytest.mark.parametrize("actor", [reviewer, lambda: COMMAND])
def test_a_reviewer_decides_on_a_listing_and_takes_no_owner_s_step(actor):
    slug = draft(owner()).slug
    for step in STEPS:
        with pytest.raises(Forbidden, match="Only owners"):
            step(actor(), slug)
    assert Company.objects.get(slug=slug).state == "draft"


def test_a_deleted_draft_leaves_nothing_but_its_slug_and_its_owners_are_told(
    settings, django_capture_on_commit_callbacks
):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    letters, me, partner = Letters(), owner("me@example.org"), owner("partner@example.org")
    slug = draft(me, name="Tidal Works", positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}]).slug
    listings.add_owner(me, slug, partner.account_id)
    with django_capture_on_commit_callbacks(execute=True):
        workflow.delete_draft(me, slug)
    assert not Company.objects.exists()
    assert not HistoryEntry.objects.filter(action__in=["created", "owner added"]).exists()
    assert not Person.objects.filter(name="Ada Moss").exists()
    assert GivenSlug.objects.filter(kind="company", slug="tidal-works").exists()
    assert draft(me, name="Tidal Works").slug == "tidal-works-2"
    for address in ("me@example.org", "partner@example.org"):
        subject, text = letters.to(address)[-1]
        assert subject.endswith("Tidal Works: draft deleted")
        assert "An owner deleted the draft" in text


def test_a_person_whom_others_name_outlives_a_draft():
    me = owner()
    published(me, positions=[{"person": {"name": "Ada Moss"}}])
    mine = draft(me, positions=[{"person": {"slug": "ada-moss"}}, {"person": {"name": "Bo Reef"}}])
    workflow.delete_draft(me, mine.slug)
    assert [person.name for person in Person.objects.all()] == ["Ada Moss"]


def test_a_listing_is_deleted_while_it_was_never_public_and_is_not_under_review():
    me, judge = owner(), reviewer()
    waiting, public = draft(me).slug, published(me).slug
    workflow.submit_company(me, waiting)
    with pytest.raises(Conflict, match="submitted and cannot be deleted") as refused:
        workflow.delete_draft(me, waiting)
    assert refused.value.hint == "Withdraw the submission first."
    for _ in range(2):
        with pytest.raises(Conflict, match="cannot be deleted") as refused:
            workflow.delete_draft(me, public)
        assert refused.value.hint == "Unlist it instead."
        if listings.get_company(me, public).state == "published":
            workflow.unlist_own_company(me, public)
    workflow.reject_company(judge, waiting, "No.")
    workflow.delete_draft(me, waiting)
    again = draft(me).slug
    workflow.submit_company(me, again)
    workflow.request_changes(judge, again, "More.")
    with pytest.raises(Conflict, match="version"):
        workflow.delete_draft(me, again, expected_version=1)
    workflow.delete_draft(me, again, expected_version=3)
    assert list(Company.objects.values_list("slug", flat=True)) == [public]


def test_a_draft_with_a_report_is_kept(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    me = owner()
    slug = finished(me).run.company.slug
    Company.objects.filter(slug=slug).update(state="draft", publication_number=None)
    with pytest.raises(Conflict, match="report runs") as refused:
        workflow.delete_draft(me, slug)
    assert "Leave the listing" in refused.value.hint
    assert listings.get_company(me, slug).slug == slug


def test_a_withdrawn_submission_leaves_the_queue_and_can_be_submitted_again(
    settings, django_capture_on_commit_callbacks
):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    letters, me, judge = Letters(), owner("me@example.org"), reviewer()
    slug = draft(me).slug
    workflow.submit_company(me, slug)
    items.assign(judge, f"company:{slug}")
    with django_capture_on_commit_callbacks(execute=True):
        assert workflow.withdraw_submission(me, slug).state == "draft"
    assert newest(slug) == ("submission withdrawn", me.account_id, {"state": "submitted"}, {"state": "draft"})
    assert (items.count_queue(judge), Taking.objects.count()) == (0, 0)
    with pytest.raises(Conflict, match="draft and cannot be approved"):
        workflow.approve_company(judge, slug)
    submitted, withdrawn = (subject for subject, _ in letters.to("me@example.org"))
    assert submitted.endswith("submitted")
    assert withdrawn.endswith("submission withdrawn")
    workflow.submit_company(me, slug)
    with pytest.raises(Conflict, match="there is no submission to withdraw"):
        workflow.withdraw_submission(me, published(me).slug)


def test_owners_unlist_and_relist_their_listing_and_are_told(settings, django_capture_on_commit_callbacks):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    letters, me, judge = Letters(), owner("me@example.org"), reviewer()
    mine, other = published(me, positions=[{"person": {"name": "Ada Moss"}}]), published(owner())
    program = frameworks.create_framework(judge, name="Fund", kind="program", company=mine.slug)
    order = keys("company")
    with django_capture_on_commit_callbacks(execute=True):
        workflow.unlist_own_company(me, mine.slug)
    assert (keys("company"), keys("person"), keys("framework")) == ([other.slug], [], [])
    assert ("company", mine.slug, "unlisted") in changes()
    assert listings.get_company(me, mine.slug).unlisted_by == "owner"
    assert newest(mine.slug) == (
        "unlisted by owner",
        me.account_id,
        {"state": "published"},
        {"state": "unlisted"},
    )
    with django_capture_on_commit_callbacks(execute=True):
        workflow.relist_own_company(me, mine.slug)
    assert (keys("company"), keys("person"), keys("framework")) == (order, ["ada-moss"], [program.slug])
    assert listings.get_company(me, mine.slug).unlisted_by == ""
    assert [subject.partition("] ")[2] for subject, _ in letters.to("me@example.org")] == [
        f"{mine.name}: submitted",
        f"{mine.name}: approved",
        f"{mine.name}: unlisted",
        f"{mine.name}: published again",
    ]


def test_what_a_reviewer_took_down_its_owner_does_not_publish_again():
    me, judge = owner(), reviewer()
    slug = published(me).slug
    workflow.unlist_company(judge, slug, "Not an organization.")
    with pytest.raises(Forbidden, match="A reviewer unlisted"):
        workflow.relist_own_company(me, slug)
    with pytest.raises(Conflict, match="unlisted and cannot be unlisted"):
        workflow.unlist_company(judge, slug, "Once more.")
    assert (document("company", slug), listings.get_company(me, slug).unlisted_by) == (None, "reviewer")
    workflow.relist_company(judge, slug)
    workflow.unlist_own_company(me, slug)
    workflow.relist_own_company(me, slug)
    assert document("company", slug)


def test_a_reviewer_takes_down_what_its_owner_unlisted_so_that_no_owner_evades_a_takedown():
    me, judge = owner(), reviewer()
    slug = published(me).slug
    workflow.unlist_own_company(me, slug)
    workflow.unlist_company(judge, slug, "Not an organization.")
    assert newest(slug) == (
        "unlisted",
        judge.account_id,
        {"unlistedBy": "owner"},
        {"unlistedBy": "reviewer"},
    )
    with pytest.raises(Forbidden):
        workflow.relist_own_company(me, slug)


def test_while_unlisted_name_symbol_and_type_wait_for_a_reviewer():
    me, judge = owner(), reviewer()
    slug = published(me, name="Honest Harbour").slug
    workflow.unlist_own_company(me, slug)
    update = listings.update_company(me, slug, CompanyChange(name="Rival Bank", type="bank", industry="Energy"))
    assert (update.applied, update.awaiting_review) == (["industry"], ["name", "type"])
    workflow.relist_own_company(me, slug)
    assert document("company", slug)["company"]["name"] == "Honest Harbour"
    workflow.unlist_own_company(me, slug)
    workflow.decide_change(judge, PendingChange.objects.get(decision="").pk, approve=True)
    assert document("company", slug) is None
    workflow.relist_own_company(me, slug)
    assert document("company", slug)["company"]["name"] == "Rival Bank"


def test_a_pending_rename_that_an_edit_withdraws_is_named_also_by_a_dry_run():
    me = owner()
    slug = published(me, name="Old Name").slug
    listings.update_company(me, slug, CompanyChange(name="New Name", symbol="NEW"))
    change = CompanyChange(name="Old Name", industry="Land")
    tried = listings.update_company(me, slug, change, dry_run=True)
    assert (tried.applied, tried.withdrawn) == (["industry"], ["name"])
    assert tried.company.pending_changes == {"name": "New Name", "symbol": "NEW"}
    done = listings.update_company(me, slug, change)
    assert (done.applied, done.awaiting_review, done.withdrawn) == (["industry"], [], ["name"])
    assert done.company.pending_changes == {"symbol": "NEW"}
    assert newest(slug) == ("request withdrawn", me.account_id, {"name": "New Name"}, {})
    assert listings.update_company(me, slug, change).withdrawn == []


def test_reverting_an_old_change_warns_when_later_changes_touched_the_same_field():
    me = owner()
    slug = published(me, industry="Energy", status="active").slug
    for change in ({"industry": "Land"}, {"industry": "Health"}, {"status": "upcoming"}):
        listings.update_company(me, slug, CompanyChange(change))
    entry = HistoryEntry.objects.filter(action="updated").earliest("pk")
    with pytest.raises(Conflict, match="Later changes touched the same fields: industry") as warned:
        listings.revert_company(me, slug, entry.pk)
    assert warned.value.fields == ["industry"]
    assert listings.revert_company(me, slug, entry.pk, dry_run=True).diff == {
        "industry": {"before": "Health", "after": "Energy"}
    }
    assert document("company", slug)["company"]["industry"] == "Health"
    listings.revert_company(me, slug, entry.pk, overwrite=True)
    assert document("company", slug)["company"]["industry"] == "Energy"
    latest = HistoryEntry.objects.filter(action="updated").latest("pk")
    assert listings.revert_company(me, slug, latest.pk).applied == ["status"]


def test_reverting_what_is_reverted_already_needs_no_question():
    me = owner()
    slug = published(me, industry="Energy").slug
    listings.update_company(me, slug, CompanyChange(industry="Land"))
    entry = HistoryEntry.objects.filter(action="updated").latest("pk")
    listings.revert_company(me, slug, entry.pk)
    assert listings.revert_company(me, slug, entry.pk).applied == []


def test_a_withdrawn_request_cannot_be_reverted():
    me = owner()
    slug = published(me, name="Old Name").slug
    listings.update_company(me, slug, CompanyChange(name="New Name"))
    listings.update_company(me, slug, CompanyChange(name="Old Name"))
    for entry in HistoryEntry.objects.filter(action__in=["asked", "request withdrawn"]):
        with pytest.raises(BadRequest, match="no change that can be reverted"):
            listings.revert_company(me, slug, entry.pk)


@pytest.mark.django_db(transaction=True)
def test_an_owner_s_and_a_reviewer_s_step_at_the_same_moment_end_in_one_state():
    for _ in range(4):
        me, judge = owner(), reviewer()
        slug = draft(me).slug
        workflow.submit_company(me, slug)
        outcomes = at_once(
            [partial(workflow.withdraw_submission, me, slug), partial(workflow.approve_company, judge, slug)]
        )
        assert [type(each) for each in outcomes].count(Conflict) == 1
        state = Company.objects.get(slug=slug).state
        assert (document("company", slug) is not None) == (state == "published")
        assert state in {"draft", "published"}


def test_a_draft_that_runs_a_program_is_kept():
    me = owner()
    slug = draft(me).slug
    frameworks.create_framework(reviewer(), name="Fund", kind="program", company=slug)
    with pytest.raises(Conflict, match="programs belong"):
        workflow.delete_draft(me, slug)
    assert listings.get_company(me, slug).slug == slug
