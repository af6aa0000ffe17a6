"""
Operations on documents: list, delete, restore, and pin for reports. Each change is one short transaction.

Source: decisions, section 5, documents.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Length, Substr

from muniment.documents.models import Document, DocumentState, Page, Pin, TextState
from muniment.documents.records import (
    RESTORE_DAYS,
    Quota,
    make_room,
    no_document,
    own_company,
    quota_bytes,
    quota_of,
    reachable,
    restorable_until,
)
from muniment.kernel import pagination
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry.company.owned_rows import newest_page, read_page
from muniment.registry.models import Company


@dataclass(frozen=True, slots=True)
class DocumentList(pagination.Page[Document]):
    """A page of documents, with the quota of the account that asks."""

    quota: Quota


def quota(actor: Actor) -> Quota:
    """Return the storage that the actor's account uses, and its limit."""
    return quota_of(actor.account_id) if actor.account_id is not None else Quota(0, 0, quota_bytes())


def list_documents(
    actor: Actor,
    company_slug: str | None = None,
    *,
    page: int = 1,
    page_size: int = 25,
    deleted: bool = False,
    ready: bool = False,
) -> DocumentList:
    """
    List the documents of the actor's companies, newest first, without expired announcements.

    Args:
        deleted: deleted documents that can be restored, instead of current ones.
        ready: only those that a report may quote.

    Raises:
        NotFound: the company is unknown or not owned.
    """
    listed = page_of_documents(actor, company_slug, page=page, page_size=page_size, deleted=deleted, ready=ready)
    return DocumentList(listed.items, page, page_size, listed.total, quota(actor))


def page_of_documents(
    actor: Actor,
    company_slug: str | None = None,
    *,
    page: int = 1,
    page_size: int = 25,
    deleted: bool = False,
    ready: bool = False,
) -> pagination.Page[Document]:
    """List documents like :func:`list_documents`, without the quota, which costs a sum over all of the account."""
    company = None if company_slug is None else own_company(actor, company_slug)
    if actor.account_id is None:
        return pagination.Page([], page, page_size, 0)
    rows = Document.objects.filter(deleted_at__isnull=not deleted)
    if deleted:
        rows = rows.filter(deleted_at__gt=now() - timedelta(days=RESTORE_DAYS))
    # Also beside another state: the indexes of the lists have no expired ones.
    rows = rows.exclude(state=DocumentState.EXPIRED)
    if ready:
        rows = rows.filter(state=DocumentState.READY)
    keys = newest_page(rows, actor.account_id, page, page_size, company=company)
    return read_page(Document.objects.select_related("company"), keys)


def ready_documents(actor: Actor, company_slug: str, document_ids: Iterable[str]) -> list[Document]:
    """Return those of *document_ids* that a report on this company may quote, newest first, or raise NotFound."""
    rows = reachable(actor).filter(company=own_company(actor, company_slug), pk__in=list(document_ids))
    return list(rows.filter(state=DocumentState.READY, deleted_at__isnull=True).order_by("-created_at", "-pk"))


def get_document(actor: Actor, document_id: str) -> Document:
    """Return a document; raise NotFound if it is unknown, deleted, or not the actor's."""
    document = _announced(actor).filter(pk=document_id, deleted_at__isnull=True).first()
    if document is None:
        raise no_document(document_id)
    return document


def delete_document(actor: Actor, document_id: str) -> Document:
    """
    Delete a document; it can be restored for 30 days. Repeating it succeeds.

    Raises:
        NotFound: unknown, permanently removed, or not the actor's.
        Conflict: a queued or running report uses it.
    """
    with transaction.atomic():
        document = _locked(actor, document_id)
        if document.deleted_at is None:
            if Pin.objects.filter(document_id=document.pk).exists():
                raise Conflict(
                    "A queued or running report uses this document.",
                    "Wait until get_report_run_status shows that it has ended, then delete it.",
                )
            document.deleted_at = now()
            document.save(update_fields=["deleted_at"])
    return document


def restore_document(actor: Actor, document_id: str) -> Document:
    """
    Restore a deleted document. Repeating it succeeds.

    Raises:
        NotFound: unknown, permanently removed, or not the actor's.
        TooLarge: the quota no longer has room for it.
    """
    with transaction.atomic():
        document = _locked(actor, document_id)
        if document.deleted_at is not None:
            if restorable_until(document) < now():
                raise no_document(document_id)
            make_room(document.account_id, document.size_bytes, without=document.pk)
            document.deleted_at = None
            document.changed_at = now()  # so that no earlier approval deletes it again
            document.save(update_fields=["deleted_at", "changed_at"])
    return document


def _locked(actor: Actor, document_id: str) -> Document:
    document = _announced(actor).select_for_update(of=("self",)).filter(pk=document_id).first()
    if document is None:
        raise no_document(document_id)
    return document


def _announced(actor: Actor) -> QuerySet[Document]:
    """Return the documents that the actor may see, including deleted ones, without expired announcements."""
    return reachable(actor).exclude(state=DocumentState.EXPIRED)


def pin(holder: str, company: Company, document_ids: Iterable[str]) -> list[Document]:
    """Protect ready documents of *company* from deletion, in the caller's transaction; others raise NotFound."""
    ids = list(dict.fromkeys(document_ids))
    ready = Document.objects.filter(company=company, state=DocumentState.READY, deleted_at__isnull=True)
    by_id = ready.select_for_update().in_bulk(ids)
    for document_id in ids:
        if document_id not in by_id:
            raise no_document(document_id)
    pins = [Pin(document_id=document_id, holder=holder) for document_id in ids]
    Pin.objects.bulk_create(pins, ignore_conflicts=True)
    return [by_id[document_id] for document_id in ids]


def unpin(holder: str) -> None:
    """Remove the pins of *holder*, in the caller's transaction."""
    Pin.objects.filter(holder=holder).delete()


def text_of(document: Document) -> list[tuple[int, str]]:
    """Return a document's text by page number; empty if there is none or it is not extracted yet."""
    return list(Page.objects.filter(document=document).order_by("number").values_list("number", "text"))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a document's text: pages by number, how many there are, and the page and character to continue at."""

    document: Document
    pages: list[tuple[int, str]]
    page_count: int
    next_page: int | None = None
    next_offset: int | None = None


def read_text(actor: Actor, document_id: str, *, page: int = 1, offset: int = 0, characters: int) -> Excerpt:
    """
    Return at most so many *characters* of a document's text, from a character of a page on; pages may be skipped.

    Raises:
        NotFound: unknown, deleted, or not the actor's.
        Conflict: its text is not extracted, or cannot be.
        BadRequest: the document has no such page or character.
    """
    document = get_document(actor, document_id)
    if document.text_state != TextState.EXTRACTED:
        raise _unreadable(document)
    stored = Page.objects.filter(document=document)
    count = stored.aggregate(last=Max("number"))["last"] or 0
    pages: list[tuple[int, str]] = []
    start = offset
    left = characters
    rows = stored.filter(number__gte=page).annotate(size=Length("text")).order_by("number")
    for number, size in rows.values_list("number", "size").iterator():
        if not left:
            return Excerpt(document, pages, count, next_page=number)
        if number > page:
            start = 0
        if start >= size > 0:
            raise BadRequest(
                Phrase("Page {number} has {size:,} characters.", number=number, size=size),
                "Use the nextOffset of the answer before.",
            )
        part = Substr("text", start + 1, left)
        text = stored.filter(number=number).annotate(part=part).values_list("part", flat=True).get()
        pages.append((number, text))
        left -= len(text)
        if start + len(text) < size:
            return Excerpt(document, pages, count, next_page=number, next_offset=start + len(text))
    if not pages:
        raise BadRequest(
            Phrase("The document has {count} pages.", count=count),
            Phrase("Use a page from 1 to {count}.", count=count),
        )
    return Excerpt(document, pages, count)


def _unreadable(document: Document) -> Conflict:
    if document.text_state == TextState.NOT_EXTRACTABLE:
        note = Phrase(document.text_note or "it has no text")
        return Conflict(
            Phrase("The text of this document cannot be read: {note}", note=note), "Upload a version with text in it."
        )
    if document.text_state == TextState.WAITING:
        return Conflict("The text of this document is being extracted.", "Call again in a few seconds.")
    return Conflict(
        Phrase("The document is {state}, not ready.", state=Phrase(document.state)),
        "Call complete_document_upload first.",
    )
