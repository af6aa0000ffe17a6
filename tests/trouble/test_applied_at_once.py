"""Many calls at once: one acts."""

import threading

import pytest
from django.db import connection

from make.documents import uploaded
from make.registry import owner
from make.reports import company, finished, framework, program
from muniment.assessments import operations as runs
from muniment.assessments.models import Application
from muniment.credits import operations as ledger
from muniment.kernel.actor import Actor
from muniment.mcp.declarations import Caller
from muniment.mcp.tools.owner.documents import DocumentTools
from muniment.mcp.tools.owner.reports import ReportTools
from muniment.mcp.tools.owner.sharing import SharingTools
from muniment.store.database.retry import with_retry

pytestmark = [pytest.mark.django_db(transaction=True)]
CALLS = 6


@pytest.fixture
def caller(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    return Caller(Actor(owner().account_id, "owner", "token", "laptop", credential_id="token 1"), "", "")


def at_once(handler, arguments, caller):
    """Make a call many times at once, and return the outcomes."""
    barrier, outcomes = threading.Barrier(CALLS), []

    def call():
        try:
            barrier.wait(30)
            outcomes.append(with_retry(handler, arguments, caller))
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


def test_of_many_calls_at_once_with_one_token_one_applies(caller):
    run_id = finished(caller.actor, of=program(owner("runner@example.org"))).run_id
    submit = SharingTools("").submit_application
    asked = submit({"runId": run_id}, caller)["data"]["confirmation"]
    at_once(submit, {"runId": run_id, "confirm": asked["confirm"]}, caller)
    assert Application.objects.count() == 1


def test_a_run_executed_many_times_at_once_is_paid_once(caller):
    run = runs.start_run(caller.actor, company(caller.actor), framework()).run.row
    outcomes = at_once(ReportTools("").execute_report_run, {"runId": run.pk}, caller)
    assert {each["data"]["state"] for each in outcomes} == {"queued"}, outcomes
    balance = ledger.get_balance(caller.actor)
    assert (balance.held, len(balance.holds)) == (10, 1)


def test_a_document_deleted_many_times_at_once_is_deleted_once(caller):
    paper = uploaded(caller.actor, company(caller.actor))
    outcomes = at_once(DocumentTools("").delete_document, {"documentId": paper.pk}, caller)
    assert len({each["data"]["deletedAt"] for each in outcomes}) == 1, outcomes
