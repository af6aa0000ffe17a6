"""What owners do with documents: announce, send, complete, list, delete, restore; and what strangers cannot."""

from datetime import timedelta

import pytest
from django.db import transaction

from make import registry as make
from make.documents import SMALL, begin, token_of, uploaded
from make.documents import blob_keys as keys
from muniment.documents import operations, records, uploads
from muniment.documents.models import Document, DocumentState, Pin
from muniment.kernel.actor import VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, NotFound, TooLarge
from muniment.registry.models import Company

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stranger():
    actor = make.owner()
    make.draft(actor)
    return actor


# ------------------------------------------------------------------ strangers


def test_a_stranger_finds_nothing_and_changes_nothing(owner, company, stranger):
    document, pending = uploaded(owner, company), begin(owner, company)
    for actor in (stranger, make.reviewer(), VISITOR):
        for act in (
            lambda actor=actor: operations.get_document(actor, document.pk),
            lambda actor=actor: operations.delete_document(actor, document.pk),
            lambda actor=actor: operations.restore_document(actor, document.pk),
            lambda actor=actor: uploads.complete_upload(actor, pending.upload_id),
            lambda actor=actor: uploads.complete_upload(actor, document.pk),
            lambda actor=actor: operations.list_documents(actor, company),
            lambda actor=actor: begin(actor, company),
            lambda actor=actor: uploads.upload_document(actor, company, "a.txt", SMALL),
            lambda actor=actor: uploads.upload_document(actor, company, "a.txt", b"x" * 9000),
        ):
            with pytest.raises(NotFound):
                act()
        assert operations.list_documents(actor).items == []
    document.refresh_from_db()
    assert document.deleted_at is None


def test_the_refusal_of_anothers_document_is_that_of_a_missing_one(owner, company, stranger):
    document = uploaded(owner, company)
    said = []
    for asked in (document.pk, "0" * 26):
        with pytest.raises(NotFound) as refused:
            operations.get_document(stranger, asked)
        said.append((refused.value.message.replace(asked, "X"), refused.value.hint))
    assert said[0] == said[1]


# ------------------------------------------------------------------ lists, quota


def test_the_list_is_newest_first_by_pages_with_the_quota(owner, company):
    made = [uploaded(owner, company, name=f"{n}.txt").pk for n in range(5)]
    other = make.draft(owner).slug
    uploaded(owner, other)
    found = operations.list_documents(owner, company, page=2, page_size=2)
    assert [document.pk for document in found.items] == [made[2], made[1]]
    assert (found.total, found.page_count) == (5, 3)
    assert found.quota.used_bytes == 6 * len(SMALL)
    assert operations.list_documents(owner).total == 6
    assert operations.list_documents(owner, company, page=9).items == []


@pytest.mark.requirement("documents.limits")
def test_the_quota_counts_what_is_announced_kept_and_not_what_is_gone(owner, company, settings_with):
    settings_with(document_quota_mb=1)
    half = b"x" * (1 << 19)
    first = uploaded(owner, company, half)
    begin(owner, company, half)
    with pytest.raises(TooLarge, match="Storage limit exceeded"):
        begin(owner, company)
    Document.objects.filter(state=DocumentState.PENDING).update(expires_at=now() - timedelta(seconds=1))
    uploaded(owner, company, half)
    with pytest.raises(TooLarge):
        begin(owner, company)
    operations.delete_document(owner, first.pk)
    third = uploaded(owner, company, half)
    with pytest.raises(TooLarge, match="Storage limit exceeded"):
        operations.restore_document(owner, first.pk)
    operations.delete_document(owner, third.pk)
    operations.restore_document(owner, first.pk)
    assert operations.quota(owner).used_bytes == 1 << 20


def test_a_quota_that_shrinks_in_the_middle_stops_the_transfer(owner, company, settings_with):
    upload = begin(owner, company, b"x" * 1000)
    settings_with(document_quota_mb=0)
    with pytest.raises(TooLarge, match="Storage limit exceeded"):
        uploads.claim_link(token_of(upload), 1000, "")
    assert keys() == []


def test_deleting_over_and_over_does_not_fill_the_store(owner, company, settings_with):
    settings_with(document_quota_mb=1)
    for _ in range(2):
        operations.delete_document(owner, uploaded(owner, company, b"x" * (1 << 20)).pk)
    with pytest.raises(TooLarge, match="can be restored"):
        begin(owner, company, b"x" * (1 << 20))


def test_a_restored_document_is_not_counted_twice(owner, company, settings_with):
    settings_with(document_quota_mb=1)
    for _ in range(2):
        last = uploaded(owner, company, b"x" * (1 << 20))
        operations.delete_document(owner, last.pk)
    operations.restore_document(owner, last.pk)
    assert operations.quota(owner).used_bytes == 1 << 20


# ------------------------------------------------------------------ deleting


@pytest.mark.requirement("documents.delete")
def test_a_deletion_is_soft_repeatable_and_can_be_taken_back(owner, company):
    document = uploaded(owner, company)
    deleted = operations.delete_document(owner, document.pk)
    assert operations.delete_document(owner, document.pk).deleted_at == deleted.deleted_at
    assert records.restorable_until(deleted) - deleted.deleted_at == timedelta(days=30)
    with pytest.raises(NotFound):
        operations.get_document(owner, document.pk)
    assert operations.list_documents(owner).items == []
    assert [each.pk for each in operations.list_documents(owner, deleted=True).items] == [document.pk]
    assert keys() == [document.blob_key]
    operations.restore_document(owner, document.pk)
    assert operations.get_document(owner, document.pk).deleted_at is None


def test_a_deletion_cannot_be_taken_back_after_thirty_days(owner, company):
    document = uploaded(owner, company)
    operations.delete_document(owner, document.pk)
    Document.objects.update(deleted_at=now() - timedelta(days=30, seconds=1))
    with pytest.raises(NotFound):
        operations.restore_document(owner, document.pk)
    assert Document.objects.get().deleted_at is not None
    Document.objects.update(deleted_at=now() - timedelta(days=29, hours=23))
    assert operations.restore_document(owner, document.pk).deleted_at is None


def test_a_document_that_a_report_needs_cannot_be_deleted(owner, company):
    document = uploaded(owner, company)
    of_company = Company.objects.get(slug=company)
    with transaction.atomic():
        operations.pin("run-1", of_company, [document.pk, document.pk])
    with pytest.raises(Conflict, match="report"):
        operations.delete_document(owner, document.pk)
    operations.unpin("run-1")
    operations.delete_document(owner, document.pk)
    with pytest.raises(NotFound), transaction.atomic():
        operations.pin("run-2", of_company, [document.pk])
    assert not Pin.objects.exists()


def test_only_ready_documents_of_the_company_itself_can_be_pinned(owner, company):
    other = make.draft(owner).slug
    elsewhere, pending = uploaded(owner, other), begin(owner, company)
    for asked in (elsewhere.pk, pending.upload_id, "nothing"):
        with pytest.raises(NotFound), transaction.atomic():
            operations.pin("run", Company.objects.get(slug=company), [asked])


# ------------------------------------------------------------------ the sweep


def test_documents_of_a_listing_without_owners_are_out_of_reach(owner, company):
    document = uploaded(owner, company)
    Company.objects.get(slug=company).ownerships.all().delete()
    assert operations.list_documents(VISITOR).items == []
    with pytest.raises(NotFound):
        operations.get_document(VISITOR, document.pk)
