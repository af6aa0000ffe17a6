"""The tables of documents: files, the pages of their text, and pins that protect them."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import new_id, now
from muniment.registry.fields import Text
from muniment.registry.models import Company
from muniment.store.database.phrase_text import PhraseText


class DocumentState(models.TextChoices):
    """The state of a document (decisions, section 5, documents)."""

    PENDING = "pending"
    UPLOADED = "uploaded"
    READY = "ready"
    REJECTED = "rejected"
    EXPIRED = "expired"


class TextState(models.TextChoices):
    """The state of a document's text extraction."""

    NONE = "none"
    WAITING = "waiting"
    EXTRACTED = "extracted"
    NOT_EXTRACTABLE = "not extractable"


class Document(models.Model):
    """
    A file of a company, from its announcement on; its id is also the upload's id.

    ``attempt`` fences uploads: each takes the next number, uses it in its blob's key, and may record its result only
    while it is the newest. ``blob_key`` is set exactly while the document has a blob.
    """

    id = models.CharField(primary_key=True, max_length=26, default=new_id)
    company = models.ForeignKey(Company, models.PROTECT, related_name="documents")
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="documents", db_index=False)
    via = models.CharField(max_length=16)
    filename = Text()
    content_type = models.CharField(max_length=100)
    size_bytes = models.BigIntegerField()
    """The size of the file; of a pending upload, the bytes reserved: the announced size, or few if it is unknown."""
    has_any_size = models.BooleanField(default=False, db_default=False)
    sha256 = models.CharField(max_length=64, blank=True, default="")
    expected_sha256 = models.CharField(max_length=64, blank=True, default="")
    state = models.CharField(max_length=16, choices=DocumentState.choices, default=DocumentState.PENDING)
    reason = PhraseText(blank=True, default="")
    text_state = models.CharField(max_length=16, choices=TextState.choices, default=TextState.NONE)
    text_note = PhraseText(blank=True, default="")
    blob_key = models.CharField(max_length=100, blank=True, default="")
    token_hash = models.CharField(max_length=64, blank=True, default="")
    expires_at = models.DateTimeField(null=True, blank=True)
    attempt = models.PositiveIntegerField(default=0)
    receiving_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)
    changed_at = models.DateTimeField(default=now)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["token_hash"], condition=~models.Q(token_hash=""), name="document_token_unique"
            ),
            models.CheckConstraint(condition=models.Q(state__in=DocumentState.values), name="document_state_known"),
            models.CheckConstraint(condition=models.Q(size_bytes__gt=0), name="document_not_empty"),
            models.CheckConstraint(
                condition=models.Q(state__in=["uploaded", "ready"], blob_key__gt="")
                | models.Q(state__in=["pending", "rejected", "expired"], blob_key=""),
                name="document_has_its_blob",
            ),
        ]
        indexes: ClassVar = [
            # SQLite chooses the index that has every column of the question, even those of the condition.
            models.Index(
                fields=["company", "created_at", "id", "state", "deleted_at"],
                condition=models.Q(deleted_at__isnull=True) & ~models.Q(state="expired"),
                name="document_listed",
            ),
            models.Index(
                fields=["company", "created_at", "id", "state", "deleted_at"],
                condition=models.Q(deleted_at__isnull=False) & ~models.Q(state="expired"),
                name="document_deleted",
            ),
            models.Index(fields=["account", "state", "deleted_at", "size_bytes"], name="document_quota"),
            models.Index(fields=["state", "changed_at"], name="document_leftover"),
        ]

    def __str__(self) -> str:
        return str(self.filename)


class Page(models.Model):
    """The text of a page, slide or sheet; formats without pages have one."""

    document = models.ForeignKey(Document, models.CASCADE, related_name="pages", db_index=False)
    number = models.PositiveIntegerField()
    text = Text()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["document", "number"], name="page_once")]

    def __str__(self) -> str:
        return f"page {self.number} of {self.document_id}"


class Pin(models.Model):
    """Protects a document from deletion: a queued or running report run uses it."""

    document = models.ForeignKey(Document, models.PROTECT, related_name="pins", db_index=False)
    holder = models.CharField(max_length=64)
    since = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["document", "holder"], name="pin_once")]

    def __str__(self) -> str:
        return f"{self.holder} needs {self.document_id}"


class BlobHold(models.Model):
    """Blocks the removal of blobs while it is valid: a backup is reading them."""

    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"until {self.until}"
