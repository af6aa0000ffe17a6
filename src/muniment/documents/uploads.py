"""
Uploads of documents: announce a file, receive it by a one-time link, and complete it; or store it in one call.

Between the two short transactions that claim a link and record the result, the file streams. A newer attempt takes the
link over, so that a broken upload can be retried at once, and of two concurrent uploads one is recorded.

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
from dataclasses import dataclass
from datetime import datetime, timedelta
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
from muniment.kernel import fairness
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooLarge
from muniment.kernel.tokens import token_digest

log = logging.getLogger(__name__)
COMPLETED: Final = "documents.completed"
"""The job that scans a file and extracts its text; `documentId` names the document."""


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
    fault = inspection.name_fault(filename)
    if fault:
        raise BadRequest(Phrase("The filename {fault}.", fault=fault), "Send the file's own name, such as report.pdf.")
    try:
        file_type = inspection.type_of(filename, content_type)
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
        content_type=file_type.content_type,
        size_bytes=size_bytes,
        has_any_size=has_any_size,
        expected_sha256=(sha256 or "").lower(),
        expires_at=now() + timedelta(minutes=LINK_MINUTES),
    )


def most_of(document: Document) -> int:
    """Return the most bytes that the link of a pending document accepts now."""
    if not document.has_any_size:
        return document.size_bytes
    return max(1, min(max_bytes(), quota_of(document.account_id, without=document.pk).free_bytes))


@dataclass(frozen=True, slots=True)
class OpenLink:
    """The facts on the page of an upload link; ``company`` is the name of the listing."""

    company: str
    filename: str
    content_type: str
    size_bytes: int
    has_any_size: bool
    has_sha256: bool
    expires_at: datetime


def find_link(token: str) -> OpenLink:
    """
    Return what a link waits for.

    Raises:
        NotFound: the link is unknown, used, or expired, which its message says.
    """
    document = Document.objects.filter(token_hash=token_digest(token)).select_related("company").first()
    again = "Ask for a new link if you still have a file to send."
    if document is None:
        raise NotFound("This upload link is not valid.", "Check that you opened the whole link, or ask for a new one.")
    if document.deleted_at is not None:
        raise NotFound("This upload was deleted.", again)
    if document.state not in {DocumentState.PENDING, DocumentState.EXPIRED}:
        raise NotFound("This upload link was used: its file has been received.", again)
    if document.state == DocumentState.EXPIRED or document.expires_at is None or document.expires_at < now():
        raise NotFound("This upload link has expired.", again)
    return OpenLink(
        company=document.company.name,
        filename=document.filename,
        content_type=document.content_type,
        size_bytes=most_of(document),
        has_any_size=document.has_any_size,
        has_sha256=bool(document.expected_sha256),
        expires_at=document.expires_at,
    )


def require_type(token: str, name: str) -> None:
    """
    Raise BadRequest unless a chosen file with this *name* is of the type that the link accepts.

    Browsers declare types as their computer knows them, so the name counts. An unknown link is left to the claim.
    """
    document = Document.objects.filter(token_hash=token_digest(token), state=DocumentState.PENDING).first()
    if document is None:
        return
    wanted = inspection.TYPES[document.content_type]
    try:
        is_wanted = inspection.type_of(name, None) == wanted
    except inspection.Rejected:
        is_wanted = False
    if not is_wanted:
        extensions = " or ".join(f".{extension}" for extension in wanted.extensions)
        raise BadRequest(
            Phrase(
                "This link accepts a {type} file ({extensions}), not {name}.",
                type=wanted.name,
                extensions=extensions,
                name=name[:100],
            ),
            "Choose another file, or ask for a link for this one.",
        )


@dataclass(frozen=True, slots=True)
class IncomingUpload:
    """
    One attempt to upload a file.

    Args:
        size_bytes: the announced size; with *has_any_size* the most that the link accepts.
        sha256: empty if its owner announced none.
    """

    document_id: str
    attempt: int
    key: str
    size_bytes: int
    sha256: str
    has_any_size: bool = False


def claim_link(token: str, length: int | None, content_type: str) -> IncomingUpload:
    """
    Claim a link for one attempt, whose Content-Length may be None and whose Content-Type may be empty.

    Raises:
        NotFound: the link is unknown, used, or expired.
        BadRequest, TooLarge: the size or the type is not as announced, or the quota no longer allows it.
        TooMany: too many changes by the account.
    """
    with transaction.atomic():
        pending = Document.objects.filter(
            token_hash=token_digest(token), state=DocumentState.PENDING, deleted_at__isnull=True
        )
        document = pending.select_for_update().first()
        moment = now()
        if document is None or document.expires_at is None or document.expires_at < moment:
            raise NotFound(
                "This upload link is invalid, used or expired.", "Get a new one with create_document_upload."
            )
        if length is not None:
            _require_announced_size(document, length)
        _require_announced_type(document, content_type)
        fairness.current().take("writes", document.account_id)
        if document.has_any_size:
            # A length that the client does not say is counted when all has arrived.
            document.size_bytes = length or reservation(document.account_id, without=document.pk)
        make_room(document.account_id, document.size_bytes, without=document.pk)
        limit = most_of(document)
        document.attempt += 1
        document.receiving_until = moment + timedelta(seconds=RECEIVING_S)
        document.save(update_fields=["attempt", "receiving_until", "size_bytes"])
    return IncomingUpload(
        document_id=document.pk,
        attempt=document.attempt,
        key=blob_key(document.pk, document.attempt),
        size_bytes=limit,
        sha256=document.expected_sha256,
        has_any_size=document.has_any_size,
    )


def _require_announced_size(document: Document, length: int) -> None:
    limit = max_bytes() if document.has_any_size else document.size_bytes
    if length > limit:
        raise too_large(limit)
    if length < document.size_bytes and not document.has_any_size:
        raise wrong_size(length, document.size_bytes)


def _require_announced_type(document: Document, content_type: str) -> None:
    declared = content_type.partition(";")[0].strip().lower()
    if declared and declared != document.content_type:
        raise BadRequest(
            Phrase("This link accepts {type}, not {other}.", type=document.content_type, other=declared[:100]),
            Phrase("Send Content-Type: {type}, or create a new upload.", type=document.content_type),
        )


def too_large(announced: int) -> TooLarge:
    return TooLarge(
        Phrase("The file is larger than the {announced:,} bytes that this link accepts.", announced=announced),
        "Create a new upload with the right size.",
        headers={"Connection": "close"},
    )


def wrong_size(sent: int, announced: int) -> BadRequest:
    return BadRequest(
        Phrase("The file has {sent:,} bytes, but {announced:,} were announced.", sent=sent, announced=announced),
        "Send the whole file again to the same link, or create a new upload with the right size.",
    )


def renew_lease(document_id: str, attempt: int) -> bool:
    """Extend an upload's lease. Return whether it is still the current attempt."""
    until = now() + timedelta(seconds=RECEIVING_S)
    return bool(current_attempt(document_id, attempt).update(receiving_until=until))


def superseded() -> Conflict:
    return Conflict(
        "A newer upload to the same link has replaced this one, or the link was revoked.",
        "Check the newer upload's response, or call complete_document_upload.",
    )


def record(upload: IncomingUpload, sha256: str, size_bytes: int) -> None:
    """
    Record a completed upload, or remove its blob.

    Raises:
        BadRequest: it is not the announced file; the link can be used again.
        TooLarge: the quota has no room for what has arrived; the link can be used again.
        Conflict: a newer attempt has the link.
    """
    if upload.sha256 and upload.sha256 != sha256:
        remove_blob(upload.key)
        release_link(upload)
        raise BadRequest(
            Phrase(
                "The file's sha256 is {sha256}, but {announced} was announced.", sha256=sha256, announced=upload.sha256
            ),
            "Send the announced file to the same link, or create a new upload with the right sha256.",
        )
    try:
        is_recorded = _record_with_room(upload, sha256, size_bytes)
    except TooLarge:
        remove_blob(upload.key)
        release_link(upload)
        raise
    if not is_recorded:
        remove_blob(upload.key)
        raise superseded()


def _record_with_room(upload: IncomingUpload, sha256: str, size_bytes: int) -> bool:
    """Record a stored file; one whose size was not known is counted now. Return whether the attempt is current."""
    with transaction.atomic():
        if upload.has_any_size:
            for account_id in Document.objects.filter(pk=upload.document_id).values_list("account_id", flat=True):
                make_room(account_id, size_bytes, without=upload.document_id)
        return record_blob(upload.document_id, upload.attempt, upload.key, sha256, size_bytes)


def record_blob(document_id: str, attempt: int, key: str, sha256: str, size_bytes: int) -> bool:
    """Record a stored file; its link is used up. Return whether it is still the current attempt."""
    updated = current_attempt(document_id, attempt).update(
        state=DocumentState.UPLOADED,
        blob_key=key,
        sha256=sha256,
        size_bytes=size_bytes,
        receiving_until=None,
        changed_at=now(),
    )
    return bool(updated)


def release_link(upload: IncomingUpload) -> None:
    """End a broken upload so that its link can be used again."""
    for document in current_attempt(upload.document_id, upload.attempt):
        if document.has_any_size:
            document.size_bytes = reservation(document.account_id, without=document.pk)
        current_attempt(document.pk, upload.attempt).update(receiving_until=None, size_bytes=document.size_bytes)


def current_attempt(document_id: str, attempt: int) -> QuerySet[Document]:
    """Return the document, unless a newer attempt has replaced this one or the upload has ended."""
    return Document.objects.filter(pk=document_id, state=DocumentState.PENDING, attempt=attempt)


def blob_key(document_id: str, attempt: int) -> str:
    """Return the key of an attempt's blob, which is never reused."""
    return f"documents/{document_id}/{attempt}"


def complete_received(upload: IncomingUpload) -> Document:
    """
    Verify and keep a file that a person has sent by the page of its link.

    Raises:
        BadRequest: the file was rejected, with the reason.
    """
    return accept(Document.objects.get(pk=upload.document_id))


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
        if _has_ended(document):
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


def _has_ended(document: Document) -> bool:
    """Return whether the link of a pending document has expired, and no file is on its way."""
    moment = now()
    is_receiving = document.receiving_until is not None and document.receiving_until > moment
    return not is_receiving and document.expires_at is not None and document.expires_at < moment


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
        if moved and state == DocumentState.READY:
            records.tell_ready(document)
        if moved:
            queue.enqueue(COMPLETED, {"documentId": document.pk})
    document.refresh_from_db()
    return document


def _verify(document: Document) -> None:
    with storage().local(document.blob_key) as path, path.open("rb") as file:
        inspection.inspect(file, document.size_bytes, document.content_type)


def _rejected(document: Document) -> BadRequest:
    return BadRequest(
        Phrase("{name} was rejected. {reason}", name=document.filename, reason=Phrase.of(document.reason)),
        Phrase("Accepted types: {types}.", types=inspection.TAKEN),
    )


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
    key = blob_key(document.pk, 1)
    digest = hashlib.sha256()

    def digested() -> Iterator[bytes]:
        alive_at = time.monotonic()
        for piece in pieces:
            digest.update(piece)
            yield piece
            if time.monotonic() - alive_at > records.ALIVE_EVERY_S:  # the storage is slow but working
                alive_at = time.monotonic()
                renew_lease(document.pk, 1)

    if size_bytes <= SMALL_BYTES:
        storage().write(key, b"".join(digested()))
    else:
        storage().write(key, digested())
    is_recorded = record_blob(document.pk, 1, key, digest.hexdigest(), size_bytes)
    if not is_recorded:  # the clean-up expired it: the link's time is over
        remove_blob(key)
        raise no_upload(document.pk)
    document.refresh_from_db()
    try:
        return accept(document)
    except BadRequest:
        # The caller gets the reason, so no row is needed.
        Document.objects.filter(pk=document.pk, state=DocumentState.REJECTED).delete()
        raise
