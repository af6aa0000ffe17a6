"""What an import did or would do, row by row: on its pages, and as a file for a spreadsheet."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.csv_text import CsvForm, CsvText
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.languages import writing
from muniment.languages.translated import translated
from muniment.registry.imports import reports, uploads
from muniment.registry.imports.results import get_result
from muniment.registry.models import HistoryEntry
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE
from muniment.registry.tables.fields import fields_of
from muniment.web.presenters import differences
from muniment.web.requests.access import actor_of, operator

RESULTS: Final[dict[str, str | Promise]] = {
    "new": gettext_lazy("New"),
    "changed": gettext_lazy("Changed"),
    "unchanged": gettext_lazy("Unchanged"),
    reports.GONE: gettext_lazy("Not in the file"),
    reports.UNLISTED: gettext_lazy("Unlisted"),
}
SUBJECTS: Final[dict[str, str | Promise]] = {
    "company": gettext_lazy("Company"),
    "person": gettext_lazy("Person"),
}
_REASONS: Final[dict[str, str | Promise]] = {
    "{slug!r} is published; --draft leaves it unchanged": gettext_lazy("is published and stays unchanged"),
    "{slug!r} is {state} and stays so; --relist publishes it": gettext_lazy("is not public and stays so"),
    "{slug!r} is unlisted and stays so; --relist publishes it": gettext_lazy("is unlisted and stays so"),
    "was changed here since the last import and is kept; --overwrite replaces it": gettext_lazy(
        "was changed here since the last import and is kept"
    ),
}
"""What pages say in place of reasons that name options of the command."""
_MEMBERS: Final = ("company.", "person.")


def reason_of(reason: str) -> str:
    """Return why something is left out or kept, in the words of the page."""
    template = reason.template if isinstance(reason, Phrase) else str(reason)
    return str(_REASONS[template]) if template in _REASONS else translated(reason)


def column_of(name: str) -> str:
    """Return the heading of a column as it is; of a member that the import names, its label."""
    member = name
    for prefix in _MEMBERS:
        member = member.removeprefix(prefix)
    path = ".".join(part for part in member.split(".") if not part.isdecimal())
    field = {**fields_of(PEOPLE), **fields_of(COMPANIES)}.get(path)
    is_member = name != member or "." in name
    return gettext(field.label) if field is not None and is_member else name


def lines_of_change(change: JSONObject, room: differences.Room) -> list[differences.DiffLine]:
    """Return the changed fields of a row before and after."""
    entry = HistoryEntry(before=change["before"], after=change["after"], parts=change["parts"])
    return differences.lines_of_entry(entry, room)


def shown_changes(report: JSONObject) -> list[JSONObject]:
    """Return the first changed rows of a preview, for its page."""
    room = differences.Room()
    found = []
    for change in report.get("changes") or ():
        lines = lines_of_change(change, room) if "before" in change else []
        labels = ", ".join(map(differences.label_of, change.get("fields") or ()))
        found.append({**change, "lines": lines, "labels": labels})
    return found


@operator("GET", "HEAD")
def of_preview(request: HttpRequest, key: str) -> HttpResponse:
    """Return what an import would do, as CSV."""
    upload = uploads.get_import(actor_of(request), key)
    return _file(reports.report_of_upload(upload.pk), upload.name)


@operator("GET", "HEAD")
def of_run(request: HttpRequest, key: int) -> HttpResponse:
    """Return what an import did, as CSV."""
    run = get_result(actor_of(request), key)
    return _file(reports.report_of_run(run.key), run.files)


def _file(content: bytes | None, name: str) -> HttpResponse:
    if content is None:
        raise Http404("no report")
    answer = HttpResponse(_written(reports.read_report(content)), content_type="text/csv; charset=utf-8")
    stem = re.sub(r"[^A-Za-z0-9]+", "-", name.rpartition(".")[0] or name).strip("-")[:60]
    answer["Content-Disposition"] = f'attachment; filename="report-{stem}.csv"'
    return answer


def _written(lines: Sequence[JSONObject]) -> bytes:
    """Return the file; a spreadsheet knows it as UTF-8 by its mark, and expects the delimiter of the language."""
    text = CsvText(CsvForm(has_mark=True, delimiter=writing.delimiter()))
    text.write(
        [
            *(gettext("Row"), gettext("Result"), gettext("Kind"), gettext("Name"), gettext("Address")),
            *(gettext("Column"), gettext("Before"), gettext("After"), gettext("Note"), gettext("Value")),
        ]
    )
    for line in lines:
        cells = _cells_of_loss(line["loss"]) if "loss" in line else _cells_of_row(line)
        for row in cells:
            text.write(row)
    return text.take()


def _cells_of_loss(loss: JSONObject) -> Iterator[list[str]]:
    note = " ".join(filter(None, (f"{reason_of(loss['reason'])}.", translated(loss["fix"]))))
    row = str(loss["row"] or "")
    yield [row, gettext("Left out or doubtful"), "", "", "", column_of(loss["column"]), "", "", note, loss["example"]]


def _cells_of_row(line: JSONObject) -> Iterator[list[str]]:
    page = {"company": "companies", "person": "people"}[line["kind"]]
    start = [str(line["row"] or ""), str(RESULTS[line["result"]]), str(SUBJECTS[line["kind"]])]
    start += [line["name"], f"/{page}/{line['slug']}"]
    changes: list[Any] = [["", "", "", ""]]
    if "before" in line:
        room = differences.Room(budget=differences.Budget(0), is_whole=True)
        changes = [[each.label, each.was, each.now, ""] for each in lines_of_change(line, room)]
    elif "fields" in line:
        labels = ", ".join(map(differences.label_of, line["fields"]))
        changes = [[labels, "", "", gettext("This change is too large to show here.")]]
    for change in changes:
        yield [*start, *change, ""]
