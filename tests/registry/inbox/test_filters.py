"""The inbox finds items by kind, state, assignee, checks and words, in a bounded number of queries."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from make.registry import agent_of, draft, owner, published, reviewer
from muniment.kernel.actor import VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import Forbidden
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.inbox import items
from muniment.registry.inbox.items import InboxFilter
from muniment.registry.models import Company, ItemChecks, PendingChange, Petition
from muniment.registry.review import claims, workflow

pytestmark = pytest.mark.django_db


def submitted(me=None, **fields):
    me = me or owner()
    slug = draft(me, **fields).slug
    workflow.submit_company(me, slug)
    return slug


@pytest.fixture
def queue():
    """One item of each kind, an hour apart, by the name of its kind."""
    me = owner("keeper@harbour.example")
    listed = published(me, name="Harbour Fund", positions=[{"title": "Chair", "person": {"name": "Ottoline Brand"}}])
    person = listings.get_company(reviewer(), listed.slug).bundle["positions"][0]["person"]["slug"]
    subjects = {"listing": f"company:{submitted(me, name='Kelp Works')}"}
    listings.update_company(me, listed.slug, CompanyChange(name="Harbour Trust"))
    subjects["change"] = f"change:{PendingChange.objects.get().pk}"
    claimant = owner("claimant@kelp.example")
    subjects["claim"] = f"petition:{claims.claim_company(claimant, listed.slug, 'I chair it.').pk}"
    subjects["profile"] = f"petition:{claims.claim_person(claimant, person, 'It is me.').pk}"
    words = CompanyChange(description="Better words.")
    subjects["suggestion"] = f"petition:{claims.suggest_edit(claimant, listed.slug, words, '').pk}"
    start = now() - timedelta(days=1)
    Company.objects.filter(state="submitted").update(submitted_at=start)
    PendingChange.objects.update(asked_at=start + timedelta(hours=1))
    for hours, kind in enumerate(("claim", "profile", "suggestion"), 2):
        Petition.objects.filter(kind=kind).update(asked_at=start + timedelta(hours=hours))
    return subjects


def found(actor, **given):
    return [item.subject for item in items.list_queue(actor, InboxFilter(**given)).items]


@pytest.mark.parametrize("kind", items.KINDS)
def test_items_are_found_by_kind(queue, kind):
    judge = reviewer()
    assert found(judge, kind=kind) == [queue[kind]]
    assert items.list_queue(judge, InboxFilter(kind=kind)).items[0].kind == kind


def test_kinds_are_counted_whatever_kind_is_chosen(queue):
    assert items.count_kinds(reviewer(), InboxFilter(kind="claim")) == dict.fromkeys(items.KINDS, 1)
    assert items.count_kinds(reviewer(), InboxFilter(words="Kelp Works")) == {"listing": 1}


def test_items_come_oldest_or_newest_first(queue):
    assert found(reviewer()) == list(queue.values())
    assert found(reviewer(), newest=True) == list(queue.values())[::-1]


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        ("kelp works", ["listing"]),
        ("KEEPER@", ["listing", "change"]),
        ("claimant@kelp", ["claim", "profile", "suggestion"]),
        ("ottoline", ["profile"]),
        ("harbour fund", ["change", "claim", "suggestion"]),
        ("nothing", []),
    ],
)
def test_items_are_found_by_words_in_names_slugs_and_addresses(queue, words, kinds):
    assert found(reviewer(), words=words) == [queue[kind] for kind in kinds]


def test_items_are_found_by_assignee(queue):
    first, second = reviewer(), reviewer()
    items.assign(first, queue["claim"])
    items.assign(second, queue["change"], to=first.account_id)
    assert found(first, assignee="me") == [queue["change"], queue["claim"]]
    assert found(second, assignee=str(first.account_id)) == [queue["change"], queue["claim"]]
    assert found(second, assignee="me") == []
    assert found(second, assignee="none") == [queue["listing"], queue["profile"], queue["suggestion"]]


def test_items_are_found_by_the_outcome_of_their_checks(queue):
    ItemChecks.objects.create(subject=queue["listing"], stamp="1", attention=" links duplicates ")
    ItemChecks.objects.create(subject=queue["change"], stamp="1", attention=" domain ")
    ItemChecks.objects.create(subject=queue["claim"], stamp="1", attention="")
    judge = reviewer()
    assert found(judge, check="attention") == [queue["listing"], queue["change"]]
    assert found(judge, check="passed") == [queue["claim"]]
    assert found(judge, check="links") == [queue["listing"]]
    assert found(judge, check="values") == []
    outcomes = [item.attention for item in items.list_queue(judge).items]
    assert outcomes == [("links", "duplicates"), ("domain",), (), None, None]


def test_returned_and_decided_items_are_found_apart(queue):
    judge = reviewer()
    workflow.request_changes(judge, queue["listing"].partition(":")[2], "Add a website.")
    workflow.decide_change(judge, PendingChange.objects.get().pk, approve=True)
    claims.decide_request(judge, Petition.objects.get(kind="claim").pk, approve=False, note="No proof.")
    assert found(judge, state="returned") == [queue["listing"]]
    assert found(judge, state="decided", kind="change") == [queue["change"]]
    assert found(judge, state="decided", kind="claim") == [queue["claim"]]
    assert len(found(judge)) == 2


def test_the_next_item_is_behind_the_last_one_and_else_the_first(queue):
    judge, subjects = reviewer(), list(queue.values())
    for here, after in zip(subjects, [*subjects[1:], subjects[0]], strict=True):
        assert items.next_item(judge, InboxFilter(), here).subject == after
    for here, after in zip(subjects, [subjects[-1], *subjects], strict=False):
        assert items.next_item(judge, InboxFilter(newest=True), here).subject == after
    assert items.next_item(judge, InboxFilter(kind="claim"), queue["listing"]).subject == queue["claim"]
    assert items.next_item(judge, InboxFilter(kind="claim"), queue["claim"]) is None
    assert items.next_item(judge, InboxFilter(), "company:missing").subject == subjects[0]
    assert items.next_item(judge, InboxFilter(), "x:1").subject == subjects[0]


def test_the_next_item_is_found_after_a_decision_on_the_last_one(queue):
    judge = reviewer()
    claims.decide_request(judge, Petition.objects.get(kind="claim").pk, approve=False, note="No proof.")
    assert items.next_item(judge, InboxFilter(), queue["claim"]).subject == queue["profile"]


def test_the_next_item_is_none_that_another_reviewer_works_on(queue):
    first, second = reviewer(), reviewer()
    items.assign(second, queue["change"])
    assert items.next_item(first, InboxFilter(), queue["listing"]).subject == queue["claim"]
    assert items.next_item(second, InboxFilter(), queue["listing"]).subject == queue["change"]


def test_among_items_of_the_same_time_each_comes_once():
    slugs = [submitted() for _ in range(3)]
    Company.objects.filter(state="submitted").update(submitted_at=now())
    judge, subject, seen = reviewer(), f"company:{slugs[0]}", []
    for _ in slugs:
        subject = items.next_item(judge, InboxFilter(), subject).subject
        seen.append(subject)
    assert sorted(seen) == sorted(f"company:{slug}" for slug in slugs)


def test_the_number_of_queries_does_not_depend_on_the_queue(queue):
    judge = reviewer()

    def queries():
        with CaptureQueriesContext(connection) as captured:
            items.list_queue(judge, InboxFilter(words="a"), page_size=100)
        return len(captured)

    few = queries()
    start = now()
    Company.objects.bulk_create(
        Company(slug=f"a{n}", name=f"A {n}", state="submitted", submitted_at=start) for n in range(90)
    )
    assert (queries(), len(items.list_queue(judge, page_size=100).items)) == (few, 95)


@pytest.mark.parametrize("who", ["visitor", "owner", "reviewer's token"])
def test_strangers_find_nothing(queue, who):
    actor = {"visitor": lambda: VISITOR, "owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[who]()
    for attempt in (
        lambda: items.list_queue(actor, InboxFilter()),
        lambda: items.count_kinds(actor),
        lambda: items.count_queue(actor),
        lambda: items.next_item(actor, InboxFilter(), queue["claim"]),
        lambda: items.find_items(actor, [queue["claim"]]),
        lambda: items.list_reviewers(actor),
    ):
        with pytest.raises(Forbidden):
            attempt()
