"""
Blob clean-up: keep rows and blobs consistent periodically, and check them for the scrub and `muniment doctor`.

A row is written before its blob and drops its reference before the blob is removed, so a crash can leave only
orphans: blobs without a row. The blob of a live upload is left alone; a dead upload is fenced off before its blob is
removed, so that it cannot resume and record it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

from django.db import transaction
from django.db.models import Case, Count, F, Q, Sum, Value, When

from muniment.documents.models import BlobHold, Document, DocumentState, TextState
from muniment.documents.records import RESTORE_DAYS, fault_of_file, has_stored, restorable_until, storage
from muniment.documents.uploads import COMPLETED, remove_blob
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.jobs.models import State as JobState
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Unavailable
from muniment.scrub.checks import RESTORE, Check, Damage, Slice

LEFTOVER_HOURS = 24
NO_VERDICT = Phrase(
    "The virus scan did not finish. Complete the upload again within {hours} hours to repeat the scan.",
    hours=LEFTOVER_HOURS,
)
_UNSCANNED = "The virus scan did not finish. Upload the file again."
_BATCH = 200
CHECKED: Final = "document files"
_RETURN: Final = f"copy the file {{key}} back from a backup ({RESTORE}), or ask its owner to upload it again"
_BYTES_AT_ONCE: Final = 64 << 20
"""A part of the check ends after so many bytes, however few files those are."""


@dataclass(slots=True)
class CleanupResult:
    """The number of items that a clean-up removed."""

    expired: int = 0
    removed: int = 0
    orphans: int = 0
    unfinished: int = 0


class StorageCheck(NamedTuple):
    """The number and size of all blobs, the keys of those without a row, and the documents that lack their blob."""

    blobs: int
    blob_bytes: int
    orphans: list[str]
    missing: list[str]


@contextmanager
def blobs_held(hours: int = 24) -> Iterator[None]:
    """
    Keep all blobs referenced at the start of the context. A killed process's hold expires by itself.

    Raises:
        Unavailable: the context lasted longer than *hours*, so blobs may have been removed.
    """
    hold = BlobHold.objects.create(until=now() + timedelta(hours=hours))
    try:
        yield
        if hold.until <= now():
            raise Unavailable(
                Phrase("This took longer than {hours} hours.", hours=hours),
                "Try again from a machine closer to the document storage.",
            )
    finally:
        hold.delete()


def sweep(*, at: datetime | None = None) -> CleanupResult:
    """
    Remove what was abandoned 24 hours ago, documents deleted 30 days ago, and orphaned blobs.

    Documents that waited as long for a lost job get a new one. Source: decisions, section 5, documents.
    """
    moment = at or now()
    leftover = moment - timedelta(hours=LEFTOVER_HOURS)
    result = CleanupResult()
    result.expired = _expire_links(moment)
    _requeue(leftover, moment)
    result.expired += _end_unaccepted(leftover, moment)
    restore_ended = Q(deleted_at__lt=moment - timedelta(days=RESTORE_DAYS))
    upload_ended = Q(state__in=[DocumentState.EXPIRED, DocumentState.REJECTED], changed_at__lt=leftover)
    removable = Document.objects.filter(restore_ended | upload_ended, pins__isnull=True)
    for pk in list(removable.values_list("pk", flat=True)):
        result.removed += _remove(pk, moment)
    if not has_stored():
        return result
    for key in _orphans(moment, fence=True):
        remove_blob(key)
        result.orphans += 1
    for key in set(storage().unfinished()):
        if _is_orphan(key, _rows([key]), moment) and _fence(key, moment):
            storage().remove_unfinished(key)
            result.unfinished += 1
    return result


def _expire_links(moment: datetime) -> int:
    """Expire links whose time is over, unless a file is on its way; a new attempt number fences off what comes late."""
    is_dead = Q(receiving_until__isnull=True) | ~Q(receiving_until__gt=moment)
    links = Document.objects.filter(is_dead, state=DocumentState.PENDING, expires_at__lt=moment)
    return links.update(state=DocumentState.EXPIRED, attempt=F("attempt") + 1, changed_at=moment)


def _end_unaccepted(leftover: datetime, moment: datetime) -> int:
    """End uploads that their owner did not complete, or that no scanner judged."""
    ended = 0
    unaccepted = Document.objects.filter(
        state=DocumentState.UPLOADED, text_state=TextState.NONE, changed_at__lt=leftover
    )
    for document in unaccepted.iterator():
        # With a reason the upload was completed but never scanned: tell its owner. Otherwise it was never completed.
        state = DocumentState.REJECTED if document.reason else DocumentState.EXPIRED
        reason = _UNSCANNED if document.reason else ""
        if unaccepted.filter(pk=document.pk).update(state=state, reason=reason, blob_key="", changed_at=moment):
            ended += 1
            remove_blob(document.blob_key)
    return ended


def _requeue(leftover: datetime, moment: datetime) -> None:
    """Requeue documents whose job is lost."""
    doing = Job.objects.filter(kind=COMPLETED, state__in=[JobState.QUEUED, JobState.RUNNING])
    busy = {payload["documentId"] for payload in doing.values_list("payload", flat=True)}
    waiting = Document.objects.filter(text_state=TextState.WAITING, changed_at__lt=leftover)
    for pk in waiting.values_list("pk", flat=True):
        if pk in busy:
            continue
        with transaction.atomic():
            if waiting.filter(pk=pk).update(changed_at=moment):
                queue.enqueue(COMPLETED, {"documentId": pk})


class StateTotals(NamedTuple):
    """The number and total size of the documents in one state."""

    state: str
    documents: int
    size_bytes: int


def totals_by_state() -> list[StateTotals]:
    """Count documents by state; deleted documents that can be restored count separately."""
    shown = Case(When(deleted_at__isnull=False, then=Value("deleted")), default=F("state"))
    by_state = Document.objects.annotate(shown=shown).values_list("shown")
    rows = by_state.annotate(documents=Count("id"), size=Sum("size_bytes")).order_by("shown")
    return [StateTotals(*row) for row in rows]


def examine() -> StorageCheck:
    """Compare rows and blobs without changing anything."""
    moment = now()
    sizes = {blob.key: blob.size_bytes for blob in storage().blobs("documents")}
    rows = Document.objects.exclude(blob_key="").values_list("pk", "blob_key", "size_bytes")
    missing = [pk for pk, key, size in rows.iterator() if sizes.get(key) != size]
    return StorageCheck(len(sizes), sum(sizes.values()), orphans(moment), missing)


def _remove(pk: str, moment: datetime) -> int:
    """Permanently remove a document: the row, then its blob."""
    with transaction.atomic():
        document = Document.objects.select_for_update(of=("self",)).filter(pk=pk, pins__isnull=True).first()
        if document is None:
            return 0
        restore_ended = document.deleted_at is not None and restorable_until(document) < moment
        if not restore_ended and document.state not in {DocumentState.EXPIRED, DocumentState.REJECTED}:
            return 0  # restored in the meantime
        document.delete()
    if document.blob_key:
        remove_blob(document.blob_key)
    return 1


def orphans(moment: datetime) -> list[str]:
    """Return the keys of blobs that belong to no document and to no live upload."""
    return list(_orphans(moment, fence=False))


def _orphans(moment: datetime, *, fence: bool) -> Iterator[str]:
    """Return the blobs that have no row and that no live upload writes."""
    blobs = storage().blobs("documents")
    while True:
        keys = [blob.key for blob in islice(blobs, _BATCH)]
        if not keys:
            return
        rows = _rows(keys)  # read after the blobs: a row always comes before its blob
        for key in keys:
            if _is_orphan(key, rows, moment) and (not fence or _fence(key, moment)):
                yield key


def _rows(keys: Iterable[str]) -> dict[str, Document]:
    return Document.objects.in_bulk({_upload_of(key)[0] for key in keys})


def _upload_of(key: str) -> tuple[str, int]:
    """Return the document and the attempt in a key; a foreign key belongs to no document."""
    _, _, rest = key.partition("/")
    document_id, _, attempt = rest.partition("/")
    number = int(attempt) if attempt.isdigit() else -1
    return document_id, number


def _is_orphan(key: str, rows: dict[str, Document], moment: datetime) -> bool:
    document_id, attempt = _upload_of(key)
    row = rows.get(document_id)
    if row is None:
        return True
    if row.blob_key == key:
        return False
    is_current = row.state == DocumentState.PENDING and row.attempt == attempt
    is_alive = row.receiving_until is not None and row.receiving_until > moment
    return not (is_current and is_alive)


def _fence(key: str, moment: datetime) -> bool:
    """Fence off an upload that seems dead. Return False if its row has the blob now."""
    document_id, attempt = _upload_of(key)
    with transaction.atomic():
        row = Document.objects.select_for_update().filter(pk=document_id).first()
        if row is None:
            return True
        if not _is_orphan(key, {document_id: row}, moment):
            return False
        if row.state == DocumentState.PENDING and row.attempt == attempt:
            row.attempt += 1
            row.save(update_fields=["attempt"])
    return True


def _count_blobs() -> int:
    return Document.objects.exclude(blob_key="").count() + 1


def _look_at_blobs(after: str, limit: int, mend: bool) -> Slice:  # noqa: ARG001, FBT001 - the signature of a check
    stored = Document.objects.exclude(blob_key="").filter(pk__gt=after).order_by("pk")
    damages = []
    examined = 0
    read_bytes = 0
    last = ""
    for document in stored[:limit]:
        fault = _fault(document)
        if fault:
            remedy = _RETURN.format(key=document.blob_key)
            damages.append(Damage(check=CHECKED, subject=f"document {document.pk}", says=fault, remedy=remedy))
        examined += 1
        read_bytes += document.size_bytes
        last = document.pk
        if read_bytes >= _BYTES_AT_ONCE:
            break
    if last:
        return Slice(examined, damages, last)
    return Slice(1, _orphan_damages(), None)


def _fault(document: Document) -> str:
    """Return what is wrong with a document's file; empty if nothing is, or the document has gone meanwhile."""
    fault = fault_of_file(document.blob_key, document.size_bytes, document.sha256)
    if fault and not Document.objects.filter(pk=document.pk, blob_key=document.blob_key).exists():
        return ""
    return fault


def _orphan_damages() -> list[Damage]:
    if not has_stored():
        return []
    says, remedy = "belongs to no document", "the next cleanup deletes it"
    return [Damage(check=CHECKED, subject=key, says=says, remedy=remedy, is_minor=True) for key in orphans(now())]


BLOBS: Final = Check(name=CHECKED, fine="each has the digest of its upload", count=_count_blobs, look=_look_at_blobs)
