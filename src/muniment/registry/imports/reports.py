"""
The report of an import of a table: what became of each row, each value that is left out, and each row that is gone.

It is kept compressed for 30 days, one JSON line for each of these, and shown in the language of its reader.
"""

import re
import zlib
from collections.abc import Collection, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.storing import packed, unpacked
from muniment.registry.models import ImportedRows, ImportFile, ImportRun

if TYPE_CHECKING:
    from muniment.registry.tables.operations import TableImport, TableResult

KEPT_FOR: Final = timedelta(days=30)
MAX_CHANGE_BYTES: Final = 20_000
"""A longer change, such as that of a list of thousands of rows, is reported by the names of its fields."""
GONE: Final = "gone"
UNLISTED: Final = "unlisted"
_encode = msgspec.json.Encoder().encode


def change_of(result: "TableResult") -> JSONObject:
    """Return a row with its changed fields before and after, in the form of the history."""
    row: JSONObject = {
        "row": result.row,
        "kind": result.kind,
        "slug": result.slug,
        "name": result.name,
        "result": result.result,
    }
    entry = result.entry
    if entry is None:
        return row
    change: JSONObject = {"before": entry.before, "after": entry.after, "parts": entry.parts}
    if len(_encode(change)) > MAX_CHANGE_BYTES:
        change = {"fields": entry.changed}
    return row | change


def gone_rows(table_import: "TableImport", *, are_unlisted: bool) -> Iterator[JSONObject]:
    """Yield the rows that the table no longer has, in the form of a report."""
    result = UNLISTED if are_unlisted else GONE
    for row in table_import.gone.rows:
        yield {"row": 0, "kind": row.kind, "slug": row.slug, "name": row.name, "result": result}


def written_report(table_import: "TableImport", *, are_unlisted: bool) -> bytes:
    """Return the report of an import as it is stored."""
    writer = zlib.compressobj(6)
    content = []
    for line in _lines(table_import, are_unlisted=are_unlisted):
        content.append(writer.compress(_encode(line) + b"\n"))
    return b"".join([*content, writer.flush()])


def _lines(table_import: "TableImport", *, are_unlisted: bool) -> Iterator[JSONObject]:
    for result in table_import.results:
        yield change_of(result)
    for loss in table_import.losses:
        yield {"loss": packed(loss._asdict())}
    yield from gone_rows(table_import, are_unlisted=are_unlisted)


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


def keep_report(run: int, table_import: "TableImport", *, are_unlisted: bool) -> None:
    """Keep the report of the import *run*."""
    content = written_report(table_import, are_unlisted=are_unlisted)
    ImportedRows.objects.update_or_create(run_id=run, defaults={"report": content})


def report_of_run(run: int) -> bytes | None:
    """Return the stored report of an import; None if it has none, or none any more."""
    content = ImportedRows.objects.filter(run_id=run).exclude(report=b"").values_list("report", flat=True).first()
    return None if content is None else bytes(content)


def report_of_upload(upload: str) -> bytes | None:
    """Return the stored report of a preview."""
    content = ImportFile.objects.filter(upload_id=upload, kind="report").values_list("content", flat=True).first()
    return None if content is None else bytes(content)


def remove_old_reports() -> None:
    """Remove reports that were kept long enough; of imports of a source, the memory stays."""
    old = ImportedRows.objects.filter(run__started_at__lt=now() - KEPT_FOR)
    old.filter(source="").delete()
    old.exclude(report=b"").update(report=b"")


_OWN_WORDS: Final = frozenset({"kind", "result", "template"})
"""The members of a report that have its own words: they name no person."""


class ErasedPerson:
    """
    Tells what the reports of imports say of a person who is erased.

    Args:
        slugs: the present one and former ones.
        name: what mentions the person in any text; empty for a profile that an account has made, whose name may be that
            of anything, such as a company: it would remove the rows of others.
    """

    def __init__(self, slugs: Collection[str], name: str = "") -> None:
        self._slugs = frozenset(slugs)
        words = [*slugs, name] if name else []
        self._words = re.compile("|".join(map(_as_whole_word, words)) or r"(?!)", re.IGNORECASE)
        texts = [text for text in (*slugs, name) if text]
        self._encoded = [_encode(text)[1:-1].decode().lower() for text in texts]

    def is_in_line(self, line: str) -> bool:
        """Return whether a line of a report is about the person; most of 300,000 need not be decoded for that."""
        lower = line.lower()
        return any(text in lower for text in self._encoded) and self.is_in(msgspec.json.decode(line))

    def is_in(self, value: Any) -> bool:
        """Return whether a JSON value, in which phrases are packed, is about the person."""
        if isinstance(value, str):
            return bool(self._words.search(value))
        if isinstance(value, list):
            return any(map(self.is_in, value))
        if not isinstance(value, dict):
            return False
        person = value if value.get("kind") == "person" else value.get("person")
        if isinstance(person, dict) and person.get("slug") in self._slugs:
            return True
        others = [member for name, member in value.items() if name not in _OWN_WORDS]
        return any(map(self.is_in, others))


def _as_whole_word(text: str) -> str:
    """Return a pattern of *text* that is not a part of a word; words of scripts without spaces have no ends."""
    before = r"(?<!\w)" if text[:1].isascii() else ""
    after = r"(?!\w)" if text[-1:].isascii() else ""
    return before + re.escape(text) + after


def forget_in_reports(key: int, person: ErasedPerson) -> None:
    """
    Remove an erased person from the reports and memories of imports, in the caller's transaction.

    Args:
        key: the primary key of the person.
    """
    for kept in ImportedRows.objects.order_by("pk").iterator(chunk_size=1):
        changed = {}
        if kept.report:
            lines = zlib.decompress(kept.report).decode().split("\n")
            others = [line for line in lines if not person.is_in_line(line)]
            if len(others) < len(lines):
                changed["report"] = zlib.compress("\n".join(others).encode(), 6)
        if kept.rows:
            memory = msgspec.json.decode(zlib.decompress(kept.rows))
            people = memory.get("person", {})
            if key in people.values():
                memory["person"] = {digest: row for digest, row in people.items() if row != key}
                changed["rows"] = zlib.compress(_encode(memory), 6)
        if changed:
            ImportedRows.objects.filter(pk=kept.pk).update(**changed)
    _forget_in_runs(person)


def _forget_in_runs(person: ErasedPerson) -> None:
    """Remove what names an erased person from the lists of what each import left out or kept."""
    for run in ImportRun.objects.exclude(report=None).order_by("pk").iterator(chunk_size=20):
        report = {}
        for name, value in run.report.items():
            report[name] = value
            if isinstance(value, list):
                report[name] = [entry for entry in value if not person.is_in(packed(entry))]
        if report != run.report:
            run.report = report
            run.save(update_fields=["report"])
