"""The jobs of documents: virus scan and text extraction after an upload, and the periodic clean-up."""

from dataclasses import asdict
from datetime import timedelta
from typing import Final

from django.db import transaction

from muniment.documents import cleanup, downloading, records
from muniment.documents.content import extraction, inspection, scanning
from muniment.documents.models import Document, DocumentState, Page, TextState
from muniment.documents.records import storage
from muniment.documents.uploads import COMPLETED, reject
from muniment.jobs import handlers
from muniment.jobs.handlers import Postponed
from muniment.jobs.models import Job, State
from muniment.jobs.queue import JobRun, clock
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.texts import text_fault

PAUSE_S: Final = 3.0
"""Between two attempts while the scanner or the store does not answer."""
LONGEST_OUTAGE: Final = timedelta(hours=20)
"""From then on an attempt counts; the clean-up rejects a file without a verdict after a day."""


def read_completed(run: JobRun) -> None:
    """
    Scan an uploaded file, then extract its text page by page.

    Raises:
        Postponed: the scanner or the store does not answer.
    """
    document = Document.objects.filter(
        pk=run.payload["documentId"],
        state__in=[DocumentState.UPLOADED, DocumentState.READY],
        text_state=TextState.WAITING,
    ).first()
    if document is None:
        return  # removed, or read by an earlier attempt
    try:
        _scan_and_read(run, document)
    except Exception as error:
        is_away = isinstance(error, scanning.ScannerAway) or storage().is_away(error)
        if is_away and document.created_at > now() - LONGEST_OUTAGE:
            _postpone_others()
            raise Postponed(str(error)[:200], pause_s=PAUSE_S, is_excused=True) from error
        raise


def _postpone_others() -> None:
    """Let the other files wait too, so that an outage costs one attempt at a time however many there are."""
    again = clock() + timedelta(seconds=PAUSE_S * 1.2)
    Job.objects.filter(kind=COMPLETED, state=State.QUEUED, run_at__lt=again).update(run_at=again)


def _scan_and_read(run: JobRun, document: Document) -> None:
    if document.state == DocumentState.UPLOADED:
        virus = scanning.scan(storage().stream(document.blob_key)) if scanning.is_on() else None
        if virus is not None:
            reject(document, Phrase("The virus scanner found {found}.", found=virus))
            return
        uploaded = Document.objects.filter(pk=document.pk, state=DocumentState.UPLOADED)
        with transaction.atomic():
            if uploaded.update(state=DocumentState.READY, changed_at=now()):
                records.tell_ready(document)
    run.check()
    pages, note = _text(document)
    with transaction.atomic():
        run.finish({"pages": len(pages)})
        state = TextState.NOT_EXTRACTABLE if note else TextState.EXTRACTED
        if not Document.objects.filter(pk=document.pk).update(text_state=state, text_note=note):
            return  # deleted meanwhile
        Page.objects.filter(document=document).delete()
        Page.objects.bulk_create(
            [Page(document=document, number=number, text=text) for number, text in pages], batch_size=200
        )


def _text(document: Document) -> tuple[list[tuple[int, str]], str]:
    """Return the pages, or the reason why there are none."""
    file_type = inspection.TYPES[document.content_type]
    if file_type.family == "image":
        return [], "It is an image."
    family = "text" if file_type.family == "text" else file_type.extensions[0]
    try:
        with storage().local(document.blob_key) as path:
            pages = extraction.extract(path, family)
    except extraction.NotExtractable as reason:
        text = str(reason)
        return [], text[:1].upper() + text[1:] + "."
    return [(number, _storable(text)) for number, text in pages], ""


def _storable(text: str) -> str:
    """Return *text* without the characters that no text of the registry may hold."""
    if not text_fault(text):
        return text
    return "".join(character for character in text if not text_fault(character))


def give_up(job_id: str, payload: JSONObject, ending: handlers.Ending, error: str) -> None:  # noqa: ARG001 - the queue's signature
    """
    Record that a file could not be read.

    A file that was never scanned stays unavailable; its upload can be completed again until the clean-up ends it.
    """
    waiting = Document.objects.filter(pk=payload["documentId"], text_state=TextState.WAITING)
    waiting.filter(state=DocumentState.UPLOADED).update(
        text_state=TextState.NONE, reason=cleanup.NO_VERDICT, changed_at=now()
    )
    waiting.exclude(state=DocumentState.UPLOADED).update(
        text_state=TextState.NOT_EXTRACTABLE, text_note="Text extraction failed. The reason is in the operator's log."
    )


handlers.register(
    handlers.Handler(kind=COMPLETED, work=read_completed, lease_s=90, max_attempts=8, back_off_s=5, ended=give_up)
)
handlers.register(
    handlers.Handler(kind="documents.grown_old", work=lambda _: asdict(cleanup.sweep()), lease_s=120), every_s=600
)
handlers.register(
    handlers.Handler(kind="documents.archives_ended", work=lambda _: downloading.remove_archives()), every_s=600
)
