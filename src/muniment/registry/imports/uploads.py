"""
Tables that operators import in the browser: from an upload or an address, over a mapping and a preview, to an import.

Each step that takes long is a job (:mod:`muniment.registry.imports.stages`). The content is kept until it is imported,
or for a week.
"""

import zlib
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

import msgspec
from django.db import transaction

from muniment import config
from muniment.accounts.operations import require_operator
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.jobs.models import State as JobState
from muniment.kernel.actor import Actor
from muniment.kernel.http.representations import digest
from muniment.kernel.ids import new_id, now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Joined, Phrase
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooMany
from muniment.outbound.following import plain_address
from muniment.registry.imports.sources import SourceOptions, refuse_drafts, source_named
from muniment.registry.models import ImportFile, ImportRun, ImportUpload
from muniment.registry.tables.fields import SKIP, Column
from muniment.registry.tables.mapping import FileMapping, TableMapping, read_mapping, write_mapping

KIND: Final = "registry.import_requested"
Stage: Final = ImportUpload.Stage
FILE: Final = "file"
LINES: Final = "lines"
REPORT: Final = "report"
OPTIONS: Final = ("draft", "overwrite")
UNLIST: Final = "unlist"
"""The option that unlists what the preview showed as gone."""
KEPT_FOR: Final = timedelta(days=7)
MAX_OPEN: Final = 20
REMEMBERED: Final = 200
"""Finished imports whose mapping is kept for the next file of the same shape."""
MAX_NAME_CHARACTERS: Final = 200
_WORKING: Final = {Stage.READING, Stage.CHECKING, Stage.IMPORTING}


class Upload(NamedTuple):
    """An upload in the list of imports that are not finished."""

    key: str
    name: str
    state: str
    started_at: datetime


class Progress(NamedTuple):
    """The progress of a job. ``error`` is set when it failed; ``is_known`` is false before its first report."""

    done: int = 0
    total: int = 0
    error: str = ""

    @property
    def is_known(self) -> bool:
        return self.total > 0


def begin_import(
    actor: Actor, *, name: str = "", content: bytes = b"", address: str = "", mapping: str = ""
) -> ImportUpload:
    """
    Store a file, or the address of one, and let a job read it.

    Args:
        mapping: the TOML text of a mapping to use; by default one is proposed.

    Raises:
        Forbidden: the actor is not an operator.
        BadRequest: there is no file, it is too large, or the address or the mapping is invalid.
        TooMany: too many imports are open.
    """
    require_operator(actor)
    if mapping:
        read_mapping(mapping)
    max_mb = config.current().import_max_mb
    if len(content) > max_mb << 20:
        raise BadRequest(
            Phrase("The file is larger than {megabytes} MB.", megabytes=max_mb),
            "Split it, or use the command muniment import.",
        )
    if address:
        try:
            address = plain_address(address)
        except ValueError as fault:
            raise BadRequest(
                Phrase("The web address can't be used: {fault}.", fault=Phrase.of(fault.args[0])),
                "Use a public https:// address.",
            ) from None
    elif not content:
        raise BadRequest("No file was uploaded, or it is empty.", "Choose a file, or enter a web address.")
    shown = PurePosixPath(name.replace("\\", "/")).name[-MAX_NAME_CHARACTERS:] or address[:MAX_NAME_CHARACTERS]
    with transaction.atomic():
        if ImportUpload.objects.exclude(state=Stage.DONE).count() >= MAX_OPEN:
            message = Phrase("{limit} imports are not finished.", limit=MAX_OPEN)
            raise TooMany(message, "Import or discard one of them first.", retry_after_s=60)
        made = ImportUpload.objects.create(
            account_id=actor.account_id, name=shown or "table", address=address, mapping=mapping
        )
        if content:
            keep_content(made, FILE, content)
        _request(made, Stage.READING)
    return made


def get_import(actor: Actor, key: str) -> ImportUpload:
    """
    Return an import of any operator.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: it is unknown, or was removed.
    """
    require_operator(actor)
    upload = ImportUpload.objects.filter(pk=key).first()
    if upload is None:
        raise NotFound("This import doesn't exist.", "Imports that are not finished are removed after 7 days.")
    return upload


def list_open(actor: Actor) -> list[Upload]:
    """Return the imports that are not finished, latest first."""
    require_operator(actor)
    unfinished = ImportUpload.objects.exclude(state=Stage.DONE).order_by("-created_at")
    return [Upload(*row) for row in unfinished.values_list("pk", "name", "state", "created_at")]


def mapping_of(upload: ImportUpload) -> FileMapping:
    """Return the mapping of an import, with its tables and columns in the order of the file."""
    mapping = read_mapping(upload.mapping)
    tables = {table.name: table for table in mapping.table}
    mapping.table = []
    for table_of_file in upload.facts.get("tables") or ():
        name = table_of_file["name"]
        table = tables.get(name) or TableMapping(name, SKIP, 1)
        columns = {column.heading: column for column in table.column}
        table.column = [columns.get(heading) or Column(heading) for heading in table_of_file["headings"]]
        mapping.table.append(table)
    return mapping


def save_mapping(actor: Actor, key: str, mapping: FileMapping | str) -> ImportUpload:
    """
    Store a mapping; a text must be TOML, and replaces it in a job that compares it with the file.

    Raises:
        BadRequest: it is invalid.
        Conflict: the import is being read, checked or done.
    """
    with transaction.atomic():
        upload = _held(actor, key, Stage.MAPPING, Stage.PREVIEW)
        if isinstance(mapping, str):
            read_mapping(mapping)
            upload.mapping = mapping
            _request(upload, Stage.READING)
        else:
            text = write_mapping(mapping)
            read_mapping(text)
            _set(upload, mapping=text, state=Stage.MAPPING, error="")
    return upload


def read_again(actor: Actor, key: str, *, encoding: str, headers: dict[str, int]) -> ImportUpload:
    """
    Read the file with another encoding or other rows of headings; columns with the same heading stay mapped.

    Raises:
        Conflict: the import is being read, checked or done.
    """
    with transaction.atomic():
        upload = _held(actor, key, Stage.MAPPING, Stage.PREVIEW)
        _request(upload, Stage.READING, encoding=encoding, headers=headers)
    return upload


def request_preview(actor: Actor, key: str) -> ImportUpload:
    """
    Let a job find out what the import would do.

    Raises:
        BadRequest: the mapping needs a choice.
        Conflict: the import is being read, checked or done.
    """
    with transaction.atomic():
        upload = _held(actor, key, Stage.MAPPING, Stage.PREVIEW)
        questions = read_mapping(upload.mapping).questions()
        if questions:
            raise BadRequest(
                "The mapping needs choices.", Phrase("Choose {questions}.", questions=Joined("; ", questions[:3]))
            )
        _request(upload, Stage.CHECKING)
    return upload


def source_options(upload: ImportUpload, *, unlists: bool = False) -> SourceOptions:
    """Return how an import treats its source: by default, the one that its name or address says."""
    source = upload.facts.get("source")
    if source is None:
        source = source_named(upload.address or upload.name)
    # A person has seen the rows that are gone: no more than these are unlisted.
    limit = upload.report.get("gone_total", 0) if unlists else None
    return SourceOptions(source, is_complete=bool(upload.facts.get("is_complete")), unlists=unlists, limit=limit)


def compare_with(actor: Actor, key: str, source: str, *, is_complete: bool) -> ImportUpload:
    """
    Let a job make the preview again, compared with the last import of another source.

    Args:
        source: as :func:`muniment.registry.imports.sources.list_sources` has it; empty: the file's own.
        is_complete: the file is the full list.

    Raises:
        Conflict: there is no preview.
    """
    with transaction.atomic():
        upload = _held(actor, key, Stage.PREVIEW)
        facts = {**upload.facts, "is_complete": is_complete}
        facts.pop("source", None)
        if source:
            facts["source"] = source
        upload.facts = facts
        upload.save(update_fields=["facts"])
        _request(upload, Stage.CHECKING)
    return upload


def request_import(actor: Actor, key: str, options: list[str]) -> ImportUpload:
    """
    Let a job import what the preview showed.

    Args:
        options: some of ``draft``, ``overwrite`` and ``unlist``.

    Raises:
        Conflict: there is no preview, or the import has begun.
        BadRequest: drafts should unlist published rows.
    """
    with transaction.atomic():
        upload = _held(actor, key, Stage.PREVIEW)
        upload.options = [each for each in (*OPTIONS, UNLIST) if each in options]
        if UNLIST in upload.options:
            refuse_drafts(is_draft="draft" in upload.options)
        upload.run = ImportRun.objects.create(
            account_id=actor.account_id, via=actor.via, files=[upload.name], options=upload.options
        )
        _request(upload, Stage.IMPORTING)
        ImportRun.objects.filter(pk=upload.run_id or 0).update(job=upload.job)
    return upload


def discard(actor: Actor, key: str) -> None:
    """Remove an import that has not begun, with its file."""
    with transaction.atomic():
        upload = get_import(actor, key)
        if upload.state in {Stage.IMPORTING, Stage.DONE}:
            raise Conflict("The import has begun.", "Undo it instead.")
        upload.delete()


def try_again(actor: Actor, key: str) -> ImportUpload:
    """Let a new job do the step whose job failed."""
    with transaction.atomic():
        upload = _locked(actor, key)
        if upload.state in _WORKING and progress_of(upload.job).error:
            _request(upload, upload.state)
            ImportRun.objects.filter(pk=upload.run_id or 0).update(job=upload.job)
    return upload


def progress_of(job: str) -> Progress:
    """Return the progress of a job; a job that is not kept any more has failed."""
    row = Job.objects.filter(pk=job).values_list("state", "progress", "error").first()
    if row is None:
        return Progress(error="The job is gone.")
    state, progress, error = row
    fault = ""
    if state in {JobState.FAILED, JobState.CANCELED}:  # the error of another one is that of an attempt to be repeated
        fault = error or state
    return Progress(progress.get("done") or 0, progress.get("total") or 0, fault)


def keep_content(upload: ImportUpload, kind: str, content: bytes, *, is_compressed: bool = False) -> None:
    """Store the content of an upload, or what was made of it."""
    if not is_compressed:
        content = zlib.compress(content, 6)
    ImportFile.objects.update_or_create(upload=upload, kind=kind, defaults={"content": content})


def content_of(upload: ImportUpload, kind: str) -> bytes | None:
    content = upload.files.filter(kind=kind).values_list("content", flat=True).first()
    return None if content is None else zlib.decompress(bytes(content))


def remove_old() -> int:
    """Remove imports that were not touched for a week; of finished ones, the records and the latest mappings stay."""
    remembered = ImportUpload.objects.filter(state=Stage.DONE).order_by("-pk").values_list("pk", flat=True)
    old = ImportUpload.objects.filter(updated_at__lt=now() - KEPT_FOR)
    removed, _ = old.exclude(pk__in=list(remembered[:REMEMBERED])).delete()
    return removed


def shape_of(mapping: FileMapping) -> str:
    """Return a mark of the headings of all tables, by which files of the same shape are recognized."""
    headings = []
    for table in mapping.table:
        headings.append([column.heading for column in table.column if column.heading])
    return digest(msgspec.json.encode(headings))[:32]


def remembered(mapping: FileMapping, told: Callable[[str], object] = lambda _: None) -> FileMapping | None:
    """
    Return the mapping that the last import of a file with the same headings used, for the tables of *mapping*.

    Its columns are in the order of the file: a written mapping has those first that are left out.

    Args:
        told: is called with the reason if there is one that is not valid any more.
    """
    shape = shape_of(mapping)
    done = ImportUpload.objects.filter(state=Stage.DONE).order_by("-pk")[:REMEMBERED]
    text = ""
    for upload in done:
        if upload.facts.get("shape") == shape:
            text = upload.mapping
            break
    if not text:
        return None
    try:
        former = read_mapping(text)
    except BadRequest as fault:  # it holds a declared field that was removed since
        told(str(fault.message))
        return None
    # The same headings can stand under another name, in another row and in another encoding.
    for table, table_of_file in zip(former.table, mapping.table, strict=True):
        table.name = table_of_file.name
        table.header = table_of_file.header
        columns = {column.heading: column for column in table.column}
        table.column = [columns.get(column.heading, column) for column in table_of_file.column]
    former.encoding = mapping.encoding
    former.delimiter = mapping.delimiter
    return former


def _held(actor: Actor, key: str, *states: str) -> ImportUpload:
    """Return an import in one of *states*, locked."""
    upload = _locked(actor, key)
    if upload.state not in states:
        raise Conflict("This import is at another step now.", "Reload the page.")
    return upload


def _locked(actor: Actor, key: str) -> ImportUpload:
    get_import(actor, key)
    return ImportUpload.objects.select_for_update().get(pk=key)


def _request(upload: ImportUpload, state: str, **more: Any) -> None:
    """Let a new job work on the step *state*; it supersedes any former one."""
    upload.job = new_id()
    _set(upload, state=state, job=upload.job, error="", mapping=upload.mapping, options=upload.options, run=upload.run)
    payload: JSONObject = {"upload": upload.pk, **more}
    queue.enqueue(KIND, payload, job_id=upload.job, group="imports")


def _set(upload: ImportUpload, **values: Any) -> None:
    values["updated_at"] = now()
    for name, value in values.items():
        setattr(upload, name, value)
    upload.save(update_fields=[*values])
