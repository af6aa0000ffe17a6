"""
Downloads by a link that is valid for a minute and bypasses the page threads (decisions, section 5, documents).

An archive of personal data can be as large as an account's documents, so it is stored for an hour and downloaded alike.
"""

import logging
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import IO, Final
from urllib.parse import quote

from django.core import signing
from django.core.cache import cache

from muniment.accounts import personal_data
from muniment.accounts.models import Account
from muniment.accounts.operations import account_of
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.accounts.security.step_up import require_confirmed
from muniment.documents.models import Document, DocumentState
from muniment.documents.operations import get_document
from muniment.documents.records import fault_of_file, no_document, storage
from muniment.kernel.actor import Actor
from muniment.kernel.ids import new_id, now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Forbidden, NotFound, TooMany, Unavailable

LINK_S: Final = 60
_SALT: Final = "muniment.documents.downloading"
ARCHIVES: Final = "archives"
_ARCHIVE_SALT: Final = "muniment.documents.archives"
KEPT_FOR: Final = timedelta(hours=1)
MADE_AN_HOUR: Final = 5
_PIECE_BYTES: Final = 1 << 20
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Download:
    """A file that may be downloaded; *sha256* is the digest of an upload."""

    key: str
    content_type: str
    size_bytes: int
    filename: str
    sha256: str = ""

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return headers that make the file harmless: no display in place, no sniffing, no caching."""
        return [
            (b"content-type", self.content_type.encode()),
            (b"content-length", b"%d" % self.size_bytes),
            (b"content-disposition", disposition(self.filename).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"content-security-policy", b"sandbox; default-src 'none'"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"private, no-store"),
        ]


def require_whole(download: Download) -> None:
    """Raise Unavailable if the file is not the one that was uploaded: a damaged one is never sent."""
    if not download.sha256:
        return
    fault = fault_of_file(download.key, download.size_bytes, download.sha256)
    if fault:
        log.error("a document cannot be downloaded: %s", fault, extra={"key": download.key})
        says = Phrase("The file is not available: {fault}.", fault=fault.removeprefix("its file "))
        raise Unavailable(says, "Contact the operator of this registry, or upload the file again.")


def disposition(filename: str) -> str:
    """Return the Content-Disposition of an attachment, for old and new clients (RFC 6266, section 5)."""
    plain = re.sub(r"""[^ -~]|["\\%;]""", "_", filename)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='')}"


def create_link(actor: Actor, document_id: str) -> str:
    """Return a path that downloads a ready document for a minute; raise NotFound if it is not ready or not owned."""
    document = get_document(actor, document_id)
    if document.state != DocumentState.READY:
        raise no_document(document_id)
    return "/downloads/" + signing.dumps([document.pk, actor.account_id], salt=_SALT)


def find_download(token: str) -> Download:
    """Return the file of a download link; raise NotFound if it is invalid, expired or no longer its owner's."""
    gone = NotFound(
        "This download link is invalid or has expired.", "Download the document again at /manage/documents."
    )
    try:
        document_id, account_id = signing.loads(token, salt=_SALT, max_age=LINK_S)
    except signing.BadSignature:
        archive = _find_archive(token)
        if archive is None:
            raise gone from None
        return archive
    account = Account.objects.filter(pk=account_id, is_active=True).first()
    if account is None:
        raise gone
    document: Document = get_document(account.actor("web"), document_id)
    return Download(document.blob_key, document.content_type, document.size_bytes, document.filename, document.sha256)


def _find_archive(token: str) -> Download | None:
    """Return the archive of personal data of a download link, or None."""
    try:
        account_id, key, size_bytes = signing.loads(token, salt=_ARCHIVE_SALT, max_age=LINK_S)
    except signing.BadSignature:
        return None
    if not Account.objects.filter(pk=account_id, is_active=True).exists():
        return None
    return Download(key, "application/zip", size_bytes, f"account-{account_id}.zip")


def create_archive(actor: Actor) -> str:
    """
    Store an archive of everything about the actor's account, and return the path of its download.

    Raises:
        Forbidden: the actor is not signed in on the website, or has to confirm its identity first.
        TooMany: too many archives were created within the hour.
    """
    if actor.via != "web":
        raise Forbidden("Only its owner can export an account, on the website.", "Sign in and open /accounts/data/.")
    account = account_of(actor)
    require_confirmed(actor)
    _hold_to_rate(account.pk)
    key = f"{ARCHIVES}/{account.pk}/{new_id()}"
    with tempfile.TemporaryFile() as file:
        personal_data.write_archive(account, file)
        size_bytes = file.tell()
        file.seek(0)
        storage().write(key, _pieces(file))
    record(Event.DATA_EXPORTED, account=account, actor=actor)
    return "/downloads/" + signing.dumps([account.pk, key, size_bytes], salt=_ARCHIVE_SALT)


def remove_archives(account_id: int | None = None, *, at: datetime | None = None) -> int:
    """Remove the archives of an account, or all that are older than an hour, and return how many were removed."""
    before = (at or now()) - KEPT_FOR
    if account_id is None:
        keys = [blob.key for blob in storage().blobs(ARCHIVES) if blob.stored_at < before]
    else:
        keys = [blob.key for blob in storage().blobs(f"{ARCHIVES}/{account_id}")]
    for key in keys:
        storage().delete(key)
    return len(keys)


def _hold_to_rate(account_id: int) -> None:
    key = f"archives-made:{account_id}:{now():%Y%m%d%H}"
    cache.add(key, 0, timeout=3_700)
    if cache.incr(key) > MADE_AN_HOUR:
        message = Phrase("{limit} archives were created within this hour.", limit=MADE_AN_HOUR)
        raise TooMany(message, "Wait until the next hour.", retry_after_s=3_600)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(file.read, _PIECE_BYTES), b"")
