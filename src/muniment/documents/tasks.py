"""The jobs of documents: scanning and text extraction once a file is accepted, and the sweep."""

from typing import Any

from django.db import transaction

from muniment.documents import cleanup
from muniment.documents.content import extraction, inspection, scanning
from muniment.documents.models import Document, Page, State, TextState
from muniment.documents.operations import COMPLETED, reject
from muniment.documents.records import storage
from muniment.jobs import handlers
from muniment.jobs.queue import JobRun
from muniment.kernel.ids import now
from muniment.kernel.texts import text_fault


def read_completed(run: JobRun) -> None:
    """Scan an accepted file, then take its text out, page by page."""
    document = Document.objects.filter(
        pk=run.payload["documentId"], state__in=[State.UPLOADED, State.READY], text_state=TextState.WAITING
    ).first()
    if document is None:
        return  # removed, or read by an earlier attempt
    if document.state == State.UPLOADED:
        found = scanning.scan(storage().stream(document.blob_key)) if scanning.is_on() else None
        if found is not None:
            reject(document, f"The virus scanner found {found} in it.")
            return
        Document.objects.filter(pk=document.pk, state=State.UPLOADED).update(state=State.READY, changed_at=now())
    run.check()
    pages, note = _text(document)
    with transaction.atomic():
        run.finish({"pages": len(pages)})
        if not Document.objects.filter(pk=document.pk).update(
            text_state=TextState.NOT_EXTRACTABLE if note else TextState.EXTRACTED, text_note=note
        ):
            return
        Page.objects.filter(document=document).delete()
        Page.objects.bulk_create(
            [Page(document=document, number=number, text=text) for number, text in pages], batch_size=200
        )


def _text(document: Document) -> tuple[list[tuple[int, str]], str]:
    """Give the pages, or why there are none."""
    found = inspection.TYPES[document.content_type]
    if found.family == "image":
        return [], "It is a picture."
    family = "text" if found.family == "text" else found.extensions[0]
    try:
        with storage().local(document.blob_key) as path:
            pages = extraction.extract(path, family)
    except extraction.NotExtractable as reason:
        text = str(reason)
        return [], text[:1].upper() + text[1:] + "."
    return [
        (number, "".join(c for c in text if not text_fault(c)) if text_fault(text) else text) for number, text in pages
    ], ""


def give_up(job_id: str, payload: dict[str, Any], ending: handlers.Ending, error: str) -> None:  # noqa: ARG001 - the queue's form
    """
    Say of a file that could not be read that it could not.

    One that was never scanned stays away from everyone, open to be completed again; the sweep ends it otherwise.
    """
    waiting = Document.objects.filter(pk=payload["documentId"], text_state=TextState.WAITING)
    waiting.filter(state=State.UPLOADED).update(text_state=TextState.NONE, reason=cleanup.NO_VERDICT, changed_at=now())
    waiting.exclude(state=State.UPLOADED).update(
        text_state=TextState.NOT_EXTRACTABLE, text_note="Reading it failed. An operator finds the reason in the log."
    )


def sweep(_: JobRun) -> dict[str, int]:
    """Remove what is left over."""
    swept = cleanup.sweep()
    return {
        "expired": swept.expired,
        "removed": swept.removed,
        "orphans": swept.orphans,
        "unfinished": swept.unfinished,
    }


handlers.register(
    handlers.Handler(kind=COMPLETED, work=read_completed, lease_s=90, max_attempts=8, back_off_s=5, ended=give_up)
)
handlers.register(handlers.Handler(kind="documents.grown_old", work=sweep, lease_s=120), every_s=600)
