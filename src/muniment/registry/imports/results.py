"""Results of imports and undos, for the pages of operators."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from muniment.accounts.operations import require_operator
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.kernel.actor import Actor
from muniment.kernel.ids import new_id
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import NotFound
from muniment.registry.imports.reports import report_of_run
from muniment.registry.imports.undoing import begin_undo, list_imports
from muniment.registry.imports.uploads import KIND, Progress, progress_of
from muniment.registry.models import ImportRun, ImportUpload


@dataclass(frozen=True, slots=True)
class ImportResult:
    """
    An import or an undo, with its report.

    Args:
        undone_by: the keys of the undos that are in effect.
        upload: the key of the upload that is being imported; empty once it is.
        has_report: its report row by row is kept.
    """

    key: int
    files: str
    started_at: datetime
    result: str
    report: JSONObject
    undoes: int | None
    undone_by: str
    is_running: bool
    progress: Progress
    upload: str
    rows: int
    has_report: bool


def get_result(actor: Actor, key: int) -> ImportResult:
    """
    Return what the import *key* did.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: there is no such import.
    """
    require_operator(actor)
    run = ImportRun.objects.filter(pk=key).first()
    if run is None:
        raise NotFound(Phrase("Import {key} doesn't exist.", key=key), "The imports are at /operate/import.")
    is_running = bool(run.job) and Job.objects.filter(pk=run.job, state__in=queue.UNFINISHED).exists()
    progress = progress_of(run.job) if run.job and (is_running or not run.result) else Progress()
    upload = ImportUpload.objects.filter(run=run, state=ImportUpload.Stage.IMPORTING).values_list("pk", flat=True)
    undone_by = ""
    for listed in list_imports():
        if listed.key == key:
            undone_by = listed.undone_by
    return ImportResult(
        key=run.pk,
        files=", ".join(run.files),
        started_at=run.started_at,
        result=run.result,
        report=run.report or {},
        undoes=run.undoes_id,
        undone_by=undone_by,
        is_running=is_running,
        progress=progress,
        upload=upload.first() or "",
        rows=run.entries.count(),
        has_report=report_of_run(run.pk) is not None,
    )


def request_undo(actor: Actor, key: int) -> int:
    """
    Let a job undo the import *key*, and return the key of the undo.

    Raises:
        NotFound: there is no such import.
        BadRequest: it is undone.
    """
    with transaction.atomic():
        undo = begin_undo(actor, key)
        _request(undo)
    return undo.pk


def try_undo_again(actor: Actor, key: int) -> None:
    """Let a new job continue an undo whose job failed."""
    require_operator(actor)
    undo = ImportRun.objects.filter(pk=key, undoes__isnull=False, result="").exclude(job="").first()
    if undo is not None and progress_of(undo.job).error:
        _request(undo)


def _request(undo: ImportRun) -> None:
    undo.job = new_id()
    undo.save(update_fields=["job"])
    queue.enqueue(KIND, {"undo": undo.pk}, job_id=undo.job, group="imports")
