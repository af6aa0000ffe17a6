"""What operations on documents give, and what they share: ownership, quota, the store."""

import hashlib
import secrets
import shlex
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from django.db.models import Q, QuerySet, Sum

from muniment import config
from muniment.accounts.models import Account
from muniment.documents.models import Document, State
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import NotFound, TooLarge
from muniment.kernel.wire import timestamp
from muniment.registry.company.editing import missing
from muniment.registry.models import Company

if TYPE_CHECKING:
    from muniment.documents.storage import Storage

SMALL_BYTES: Final = 8_192
LINK_MINUTES: Final = 15
RESTORE_DAYS: Final = 30
RECEIVING_S: Final = 120
"""How long a transfer counts as alive without a sign."""
ALIVE_EVERY_S: Final = RECEIVING_S / 4
"""How often a transfer that moves gives one."""


@lru_cache(maxsize=1)
def storage() -> "Storage":
    """Give this process's store."""
    from muniment.documents.storage import Storage  # four megabytes, for the first who touches a document

    settings = config.current()
    return Storage(settings.data / "blobs", settings.storage_url)


def max_bytes() -> int:
    """Give the size of the largest document that is taken."""
    return config.current().document_max_mb << 20


def quota_bytes() -> int:
    """Give how much an account may keep."""
    return config.current().document_quota_mb << 20


@dataclass(frozen=True, slots=True)
class Quota:
    """What an account keeps, and may keep."""

    used_bytes: int
    limit_bytes: int

    def to_wire(self) -> dict[str, int]:
        """Give it as the tools show it."""
        return {"usedBytes": self.used_bytes, "limitBytes": self.limit_bytes}


@dataclass(frozen=True, slots=True)
class Upload:
    """A one-time link. ``url`` holds the token, which nothing else keeps."""

    upload_id: str
    url: str
    filename: str
    content_type: str
    size_bytes: int
    expires_at: datetime

    @property
    def command(self) -> str:
        """
        Give one line that sends the file when pasted into a shell.

        A leading ``./`` keeps a name like ``-`` from being an option, ``-g`` one like ``[1]`` from being a pattern.
        """
        name, kind = shlex.quote(f"./{self.filename}"), shlex.quote(f"Content-Type: {self.content_type}")
        return f"curl -g -T {name} -H {kind} {shlex.quote(self.url)}"

    def to_wire(self) -> dict[str, Any]:
        """Give it as the tools show it."""
        return {
            "uploadId": self.upload_id,
            "url": self.url,
            "method": "PUT",
            "headers": {"Content-Type": self.content_type},
            "command": self.command,
            "maxBytes": self.size_bytes,
            "expiresAt": timestamp(self.expires_at),
        }


def to_wire(document: Document) -> dict[str, Any]:
    """Give a document as the tools show it."""
    shown: dict[str, Any] = {
        "documentId": document.pk,
        "companySlug": document.company.slug,
        "filename": document.filename,
        "contentType": document.content_type,
        "sizeBytes": document.size_bytes,
        "sha256": document.sha256,
        "state": document.state,
        "createdAt": timestamp(document.created_at),
        "textState": document.text_state,
    }
    if document.reason or document.text_note:
        shown["note"] = document.reason or document.text_note
    return shown


def hash_of(token: str) -> str:
    """Give what is kept of a link's token."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_token() -> str:
    """Make a link's token: 256 random bits."""
    return secrets.token_urlsafe(32)


def link_address(base_url: str, token: str) -> str:
    """Give the address that a file is sent to."""
    return f"{base_url}/uploads/{quote(token, safe='')}"


def own_company(actor: Actor, slug: str) -> Company:
    """
    Find a company that *actor* owns. Files are the owners' alone: reviewers reach none by their role.

    Raises:
        NotFound: unknown, or not the actor's.
    """
    company = None
    if actor.account_id is not None:
        company = Company.objects.filter(slug=slug, ownerships__account_id=actor.account_id).first()
    if company is None:
        raise missing(slug)
    return company


def reachable(actor: Actor) -> QuerySet[Document]:
    """Give the documents of the companies that *actor* owns, deleted ones among them."""
    if actor.account_id is None:
        return Document.objects.none()
    return Document.objects.filter(company__ownerships__account_id=actor.account_id).select_related("company")


def no_document(document_id: str) -> NotFound:
    """Give the refusal of a document that is unknown or another's."""
    return NotFound(f"You have no document {document_id[:60]!r}.", "list_my_documents gives the ids of your documents.")


def no_upload(upload_id: str) -> NotFound:
    """Give the refusal of an upload that is unknown, another's, expired or removed."""
    return NotFound(
        f"There is no open upload {upload_id[:60]!r}: it is unknown or has expired.",
        "create_document_upload gives a new link.",
    )


def alive(moment: datetime) -> Q:
    """Tell which documents take room: kept ones, and pending ones whose link or transfer is still alive."""
    waiting = Q(expires_at__gt=moment) | Q(receiving_until__gt=moment)
    return Q(state__in=[State.UPLOADED, State.READY]) | (Q(state=State.PENDING) & waiting)


def used_bytes(account_id: int, *, deleted: bool = False, without: str = "") -> int:
    """Give how much an account's documents take, or its deleted ones that can still be restored."""
    found = Document.objects.filter(alive(now()), account_id=account_id, deleted_at__isnull=not deleted)
    return found.exclude(pk=without).aggregate(total=Sum("size_bytes"))["total"] or 0


def make_room(account_id: int, size_bytes: int, *, without: str = "") -> None:
    """
    Check the quota, in the caller's transaction; uploads of one account wait for each other here.

    Raises:
        TooLarge: the document does not fit beside the others.
    """
    Account.objects.select_for_update().get(pk=account_id)
    limit = quota_bytes()
    used = used_bytes(account_id, without=without)
    if used + size_bytes > limit:
        raise TooLarge(
            f"The document does not fit: {used:,} of {limit:,} bytes are used, and it has {size_bytes:,}.",
            "Delete documents that you no longer need.",
        )
    # What was deleted takes room until it can no longer be restored; twice the quota bounds it.
    deleted = used_bytes(account_id, deleted=True, without=without)
    if used + deleted + size_bytes > 2 * limit:
        raise TooLarge(
            f"Deleted documents that can still be restored take {deleted:,} bytes, and there is no room beside them.",
            f"They go {RESTORE_DAYS} days after they were deleted.",
        )


def restorable_until(document: Document) -> datetime:
    """Give until when a deleted document can be restored."""
    assert document.deleted_at is not None  # noqa: S101 - asked of deleted documents alone
    return document.deleted_at + timedelta(days=RESTORE_DAYS)
