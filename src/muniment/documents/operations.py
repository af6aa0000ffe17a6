"""
What owners do with documents.

Each change is one short transaction; bytes move outside of it. A row tells the truth before a blob does:
a blob is written first and named by a row afterwards, a row lets go of a blob first and the blob is
removed afterwards. What a crash leaves between the two is a blob without a row, which the sweep removes.
"""

import hashlib
import logging
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import transaction

from muniment.documents import records
from muniment.documents.content import inspection, scanning
from muniment.documents.models import BlobHold, Document, Page, Pin, State, TextState
from muniment.documents.records import (
    LINK_MINUTES,
    RECEIVING_S,
    RESTORE_DAYS,
    SMALL_BYTES,
    Quota,
    Upload,
    hash_of,
    link_address,
    make_room,
    max_bytes,
    new_token,
    no_document,
    no_upload,
    own_company,
    quota_bytes,
    reachable,
    restorable_until,
    storage,
    used_bytes,
)
from muniment.jobs import queue
from muniment.kernel import pagination
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, TooLarge
from muniment.registry.models import Company

log = logging.getLogger(__name__)
COMPLETED: Final = "documents.completed"
"""The job that scans an accepted file and takes its text out; `documentId` names the file."""


@dataclass(frozen=True, slots=True)
class DocumentList(pagination.Page[Document]):
    """A page of documents, with the quota of the account that asks."""

    quota: Quota


def quota(actor: Actor) -> Quota:
    """Give what the actor's account keeps, and may keep."""
    return Quota(used_bytes(actor.account_id) if actor.account_id is not None else 0, quota_bytes())


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
    List documents of the actor's companies, newest first; expired announcements are left out.

    Args:
        company_slug: of one company alone.
        deleted: those that can still be restored, instead of those that stand.
        ready: only those that a report may quote.

    Raises:
        NotFound: the company is unknown or not owned.
    """
    found = reachable(actor).exclude(state=State.EXPIRED).filter(deleted_at__isnull=not deleted)
    if deleted:
        found = found.filter(deleted_at__gt=now() - timedelta(days=RESTORE_DAYS))
    if ready:
        found = found.filter(state=State.READY)
    if company_slug is not None:
        found = found.filter(company=own_company(actor, company_slug))
    listed = pagination.Page.of(found.order_by("-created_at", "-pk"), page, page_size)
    return DocumentList(listed.items, page, page_size, listed.total, quota(actor))


def ready_documents(actor: Actor, company_slug: str, document_ids: Iterable[str]) -> list[Document]:
    """
    Give those of *document_ids* that a report on this company may quote, newest first; leaves the others out.

    Raises:
        NotFound: the company is unknown or not owned.
    """
    found = reachable(actor).filter(company=own_company(actor, company_slug), pk__in=list(document_ids))
    return list(found.filter(state=State.READY, deleted_at__isnull=True).order_by("-created_at", "-pk"))


def get_document(actor: Actor, document_id: str) -> Document:
    """
    Give a document that stands.

    Raises:
        NotFound: unknown, deleted, or not the actor's.
    """
    document = reachable(actor).filter(pk=document_id, deleted_at__isnull=True).exclude(state=State.EXPIRED).first()
    if document is None:
        raise no_document(document_id)
    return document


# ------------------------------------------------------------------ announcing


def _announce(
    actor: Actor, company_slug: str, filename: str, size_bytes: int, *, content_type: str | None, sha256: str | None
) -> Document:
    """Make the row of a file that is to come, after everything that can be said before it has come."""
    company = own_company(actor, company_slug)
    if fault := inspection.name_fault(filename):
        raise BadRequest(f"The filename {fault}.", "Send the file's own name, such as report.pdf.")
    try:
        found = inspection.type_of(filename, content_type)
    except inspection.Rejected as verdict:
        raise BadRequest(str(verdict), f"These are taken: {inspection.TAKEN}.") from None
    if size_bytes < 1:
        raise BadRequest("The file is empty.", "Send a file that holds something.")
    if size_bytes > max_bytes():
        raise TooLarge(
            f"The file has {size_bytes:,} bytes, at most {max_bytes():,} are taken.",
            "Make it smaller, or split it.",
        )
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise BadRequest("The sha256 is not 64 hexadecimal digits.", "sha256sum FILE prints it; or leave it out.")
    assert actor.account_id is not None  # noqa: S101 - whoever owns a company has an account
    make_room(actor.account_id, size_bytes)
    return Document(
        company=company,
        account_id=actor.account_id,
        via=actor.via,
        filename=filename,
        content_type=found.content_type,
        size_bytes=size_bytes,
        expected_sha256=(sha256 or "").lower(),
        expires_at=now() + timedelta(minutes=LINK_MINUTES),
    )


def begin_upload(
    actor: Actor,
    company_slug: str,
    filename: str,
    size_bytes: int,
    *,
    content_type: str | None = None,
    sha256: str | None = None,
    base_url: str,
) -> Upload:
    """
    Announce a file and get the one-time link that takes it. Its size counts towards the quota from here on.

    Args:
        content_type: by the name's ending when absent.
        sha256: checked at the end when given.
        base_url: the public address of the instance.

    Raises:
        NotFound: the company is unknown or not owned.
        BadRequest: the name, the type, the digest; names the rule.
        TooLarge: over the cap or the quota.

    Source: decisions, section 5, documents.
    """
    token = new_token()
    with transaction.atomic():
        document = _announce(actor, company_slug, filename, size_bytes, content_type=content_type, sha256=sha256)
        document.token_hash = hash_of(token)
        document.save(force_insert=True)
    assert document.expires_at is not None  # noqa: S101 - set where it is made
    return Upload(
        document.pk,
        link_address(base_url, token),
        document.filename,
        document.content_type,
        document.size_bytes,
        document.expires_at,
    )


# ------------------------------------------------------------------ completing


def complete_upload(actor: Actor, upload_id: str) -> Document:
    """
    Check what was sent and keep it. Repeating it gives the same answer; what was never scanned is scanned again.

    Raises:
        NotFound: unknown, another's, or expired.
        Conflict: nothing has been sent yet.
        BadRequest: the file was rejected; says why. Nothing of it is kept.

    Source: decisions, section 5, documents.
    """
    document = reachable(actor).filter(pk=upload_id, deleted_at__isnull=True).first()
    if document is None or document.account_id != actor.account_id or document.state == State.EXPIRED:
        raise no_upload(upload_id)
    if document.state == State.PENDING:
        if document.expires_at is not None and document.expires_at < now() and not _is_receiving(document):
            raise no_upload(upload_id)
        raise Conflict(
            "Nothing has been sent to the link yet.", "Run the command, wait for its answer, then call again."
        )
    if document.state == State.REJECTED:
        raise _refused(document)
    if document.state == State.READY or document.text_state == TextState.WAITING:
        return document  # the second: accepted before, and being scanned
    return _accept(document)


def _is_receiving(document: Document) -> bool:
    return document.receiving_until is not None and document.receiving_until > now()


def _refused(document: Document) -> BadRequest:
    return BadRequest(f"{document.filename} was rejected. {document.reason}", f"These are taken: {inspection.TAKEN}.")


def _accept(document: Document) -> Document:
    """Inspect an uploaded file, outside any transaction, and record the verdict."""
    try:
        _verify(document)
    except inspection.Rejected as verdict:
        reject(document, str(verdict))
        document.refresh_from_db()
        if document.state == State.REJECTED:
            raise _refused(document) from None
        return document  # another call came first
    with transaction.atomic():
        # With a scanner the file waits as `uploaded`; the job makes it ready.
        state = State.UPLOADED if scanning.is_on() else State.READY
        moved = Document.objects.filter(pk=document.pk, state=State.UPLOADED, text_state=TextState.NONE).update(
            state=state, text_state=TextState.WAITING, reason="", changed_at=now()
        )
        if moved:
            queue.enqueue(COMPLETED, {"documentId": document.pk})
    document.refresh_from_db()
    return document


def _verify(document: Document) -> None:
    """Check an uploaded file against what was announced."""
    if document.expected_sha256 and document.expected_sha256 != document.sha256:
        raise inspection.Rejected(
            f"Its sha256 is {document.sha256}, and {document.expected_sha256} was announced: it was changed on its way."
        )
    with storage().local(document.blob_key) as path, path.open("rb") as file:
        inspection.inspect(file, document.size_bytes, document.content_type)


def reject(document: Document, reason: str) -> None:
    """Let go of a file that is not taken, then remove it."""
    key = document.blob_key
    with transaction.atomic():
        moved = Document.objects.filter(pk=document.pk, state=State.UPLOADED, blob_key=key).update(
            state=State.REJECTED, reason=reason, blob_key="", text_state=TextState.NONE, changed_at=now()
        )
    if moved:
        remove_blob(key)


def remove_blob(key: str) -> None:
    """Remove a blob that no row names any more. If the store fails, or a backup reads, the sweep does it later."""
    try:
        # The row has let go before this question: a backup that begins after it does not name the blob.
        if not BlobHold.objects.filter(until__gt=now()).exists():
            storage().delete(key)
    except Exception:
        log.exception("a blob could not be removed; the sweep will")


# ------------------------------------------------------------------ small files and forms


def upload_document(
    actor: Actor, company_slug: str, filename: str, content: bytes, *, content_type: str | None = None
) -> Document:
    """
    Keep a small file that came in one call.

    Raises:
        NotFound: the company is unknown or not owned.
        BadRequest: the file is not taken; says why. Nothing is kept.
        TooLarge: more than 8,192 bytes, or over the quota.

    Source: decisions, section 5, documents.
    """
    if len(content) > SMALL_BYTES:
        own_company(actor, company_slug)
        raise TooLarge(
            f"The file has {len(content):,} bytes; upload_document takes at most {SMALL_BYTES:,}.",
            "Call create_document_upload, run the command it gives, then call complete_document_upload.",
        )
    return keep(actor, company_slug, filename, [content], len(content), content_type=content_type)


def keep(
    actor: Actor,
    company_slug: str,
    filename: str,
    pieces: Iterable[bytes],
    size_bytes: int,
    *,
    content_type: str | None = None,
) -> Document:
    """
    Keep a file that is at hand whole: the same way as by a link, without one.

    Raises:
        NotFound, BadRequest, TooLarge: as :func:`begin_upload` and :func:`complete_upload`.
    """
    with transaction.atomic():
        document = _announce(actor, company_slug, filename, size_bytes, content_type=content_type, sha256=None)
        document.attempt = 1
        document.receiving_until = now() + timedelta(seconds=RECEIVING_S)
        document.save(force_insert=True)
    key, digest = blob_key(document.pk, 1), hashlib.sha256()

    def digested() -> Iterator[bytes]:
        alive_at = time.monotonic()
        for piece in pieces:
            digest.update(piece)
            yield piece
            if time.monotonic() - alive_at > records.ALIVE_EVERY_S:  # the store is slow, yet it takes
                alive_at = time.monotonic()
                renew(document.pk, 1)

    if size_bytes <= SMALL_BYTES:
        storage().write(key, b"".join(digested()))
    else:
        storage().write(key, digested())
    with transaction.atomic():
        recorded = Document.objects.filter(pk=document.pk, state=State.PENDING, attempt=1).update(
            state=State.UPLOADED, blob_key=key, sha256=digest.hexdigest(), changed_at=now()
        )
    if not recorded:  # the sweep came between: only after the link's time
        remove_blob(key)
        raise no_upload(document.pk)
    document.refresh_from_db()
    try:
        return _accept(document)
    except BadRequest:
        # It came in a call that tells its sender; a row about it would only be in the way.
        Document.objects.filter(pk=document.pk, state=State.REJECTED).delete()
        raise


def renew(document_id: str, attempt: int) -> bool:
    """Say that a transfer is alive. Tells whether it is still the one that records."""
    held = Document.objects.filter(pk=document_id, state=State.PENDING, attempt=attempt)
    return bool(held.update(receiving_until=now() + timedelta(seconds=RECEIVING_S)))


def blob_key(document_id: str, attempt: int) -> str:
    """Name the blob of one transfer: never used twice."""
    return f"documents/{document_id}/{attempt}"


# ------------------------------------------------------------------ deleting


def delete_document(actor: Actor, document_id: str) -> Document:
    """
    Delete a document; it can be restored for 30 days. Repeating it succeeds.

    Raises:
        NotFound: unknown, removed for good, or not the actor's.
        Conflict: a queued or running report uses it.

    Source: decisions, section 5, documents.
    """
    with transaction.atomic():
        document = _locked(actor, document_id)
        if document.deleted_at is None:
            if Pin.objects.filter(document_id=document.pk).exists():
                raise Conflict(
                    "A report that is queued or running uses this document.",
                    "Wait until get_report_run_status says that it has ended, then delete it.",
                )
            document.deleted_at = now()
            document.save(update_fields=["deleted_at"])
    return document


def restore_document(actor: Actor, document_id: str) -> Document:
    """
    Take a deletion back. Repeating it succeeds.

    Raises:
        NotFound: unknown, removed for good, or not the actor's.
        TooLarge: the quota has no room for it any more.
    """
    with transaction.atomic():
        document = _locked(actor, document_id)
        if document.deleted_at is not None:
            if restorable_until(document) < now():
                raise no_document(document_id)
            make_room(document.account_id, document.size_bytes, without=document.pk)
            document.deleted_at = None
            document.save(update_fields=["deleted_at"])
    return document


def _locked(actor: Actor, document_id: str) -> Document:
    document = (
        reachable(actor).exclude(state=State.EXPIRED).select_for_update(of=("self",)).filter(pk=document_id).first()
    )
    if document is None:
        raise no_document(document_id)
    return document


# ------------------------------------------------------------------ for reports


def pin(holder: str, company: Company, document_ids: Iterable[str]) -> list[Document]:
    """
    Keep documents of *company* from being deleted while *holder* needs them, in the caller's transaction.

    Raises:
        NotFound: one of them is not a ready document of this company.
    """
    ids = list(dict.fromkeys(document_ids))
    found = {
        document.pk: document
        for document in Document.objects.select_for_update().filter(
            pk__in=ids, company=company, state=State.READY, deleted_at__isnull=True
        )
    }
    for document_id in ids:
        if document_id not in found:
            raise no_document(document_id)
    Pin.objects.bulk_create([Pin(document_id=each, holder=holder) for each in ids], ignore_conflicts=True)
    return [found[each] for each in ids]


def unpin(holder: str) -> None:
    """Let go of every document that *holder* needed, in the caller's transaction."""
    Pin.objects.filter(holder=holder).delete()


def text_of(document: Document) -> list[tuple[int, str]]:
    """Give a document's text by page number; empty when there is none or it is not extracted yet."""
    return list(Page.objects.filter(document=document).order_by("number").values_list("number", "text"))
