"""
The report of an import of a table: what became of each row, each value that is left out, and each row that is gone.

It is kept compressed for 30 days, one JSON line for each of these, and shown in the language of its reader.
"""

import zlib
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.storing import packed, unpacked
from muniment.registry.models import ImportedRows, ImportFile, ImportRun

if TYPE_CHECKING:
    from muniment.registry.tables.operations import TableImport, TableResult

KEPT_FOR: Final = timedelta(days=30)
MAX_CHANGE_BYTES: Final = 20_000
"""A longer change, such as that of a list of thousands of rows, is told by the names of its fields."""
GONE: Final = "gone"
UNLISTED: Final = "unlisted"
_encode = msgspec.json.Encoder().encode


def change_of(result: "TableResult") -> JSONObject:
    """Return a row with its changed fields before and after, in the form of the history."""
    found: JSONObject = {
        "row": result.row,
        "kind": result.kind,
        "slug": result.slug,
        "name": result.name,
        "result": result.result,
    }
    entry = result.entry
    if entry is None:
        return found
    change: JSONObject = {"before": entry.before, "after": entry.after, "parts": entry.parts}
    if len(_encode(change)) > MAX_CHANGE_BYTES:
        change = {"fields": entry.changed}
    return found | change


def gone_rows(found: "TableImport", *, are_unlisted: bool) -> Iterator[JSONObject]:
    result = UNLISTED if are_unlisted else GONE
    for row in found.gone.rows:
        yield {"row": 0, "kind": row.kind, "slug": row.slug, "name": row.name, "result": result}


def written_report(found: "TableImport", *, are_unlisted: bool) -> bytes:
    """Return the report of an import as it is stored."""
    writer = zlib.compressobj(6)
    content = []
    for line in _lines(found, are_unlisted=are_unlisted):
        content.append(writer.compress(_encode(line) + b"\n"))
    return b"".join([*content, writer.flush()])


def _lines(found: "TableImport", *, are_unlisted: bool) -> Iterator[JSONObject]:
    for result in found.results:
        yield change_of(result)
    for loss in found.losses:
        yield {"loss": packed(loss._asdict())}
    yield from gone_rows(found, are_unlisted=are_unlisted)


def read_report(content: bytes) -> list[JSONObject]:
    """Return the lines of a stored report, the rows in the order of the file; rows that are gone are last."""
    lines = []
    for text in zlib.decompress(content).splitlines():
        line = msgspec.json.decode(text)
        lines.append({"loss": unpacked(line["loss"])} if "loss" in line else line)
    return sorted(lines, key=_place)


def _place(line: JSONObject) -> tuple[bool, int]:
    row = line["loss"]["row"] if "loss" in line else line["row"]
    return line.get("result") in {GONE, UNLISTED}, row


def keep_report(run: int, found: "TableImport", *, are_unlisted: bool) -> None:
    """Keep the report of the import *run*."""
    content = written_report(found, are_unlisted=are_unlisted)
    ImportedRows.objects.update_or_create(run_id=run, defaults={"report": content})


def report_of_run(run: int) -> bytes | None:
    """Return the stored report of an import; None if it has none, or none any more."""
    found = ImportedRows.objects.filter(run_id=run).exclude(report=b"").values_list("report", flat=True).first()
    return None if found is None else bytes(found)


def report_of_upload(upload: str) -> bytes | None:
    """Return the stored report of a preview."""
    found = ImportFile.objects.filter(upload_id=upload, kind="report").values_list("content", flat=True).first()
    return None if found is None else bytes(found)


def remove_old_reports() -> None:
    old = ImportedRows.objects.filter(run__started_at__lt=now() - KEPT_FOR)
    old.filter(source="").delete()
    old.exclude(report=b"").update(report=b"")


def forget_in_reports(key: int, *texts: str) -> None:
    """
    Remove an erased person from the reports and memories of imports, in the caller's transaction.

    Args:
        key: the primary key of the person.
        texts: the slugs and the name: a line of a report that has one of them is removed.
    """
    wanted = [_encode(text)[1:-1] for text in texts if text]
    for kept in ImportedRows.objects.order_by("pk").iterator(chunk_size=1):
        rows, report = bytes(kept.rows), bytes(kept.report)
        if report:
            lines = zlib.decompress(report).splitlines(keepends=True)
            others = [line for line in lines if not any(text in line for text in wanted)]
            report = zlib.compress(b"".join(others), 6)
        if rows:
            memory = msgspec.json.decode(zlib.decompress(rows))
            people = memory.get("person", {})
            memory["person"] = {digest: row for digest, row in people.items() if row != key}
            rows = zlib.compress(_encode(memory), 6)
        ImportedRows.objects.filter(pk=kept.pk).update(rows=rows, report=report)
    _forget_in_runs(wanted)


def _forget_in_runs(wanted: list[bytes]) -> None:
    """Remove what names an erased person from the lists of what each import left out or kept."""
    for run in ImportRun.objects.exclude(report=None).order_by("pk").iterator(chunk_size=20):
        if not _mentions(run.report, wanted):
            continue
        left = {}
        for name, value in run.report.items():
            left[name] = value
            if isinstance(value, list):
                left[name] = [each for each in value if not _mentions(each, wanted)]
        run.report = left
        run.save(update_fields=["report"])


def _mentions(value: object, wanted: list[bytes]) -> bool:
    text = _encode(packed(value))
    return any(each in text for each in wanted)
