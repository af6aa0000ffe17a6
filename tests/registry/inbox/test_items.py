"""The review queue: what waits, oldest first, and which reviewer works on it."""

from datetime import timedelta

import pytest

from make.registry import agent_of, draft, owner, published, reviewer
from muniment.accounts.models import Account
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, Forbidden
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.inbox import items
from muniment.registry.models import PendingChange, Taking
from muniment.registry.review import claims, workflow

pytestmark = pytest.mark.django_db


def submitted(**fields):
    me = owner()
    slug = draft(me, **fields).slug
    workflow.submit_company(me, slug)
    return slug


def email(actor):
    return Account.objects.get(pk=actor.account_id).email


def subjects(actor, **page):
    return [item.subject for item in items.list_queue(actor, **page).items]


def test_submissions_changes_and_claims_wait_in_one_queue_oldest_first():
    me, judge = owner(), reviewer()
    slug = published(me, name="Harbour Fund").slug
    listings.update_company(me, slug, CompanyChange(name="Harbour Trust"))
    claim = claims.claim_company(owner(), slug, "I chair it.")
    new = submitted()
    change = PendingChange.objects.get()
    assert subjects(judge) == [f"change:{change.pk}", f"petition:{claim.pk}", f"company:{new}"]
    PendingChange.objects.update(asked_at=now() + timedelta(hours=1))
    assert subjects(judge) == [f"petition:{claim.pk}", f"company:{new}", f"change:{change.pk}"]
    assert items.count_queue(judge) == 3
    assert items.list_queue(judge).items[2].by == email(me)


def test_a_decided_item_leaves_the_queue():
    me, judge = owner(), reviewer()
    slug = published(me).slug
    listings.update_company(me, slug, CompanyChange(name="Harbour Trust"))
    claim = claims.claim_company(owner(), slug, "I chair it.")
    new = submitted()
    workflow.approve_company(judge, new)
    workflow.decide_change(judge, PendingChange.objects.get().pk, approve=True)
    claims.decide_request(judge, claim.pk, approve=True)
    found = items.list_queue(judge)
    assert (found.items, found.total, found.page_count, items.count_queue(judge)) == ([], 0, 1, 0)


def test_the_queue_has_pages():
    slugs = [f"company:{submitted()}" for _ in range(3)]
    judge = reviewer()
    first, last = (items.list_queue(judge, page=page, page_size=2) for page in (1, 2))
    assert [item.subject for item in (*first.items, *last.items)] == slugs
    assert (first.page_count, first.total) == (2, 3)
    assert subjects(judge, page=3, page_size=2) == []


@pytest.mark.parametrize("who", ["visitor", "owner", "reviewer's token"])
def test_only_a_reviewer_at_work_sees_or_assigns_what_waits(who):
    slug = submitted()
    actor = {"visitor": lambda: VISITOR, "owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[who]()
    items.assign(reviewer(), f"company:{slug}")
    for attempt in (
        lambda: items.list_queue(actor),
        lambda: items.count_queue(actor),
        lambda: items.assign(actor, f"company:{slug}"),
        lambda: items.unassign(actor, f"company:{slug}"),
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert Taking.objects.count() == 1


def test_a_reviewer_assigns_an_item_to_themselves_and_another_may_take_it_over():
    subject, first, second = f"company:{submitted()}", reviewer(), reviewer()
    items.assign(first, subject)
    [seen] = items.list_queue(first).items
    assert (seen.taken_by, seen.taken_by_me) == (email(first), True)
    [seen] = items.list_queue(second).items
    assert (seen.taken_by, seen.taken_by_me) == (email(first), False)
    items.assign(second, subject)
    assert (items.assignee(subject), Taking.objects.count()) == (email(second), 1)
    items.unassign(second, subject)
    assert (items.assignee(subject), items.list_queue(second).items[0].taken_by) == ("", "")


def test_an_assignment_ends_after_four_hours():
    subject, judge = f"company:{submitted()}", reviewer()
    items.assign(judge, subject)
    Taking.objects.update(at=now() - timedelta(hours=3, minutes=59))
    assert (items.assignee(subject), items.list_queue(judge).items[0].taken_by) == (
        email(judge),
        email(judge),
    )
    Taking.objects.update(at=now() - timedelta(hours=4, minutes=1))
    assert (items.assignee(subject), items.list_queue(judge).items[0].taken_by) == ("", "")


def test_the_command_line_has_no_account_to_assign_to():
    items.assign(COMMAND, f"company:{submitted()}")
    assert not Taking.objects.exists()


@pytest.mark.parametrize("decided", ["company", "change", "petition"])
def test_a_decided_item_cannot_be_assigned(decided):
    me, judge = owner(), reviewer()
    slug = published(me).slug
    listings.update_company(me, slug, CompanyChange(name="Harbour Trust"))
    change, claim = PendingChange.objects.get(), claims.claim_company(owner(), slug, "I chair it.")
    workflow.decide_change(judge, change.pk, approve=True)
    claims.decide_request(judge, claim.pk, approve=True)
    subject = {"company": slug, "change": change.pk, "petition": claim.pk}[decided]
    with pytest.raises(Conflict):
        items.assign(judge, f"{decided}:{subject}")
    assert not Taking.objects.exists()


@pytest.mark.parametrize(
    "subject", ["", "company", "company:missing", "change:x", "change:²", f"petition:{'9' * 30}", "x:1"]
)
def test_an_item_that_does_not_exist_cannot_be_assigned(subject):
    with pytest.raises(Conflict):
        items.assign(reviewer(), subject)
    assert not Taking.objects.exists()
