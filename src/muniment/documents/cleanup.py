"""
What keeps rows and blobs together: the sweep, and the examination that `muniment doctor --storage` shows.

A row comes before its blob and lets go of it before it is removed, so what a crash leaves is a blob that
no row names. A blob whose transfer is alive is left alone; a dead transfer loses its attempt before its
blob is removed, so that it cannot come back and record it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from django.db import transaction
from django.db.models import Case, Count, F, Q, Sum, Value, When

from muniment.documents.models import BlobHold, Document, State, TextState
from muniment.documents.operations import COMPLETED, remove_blob
from muniment.documents.records import RESTORE_DAYS, storage
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.jobs.models import State as JobState
from muniment.kernel.ids import now
from muniment.kernel.problems import Unavailable

LEFTOVER_HOURS = 24
NO_VERDICT = (
    f"The virus scanner gave no verdict. Complete the upload again within {LEFTOVER_HOURS} hours"
    " to have it scanned once more."
)
_UNSCANNED = "The virus scanner gave no verdict. Upload it again."
_BATCH = 200


@dataclass(slots=True)
class Swept:
    """How much a sweep removed."""

    expired: int = 0
    removed: int = 0
    orphans: int = 0
    unfinished: int = 0


@dataclass(slots=True)
class Examined:
    """What an examination found."""

    blobs: int = 0
    blob_bytes: int = 0
    orphans: list[str] = field(default_factory=list)
    """Blobs that no row names."""
    missing: list[str] = field(default_factory=list)
    """Documents whose blob is not there, or has another size."""


@contextmanager
def blobs_held(hours: int = 24) -> Iterator[None]:
    """
    Have no blob removed that a row named when the context began; what a killed process held is let go by itself.

    Raises:
        Unavailable: the context lasted longer than *hours*, so that blobs may be gone.
    """
    hold = BlobHold.objects.create(until=now() + timedelta(hours=hours))
    try:
        yield
        if hold.until <= now():
            raise Unavailable(f"It took longer than {hours} hours.", "Begin again, closer to the store of documents.")
    finally:
        hold.delete()


def sweep(*, at: datetime | None = None) -> Swept:
    """
    Remove what was abandoned 24 hours ago, what was deleted 30 days ago, and blobs that no row names.

    What has waited as long for a job that is gone is given another one.

    Args:
        at: the time to judge by; now when absent.

    Source: decisions, section 5, documents.
    """
    moment, swept = at or now(), Swept()
    dead = ~Q(receiving_until__gt=moment)
    swept.expired = Document.objects.filter(
        Q(receiving_until__isnull=True) | dead, state=State.PENDING, expires_at__lt=moment
    ).update(state=State.EXPIRED, attempt=F("attempt") + 1, token_hash="", changed_at=moment)
    leftover = moment - timedelta(hours=LEFTOVER_HOURS)
    _take_up(leftover, moment)
    for document in Document.objects.filter(
        state=State.UPLOADED, text_state=TextState.NONE, changed_at__lt=leftover
    ).iterator():
        key = document.blob_key
        # What has a reason was completed and never scanned: its owner is told. Whoever never asked is not.
        state, reason = (State.REJECTED, _UNSCANNED) if document.reason else (State.EXPIRED, "")
        let_go = Document.objects.filter(
            pk=document.pk, state=State.UPLOADED, text_state=TextState.NONE, changed_at__lt=leftover
        )
        if let_go.update(state=state, reason=reason, blob_key="", changed_at=moment):
            swept.expired += 1
            remove_blob(key)
    gone = Q(deleted_at__lt=moment - timedelta(days=RESTORE_DAYS))
    ended = Q(state__in=[State.EXPIRED, State.REJECTED], changed_at__lt=leftover)
    for pk in list(Document.objects.filter(gone | ended, pins__isnull=True).values_list("pk", flat=True)):
        swept.removed += _remove(pk, moment)
    for key in _orphans(moment, fence=True):
        remove_blob(key)
        swept.orphans += 1
    for key in set(storage().unfinished()):
        if _is_orphan(key, _rows([key]), moment) and _fence(key, moment):
            storage().remove_unfinished(key)
            swept.unfinished += 1
    return swept


def _take_up(leftover: datetime, moment: datetime) -> None:
    """Give what waits for a job that is gone another one, and open what a process of before gave up unscanned."""
    doing = Job.objects.filter(kind=COMPLETED, state__in=[JobState.QUEUED, JobState.RUNNING])
    busy = {payload["documentId"] for payload in doing.values_list("payload", flat=True)}
    for pk in Document.objects.filter(text_state=TextState.WAITING, changed_at__lt=leftover).values_list(
        "pk", flat=True
    ):
        if pk in busy:
            continue
        with transaction.atomic():
            waits = Document.objects.filter(pk=pk, text_state=TextState.WAITING, changed_at__lt=leftover)
            if waits.update(changed_at=moment):
                queue.enqueue(COMPLETED, {"documentId": pk})
    Document.objects.filter(state=State.UPLOADED, text_state=TextState.NOT_EXTRACTABLE).update(
        text_state=TextState.NONE, text_note="", reason=NO_VERDICT, changed_at=moment
    )


class Kept(NamedTuple):
    """How many documents are in one state, and their bytes together."""

    state: str
    documents: int
    size_bytes: int


def kept() -> list[Kept]:
    """Count documents by state, those apart that somebody has deleted and may still restore."""
    rows = (
        Document.objects.annotate(shown=Case(When(deleted_at__isnull=False, then=Value("deleted")), default=F("state")))
        .values_list("shown")
        .annotate(documents=Count("id"), size=Sum("size_bytes"))
        .order_by("shown")
    )
    return [Kept(*row) for row in rows]


def examine() -> Examined:
    """Compare rows and blobs, and change nothing."""
    found, moment = Examined(), now()
    sizes: dict[str, int] = {}
    for blob in storage().blobs("documents"):
        found.blobs += 1
        found.blob_bytes += blob.size_bytes
        sizes[blob.key] = blob.size_bytes
    rows = Document.objects.exclude(blob_key="").values_list("pk", "blob_key", "size_bytes")
    found.missing = [pk for pk, key, size in rows.iterator() if sizes.get(key) != size]
    found.orphans = list(_orphans(moment, fence=False))
    return found


def _remove(pk: str, moment: datetime) -> int:
    """Remove a document for good: the row, then its blob."""
    with transaction.atomic():
        document = Document.objects.select_for_update(of=("self",)).filter(pk=pk, pins__isnull=True).first()
        if document is None:
            return 0
        gone = document.deleted_at is not None and document.deleted_at < moment - timedelta(days=RESTORE_DAYS)
        if not gone and document.state not in {State.EXPIRED, State.REJECTED}:
            return 0  # restored in the meantime
        document.delete()
    if document.blob_key:
        remove_blob(document.blob_key)
    return 1


def _orphans(moment: datetime, *, fence: bool) -> Iterator[str]:
    """Give the blobs that no row names and no living transfer writes."""
    blobs = storage().blobs("documents")
    while batch := [blob.key for blob in islice(blobs, _BATCH)]:
        rows = _rows(batch)  # read after the blobs: a row always comes before its blob
        for key in batch:
            if _is_orphan(key, rows, moment) and (not fence or _fence(key, moment)):
                yield key


def _rows(keys: Iterable[str]) -> dict[str, Document]:
    return Document.objects.in_bulk({_parts(key)[0] for key in keys})


def _parts(key: str) -> tuple[str, int]:
    """Give the document and the attempt that a key names; what is not named so belongs to nobody."""
    _, _, rest = key.partition("/")
    document_id, _, attempt = rest.partition("/")
    return document_id, int(attempt) if attempt.isdigit() else -1


def _is_orphan(key: str, rows: dict[str, Document], moment: datetime) -> bool:
    document_id, attempt = _parts(key)
    row = rows.get(document_id)
    if row is None:
        return True
    if row.blob_key == key:
        return False
    receiving = row.state == State.PENDING and row.attempt == attempt
    return not (receiving and row.receiving_until is not None and row.receiving_until > moment)


def _fence(key: str, moment: datetime) -> bool:
    """Take the attempt from a transfer that seems dead. False when the blob has come to belong to its row."""
    document_id, attempt = _parts(key)
    with transaction.atomic():
        row = Document.objects.select_for_update().filter(pk=document_id).first()
        if row is None:
            return True
        if not _is_orphan(key, {document_id: row}, moment):
            return False
        if row.state == State.PENDING and row.attempt == attempt:
            row.attempt += 1
            row.save(update_fields=["attempt"])
    return True
