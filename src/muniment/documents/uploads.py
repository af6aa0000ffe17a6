"""
Uploads of documents: announce, complete, or store in one call.

A blob is written before a row refers to it, and a row drops its reference before the blob is removed. A crash in
between leaves a blob without a row, which the clean-up removes.

Source: decisions, section 5, documents.
"""

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from io import BytesIO
from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from muniment.documents import records
from muniment.documents.content import inspection, scanning
from muniment.documents.models import BlobHold, Document, DocumentState, TextState
from muniment.documents.records import (
    LINK_MINUTES,
    RECEIVING_S,
    SMALL_BYTES,
    Upload,
    make_room,
    max_bytes,
    no_upload,
    own_company,
    quota_of,
    reachable,
    reservation,
    storage,
)
from muniment.jobs import queue
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, TooLarge
from muniment.kernel.tokens import token_digest

log = logging.getLogger(__name__)
COMPLETED: Final = "documents.completed"
"""The job that scans a file and extracts its text; `documentId` names the document."""


def _announce(
    actor: Actor,
    company_slug: str,
    filename: str,
    size_bytes: int | None,
    *,
    content_type: str | None,
    sha256: str | None,
) -> Document:
    """Create the row of an announced file, after all checks that do not need its content."""
    company = own_company(actor, company_slug)
    if fault := inspection.name_fault(filename):
        raise BadRequest(Phrase("The filename {fault}.", fault=fault), "Send the file's own name, such as report.pdf.")
    try:
        found = inspection.type_of(filename, content_type)
    except inspection.Rejected as verdict:
        raise BadRequest(verdict.args[0], Phrase("Accepted types: {types}.", types=inspection.TAKEN)) from None
    assert actor.account_id is not None  # noqa: S101 - owners have accounts
    has_any_size = size_bytes is None
    if size_bytes is None:
        size_bytes = reservation(actor.account_id)
    if size_bytes < 1:
        raise BadRequest("The file is empty.", "Send a file with content.")
    if size_bytes > max_bytes():
        raise TooLarge(
            Phrase(
                "The file has {size_bytes:,} bytes; the limit is {limit:,}.", size_bytes=size_bytes, limit=max_bytes()
            ),
            "Make it smaller, or split it.",
        )
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise BadRequest("The sha256 is not 64 hexadecimal digits.", "Compute it with sha256sum FILE, or omit it.")
    make_room(actor.account_id, size_bytes)
    return Document(
        company=company,
        account_id=actor.account_id,
        via=actor.via,
        filename=filename,
        content_type=found.content_type,
        size_bytes=size_bytes,
        has_any_size=has_any_size,
        expected_sha256=(sha256 or "").lower(),
        expires_at=now() + timedelta(minutes=LINK_MINUTES),
    )


def begin_upload(
    actor: Actor,
    company_slug: str,
    filename: str,
    size_bytes: int | None,
    *,
    content_type: str | None = None,
    sha256: str | None = None,
    base_url: str,
) -> Upload:
    """
    Announce a file and return its one-time upload link. Its size is reserved until it arrives, or the link ends.

    Args:
        size_bytes: None if it is unknown; the link then reserves little, and accepts as much as the limits allow when
            the file arrives.
        content_type: derived from the name's extension when absent.
        sha256: verified after the upload when given.

    Raises:
        NotFound: the company is unknown or not owned.
        BadRequest: the name, the type or the digest is invalid.
        TooLarge: over the size limit or the quota.
    """
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        document = _announce(actor, company_slug, filename, size_bytes, content_type=content_type, sha256=sha256)
        document.token_hash = token_digest(token)
        document.save(force_insert=True)
    assert document.expires_at is not None  # noqa: S101 - set on creation
    url = f"{base_url}/uploads/{token}"
    limit = most_of(document)
    return Upload(document.pk, url, document.filename, document.content_type, limit, document.expires_at)


def most_of(document: Document) -> int:
    """Return the most bytes that the link of a pending document accepts now."""
    if not document.has_any_size:
        return document.size_bytes
    return max(1, min(max_bytes(), quota_of(document.account_id, without=document.pk).free_bytes))


def complete_upload(actor: Actor, upload_id: str, *, dry_run: bool = False) -> Document:
    """
    Verify an uploaded file and keep it. Repeating it returns the same result, or repeats an unfinished scan.

    Args:
        dry_run: only verify it.

    Raises:
        NotFound: unknown, another account's, or expired.
        Conflict: nothing was sent yet.
        BadRequest: the file was rejected, with the reason. Nothing of it is kept.
    """
    document = reachable(actor).filter(pk=upload_id, deleted_at__isnull=True).first()
    if document is None or document.account_id != actor.account_id or document.state == DocumentState.EXPIRED:
        raise no_upload(upload_id)
    if document.state == DocumentState.PENDING:
        if document.expires_at is not None and document.expires_at < now() and not _is_receiving(document):
            raise no_upload(upload_id)
        raise Conflict(
            "No file has been sent to the upload link yet.", "Run the command, wait for its response, then call again."
        )
    if document.state == DocumentState.REJECTED:
        raise _rejected(document)
    if document.state == DocumentState.READY or document.text_state == TextState.WAITING:
        return document  # WAITING: accepted before, and being scanned
    if dry_run:
        try:
            _verify(document)
        except inspection.Rejected as verdict:
            document.reason = verdict.args[0]
            raise _rejected(document) from None
        return document
    return accept(document)


def _is_receiving(document: Document) -> bool:
    return document.receiving_until is not None and document.receiving_until > now()


def _rejected(document: Document) -> BadRequest:
    return BadRequest(
        Phrase("{name} was rejected. {reason}", name=document.filename, reason=Phrase.of(document.reason)),
        Phrase("Accepted types: {types}.", types=inspection.TAKEN),
    )


def accept(document: Document) -> Document:
    """Inspect an uploaded file, outside any transaction, and record the verdict."""
    try:
        _verify(document)
    except inspection.Rejected as verdict:
        reject(document, verdict.reason)
        document.refresh_from_db()
        if document.state == DocumentState.REJECTED:
            raise _rejected(document) from None
        return document  # a concurrent call decided first
    with transaction.atomic():
        # With a scanner the file waits as `uploaded`; the job makes it ready.
        state = DocumentState.UPLOADED if scanning.is_on() else DocumentState.READY
        moved = Document.objects.filter(pk=document.pk, state=DocumentState.UPLOADED, text_state=TextState.NONE).update(
            state=state, text_state=TextState.WAITING, reason="", changed_at=now()
        )
        if moved:
            queue.enqueue(COMPLETED, {"documentId": document.pk})
    document.refresh_from_db()
    return document


def _verify(document: Document) -> None:
    with storage().local(document.blob_key) as path, path.open("rb") as file:
        inspection.inspect(file, document.size_bytes, document.content_type)


def reject(document: Document, reason: str) -> None:
    """Reject a file and remove its blob."""
    key = document.blob_key
    with transaction.atomic():
        moved = Document.objects.filter(pk=document.pk, state=DocumentState.UPLOADED, blob_key=key).update(
            state=DocumentState.REJECTED, reason=reason, blob_key="", text_state=TextState.NONE, changed_at=now()
        )
    if moved:
        remove_blob(key)


def remove_blob(key: str) -> None:
    """Remove an unreferenced blob. If the storage fails or a backup is reading, the clean-up removes it later."""
    try:
        # The row no longer refers to the blob, so a backup that starts after this check does not need it.
        if not BlobHold.objects.filter(until__gt=now()).exists():
            storage().delete(key)
    except Exception:
        log.exception("could not remove a blob; the clean-up will retry")


def upload_document(
    actor: Actor,
    company_slug: str,
    filename: str,
    content: bytes,
    *,
    content_type: str | None = None,
    dry_run: bool = False,
) -> Document:
    """
    Store a small file that was sent in one call.

    Args:
        dry_run: only check it, and return what would be stored.

    Raises:
        NotFound: the company is unknown or not owned.
        BadRequest: the file is rejected, with the reason. Nothing is kept.
        TooLarge: more than 8,192 bytes, or over the quota.
    """
    if len(content) > SMALL_BYTES:
        own_company(actor, company_slug)
        raise TooLarge(
            Phrase(
                "The file has {size:,} bytes; the limit of upload_document is {limit:,}.",
                size=len(content),
                limit=SMALL_BYTES,
            ),
            "Call create_document_upload, run the command it returns, then call complete_document_upload.",
        )
    if dry_run:
        return _checked(actor, company_slug, filename, content, content_type)
    return store_document(actor, company_slug, filename, [content], len(content), content_type=content_type)


def _checked(actor: Actor, company_slug: str, filename: str, content: bytes, content_type: str | None) -> Document:
    """Return the document that a small file would be, after every check; it is not stored."""
    with transaction.atomic():
        size = len(content)
        document = _announce(actor, company_slug, filename, size, content_type=content_type, sha256=None)
    try:
        inspection.inspect(BytesIO(content), size, document.content_type)
    except inspection.Rejected as verdict:
        document.reason = verdict.args[0]
        raise _rejected(document) from None
    document.state, document.text_state = DocumentState.READY, TextState.WAITING
    document.sha256 = hashlib.sha256(content).hexdigest()
    return document


def store_document(
    actor: Actor,
    company_slug: str,
    filename: str,
    pieces: Iterable[bytes],
    size_bytes: int,
    *,
    content_type: str | None = None,
) -> Document:
    """Store a complete file; raise like :func:`begin_upload` and :func:`complete_upload`."""
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
            if time.monotonic() - alive_at > records.ALIVE_EVERY_S:  # the storage is slow but working
                alive_at = time.monotonic()
                renew_lease(document.pk, 1)

    storage().write(key, b"".join(digested()) if size_bytes <= SMALL_BYTES else digested())
    if not record_blob(
        document.pk, 1, key, digest.hexdigest(), size_bytes
    ):  # the clean-up expired it: the link's time is over
        remove_blob(key)
        raise no_upload(document.pk)
    document.refresh_from_db()
    try:
        return accept(document)
    except BadRequest:
        # The caller gets the reason, so no row is needed.
        Document.objects.filter(pk=document.pk, state=DocumentState.REJECTED).delete()
        raise


def current_attempt(document_id: str, attempt: int) -> QuerySet[Document]:
    """Return the document, unless a newer attempt has replaced this one or the upload has ended."""
    return Document.objects.filter(pk=document_id, state=DocumentState.PENDING, attempt=attempt)


def renew_lease(document_id: str, attempt: int) -> bool:
    """Extend an upload's lease. Return whether it is still the current attempt."""
    until = now() + timedelta(seconds=RECEIVING_S)
    return bool(current_attempt(document_id, attempt).update(receiving_until=until))


def record_blob(document_id: str, attempt: int, key: str, sha256: str, size_bytes: int) -> bool:
    """Record a stored file; its link is used up. Return whether it is still the current attempt."""
    ended = {"receiving_until": None, "changed_at": now()}
    stored = {"state": DocumentState.UPLOADED, "blob_key": key, "sha256": sha256, "size_bytes": size_bytes}
    return bool(current_attempt(document_id, attempt).update(**stored, **ended))


def blob_key(document_id: str, attempt: int) -> str:
    """Return the key of an attempt's blob, which is never reused."""
    return f"documents/{document_id}/{attempt}"
