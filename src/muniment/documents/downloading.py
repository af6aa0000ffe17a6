"""Downloads by a link that is valid for a minute and bypasses the page threads (decisions, section 5, documents)."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from django.core import signing

from muniment.accounts.models import Account
from muniment.documents.models import Document, DocumentState
from muniment.documents.operations import get_document
from muniment.documents.records import no_document
from muniment.kernel.actor import Actor
from muniment.kernel.problems import NotFound

LINK_S: Final = 60
_SALT: Final = "muniment.documents.downloading"


@dataclass(frozen=True, slots=True)
class Download:
    """A file that may be downloaded."""

    key: str
    content_type: str
    size_bytes: int
    filename: str

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


def disposition(filename: str) -> str:
    """Return the Content-Disposition of an attachment, for old and new clients (RFC 6266, section 5)."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\%;' else "_" for c in filename)
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
        raise gone from None
    account = Account.objects.filter(pk=account_id, is_active=True).first()
    if account is None:
        raise gone
    document: Document = get_document(account.actor("web"), document_id)
    return Download(document.blob_key, document.content_type, document.size_bytes, document.filename)
