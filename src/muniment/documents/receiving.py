"""
A file comes in through its one-time link.

Two short transactions stand around the stream: the first takes the link for this transfer, the second
records what came. A newer transfer takes the link from an older one, so a broken one can be sent again at
once, and of two at the same time one is recorded.
"""

from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction

from muniment.documents.models import Document, State
from muniment.documents.operations import blob_key, remove_blob, renew
from muniment.documents.records import RECEIVING_S, hash_of, make_room
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooLarge


@dataclass(frozen=True, slots=True)
class IncomingUpload:
    """One attempt at sending a file."""

    document_id: str
    attempt: int
    key: str
    size_bytes: int


def no_link() -> NotFound:
    """Give the refusal of a link that takes nothing: unknown, used or expired."""
    return NotFound(
        "This upload link is unknown, has been used, or has expired.", "create_document_upload gives a new one."
    )


def wrong_size(sent: int, announced: int) -> BadRequest:
    """Give the refusal of a file that is shorter than announced."""
    return BadRequest(
        f"The file has {sent:,} bytes, and {announced:,} were announced.",
        "Send the whole file again to the same link, or announce it anew with its true size.",
    )


def too_large(announced: int) -> TooLarge:
    """Give the refusal of a file that is longer than announced."""
    return TooLarge(
        f"The file is larger than the {announced:,} bytes that were announced.",
        "Announce it anew with its true size.",
        headers={"Connection": "close"},
    )


def take_link(token: str, length: int | None, content_type: str) -> IncomingUpload:
    """
    Take a link for one transfer.

    Args:
        length: the Content-Length, None when the sender does not tell.
        content_type: the Content-Type, empty when the sender does not tell.

    Raises:
        NotFound: the link is unknown, used, or expired.
        BadRequest, TooLarge: the size or the type is not what was announced, or the quota has shrunk.
    """
    with transaction.atomic():
        document = Document.objects.select_for_update().filter(token_hash=hash_of(token), state=State.PENDING).first()
        moment = now()
        if document is None or document.expires_at is None or document.expires_at < moment:
            raise no_link()
        if length is not None and length > document.size_bytes:
            raise too_large(document.size_bytes)
        if length is not None and length < document.size_bytes:
            raise wrong_size(length, document.size_bytes)
        given = content_type.partition(";")[0].strip().lower()
        if given and given != document.content_type:
            raise BadRequest(
                f"The link takes {document.content_type}, not {given[:100]}.",
                f"Send Content-Type: {document.content_type}, or announce the file anew.",
            )
        make_room(document.account_id, document.size_bytes, without=document.pk)
        document.attempt += 1
        document.receiving_until = moment + timedelta(seconds=RECEIVING_S)
        document.save(update_fields=["attempt", "receiving_until"])
    return IncomingUpload(document.pk, document.attempt, blob_key(document.pk, document.attempt), document.size_bytes)


def keep_alive(transfer: IncomingUpload) -> bool:
    """Say that a transfer is alive. Tells whether it still has the link."""
    return renew(transfer.document_id, transfer.attempt)


def record(transfer: IncomingUpload, sha256: str) -> None:
    """
    Record what came: the link is used up.

    Raises:
        Conflict: a newer transfer has the link; the blob of this one is removed.
    """
    with transaction.atomic():
        recorded = Document.objects.filter(
            pk=transfer.document_id, state=State.PENDING, attempt=transfer.attempt
        ).update(
            state=State.UPLOADED,
            blob_key=transfer.key,
            sha256=sha256,
            token_hash="",
            receiving_until=None,
            changed_at=now(),
        )
    if not recorded:
        remove_blob(transfer.key)
        raise overtaken()


def overtaken() -> Conflict:
    """Give the refusal of a transfer that lost its link to a newer one."""
    return Conflict(
        "A newer transfer to the same link has taken over, or the link was withdrawn.",
        "Look at that one's answer; complete_document_upload tells where the upload stands.",
    )


def let_go(transfer: IncomingUpload) -> None:
    """Note that a transfer has broken off: the link may be used again."""
    Document.objects.filter(pk=transfer.document_id, state=State.PENDING, attempt=transfer.attempt).update(
        receiving_until=None
    )
