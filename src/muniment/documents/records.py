"""Records and helpers of the document operations: ownership, quota, storage."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from django.db.models import Q, QuerySet, Sum

from muniment import config
from muniment.accounts.models import Account
from muniment.documents.models import Document, DocumentState
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import NotFound, TooLarge
from muniment.kernel.wire import timestamp
from muniment.mail import places
from muniment.registry.company.access import no_company
from muniment.registry.models import Company
from muniment.webhooks import events

if TYPE_CHECKING:
    from muniment.documents.storage import Storage

SMALL_BYTES: Final = 8_192
LINK_MINUTES: Final = 15
RESERVED_BYTES: Final = SMALL_BYTES
"""Bytes that an upload link reserves for a file of unknown size until it arrives: smaller files need no link."""
RESTORE_DAYS: Final = 30
RECEIVING_S: Final = 120
"""Seconds that an upload counts as alive without a renewal."""
ALIVE_EVERY_S: Final = RECEIVING_S / 4
"""Seconds between renewals of the lease of a running upload."""


PLACEHOLDER: Final = "PATH-OF-THE-FILE"
"""Replaces a name that shells read differently."""
_READ_DIFFERENTLY: Final = re.compile('[$`"\\\\!%\u201c\u201d\u201e{}\\[\\]]')
"""
Characters with a meaning between double quotes: of sh (``$ ` " \\ !``), of PowerShell (``$ ` "`` and curved quotes), of
cmd.exe (``% "``), and of curl, which reads ``{ } [ ]`` as a pattern.
"""


@lru_cache(maxsize=1)
def storage() -> "Storage":
    from muniment.documents.storage import storage_at  # 4 MB: imported on first use

    settings = config.current()
    return storage_at(settings.data / "blobs", settings.storage_url)


def tell_ready(document: Document) -> None:
    """Record for the webhooks of its owners that a document is ready, in the caller's transaction."""
    company = document.company
    told = {
        "document": document.pk,
        "company": company.slug,
        "url": f"{places.base_url()}/manage/companies/{company.slug}/documents",
    }
    events.record("document.ready", told, accounts=_owners(company), listing=company.slug)


def _owners(company: Company) -> list[int]:
    return list(company.owners.values_list("pk", flat=True))


def has_stored() -> bool:
    """Return whether anything may be stored; an empty folder does not need the store to be loaded."""
    settings = config.current()
    if settings.storage_url:
        return True
    folder = settings.data / "blobs"
    return folder.is_dir() and any(folder.iterdir())


def max_bytes() -> int:
    return config.current().document_max_mb << 20


def quota_bytes() -> int:
    """Return the storage limit of an account."""
    return config.current().document_quota_mb << 20


@dataclass(frozen=True, slots=True)
class Quota:
    """
    An account's storage.

    Args:
        used_bytes: the bytes of stored documents.
        reserved_bytes: the bytes reserved for open upload links.
        limit_bytes: what both may take.
    """

    used_bytes: int
    reserved_bytes: int
    limit_bytes: int

    @property
    def free_bytes(self) -> int:
        return max(0, self.limit_bytes - self.used_bytes - self.reserved_bytes)

    def to_wire(self) -> dict[str, int]:
        return {
            "usedBytes": self.used_bytes,
            "reservedBytes": self.reserved_bytes,
            "limitBytes": self.limit_bytes,
        }


@dataclass(frozen=True, slots=True)
class Upload:
    """
    A one-time upload link.

    Args:
        url: contains the token, which is stored nowhere else.
        max_bytes: the most that the link accepts.
    """

    upload_id: str
    url: str
    filename: str
    content_type: str
    max_bytes: int
    expires_at: datetime

    @property
    def command(self) -> str:
        """
        Return a command that uploads the file: the same line in sh, PowerShell and cmd.exe.

        A leading ``./`` keeps a name like ``-`` from being an option. A name that one of the shells or curl would read
        differently between double quotes is replaced by a word.
        """
        name = PLACEHOLDER if _READ_DIFFERENTLY.search(self.filename) else f"./{self.filename}"
        return f'curl -T "{name}" "{self.url}"'

    def to_wire(self) -> JSONObject:
        return {
            "uploadId": self.upload_id,
            "url": self.url,
            "method": "PUT",
            "headers": {"Content-Type": self.content_type},
            "command": self.command,
            "maxBytes": self.max_bytes,
            "expiresAt": timestamp(self.expires_at),
        }


def to_wire(document: Document) -> JSONObject:
    record: JSONObject = {
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
        record["note"] = document.reason or document.text_note
    return record


def own_company(actor: Actor, slug: str) -> Company:
    """Return a company that *actor* owns, or raise NotFound: the reviewer role gives no access to files."""
    if actor.account_id is not None:
        for company in Company.objects.filter(slug=slug, ownerships__account_id=actor.account_id):
            return company
    raise no_company(slug)


def reachable(actor: Actor) -> QuerySet[Document]:
    """Return the documents of the companies that *actor* owns, including deleted ones."""
    if actor.account_id is None:
        return Document.objects.none()
    return Document.objects.filter(company__ownerships__account_id=actor.account_id).select_related("company")


def no_document(document_id: str) -> NotFound:
    hint = "Call list_my_documents for the ids of your documents."
    return NotFound(Phrase("Document {id!r} not found.", id=document_id[:60]), hint)


def no_upload(upload_id: str) -> NotFound:
    return NotFound(
        Phrase("Upload {id!r} not found: it is unknown or has expired.", id=upload_id[:60]),
        "Get a new link with create_document_upload.",
    )


def alive(moment: datetime) -> Q:
    """Return a filter for documents that use storage: kept ones, and uploads whose link or transfer is valid."""
    is_kept = Q(state__in=[DocumentState.UPLOADED, DocumentState.READY])
    is_waiting = Q(expires_at__gt=moment) | Q(receiving_until__gt=moment)
    return is_kept | (Q(state=DocumentState.PENDING) & is_waiting)


def quota_of(account_id: int, *, without: str = "") -> Quota:
    """Return the storage of an account, without that of one document."""
    stored, reserved = _taken(account_id, without=without)
    return Quota(stored, reserved, quota_bytes())


def reservation(account_id: int, *, without: str = "") -> int:
    """Return the bytes that a link for a file of unknown size reserves."""
    return max(1, min(RESERVED_BYTES, quota_of(account_id, without=without).free_bytes))


def _taken(account_id: int, *, deleted: bool = False, without: str = "") -> tuple[int, int]:
    """Return the bytes of an account's stored documents, or of its deleted ones, and what open links reserve."""
    rows = Document.objects.filter(account_id=account_id, deleted_at__isnull=not deleted)
    # One sum for each state: the index that answers it has neither the times of links nor the ids.
    is_kept = Q(state__in=[DocumentState.UPLOADED, DocumentState.READY])
    stored: int = rows.filter(is_kept).aggregate(total=Sum("size_bytes", default=0))["total"]
    if without:
        stored -= sum(rows.filter(is_kept, pk=without).values_list("size_bytes", flat=True))
    waiting = rows.filter(alive(now()), state=DocumentState.PENDING).exclude(pk=without)
    reserved: int = waiting.aggregate(total=Sum("size_bytes", default=0))["total"]
    return stored, reserved


def make_room(account_id: int, size_bytes: int, *, without: str = "") -> None:
    """Raise TooLarge over the quota. In the caller's transaction: the lock serializes uploads of one account."""
    Account.objects.select_for_update().get(pk=account_id)
    quota = quota_of(account_id, without=without)
    if size_bytes > quota.free_bytes:
        raise _no_room(quota, size_bytes)
    # Deleted documents use storage until they can no longer be restored, up to the same limit again.
    deleted, _ = _taken(account_id, deleted=True, without=without)
    if quota.used_bytes + quota.reserved_bytes + deleted + size_bytes > 2 * quota.limit_bytes:
        raise TooLarge(
            Phrase(
                "Storage limit exceeded: deleted documents that can be restored use {deleted:,} bytes.", deleted=deleted
            ),
            Phrase("They are permanently removed {days} days after deletion.", days=RESTORE_DAYS),
        )


def _no_room(quota: Quota, size_bytes: int) -> TooLarge:
    """Return the refusal of a document: what fills the storage, and what makes room."""
    values = {"used": quota.used_bytes, "limit": quota.limit_bytes, "size_bytes": size_bytes}
    if quota.used_bytes + size_bytes > quota.limit_bytes:
        return TooLarge(
            Phrase(
                "Storage limit exceeded: {used:,} of {limit:,} bytes are used, and this document has {size_bytes:,}.",
                **values,
            ),
            "Delete documents that you no longer need.",
        )
    return TooLarge(
        Phrase(
            "Storage limit exceeded: {used:,} of {limit:,} bytes are used, {reserved:,} are reserved by open upload "
            "links, and this document has {size_bytes:,}.",
            reserved=quota.reserved_bytes,
            **values,
        ),
        Phrase(
            "Send the files that the links wait for, or delete those uploads; an unused link ends after {minutes} "
            "minutes.",
            minutes=LINK_MINUTES,
        ),
    )


def fault_of_file(key: str, size_bytes: int, sha256: str) -> str:
    """Read a whole stored file; return why it is not the one that was uploaded, or an empty string."""
    digest = hashlib.sha256()
    stored_bytes = 0
    try:
        for piece in storage().stream(key):
            digest.update(piece)
            stored_bytes += len(piece)
    except FileNotFoundError:
        return "its file is missing"
    if stored_bytes != size_bytes:
        return Phrase(
            "its file has {stored_bytes:,} bytes instead of {size_bytes:,}",
            stored_bytes=stored_bytes,
            size_bytes=size_bytes,
        )
    if digest.hexdigest() != sha256:
        return "its file is damaged: the digest is not that of the upload"
    return ""


def restorable_until(document: Document) -> datetime:
    assert document.deleted_at is not None  # noqa: S101 - only called for deleted documents
    return document.deleted_at + timedelta(days=RESTORE_DAYS)
