"""
Undo a whole import: restore what was stored before, unpublish what it created, and publish again what it unlisted.

The history entries of an import say what it replaced. The former values are imported again, by the same rules; rows
that something else has changed since are kept and reported. An undo is an import itself, and can be undone.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db import transaction

from muniment.accounts.operations import require_operator
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.phrases.storing import packed
from muniment.kernel.problems import BadRequest, NotFound
from muniment.registry import history
from muniment.registry.exchange.companies import stored_line
from muniment.registry.exchange.edits import IMPORTED
from muniment.registry.exchange.exporter import is_long
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.exchange.list_files import LISTS, line_of
from muniment.registry.exchange.reading import RowFault
from muniment.registry.exchange.results import UNDONE
from muniment.registry.history import Change
from muniment.registry.models import Company, Framework, HistoryEntry, ImportRun, Person, State
from muniment.registry.publishing.publisher import AffectedRows, publish

_STATES: Final = ("state", "unlisted_by", "listed")
_PARTS: Final = ("distribution", "positions", "proposals", "capTable", "fundingRounds")
_SUBJECTS: Final[tuple[tuple[str, type[Company] | type[Person]], ...]] = (("person", Person), ("company", Company))
_MODELS: Final = {**dict(_SUBJECTS), "framework": Framework}
_PUBLIC_AGAIN: Final[dict[str, JSONObject]] = {
    "company": {"state": State.PUBLISHED, "unlisted_by": ""},
    "person": {"unlisted_by": ""},
    "framework": {"listed": True},
}
"""The states of rows that an import unlisted, as they were before."""
_FILES: Final = {"person": "people.jsonl", "company": "companies.jsonl"}
BATCH: Final = 500
SHOWN_KEPT: Final = 1_000


class RunItem(NamedTuple):
    """An import in the list of imports. ``undone_by``: the ids of the imports that undid it."""

    key: int
    started_at: datetime
    files: str
    result: str
    undoes: int | None
    undone_by: str


class KeptRow(NamedTuple):
    """A row that an undo leaves as it is."""

    kind: str
    slug: str
    reason: str


@dataclass(slots=True)
class Undone:
    """The result of an undo. ``key`` is that of its own record."""

    key: int
    restored: int = 0
    unpublished: int = 0
    kept: list[KeptRow] = field(default_factory=list)


def list_imports(limit: int = 100) -> list[RunItem]:
    """Return the imports, latest first."""
    items = []
    for run in ImportRun.objects.order_by("-pk").prefetch_related("undone_by")[:limit]:
        undone_by = ", ".join(str(undo.pk) for undo in run.undone_by.all())
        items.append(RunItem(run.pk, run.started_at, ", ".join(run.files), run.result, run.undoes_id, undone_by))
    return items


def undo_import(actor: Actor, key: int) -> Undone:
    """
    Restore what was stored before the import *key*.

    Raises:
        NotFound: there is no such import.
        BadRequest: it is undone.
    """
    return finish_undo(actor, begin_undo(actor, key))


def begin_undo(actor: Actor, key: int) -> ImportRun:
    """
    Record that the import *key* is being undone, which no second undo can be.

    Raises:
        NotFound: there is no such import.
        BadRequest: it is undone.
    """
    require_operator(actor)
    with transaction.atomic():
        run = ImportRun.objects.select_for_update().filter(pk=key).first()
        if run is None:
            raise NotFound(Phrase("There is no import {key}.", key=key), "See muniment import --list.")
        if run.pk in undone_imports():
            raise BadRequest(Phrase("The import {key} is undone.", key=key), "See muniment import --list.")
        return ImportRun.objects.create(
            account_id=actor.account_id, via=actor.via, files=run.files, options=[f"undo {key}"], undoes=run
        )


def finish_undo(actor: Actor, undo: ImportRun) -> Undone:
    """Restore what was stored before the import that *undo* undoes; a second call continues a first one."""
    undone = Undone(undo.pk)
    result = ""
    try:
        _restore(actor, undo, undone)
        kept_total = len(undone.kept)
        result = Phrase(UNDONE, restored=undone.restored, unpublished=undone.unpublished, kept=kept_total)
        report = {
            "restored": undone.restored,
            "unpublished": undone.unpublished,
            "kept": [row._asdict() for row in undone.kept[:SHOWN_KEPT]],
            "kept_total": kept_total,
        }
        ImportRun.objects.filter(pk=undo.pk).update(ended_at=now(), result=result, report=report)
    finally:  # also of an undo that is interrupted: what it restored until then stays
        detail = {"import": undo.undoes_id, "files": undo.files, "result": packed(result)}
        record(Event.IMPORT_UNDONE, actor=actor, detail=detail)
    return undone


def _restore(actor: Actor, undo: ImportRun, undone: Undone) -> None:
    run: Any = undo.undoes
    # The entries of an import and of its undo cancel each other: they are no change since.
    pairs = undone_imports()
    cancelled = {*pairs, *pairs.values(), undo.pk}
    lines: dict[str, list[JSONObject]] = {"person": [], "company": []}
    states: list[tuple[str, int, JSONObject]] = []
    for subject, entry in _first_entries(run):
        row: Any = getattr(entry, subject)
        reason = _reason_to_keep(subject, row, run, cancelled)
        if reason:
            undone.kept.append(KeptRow(subject, row.slug, reason))
            continue
        if not entry.before and not entry.after:  # the import created it
            not_public: JSONObject = {"state": State.DRAFT} if subject == "company" else {"listed": False}
            states.append((subject, row.pk, not_public))
            undone.unpublished += 1
            continue
        # The lines of an import have no states, so these are set apart.
        former_state: JSONObject = {}
        former_values: JSONObject = {}
        for name, value in _values_before(entry, row).items():
            if name in _STATES:
                former_state[name] = value
            else:
                former_values[name] = value
        if former_state:
            states.append((subject, row.pk, former_state))
        if former_values:
            lines[subject].append(_line(subject, row, former_values))
        undone.restored += 1
    states += _unlisted_states(run, cancelled, undone)
    undone.kept += _import(actor, lines, undo)
    for start in range(0, len(states), BATCH):
        _set_states(actor, states[start : start + BATCH], undo)


def _unlisted_states(run: ImportRun, cancelled: set[int], undone: Undone) -> list[tuple[str, int, JSONObject]]:
    """Return the former states of rows that *run* unlisted, and of frameworks that it listed; name what is kept."""
    states: list[tuple[str, int, JSONObject]] = []
    for entry in run.entries.filter(framework__isnull=False, changed=["listed"], action=IMPORTED):
        states.append(("framework", entry.framework_id or 0, {"listed": entry.before["listed"]}))
        undone.restored += 1
    for subject, row in _unlisted_rows(run):
        reason = _reason_to_keep(subject, row, run, cancelled, is_unlisted=True)
        if reason:
            undone.kept.append(KeptRow(subject, row.slug, reason))
        else:
            states.append((subject, row.pk, _PUBLIC_AGAIN[subject]))
            undone.restored += 1
    frameworks = run.entries.filter(framework__isnull=False, action=IMPORTED).exclude(changed=["listed"])
    for slug in frameworks.values_list("framework__slug", flat=True).distinct():
        undone.kept.append(KeptRow("framework", slug, "frameworks are not restored; edit it"))
    return states


def _first_entries(run: ImportRun) -> Iterator[tuple[str, HistoryEntry]]:
    """Yield the people's entries of *run*, then the companies', one of each row."""
    for subject, _ in _SUBJECTS:
        seen: set[int] = set()
        entries = (
            run.entries.filter(action=IMPORTED, **{f"{subject}__isnull": False}).select_related(subject).order_by("pk")
        )
        for entry in entries.iterator(chunk_size=BATCH):
            key = getattr(entry, f"{subject}_id")
            if key not in seen:
                seen.add(key)
                yield subject, entry


def _unlisted_rows(run: ImportRun) -> Iterator[tuple[str, Any]]:
    """Yield the rows that *run* unlisted because its files no longer held them, by steps of a reviewer."""
    for subject in _MODELS:
        entries = run.entries.exclude(action=IMPORTED).filter(**{f"{subject}__isnull": False}).select_related(subject)
        for entry in entries.order_by("pk").iterator(chunk_size=BATCH):
            yield subject, getattr(entry, subject)


def undone_imports() -> dict[int, int]:
    """Return the imports that are undone, each with its undo: together they changed nothing."""
    undos: dict[int, list[int]] = defaultdict(list)
    for key, undoes in ImportRun.objects.filter(undoes__isnull=False).order_by("-pk").values_list("pk", "undoes"):
        undos[undoes or 0].append(key)
    undone: dict[int, int] = {}
    for key in sorted(undos, reverse=True):  # an undo is later than what it undoes
        # One that is undone itself has no effect.
        active = [undo for undo in undos[key] if undo not in undone]
        if active:
            undone[key] = active[0]
    return undone


def _reason_to_keep(subject: str, row: Any, run: ImportRun, cancelled: set[int], *, is_unlisted: bool = False) -> str:
    """Return why an undo must not change a row; empty if it may."""
    mine: JSONObject = {subject: row}
    last = run.entries.filter(**mine).order_by("-pk").values_list("pk", flat=True).first()
    later = HistoryEntry.objects.filter(pk__gt=last, **mine).exclude(action__in=history.REQUESTS)
    later = later.exclude(import_run__in=cancelled)
    if later.exists():
        return "it was changed since"
    if is_unlisted:
        return ""
    if subject == "company" and row.ownerships.exists() and row.state != State.PUBLISHED:
        return "its owner has taken it over"
    if subject == "person" and row.account_id is not None:
        return "the profile belongs to an account"
    return ""


def _values_before(entry: HistoryEntry, row: Any) -> JSONObject:
    """Return the whole values that an entry replaced, none of which changed since."""
    change = Change(entry.before, entry.after, entry.parts)
    line = stored_line(row, settings.SCHEMA) if isinstance(row, Company) and entry.parts else {}
    present = {**line.get("company", {}), **{name: line.get(name) for name in _PARTS}}
    return history.values_before(change, [], lambda names: {name: present.get(name) for name in names})


def _line(subject: str, row: Any, values: JSONObject) -> JSONObject:
    if subject == "person":
        return {"slug": row.slug, "name": row.name, **values}
    company = {name: value for name, value in values.items() if name not in _PARTS}
    parts: JSONObject = {}
    for name, value in values.items():
        if name in _PARTS:
            empty: list[Any] | None = None if name == "distribution" else []
            parts[name] = value or empty
    return {"company": {"id": row.slug, "name": row.name, **company}, **parts}


def _import(actor: Actor, lines: dict[str, list[JSONObject]], undo: ImportRun) -> list[KeptRow]:
    """Import former values; return the rows whose values are refused today."""
    if not any(lines.values()):
        return []
    kept: list[KeptRow] = []
    files = {_FILES[subject]: lines_of_kind for subject, lines_of_kind in lines.items() if lines_of_kind}
    files |= _long_lists(lines["company"])

    def keep(fault: RowFault) -> None:
        line = files[fault.file][fault.line - 1]
        reason = f"{fault.field} {fault.reason}".strip()
        if fault.file == _FILES["person"]:
            kept.append(KeptRow("person", line["slug"], reason))
            return
        company = line["company"]
        # The line of a listing has its object there; that of a row in a file of lists has its id.
        slug = company["id"] if isinstance(company, dict) else company
        kept.append(KeptRow("company", slug, reason))

    with TemporaryDirectory() as name:
        for file, lines_of_file in files.items():
            Path(name, file).write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines_of_file))
        options = ImportOptions(overwrite=True, restores=undo.pk)
        import_registry(Path(name), options, actor=actor, tell=keep)
    return kept


def _long_lists(companies: list[JSONObject]) -> dict[str, list[JSONObject]]:
    """Take the lists that are too long for a line out of the lines of *companies*; return them as lines by file."""
    files: dict[str, list[JSONObject]] = defaultdict(list)
    for line in companies:
        for kind, (member, _) in LISTS.items():
            if is_long(line.get(member) or ()):
                rows = line.pop(member)
                files[f"{kind}.jsonl"] += [line_of(kind, line["company"]["id"], row) for row in rows]
    return files


@transaction.atomic
def _set_states(actor: Actor, states: list[tuple[str, int, JSONObject]], undo: ImportRun) -> None:
    """Set the states that rows had, with their history, and publish."""
    affected = AffectedRows()
    for subject, key, former in states:
        model: Any = _MODELS[subject]
        row = model.objects.select_for_update().get(pk=key)
        before = {name: getattr(row, name) for name in former}
        after: JSONObject = {}
        for name, value in former.items():
            # The history has an empty text as null.
            after[name] = (value or "") if isinstance(before[name], str) else bool(value)
        if before == after:
            continue  # an undo that is continued has set them
        for name, value in after.items():
            setattr(row, name, value)
        if after.get("state") == State.PUBLISHED:
            row.reviewer_note = ""  # it said why the listing was unlisted
        row.version += 1
        row.updated_at = now()
        row.save()
        about: JSONObject = {subject: row, "import_run_id": undo.pk}
        history.entry(actor, IMPORTED, before=before, after=former, **about).save()
        if subject == "company":
            affected.company_with_dependents(key)
        elif subject == "person":
            affected.person_with_companies(key)
        else:
            affected.framework(key)
    publish(affected)
