"""The job of an import in the browser: read the file, check what it would do, import it, or undo an import."""

import dataclasses
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from muniment import config
from muniment.accounts.models import Account
from muniment.jobs.handlers import Abandoned, Handler, register
from muniment.jobs.queue import JobRun
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Joined, plain
from muniment.kernel.phrases.storing import packed, unpacked
from muniment.kernel.problems import Problem
from muniment.registry.exchange.batch import CHANGED
from muniment.registry.exchange.importer import ImportOptions, Summary
from muniment.registry.imports.reports import change_of, gone_rows, remove_old_reports, written_report
from muniment.registry.imports.samples import SHOWN, sample_bundles
from muniment.registry.imports.sources import memory_of
from muniment.registry.imports.undoing import finish_undo
from muniment.registry.imports.uploads import (
    FILE,
    KIND,
    LINES,
    OPTIONS,
    REPORT,
    UNLIST,
    Stage,
    content_of,
    keep_content,
    mapping_of,
    remembered,
    remove_old,
    shape_of,
    source_options,
)
from muniment.registry.models import HistoryEntry, ImportRun, ImportUpload
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE
from muniment.registry.tables.fields import PEOPLE_FIELD, SKIP, Column, fields_of
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.headings import headings_of
from muniment.registry.tables.keeping import declare_kept
from muniment.registry.tables.mapping import FileMapping, TableMapping, read_mapping, write_mapping
from muniment.registry.tables.operations import Prepared, convert, import_records, prepare_file
from muniment.registry.tables.proposing import JUDGED, decide_options, propose, propose_columns
from muniment.registry.tables.reading import TableFile, open_file
from muniment.registry.tables.records import Loss, Records, grouped, table_of
from muniment.registry.tables.values import values_in

LANE: Final = "imports"
SHOWN_COLUMNS: Final = 300
"""Columns of a file with samples; those beyond keep what is proposed."""
SHOWN_GROUPS: Final = 200
SHOWN_CHANGES: Final = 50
SHOWN_GONE: Final = 100
SAMPLES: Final = 3
SAMPLE_CHARACTERS: Final = 80
SAMPLED: Final = 100
_READ_ROWS: Final = 5_000
_DECIDED: Final = frozenset({"order", "decimal", "currency", "unit", "separator", "end"})
"""The options that depend on a column's values."""
REPORT_S: Final = 0.5
"""Seconds between two reports of progress."""


def work(job: JobRun) -> JSONObject:
    """Do the step that an upload waits for, or an undo."""
    key = job.payload.get("undo")
    if key:
        run = ImportRun.objects.get(pk=key)
        finish_undo(_actor(run.account_id), run)
        return {}
    upload = ImportUpload.objects.filter(pk=job.payload["upload"], job=job.id).first()
    if upload is None:
        return {}  # it was discarded, or another job has this step
    steps = {Stage.READING: _read, Stage.CHECKING: _check, Stage.IMPORTING: _import}
    step = steps.get(Stage(upload.state))
    if step is not None:
        try:
            values = step(job, upload, _actor(upload.account_id))
        except Problem as refusal:
            values = {"error": Joined(" ", (refusal.message, refusal.hint)), "state": _before(upload)}
            if upload.state == Stage.IMPORTING and upload.run is not None:
                upload.run.delete()
        ImportUpload.objects.filter(pk=upload.pk, job=job.id).update(**values, updated_at=now())
    return {}


def _before(upload: ImportUpload) -> str:
    """Return the step to which a refused one returns; a file without tables stays unread."""
    if upload.state == Stage.IMPORTING:
        return Stage.PREVIEW
    return Stage.MAPPING if upload.facts else Stage.READING


def _actor(account: int | None) -> Actor:
    operator = Account.objects.filter(pk=account or 0, is_active=True, role=Account.Role.OPERATOR).first()
    if operator is None:
        message = "The account that began this is no operator any more."
        raise Abandoned(message)
    return operator.actor("web")


def _file(upload: ImportUpload) -> TableFile:
    content = content_of(upload, FILE)
    if content is None:
        fetched = open_file(upload.address, config.current().import_max_mb << 20)
        keep_content(upload, FILE, fetched.content)
        content = fetched.content
        ImportUpload.objects.filter(pk=upload.pk).update(name=fetched.name[:200])
        upload.name = fetched.name[:200]
    return TableFile(upload.name, content)


def _read(job: JobRun, upload: ImportUpload, _actor: Actor) -> JSONObject:
    """Read the file, and propose a mapping or complete the given one."""
    is_again = "headers" in job.payload
    file = _file(upload)
    former = read_mapping(upload.mapping) if upload.mapping else FileMapping()
    if is_again:
        encoding = job.payload["encoding"]
        prepared = prepare_file(file, write_mapping(FileMapping(encoding=encoding)))
        mapping = propose(prepared.sheets, file.name, job.payload["headers"])
        mapping.encoding = encoding or mapping.encoding
        _keep_choices(mapping, former)
    else:
        prepared = prepare_file(file, upload.mapping)
        mapping = prepared.mapping
    _complete(mapping, prepared.sheets)
    former_mapping = remembered(mapping) if prepared.is_proposed and not is_again else None
    mapping = former_mapping or mapping
    facts = _facts(prepared.sheets, mapping) | {"is_remembered": former_mapping is not None}
    return {"mapping": write_mapping(mapping), "facts": facts, "state": Stage.MAPPING, "report": {}}


def _keep_choices(mapping: FileMapping, former: FileMapping) -> None:
    """Use what was chosen before for columns with the same heading."""
    mapping.same_name_is_same_person = former.same_name_is_same_person
    # Of former tables with one name, the first counts.
    former_tables = {table.name: table for table in reversed(former.table)}
    for table in mapping.table:
        former_table = former_tables.get(table.name)
        if former_table is not None:
            columns = {column.heading: column for column in former_table.column}
            table.column = [columns.get(column.heading, column) for column in table.column]


def _complete(mapping: FileMapping, sheets: list[Sheet]) -> None:
    """Let *mapping* have a table for each sheet and a column for each heading, in the order of the file."""
    tables = []
    for sheet in sheets:
        table = table_of(mapping, sheet, len(sheets)) or TableMapping(sheet.name, SKIP, 1)
        table.name = sheet.name
        table.header = max(0, min(table.header, len(sheet.rows)))
        columns = {column.heading: column for column in table.column}
        headings = headings_of(sheet.rows, table.header - 1)
        table.column = [columns.get(heading) or Column(heading) for heading in headings]
        tables.append(table)
    if len(tables) == 1 and tables[0].kind == SKIP:
        tables[0].kind = COMPANIES  # the page asks which column is the name
    mapping.table = tables


def _facts(sheets: list[Sheet], mapping: FileMapping) -> JSONObject:
    """Return what the page of the mapping shows of a file."""
    left = SHOWN_COLUMNS
    tables = []
    for sheet, table in zip(sheets, mapping.table, strict=True):
        width = min(len(table.column), left)
        left -= width
        body = sheet.rows[table.header : table.header + _READ_ROWS]
        headings = [column.heading for column in table.column]
        columns = []
        for at in range(width):
            values = [row[at] for row in body if row[at]]
            columns.append(_column(headings[at], values))
        rows = sum(map(any, sheet.rows[table.header :]))
        facts_of_table = {"name": sheet.name, "rows": rows, "headings": headings, "columns": columns}
        facts_of_table["notes"] = sheet.notes[:5]
        facts_of_table["proposed"] = _proposed_of_kinds(headings, body)
        tables.append(facts_of_table)
    encoding = ""
    lines: list[Any] = []
    for sheet in sheets:
        encoding = encoding or sheet.encoding
        lines = lines or list(sheet.samples)
    return {
        "tables": tables,
        "encoding": encoding,
        "is_guess": any(sheet.is_guess for sheet in sheets),
        "lines": lines,
    }


def _proposed_of_kinds(headings: list[str], body: list[list[str]]) -> JSONObject:
    """Return the columns that are proposed for each kind of rows, so that a page can change the kind at once."""
    values: list[list[str]] = []
    for index in range(len(headings)):
        values.append(values_in([row[index][:JUDGED] for row in body]))
    proposed: JSONObject = {}
    for kind in (COMPANIES, PEOPLE):
        proposed[kind] = [dataclasses.asdict(column) for column in propose_columns(headings, values, kind)]
    return proposed


def _column(heading: str, values: list[str]) -> JSONObject:
    """Return samples of a column, and how its values are written for each field that depends on it."""
    samples = dict.fromkeys(" ".join(value.split())[:SAMPLE_CHARACTERS] for value in values[:SAMPLED])
    options: JSONObject = {}
    decided: dict[Any, JSONObject] = {}
    for field in {**fields_of(COMPANIES), **fields_of(PEOPLE)}.values():
        names = [name for name in field.options if name in _DECIDED]
        if not names:
            continue
        # A decision reads thousands of cells, so fields of one kind share it; names of people are split in another way.
        shared = (field.kind, field.name in {PEOPLE_FIELD, "position.company", "address"})
        if shared not in decided:
            column = Column(heading, field.name)
            decide_options(column, values)
            decided[shared] = {name: getattr(column, name) for name in names}
        options[field.name] = decided[shared]
    return {"samples": list(samples)[:SAMPLES], "options": options}


def _prepared(upload: ImportUpload) -> Prepared:
    return prepare_file(_file(upload), upload.mapping)


def _check(job: JobRun, upload: ImportUpload, actor: Actor) -> JSONObject:
    """Find out what an import would do, and how its first entries look."""
    again = source_options(upload)
    records = convert(_prepared(upload), again.source)
    options = ImportOptions(dry_run=True)
    rehearsal = import_records(records, upload.name, options, again=again, actor=actor, progress=_progress(job))
    keep_content(upload, REPORT, written_report(rehearsal, are_unlisted=False), is_compressed=True)
    changed = [row for row in rehearsal.results if row.result == CHANGED]
    report = {
        **_report(rehearsal.summary, rehearsal.losses),
        "samples": sample_bundles(actor, records, upload.options),
        "people": [line for _, line in records.people[:SHOWN]],
        "companies_total": len(records.companies),
        "people_total": len(records.people),
        "changes": [change_of(row) for row in changed[:SHOWN_CHANGES]],
        "changes_total": len(changed),
        "gone": [*islice(gone_rows(rehearsal, are_unlisted=False), SHOWN_GONE)],
        "gone_total": len(rehearsal.gone.rows),
        "gone_refusal": rehearsal.gone.refusal,
        "former_run": memory_of(again.source).run,
    }
    return {"report": report, "state": Stage.PREVIEW, "error": ""}


def _report(summary: Summary, losses: list[Loss]) -> JSONObject:
    counts: JSONObject = {}
    for kind, of_kind in summary.counts.items():
        if of_kind.new or of_kind.changed or of_kind.unchanged:
            counts[kind] = {"new": of_kind.new, "changed": of_kind.changed, "unchanged": of_kind.unchanged}
    groups = grouped(losses)
    shown_groups = []
    for group in groups[:SHOWN_GROUPS]:
        shown_groups.append({**group.first._asdict(), "rows": group.rows[:5], "rows_total": len(group.rows)})
    return {
        "counts": counts,
        "bad": summary.bad,
        "left_out": summary.dropped,
        "groups": shown_groups,
        "groups_total": len(groups),
    }


def _progress(job: JobRun) -> Callable[[Path, int], None]:
    """Return a function that tells how much of the files of an import is read."""
    last_s = 0.0
    sizes: dict[Path, int] = {}

    def tell(file: Path, read: int) -> None:
        nonlocal last_s
        if not sizes:
            for path in sorted(file.parent.glob("*.jsonl"), reverse=True):
                sizes[path] = path.stat().st_size
        if time.monotonic() - last_s < REPORT_S:
            job.check()
            return
        last_s = time.monotonic()
        names = list(sizes)
        before = sum(sizes[path] for path in names[: names.index(file)])
        job.report(before + read, sum(sizes.values()))

    return tell


def _import(job: JobRun, upload: ImportUpload, actor: Actor) -> JSONObject:
    """
    Import the rows, whose slugs the first attempt has chosen.

    Later attempts, after a worker was killed, continue with the same rows under the same record.
    """
    stored = content_of(upload, LINES)
    again = source_options(upload, unlists=UNLIST in upload.options)
    if stored is None:
        prepared = _prepared(upload)
        declare_kept(actor, prepared.mapping, upload.name)
        records = convert(prepared, again.source, besides=upload.run_id)
        stored = _written(records)
        keep_content(upload, LINES, stored)
    records = _read_records(stored)
    options_of_upload: Any = {name: True for name in OPTIONS if name in upload.options}
    options = ImportOptions(resumes=upload.run_id, **options_of_upload)
    table_import = import_records(
        records, upload.name, options, again=again, actor=actor, progress=_progress(job), between=job.check
    )
    report = _report(table_import.summary, table_import.losses)
    report["unlisted"] = table_import.summary.unlisted
    if job.attempt > 1:
        report["counts"] = _counts(upload.run_id)
    ImportRun.objects.filter(pk=upload.run_id or 0).update(report=report, ended_at=now())
    upload.files.all().delete()
    facts = {"shape": shape_of(mapping_of(upload))}
    return {"state": Stage.DONE, "error": "", "facts": facts, "report": {}}


def _written(records: Records) -> bytes:
    """Return records as they are stored; the reasons of losses stay phrases, which pages translate."""
    losses = [packed(loss._asdict()) for loss in records.losses]
    return msgspec.json.encode({"records": dataclasses.replace(records, losses=[]), "losses": losses}, enc_hook=plain)


def _read_records(stored: bytes) -> Records:
    document = msgspec.json.decode(stored)
    records = msgspec.convert(document["records"], Records)
    records.losses = [Loss(**unpacked(loss)) for loss in document["losses"]]
    return records


def _counts(run: int | None) -> JSONObject:
    """Return how many rows all attempts of an import made and changed, by its history."""
    counts: JSONObject = {}
    for kind, subject in (("people", "person_id"), ("companies", "company_id")):
        entries = HistoryEntry.objects.filter(import_run=run, **{f"{subject}__isnull": False}).order_by("pk")
        seen: dict[int, bool] = {}
        for key, before, after in entries.values_list(subject, "before", "after").iterator(chunk_size=500):
            seen.setdefault(key, not before and not after)
        if seen:
            new = sum(seen.values())
            counts[kind] = {"new": new, "changed": len(seen) - new, "unchanged": 0}
    return counts


register(Handler(kind=KIND, work=work, lane=LANE, lease_s=60, max_attempts=5, per_group=1))


def _clean(_job: JobRun) -> int:
    remove_old_reports()
    return remove_old()


register(Handler(kind="registry.import_uploads_old", work=_clean), every_s=3_600)
