"""Items are decided one by one or together, each by its own operation, and decisions are taken back."""

import pytest

from make.accounts import Letters
from make.registry import agent_of, draft, owner, published, reviewer
from muniment.accounts.models import Account
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.inbox import deciding, items
from muniment.registry.inbox.deciding import MAX_TOGETHER, Chosen
from muniment.registry.models import Company, HistoryEntry, PendingChange, Petition, Taking
from muniment.registry.review import claims, workflow

pytestmark = pytest.mark.django_db


def submitted(me, **fields):
    made = draft(me, **fields)
    return workflow.submit_company(me, made.slug)


def of_listing(company):
    return Chosen(f"company:{company.slug}", company.version)


@pytest.fixture
def three():
    """A new listing, a change and a claim."""
    me = owner()
    listed = published(me, name="Harbour Fund")
    listings.update_company(me, listed.slug, CompanyChange(name="Harbour Trust"))
    claim = claims.claim_company(owner(), listed.slug, "I chair it.")
    new = submitted(me)
    return [of_listing(new), Chosen(f"change:{PendingChange.objects.get().pk}"), Chosen(f"petition:{claim.pk}")]


def test_several_items_of_different_kinds_are_approved_together(three):
    judge = reviewer()
    results = deciding.decide_several(judge, three, "approve", "Welcome.")
    assert [(each.subject, each.problem) for each in results] == [(each.subject, None) for each in three]
    assert Company.objects.filter(state="published", name="Harbour Trust").exists()
    assert (items.count_queue(judge), Company.objects.filter(state="published").count()) == (0, 2)


def test_several_items_are_declined_with_one_note(three):
    judge = reviewer()
    deciding.assign_several(judge, three, judge.account_id)
    assert Taking.objects.count() == 3
    assert not any(each.problem for each in deciding.decide_several(judge, three, "decline", "Not ours."))
    assert not Taking.objects.exists(), "what is decided is assigned to no one"
    assert {PendingChange.objects.get().note, Petition.objects.get().note} == {"Not ours."}
    assert Company.objects.get(state="rejected").reviewer_note == "Not ours."


def test_an_item_that_changed_meanwhile_is_reported_and_not_decided(three):
    judge, me = reviewer(), owner()
    stale = submitted(me)
    listings.update_company(me, stale.slug, CompanyChange(description="Something else."))
    decided = submitted(me)
    workflow.approve_company(judge, decided.slug)
    results = deciding.decide_several(judge, [of_listing(stale), *three, of_listing(decided)], "decline", "No.")
    assert [isinstance(each.problem, Conflict) for each in results] == [True, False, False, False, True]
    assert Company.objects.get(slug=stale.slug).state == "submitted"
    assert Company.objects.get(slug=decided.slug).state == "published"


def test_an_item_that_does_not_exist_leaves_the_others(three):
    results = deciding.decide_several(reviewer(), [Chosen("company:missing"), Chosen("x:1"), *three], "approve")
    assert [isinstance(each.problem, NotFound) for each in results] == [True, True, False, False, False]


def test_nothing_is_decided_without_items_without_a_note_or_with_too_many(three):
    judge = reviewer()
    for attempt in (
        lambda: deciding.decide_several(judge, [], "approve"),
        lambda: deciding.decide_several(judge, three, "decline", " "),
        lambda: deciding.decide_several(judge, three * MAX_TOGETHER, "approve"),
        lambda: deciding.assign_several(judge, [], judge.account_id),
    ):
        with pytest.raises(BadRequest):
            attempt()
    assert items.count_queue(judge) == 3


def test_changes_are_requested_of_new_listings_only(three):
    judge = reviewer()
    deciding.decide(judge, three[0], "request_changes", "Add a website.")
    assert Company.objects.filter(state="changes_requested").count() == 1
    with pytest.raises(BadRequest, match="new listings only"):
        deciding.decide(judge, three[1], "request_changes", "Another name.")


def test_several_items_are_assigned_and_unassigned(three):
    judge, other = reviewer(), reviewer()
    assert not any(each.problem for each in deciding.assign_several(judge, three, other.account_id))
    assert {each.account_id for each in Taking.objects.all()} == {other.account_id}
    gone = Chosen("company:missing")
    [*_, last] = deciding.assign_several(judge, [*three, gone], judge.account_id)
    assert isinstance(last.problem, Conflict)
    deciding.assign_several(judge, three, None)
    assert not Taking.objects.exists()


def test_items_are_assigned_to_reviewers_only(three):
    with pytest.raises(BadRequest, match="not a reviewer's"):
        items.assign(reviewer(), three[0].subject, to=owner().account_id)
    former = reviewer()
    Account.objects.filter(pk=former.account_id).update(is_active=False)
    results = deciding.assign_several(reviewer(), three, former.account_id)
    assert [type(each.problem) for each in results] == [BadRequest] * 3
    assert not Taking.objects.exists()


@pytest.mark.parametrize("decision", ["decline", "request_changes"])
def test_a_listing_that_was_sent_back_is_reopened_in_its_old_place(
    decision, settings, django_capture_on_commit_callbacks
):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    letters, me, judge = Letters(), owner("me@example.org"), reviewer()
    company = submitted(me)
    since = Company.objects.get().submitted_at
    deciding.decide(judge, of_listing(company), decision, "No.")
    with django_capture_on_commit_callbacks(execute=True):
        deciding.reopen(judge, f"company:{company.slug}")
    found = Company.objects.get()
    assert (found.state, found.submitted_at, found.reviewer_note) == ("submitted", since, "")
    assert HistoryEntry.objects.latest("pk").action == "review reopened"
    assert any("back in review" in subject for subject, _ in letters.to("me@example.org"))


def test_a_declined_change_and_a_declined_request_are_reopened(three):
    judge = reviewer()
    deciding.decide_several(judge, three[1:], "decline", "No.")
    for each in three[1:]:
        deciding.reopen(judge, each.subject)
    assert (PendingChange.objects.get().decision, Petition.objects.get().decision) == ("", "")
    assert {item.subject for item in items.list_queue(judge).items} == {each.subject for each in three}
    deciding.decide_several(judge, three[1:], "approve")
    assert Company.objects.filter(name="Harbour Trust").exists()


def test_what_was_approved_is_not_reopened(three):
    judge = reviewer()
    deciding.decide_several(judge, three, "approve")
    for each in three:
        with pytest.raises(Conflict):
            deciding.reopen(judge, each.subject)


def test_a_change_is_not_reopened_beside_another_one_or_without_effect(three):
    judge, change = reviewer(), PendingChange.objects.get()
    deciding.decide(judge, three[1], "decline", "No.")
    change.company.refresh_from_db()
    by = Account.objects.get(pk=change.account_id).actor("web")
    listings.update_company(by, change.company.slug, CompanyChange(name="Harbour Union"))
    with pytest.raises(Conflict, match="another change"):
        deciding.reopen(judge, three[1].subject)
    listings.update_company(by, change.company.slug, CompanyChange(name="Harbour Fund"))
    listings.update_company(judge, change.company.slug, CompanyChange(name="Harbour Trust"))
    with pytest.raises(Conflict, match="already has these values"):
        deciding.reopen(judge, three[1].subject)


def test_a_request_is_not_reopened_beside_another_one(three):
    judge = reviewer()
    deciding.decide(judge, three[2], "decline", "No.")
    first = Petition.objects.get()
    claims.claim_company(first.account.actor("web"), first.company.slug, "Here is more.")
    with pytest.raises(Conflict, match="another request"):
        deciding.reopen(judge, three[2].subject)


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize("subject", ["", "x:1", "change:", "change:x", "company:", "change:999", "petition:999"])
def test_an_unknown_item_is_not_reopened(subject):
    with pytest.raises(NotFound):
        deciding.reopen(reviewer(), subject)


@pytest.mark.parametrize("who", ["visitor", "owner", "reviewer's token"])
def test_strangers_decide_and_reopen_nothing(three, who):
    actor = {"visitor": lambda: VISITOR, "owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[who]()
    attempts = [
        lambda: deciding.decide_several(actor, three, "approve"),
        lambda: deciding.assign_several(actor, three, None),
        *(lambda each=each: deciding.decide(actor, each, "approve") for each in three),
        *(lambda each=each: deciding.reopen(actor, each.subject) for each in three),
        lambda: workflow.reopen_company(actor, three[0].subject.partition(":")[2]),
        lambda: workflow.reopen_change(actor, PendingChange.objects.get().pk),
        lambda: claims.reopen_request(actor, Petition.objects.get().pk),
    ]
    for attempt in attempts:
        with pytest.raises(Forbidden):
            attempt()
    assert items.count_queue(reviewer()) == 3
