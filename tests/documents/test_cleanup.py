"""The cleanup removes what was abandoned or deleted long ago, and no blob that anything needs."""

import hashlib
from datetime import timedelta

import pytest

from make.documents import SMALL, begin, do_jobs, send, token_of, uploaded
from make.documents import blob_keys as keys
from muniment.documents import cleanup, operations, records, uploads
from muniment.documents.cleanup import StateTotals, totals_by_state
from muniment.documents.models import BlobHold, Document
from muniment.jobs import queue
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, NotFound, Unavailable

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_sweep_removes_what_was_abandoned_and_what_was_deleted_long_ago(owner, company):
    kept, gone = uploaded(owner, company), uploaded(owner, company)
    left = begin(owner, company)
    send(left)
    never = begin(owner, company)
    operations.delete_document(owner, gone.pk)
    swept = cleanup.sweep()
    assert (swept.expired, swept.removed, swept.orphans) == (0, 0, 0)
    swept = cleanup.sweep(at=now() + timedelta(hours=25))
    assert swept.expired == 2
    with pytest.raises(NotFound):
        uploads.complete_upload(owner, left.upload_id)
    with pytest.raises(NotFound):
        uploads.claim_link(token_of(never), None, "")
    operations.restore_document(owner, gone.pk)
    operations.delete_document(owner, gone.pk)
    cleanup.sweep(at=now() + timedelta(days=31))
    assert keys() == [kept.blob_key]
    assert [row.pk for row in Document.objects.all()] == [kept.pk]
    with pytest.raises(NotFound):
        operations.delete_document(owner, gone.pk)


def test_the_sweep_removes_blobs_without_rows_and_spares_living_transfers(owner, company):
    kept = uploaded(owner, company)
    living = uploads.claim_link(token_of(begin(owner, company)), None, "")
    dead = uploads.claim_link(token_of(begin(owner, company)), None, "")
    for transfer in (living, dead):
        records.storage().write(transfer.key, SMALL)
    Document.objects.filter(pk=dead.document_id).update(receiving_until=now() - timedelta(seconds=1))
    records.storage().write("documents/missing/1", b"orphan")
    assert sorted(cleanup.examine().orphans) == sorted(["documents/missing/1", dead.key])
    assert cleanup.sweep().orphans == 2
    assert keys() == sorted([kept.blob_key, living.key])
    with pytest.raises(Conflict):
        uploads.record(dead, "0" * 64, len(SMALL))  # it comes back from the dead, and changes nothing
    uploads.record(living, hashlib.sha256(SMALL).hexdigest(), len(SMALL))
    assert cleanup.examine().missing == []


def test_a_document_whose_blob_is_gone_is_found(owner, company):
    document = uploaded(owner, company)
    found = cleanup.examine()
    assert (found.blobs, found.blob_bytes, found.missing) == (1, len(SMALL), [])
    records.storage().delete(document.blob_key)
    assert cleanup.examine().missing == [document.pk]


def test_the_sweep_is_a_job_by_the_clock(owner, company):
    queue.enqueue_periodic()
    records.storage().write("documents/missing/1", b"orphan")
    do_jobs()
    assert keys() == []


def test_a_hold_on_blobs_that_lasts_too_long_is_refused_at_its_end():
    with pytest.raises(Unavailable), cleanup.blobs_held(hours=0):
        assert BlobHold.objects.count() == 1
    with cleanup.blobs_held():
        assert BlobHold.objects.count() == 1
    assert not BlobHold.objects.exists()


def test_documents_are_counted_by_state_with_their_size(owner, company):
    size = len(SMALL)
    begin(owner, company)
    sent = begin(owner, company, name="sent.txt")
    send(sent)
    assert sorted(totals_by_state()) == [
        StateTotals("pending", 1, size),
        StateTotals("uploaded", 1, size),
    ]
    operations.delete_document(owner, sent.upload_id)
    assert sorted(totals_by_state()) == [
        StateTotals("deleted", 1, size),
        StateTotals("pending", 1, size),
    ]
