"""The review queue: what waits, oldest first, and which reviewer works on it."""

from datetime import timedelta

import pytest

from make.registry import agent_of, draft, owner, published, reviewer
from muniment.accounts.models import Account
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, Forbidden
from muniment.registry.company import operations
from muniment.registry.company.company_change import CompanyChange
from muniment.registry.models import Company, PendingChange, Taking
from muniment.registry.review import claims, decisions, review_queue

pytestmark = pytest.mark.django_db


def submitted(**fields):
    me = owner()
    slug = draft(me, **fields).slug
    decisions.submit_company(me, slug)
    return slug


def email(actor):
    return Account.objects.get(pk=actor.account_id).email


def subjects(actor, **page):
    return [item.subject for item in review_queue.list_queue(actor, **page).items]


def test_submissions_changes_and_claims_wait_in_one_queue_oldest_first():
    me, judge = owner(), reviewer()
    slug = published(me, name="Harbour Fund").slug
    operations.update_company(me, slug, CompanyChange(name="Harbour Trust"))
    claim = claims.claim_company(owner(), slug, "I chair it.")
    new = submitted()
    change = PendingChange.objects.get()
    assert subjects(judge) == [f"change:{change.pk}", f"petition:{claim.pk}", f"company:{new}"]
    PendingChange.objects.update(asked_at=now() + timedelta(hours=1))
    assert subjects(judge) == [f"petition:{claim.pk}", f"company:{new}", f"change:{change.pk}"]
    assert review_queue.count_queue(judge) == 3
    assert review_queue.list_queue(judge).items[2].by == email(me)


def test_a_decided_item_leaves_the_queue():
    me, judge = owner(), reviewer()
    slug = published(me).slug
    operations.update_company(me, slug, CompanyChange(name="Harbour Trust"))
    claim = claims.claim_company(owner(), slug, "I chair it.")
    new = submitted()
    decisions.approve_company(judge, new)
    decisions.decide_change(judge, PendingChange.objects.get().pk, approve=True)
    claims.decide_request(judge, claim.pk, approve=True)
    found = review_queue.list_queue(judge)
    assert (found.items, found.total, found.page_count, review_queue.count_queue(judge)) == ([], 0, 1, 0)


def test_the_queue_has_pages():
    slugs = [f"company:{submitted()}" for _ in range(3)]
    judge = reviewer()
    first, last = (review_queue.list_queue(judge, page=page, page_size=2) for page in (1, 2))
    assert [item.subject for item in (*first.items, *last.items)] == slugs
    assert (first.page_count, first.total) == (2, 3)
    assert subjects(judge, page=3, page_size=2) == []


@pytest.mark.parametrize("who", ["visitor", "owner", "reviewer's token"])
def test_only_a_reviewer_at_work_sees_or_assigns_what_waits(who):
    slug = submitted()
    actor = {"visitor": lambda: VISITOR, "owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[who]()
    review_queue.assign(reviewer(), f"company:{slug}")
    for attempt in (
        lambda: review_queue.list_queue(actor),
        lambda: review_queue.count_queue(actor),
        lambda: review_queue.assign(actor, f"company:{slug}"),
        lambda: review_queue.unassign(actor, f"company:{slug}"),
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert Taking.objects.count() == 1


def test_a_reviewer_assigns_an_item_to_themselves_and_another_may_take_it_over():
    subject, first, second = f"company:{submitted()}", reviewer(), reviewer()
    review_queue.assign(first, subject)
    [seen] = review_queue.list_queue(first).items
    assert (seen.taken_by, seen.taken_by_me) == (email(first), True)
    [seen] = review_queue.list_queue(second).items
    assert (seen.taken_by, seen.taken_by_me) == (email(first), False)
    review_queue.assign(second, subject)
    assert (review_queue.assignee(subject), Taking.objects.count()) == (email(second), 1)
    review_queue.unassign(second, subject)
    assert (review_queue.assignee(subject), review_queue.list_queue(second).items[0].taken_by) == ("", "")


def test_an_assignment_ends_after_four_hours():
    subject, judge = f"company:{submitted()}", reviewer()
    review_queue.assign(judge, subject)
    Taking.objects.update(at=now() - timedelta(hours=3, minutes=59))
    assert (review_queue.assignee(subject), review_queue.list_queue(judge).items[0].taken_by) == (
        email(judge),
        email(judge),
    )
    Taking.objects.update(at=now() - timedelta(hours=4, minutes=1))
    assert (review_queue.assignee(subject), review_queue.list_queue(judge).items[0].taken_by) == ("", "")


def test_the_command_line_has_no_account_to_assign_to():
    review_queue.assign(COMMAND, f"company:{submitted()}")
    assert not Taking.objects.exists()


@pytest.mark.parametrize("decided", ["company", "change", "petition"])
def test_a_decided_item_cannot_be_assigned(decided):
    me, judge = owner(), reviewer()
    slug = published(me).slug
    operations.update_company(me, slug, CompanyChange(name="Harbour Trust"))
    change, claim = PendingChange.objects.get(), claims.claim_company(owner(), slug, "I chair it.")
    decisions.decide_change(judge, change.pk, approve=True)
    claims.decide_request(judge, claim.pk, approve=True)
    subject = {"company": slug, "change": change.pk, "petition": claim.pk}[decided]
    with pytest.raises(Conflict):
        review_queue.assign(judge, f"{decided}:{subject}")
    assert not Taking.objects.exists()


@pytest.mark.parametrize(
    "subject", ["", "company", "company:nobody", "change:x", "change:²", f"petition:{'9' * 30}", "x:1"]
)
def test_an_item_that_does_not_exist_cannot_be_assigned(subject):
    with pytest.raises(Conflict):
        review_queue.assign(reviewer(), subject)
    assert not Taking.objects.exists()


# ------------------------------------------------------------------ likely duplicates


def twins(actor, name="", website="", symbol="", **more):
    return {found.slug: why for found, why in review_queue.likely_duplicates(actor, name, website, symbol, **more)}


def test_a_listing_of_the_same_name_website_or_symbol_is_a_likely_duplicate():
    by_name = published(owner(), name="Tidal Works").slug
    by_site = published(owner(), website="https://www.tidal.example/about").slug
    by_symbol = published(owner(), symbol="TIDE").slug
    published(owner(), website="https://nottidal.example", symbol="TIDES")
    found = twins(owner(), " tidal works ", "http://tidal.example:8080", "tide")
    assert found == {by_name: "name", by_site: "website", by_symbol: "symbol"}
    assert twins(owner(), " ", "", " ") == {}
    assert by_name not in twins(owner(), "Tidal Works", besides=by_name)


def test_a_strangers_draft_is_a_duplicate_for_reviewers_alone():
    me = owner()
    slug = draft(me, name="Tidal Works").slug
    assert twins(me, "Tidal Works") == {slug: "name"}
    assert twins(reviewer(), "Tidal Works") == {slug: "name"}
    assert twins(owner(), "Tidal Works") == twins(agent_of(reviewer()), "Tidal Works") == {}


def test_at_most_three_duplicates_by_each_of_name_website_and_symbol_and_six_in_all():
    for number in range(4):
        published(owner(), name="Tidal Works", symbol=f"A{number}")
        published(owner(), website=f"https://tidal.example/{number}")
        published(owner(), symbol="TIDE")
    assert list(twins(owner(), "Tidal Works").values()) == ["name"] * 3
    assert list(twins(owner(), website="https://tidal.example").values()) == ["website"] * 3
    assert list(twins(owner(), symbol="TIDE").values()) == ["symbol"] * 3
    assert list(twins(owner(), "Tidal Works", "tidal.example", "TIDE").values()) == ["name"] * 3 + ["website"] * 3


def test_a_rejected_listing_is_no_duplicate():
    slug = submitted(name="Tidal Works")
    decisions.reject_company(reviewer(), slug, "Not an organization.")
    assert Company.objects.filter(name="Tidal Works").exists()
    assert twins(reviewer(), "Tidal Works") == {}


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://www.Tidal.example/a?b", "tidal.example"),
        ("tidal.example", "tidal.example"),
        ("http://tidal.example:80", "tidal.example"),
        ("localhost", ""),
        ("", ""),
    ],
)
def test_the_host_of_an_address(address, host):
    assert review_queue.host_of(address) == host
