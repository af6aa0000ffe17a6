"""
Receive a file through its one-time upload link.

The stream runs between two short transactions: the first claims the link for this attempt, the second records the
result. A newer attempt takes the link over, so that a broken upload can be retried at once, and of two concurrent
uploads one is recorded.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from muniment.documents.content import inspection
from muniment.documents.models import Document, DocumentState
from muniment.documents.records import RECEIVING_S, make_room, max_bytes, reservation
from muniment.documents.uploads import (
    accept,
    blob_key,
    current_attempt,
    most_of,
    record_blob,
    remove_blob,
    renew_lease,
)
from muniment.kernel import fairness
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooLarge
from muniment.kernel.tokens import token_digest


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


def wrong_size(sent: int, announced: int) -> BadRequest:
    return BadRequest(
        Phrase("The file has {sent:,} bytes, but {announced:,} were announced.", sent=sent, announced=announced),
        "Send the whole file again to the same link, or create a new upload with the right size.",
    )


def too_large(announced: int) -> TooLarge:
    return TooLarge(
        Phrase("The file is larger than the {announced:,} bytes that this link accepts.", announced=announced),
        "Create a new upload with the right size.",
        headers={"Connection": "close"},
    )


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
        document, moment = pending.select_for_update().first(), now()
        if document is None or document.expires_at is None or document.expires_at < moment:
            raise NotFound(
                "This upload link is invalid, used or expired.", "Get a new one with create_document_upload."
            )
        limit = max_bytes() if document.has_any_size else document.size_bytes
        if length is not None and length > limit:
            raise too_large(limit)
        if length is not None and length < document.size_bytes and not document.has_any_size:
            raise wrong_size(length, document.size_bytes)
        given = content_type.partition(";")[0].strip().lower()
        if given and given != document.content_type:
            raise BadRequest(
                Phrase("This link accepts {type}, not {other}.", type=document.content_type, other=given[:100]),
                Phrase("Send Content-Type: {type}, or create a new upload.", type=document.content_type),
            )
        fairness.current().take("writes", document.account_id)
        if document.has_any_size:
            # A length that the client does not say is counted when all has arrived.
            document.size_bytes = length or reservation(document.account_id, without=document.pk)
        make_room(document.account_id, document.size_bytes, without=document.pk)
        limit = most_of(document)
        document.attempt += 1
        document.receiving_until = moment + timedelta(seconds=RECEIVING_S)
        document.save(update_fields=["attempt", "receiving_until", "size_bytes"])
    key = blob_key(document.pk, document.attempt)
    return IncomingUpload(document.pk, document.attempt, key, limit, document.expected_sha256, document.has_any_size)


def find_link(token: str) -> OpenLink:
    """
    Return what a link waits for.

    Raises:
        NotFound: the link is unknown, used, or expired, which its message says.
    """
    found = Document.objects.filter(token_hash=token_digest(token)).select_related("company").first()
    again = "Ask for a new link if you still have a file to send."
    if found is None:
        raise NotFound("This upload link is not valid.", "Check that you opened the whole link, or ask for a new one.")
    if found.deleted_at is not None:
        raise NotFound("This upload was deleted.", again)
    if found.state not in {DocumentState.PENDING, DocumentState.EXPIRED}:
        raise NotFound("This upload link was used: its file has been received.", again)
    if found.state == DocumentState.EXPIRED or found.expires_at is None or found.expires_at < now():
        raise NotFound("This upload link has expired.", again)
    return OpenLink(
        found.company.name,
        found.filename,
        found.content_type,
        most_of(found),
        found.has_any_size,
        bool(found.expected_sha256),
        found.expires_at,
    )


def require_type(token: str, name: str) -> None:
    """
    Raise BadRequest unless a chosen file with this *name* is of the type that the link accepts.

    Browsers declare types as their computer knows them, so the name counts. An unknown link is left to the claim.
    """
    found = Document.objects.filter(token_hash=token_digest(token), state=DocumentState.PENDING).first()
    if found is None:
        return
    wanted = inspection.TYPES[found.content_type]
    try:
        is_wanted = inspection.type_of(name, None) == wanted
    except inspection.Rejected:
        is_wanted = False
    if not is_wanted:
        extensions = " or ".join(f".{each}" for each in wanted.extensions)
        raise BadRequest(
            Phrase(
                "This link accepts a {type} file ({extensions}), not {name}.",
                type=wanted.name,
                extensions=extensions,
                name=name[:100],
            ),
            "Choose another file, or ask for a link for this one.",
        )


def complete(upload: IncomingUpload) -> Document:
    """
    Verify and keep a file that a person has sent by the page of its link.

    Raises:
        BadRequest: the file was rejected, with the reason.
    """
    return accept(Document.objects.get(pk=upload.document_id))


def keep_alive(upload: IncomingUpload) -> bool:
    """Extend the upload's lease. Return whether it still has the link."""
    return renew_lease(upload.document_id, upload.attempt)


def record(upload: IncomingUpload, sha256: str, size_bytes: int) -> None:
    """
    Record a completed upload, or remove its blob.

    Raises:
        BadRequest: it is not the announced file; the link can be used again.
        TooLarge: the quota has no room for what has arrived; the link can be used again.
        Conflict: a newer attempt has the link.
    """
    if upload.sha256 not in {"", sha256}:
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


def superseded() -> Conflict:
    return Conflict(
        "A newer upload to the same link has replaced this one, or the link was revoked.",
        "Check the newer upload's response, or call complete_document_upload.",
    )


def release_link(upload: IncomingUpload) -> None:
    """End a broken upload so that its link can be used again."""
    for document in current_attempt(upload.document_id, upload.attempt):
        if document.has_any_size:
            document.size_bytes = reservation(document.account_id, without=document.pk)
        current_attempt(document.pk, upload.attempt).update(receiving_until=None, size_bytes=document.size_bytes)
