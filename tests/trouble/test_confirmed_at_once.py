"""One token, many calls at once: one acts."""

import threading

import pytest
from django.conf import settings
from django.db import connection

from make.documents import uploaded
from make.registry import owner, published
from make.reports import company, framework
from muniment.assessments import operations as runs
from muniment.credits import operations as ledger
from muniment.kernel.actor import Actor
from muniment.mcp.confirmation import ConfirmationRequired
from muniment.mcp.declarations import Caller
from muniment.mcp.tools.owner.companies import CompanyTools
from muniment.mcp.tools.owner.documents import DocumentTools
from muniment.mcp.tools.owner.reports import ReportTools
from muniment.registry.models import Company, HistoryEntry
from muniment.store.database.retry import with_retry

pytestmark = [pytest.mark.django_db(transaction=True)]
CALLS = 6


@pytest.fixture
def caller(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    return Caller(Actor(owner().account_id, "owner", "token", "laptop", credential_id="token 1"), "", "")


def confirmed_at_once(handler, arguments, caller):
    """Get a token for a call, then make the call with it many times at once, and return the outcomes."""
    with pytest.raises(ConfirmationRequired) as asked:
        handler(arguments, caller)
    given = {**arguments, "confirm": asked.value.shown["confirm"]}
    barrier, outcomes = threading.Barrier(CALLS), []

    def call():
        try:
            barrier.wait(30)
            outcomes.append(with_retry(handler, given, caller))
        except Exception as error:  # noqa: BLE001 - looked at by the test
            outcomes.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=call) for _ in range(CALLS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


def test_of_two_calls_at_once_with_one_token_one_acts(caller):
    made = published(caller.owner, positions=[{"title": "Chair", "person": {"name": f"Bo {n}"}} for n in range(3)])
    slug, version = made.slug, Company.objects.get(slug=made.slug).version
    tools = CompanyTools("", settings.SCHEMA)
    outcomes = confirmed_at_once(
        tools.update_my_company,
        {
            "slug": slug,
            "changes": {"positions": [{"title": "Cook", "person": {"name": "Bo 9"}}]},
            "expectedVersion": version,
        },
        caller,
    )
    assert HistoryEntry.objects.filter(company__slug=slug, action="updated").count() == 1
    assert sum(not isinstance(each, Exception) for each in outcomes) == 1, outcomes
    assert Company.objects.get(slug=slug).positions.count() == 1


def test_a_run_confirmed_many_times_at_once_is_paid_once(caller):
    run = runs.start_run(caller.owner, company(caller.owner), framework()).run.row
    outcomes = confirmed_at_once(ReportTools("").execute_report_run, {"runId": run.pk}, caller)
    assert {each["data"]["state"] for each in outcomes} == {"queued"}, outcomes
    balance = ledger.get_balance(caller.owner)
    assert (balance.held, len(balance.holds)) == (10, 1)


def test_a_document_deleted_many_times_at_once_is_deleted_once(caller):
    paper = uploaded(caller.owner, company(caller.owner))
    outcomes = confirmed_at_once(DocumentTools("").delete_document, {"documentId": paper.pk}, caller)
    assert len({each["data"]["deletedAt"] for each in outcomes}) == 1, outcomes
