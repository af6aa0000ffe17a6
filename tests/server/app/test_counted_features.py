"""What features count for those who watch: jobs, credits, documents."""

from datetime import timedelta

import pytest
from django.db.models import F

from make import documents as make_documents
from make import registry as make
from muniment.credits import operations as ledger
from muniment.credits.models import LedgerAccount
from muniment.documents.cleanup import StateTotals, totals_by_state
from muniment.documents.operations import delete_document
from muniment.documents.records import storage
from muniment.jobs import queue
from muniment.jobs.models import Job, State
from muniment.kernel.ids import now

pytestmark = pytest.mark.django_db


def test_jobs_are_counted_by_kind_and_state_and_the_longest_wait_is_told():
    for delay_s in (-90, -30, 600):
        queue.enqueue("suite.waits", delay_s=delay_s)
    queue.enqueue("suite.later", delay_s=600)
    Job.objects.create(kind="suite.waits", state=State.FAILED)
    Job.objects.create(kind="suite.waits", state=State.SUCCEEDED)
    Job.objects.create(kind="suite.runs", state=State.RUNNING, run_at=now() - timedelta(seconds=5))
    found = {(row.kind, row.state): row for row in queue.queue_statuses()}
    assert {key: row.jobs for key, row in found.items()} == {
        ("suite.waits", "queued"): 3,
        ("suite.waits", "failed"): 1,
        ("suite.later", "queued"): 1,
        ("suite.runs", "running"): 1,
    }
    assert 90 <= found["suite.waits", "queued"].waits_s < 120
    assert found["suite.later", "queued"].waits_s == 0, "what is not due does not wait"
    assert found["suite.runs", "running"].waits_s == 0


def test_an_empty_ledger_agrees_and_so_does_one_with_open_holds(settings):
    settings.STARTING_CREDITS = 100
    assert ledger.totals() == (0, 0, True)
    one, two = make.owner(), make.owner()
    ledger.hold(one, "kept", 30)
    ledger.hold(two, "paid", 20)
    ledger.capture("paid")
    assert ledger.totals() == (180, 30, True)


@pytest.mark.parametrize("column", ["posted", "held"])
def test_a_ledger_that_was_tampered_with_does_not_balance(settings, column):
    settings.STARTING_CREDITS = 100
    me = make.owner()
    ledger.hold(me, "kept", 30)
    LedgerAccount.objects.filter(account_id=me.account_id).update(**{column: F(column) + 1})
    assert not ledger.totals().agrees


def test_documents_are_counted_by_state_with_their_size():
    me = make.owner()
    slug = make.draft(me).slug
    size = len(make_documents.SMALL)
    make_documents.begin(me, slug)
    sent = make_documents.begin(me, slug, name="sent.txt")
    make_documents.send(sent)
    assert sorted(totals_by_state()) == [StateTotals("pending", 1, size), StateTotals("uploaded", 1, size)]
    delete_document(me, sent.upload_id)
    assert sorted(totals_by_state()) == [StateTotals("deleted", 1, size), StateTotals("pending", 1, size)]
    for blob in list(storage().blobs()):
        storage().delete(blob.key)
