"""
Receive a file through its one-time upload link.

The stream runs between two short transactions: the first claims the link for this attempt, the second records the
result. A newer attempt takes the link over, so that a broken upload can be retried at once, and of two concurrent
uploads one is recorded.
"""

from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction

from muniment.documents.models import Document, DocumentState
from muniment.documents.records import RECEIVING_S, make_room
from muniment.documents.uploads import blob_key, current_attempt, record_blob, remove_blob, renew_lease
from muniment.kernel import fairness
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooLarge
from muniment.kernel.tokens import token_digest


@dataclass(frozen=True, slots=True)
class IncomingUpload:
    """One attempt to upload a file; ``sha256`` is empty if its owner announced none."""

    document_id: str
    attempt: int
    key: str
    size_bytes: int
    sha256: str


def wrong_size(sent: int, announced: int) -> BadRequest:
    return BadRequest(
        f"The file has {sent:,} bytes, but {announced:,} were announced.",
        "Send the whole file again to the same link, or create a new upload with the right size.",
    )


def too_large(announced: int) -> TooLarge:
    return TooLarge(
        f"The file is larger than the {announced:,} bytes announced.",
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
        pending = Document.objects.filter(token_hash=token_digest(token), state=DocumentState.PENDING)
        document, moment = pending.select_for_update().first(), now()
        if document is None or document.expires_at is None or document.expires_at < moment:
            raise NotFound(
                "This upload link is invalid, used or expired.", "Get a new one with create_document_upload."
            )
        if length is not None and length > document.size_bytes:
            raise too_large(document.size_bytes)
        if length is not None and length < document.size_bytes:
            raise wrong_size(length, document.size_bytes)
        given = content_type.partition(";")[0].strip().lower()
        if given and given != document.content_type:
            raise BadRequest(
                f"This link accepts {document.content_type}, not {given[:100]}.",
                f"Send Content-Type: {document.content_type}, or create a new upload.",
            )
        fairness.current().take("writes", document.account_id)
        make_room(document.account_id, document.size_bytes, without=document.pk)
        document.attempt += 1
        document.receiving_until = moment + timedelta(seconds=RECEIVING_S)
        document.save(update_fields=["attempt", "receiving_until"])
    key = blob_key(document.pk, document.attempt)
    return IncomingUpload(document.pk, document.attempt, key, document.size_bytes, document.expected_sha256)


def keep_alive(upload: IncomingUpload) -> bool:
    """Extend the upload's lease. Return whether it still has the link."""
    return renew_lease(upload.document_id, upload.attempt)


def record(upload: IncomingUpload, sha256: str) -> None:
    """
    Record a completed upload, or remove its blob.

    Raises:
        BadRequest: it is not the announced file; the link can be used again.
        Conflict: a newer attempt has the link.
    """
    if upload.sha256 not in {"", sha256}:
        remove_blob(upload.key)
        release_link(upload)
        raise BadRequest(
            f"The file's sha256 is {sha256}, but {upload.sha256} was announced.",
            "Send the announced file to the same link, or create a new upload with the right sha256.",
        )
    if not record_blob(upload.document_id, upload.attempt, upload.key, sha256):
        remove_blob(upload.key)
        raise superseded()


def superseded() -> Conflict:
    return Conflict(
        "A newer upload to the same link has replaced this one, or the link was revoked.",
        "Check the newer upload's response, or call complete_document_upload.",
    )


def release_link(upload: IncomingUpload) -> None:
    """End a broken upload so that its link can be used again."""
    current_attempt(upload.document_id, upload.attempt).update(receiving_until=None)
