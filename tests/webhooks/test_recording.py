"""Each private event is recorded for the accounts that it concerns, with nothing in it that others may not read."""

import pytest

from make.documents import uploaded
from make.registry import owner, published, reviewer
from make.reports import company, do_jobs, finished, framework
from muniment.assessments import operations as runs
from muniment.credits import operations as ledger
from muniment.jobs import queue
from muniment.kernel.actor import COMMAND
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.models import PositionRequest
from muniment.registry.people import positions, profiles
from muniment.registry.review import claims, workflow
from muniment.webhooks.endpoints import Wanted, create_endpoint
from muniment.webhooks.models import Event

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _watched():
    """Without an endpoint, nothing is recorded."""
    create_endpoint(owner(), Wanted("https://hooks.example/in", ["document.ready"]))


def recorded(*kinds):
    """Return kind, accounts and data of events, and forget them."""
    found = [(each.kind, each.accounts, each.data) for each in Event.objects.order_by("id") if each.kind in kinds]
    Event.objects.all().delete()
    return found


def test_a_document_that_becomes_ready():
    me = owner()
    slug = company(me)
    document = uploaded(me, slug)
    do_jobs()
    ((_, accounts, data),) = recorded("document.ready")
    assert accounts == [me.account_id]
    assert (data["document"], data["company"]) == (document.pk, slug)
    assert data["url"].endswith(f"/manage/companies/{slug}/documents")


def test_a_report_that_succeeds_and_what_it_costs(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    me = owner()
    slug, of = company(me), framework()
    report = finished(me, slug, of)
    given, spent, done = sorted(recorded("report.succeeded", "credits.changed"), key=lambda each: each[2]["url"])
    assert given[2]["kind"] == "start"
    assert spent[1:] == ([me.account_id], {"credits": -10, "kind": "run", "url": spent[2]["url"]})
    assert done[1] == [me.account_id]
    assert (done[2]["run"], done[2]["framework"], done[2]["company"]) == (report.run_id, of, slug)
    assert done[2]["url"].endswith(f"/manage/reports/{report.run_id}")


@pytest.mark.parametrize(("canceled", "kinds"), [(False, ["report.failed"]), (True, [])])
def test_a_report_that_fails_is_an_event_and_one_that_is_canceled_is_none(settings, canceled, kinds):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    me = owner()
    started = runs.start_run(me, company(me), framework())
    runs.execute_run(me, started.run.row.pk)
    Event.objects.all().delete()
    if canceled:
        queue.cancel(started.run.row.pk)
    else:
        run = queue.claim("tests")
        run.failed("the reason stays in the log", for_good=True)
    found = recorded("report.failed", "report.succeeded", "credits.changed")
    assert [kind for kind, *_ in found] == kinds
    assert "reason" not in str(found)


def test_credits_that_are_granted_once(settings):
    settings.STARTING_CREDITS = 0
    account = owner("paid@example.org")
    for _ in range(2):
        ledger.grant(COMMAND, "paid@example.org", 40, note="a private note", key="march")
    ((_, accounts, data),) = recorded("credits.changed")
    assert (accounts, data["credits"], data["kind"]) == ([account.account_id], 40, "grant")
    assert "private" not in str(data)


def test_a_position_is_asked_of_the_person_and_told_to_the_owners_with_its_answer():
    me, ada = owner(), owner("ada@moss.example")
    published(owner(), name="Harbour", positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    profiles.join_person(reviewer(), "ada-moss", ada.account_id)
    listing = published(me, name="Tidal")
    Event.objects.all().delete()
    for answer in ("confirm", "decline"):
        named = {"title": f"Adviser to {answer}", "person": {"slug": "ada-moss"}}
        update_company(me, listing.slug, CompanyChange(positions={"add": [named]}))
        asked = recorded("position.asked")
        assert sorted(accounts for _, accounts, _ in asked) == sorted([[me.account_id], [ada.account_id]])
        request = f"request-{PositionRequest.objects.latest('pk').pk}"
        positions.answer_positions(ada, **{answer: [request]})
        ((kind, accounts, data),) = recorded("position.confirmed", "position.declined")
        assert kind == ("position.confirmed" if answer == "confirm" else "position.declined")
        assert (accounts, data["company"], data["positions"]) == ([me.account_id], listing.slug, 1)
        assert "ada" not in str([asked, data]).casefold()


def test_reviews_that_are_asked_and_decided():
    me = owner()
    listing = published(me)
    asked, decided = recorded("review.asked", "review.decided")
    assert (asked[0], asked[1], asked[2]["item"]) == ("review.asked", [me.account_id], f"company:{listing.slug}")
    assert (decided[0], decided[1], decided[2]["decision"]) == ("review.decided", [me.account_id], "approved")
    workflow.unlist_own_company(me, listing.slug)
    assert recorded("review.asked", "review.decided") == []


def test_requests_of_visitors_are_told_to_the_registry_and_their_decision_to_the_requester():
    listing, stranger = published(owner()), owner()
    Event.objects.all().delete()
    petition = claims.claim_company(stranger, listing.slug, "It is mine.")
    ((_, accounts, data),) = recorded("review.asked")
    assert (accounts, data["item"]) == ([], f"petition:{petition.pk}")
    claims.decide_request(reviewer(), petition.pk, approve=False, note="a note for the requester")
    ((_, accounts, data),) = recorded("review.decided")
    assert (accounts, data["request"], data["decision"]) == ([stranger.account_id], "claim", "refused")
    assert "note" not in str(data)
    do_jobs()
