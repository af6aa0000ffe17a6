"""
Shared parts of the imports: the run, the comparison with stored rows, and bulk writes.

Each batch is one transaction. A row is written only if it differs from the stored one.

Source: decisions, section 6.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from django.db import models

from muniment.kernel.actor import Actor
from muniment.kernel.ids import new_id, now, slug_from_name
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry import history, provenance
from muniment.registry.company import pictures
from muniment.registry.company.changes import change_of_company, change_of_person, is_checked_by_plugins, plugin_faults
from muniment.registry.exchange.edits import IMPORTED, Edits
from muniment.registry.exchange.rows import CompanyRow, FrameworkRow, PersonRow
from muniment.registry.models import Company, GivenSlug, HistoryEntry, MergedPerson, Person, Picture, State
from muniment.registry.people.suppression import is_suppressed
from muniment.schema.kinds import picture_fault
from muniment.schema.objects import Schema
from muniment.schema.record import Record
from muniment.schema.validation import Fault

Row = TypeVar("Row", CompanyRow, PersonRow, FrameworkRow)
Report = Callable[[int, Fault], None]
"""Called with a line's number and its fault."""
NEW: Final = "new"
CHANGED: Final = "changed"
UNCHANGED: Final = "unchanged"
ReportResult = Callable[[int, str, HistoryEntry | None], None]
"""Called with a line's number, whether its row is new, changed or unchanged, and the entry of a changed one."""


@dataclass(slots=True)
class BatchCounts:
    """The number of valid rows of one kind, by result."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    kept: int = 0
    """Members that people had changed."""

    def __add__(self, other: "BatchCounts") -> "BatchCounts":
        return BatchCounts(
            self.new + other.new,
            self.changed + other.changed,
            self.unchanged + other.unchanged,
            self.kept + other.kept,
        )


@dataclass(slots=True)
class BatchRun:
    """
    The state of an import across batches.

    Args:
        dry: compare only, write nothing; ``names`` then holds what would be created.
        drop: called with each bad value of a valid row that is left out.
        result: called with each valid row.
        overwrite: replace what people changed since the last import.
        relist: publish what was unlisted.
        pictures: the folder with the pictures of an export.
        settled: people whose row has a time of change, which later batches must not move.
        partial: members that a row lacks keep what is stored; otherwise they are cleared.
        restores: the values are those of before an import, and replace whole ones.
        import_run: the key of the record of this import.
        lists_in_files: the companies whose lists follow in files of their own, by the name of the list in their line.
        dated: the companies that this import has written with the time of change of their row, if lists follow: those
            lists are part of the same change.
        dated_before: those that are stored as their row is, with its time of change, if lists follow. What an
            interrupted import has not written of their lists is part of that change too.
        is_long: its transactions may have full batches: people whom rows name are published at its end.
    """

    actor: Actor
    schema: Schema
    draft: bool = False
    dry: bool = False
    overwrite: bool = False
    relist: bool = False
    partial: bool = False
    restores: bool = False
    import_run: int | None = None
    pictures: Path = Path("pictures")
    tell: Report = lambda _line, _fault: None
    warn: Report = lambda _line, _fault: None
    drop: Report = lambda _line, _fault: None
    result: ReportResult = lambda _line, _result, _entry: None
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    settled: set[str] = field(default_factory=set)
    lists_in_files: dict[str, set[str]] = field(default_factory=dict)
    dated: set[str] = field(default_factory=set)
    dated_before: set[str] = field(default_factory=set)
    is_long: bool = False

    def settle(self, row: PersonRow) -> None:
        """Record that a person's row has a time of change."""
        if row.updated_at:
            self.settled.add(row.slug)

    def skips(self, line: int, existing: Any) -> bool:
        """Return whether to skip a row, because drafts do not overwrite published rows."""
        if existing is None or not self.draft or not existing.published:
            return False
        self.warn(line, Fault("", Phrase("{slug!r} is published; --draft leaves it unchanged", slug=existing.slug)))
        return True

    def report_kept(self, line: int, edits: Edits, paths: Mapping[str, str], counts: BatchCounts) -> None:
        """Warn about the members that an import keeps; *paths* are those that differ from the member's name."""
        for member in edits.kept:
            counts.kept += 1
            said = "was changed here since the last import and is kept; --overwrite replaces it"
            self.warn(line, Fault(paths.get(member, member), said))


class PictureMember(NamedTuple):
    """A member of an imported row that can be the address of a picture: its line, path, object and key."""

    line: int
    path: str
    members: JSONObject
    key: str


def import_pictures(run: BatchRun, members: Iterable[PictureMember]) -> None:
    """Store the pictures that the folder of an export has, and name stored ones by their paths."""
    addresses: list[tuple[PictureMember, str]] = []
    for member in members:
        address = member.members.get(member.key)
        if isinstance(address, str):
            addresses.append((member, address))
    stored = _store_pictures(run, pictures.digests_of(address for _, address in addresses))
    for member, address in addresses:
        if pictures.digests_of([address]) & stored:
            member.members[member.key] = pictures.stored_path(address)
        elif address.startswith("/pictures/"):
            del member.members[member.key]
            reason = "is a picture that is neither stored here nor in pictures/; left out"
            run.drop(member.line, Fault(member.path, reason))
        elif address.strip():
            # Only of a member that no field declares: a field has judged the address before.
            fault = picture_fault(address)
            if fault:
                del member.members[member.key]
                run.drop(member.line, Fault(member.path, Phrase("{reason}; left out", reason=Phrase.of(fault))))


def _store_pictures(run: BatchRun, wanted: set[str]) -> set[str]:
    """Store those of *wanted* that the folder of the export has; return the digests of those that are stored then."""
    stored = pictures.stored_digests(wanted) if wanted else set()
    new = []
    for digest in wanted - stored:
        picture = pictures.read_files(run.pictures, digest)
        if picture is not None:
            new.append(picture)
    stored |= {picture.digest for picture in new}
    if run.dry:
        return stored
    if new:
        Picture.objects.bulk_create(new, ignore_conflicts=True)
    if stored:
        # A fetched picture is removed once no listing shows it; that of an import stays, as an uploaded one does.
        Picture.objects.filter(digest__in=stored, is_fetched=True).update(is_fetched=False)
    return stored


def given_columns(run: BatchRun, existing: Any, columns: JSONObject, given: Collection[str]) -> JSONObject:
    """Return the columns of a row to compare with a stored one: in a partial import, those that the row has."""
    if not run.partial:
        return columns
    of_row = {name: value for name, value in columns.items() if name in given}
    if run.restores and of_row.get("name") == existing.name:
        del of_row["name"]  # a line must have it
    if of_row.get("socials") and not run.restores:
        of_row["socials"] = {**(existing.socials or {}), **_known(of_row["socials"])}
    return of_row


def _known(members: JSONObject) -> JSONObject:
    return {name: value for name, value in members.items() if value is not None}


def with_stored_extra(run: BatchRun, existing: Any, columns: JSONObject, given: Collection[str]) -> None:
    """Add the stored additional members that a row of a partial import lacks; *given* are the members of its line."""
    if run.partial and "extra" in columns:
        stored = existing.extra or {}
        if run.restores:  # what an undo gives without a value was absent before
            stored = {name: value for name, value in stored.items() if name not in given}
        columns["extra"] = _known({**stored, **columns["extra"]})


def existing_rows(model: type[models.Model], slugs: Iterable[str], *, lock: bool = False) -> JSONObject:
    """Return the stored rows of *slugs*, by slug; locked if they are going to be written."""
    rows: Any = model._default_manager.filter(slug__in=set(slugs))  # noqa: SLF001 - Django's public name
    if lock:
        rows = rows.order_by("pk").select_for_update()  # a fixed lock order prevents deadlocks
    return {row.slug: row for row in rows}


def without_used_slugs(
    run: BatchRun, kind: str, rows: list[tuple[int, Row]], existing: JSONObject
) -> list[tuple[int, Row]]:
    """Reject rows with the slug of a deleted row: slugs are never reused."""
    new = [row.slug for _, row in rows if row.slug not in existing]
    gone = given_slugs(kind, new)
    if gone and kind == "person":
        gone -= merged_slugs(new).keys()
    key = {"company": "company.id", "person": "slug", "framework": "framework.frameworkId"}[kind]
    kept = []
    for line, row in rows:
        if row.slug in gone:
            run.tell(line, Fault(key, Phrase("{slug!r} was used by a deleted row and cannot be reused", slug=row.slug)))
        else:
            kept.append((line, row))
    return kept


def given_slugs(kind: str, slugs: Iterable[str]) -> set[str]:
    """Return those of *slugs* that were ever used for *kind*."""
    return set(GivenSlug.objects.filter(kind=kind, slug__in=set(slugs)).values_list("slug", flat=True))


def merged_slugs(slugs: Iterable[str]) -> dict[str, str]:
    """Return those of *slugs* whose people were merged into others, each with the other's slug."""
    return dict(MergedPerson.objects.filter(slug__in=set(slugs)).values_list("slug", "person__slug"))


def update_row(
    existing: Any, columns: JSONObject, updated_at: datetime | None, *, other_changes: bool = False
) -> JSONObject | None:
    """
    Set changed *columns* of a stored row.

    Args:
        updated_at: the time of change in the file; ignored if it is before the stored one.
        other_changes: something besides the columns changed too.

    Returns:
        The previous values of changed columns, or None if nothing changed.
    """
    before = {}
    for name, value in columns.items():
        stored = getattr(existing, name)
        if stored != value:
            before[name] = stored
            setattr(existing, name, value)
    if not before and not other_changes:
        return None
    existing.version += 1
    existing.updated_at = updated_at if updated_at and updated_at > existing.updated_at else now()
    return before


def update_rows(rows: Sequence[models.Model]) -> None:
    """Update whole rows in bulk."""
    if rows:
        model = type(rows[0])
        names = [field.name for field in model._meta.concrete_fields if not field.primary_key]  # noqa: SLF001 - Django's public name
        model._default_manager.bulk_create(  # noqa: SLF001 - Django's public name
            rows, update_conflicts=True, unique_fields=["id"], update_fields=names
        )


def insert_rows(kind: str, rows: Sequence[Any]) -> None:
    """Insert new rows in bulk, which sets their keys, and record their slugs."""
    provenance.created_by_import(rows)
    if rows:
        type(rows[0])._default_manager.bulk_create(rows)  # noqa: SLF001 - Django's public name
        GivenSlug.objects.bulk_create([GivenSlug(kind=kind, slug=row.slug) for row in rows])


def free_slug(kind: str, name: str, *taken: Container[str]) -> str:
    """Return a slug derived from *name* that was never used for *kind*, not erased, and is in none of *taken*."""
    stem = slug_from_name(name)[:190].rstrip("-") or new_id()

    def is_taken(slug: str) -> bool:
        if any(slug in slugs for slugs in taken):
            return True
        return kind == "person" and is_suppressed(slug)

    if not is_taken(stem) and not given_slugs(kind, [stem]):
        return stem
    used = set(GivenSlug.objects.filter(kind=kind, slug__startswith=stem).values_list("slug", flat=True))
    for number in count(2):
        slug = f"{stem}-{number}"
        if slug not in used and not is_taken(slug):
            break
    return slug


def reserve_slug(kind: str, name: str) -> str:
    """Reserve a free slug derived from *name*, in the caller's transaction; concurrent calls get different ones."""
    while True:
        slug = free_slug(kind, name)
        _, is_ours = GivenSlug.objects.get_or_create(kind=kind, slug=slug)
        if is_ours:
            return slug


def history_entry(
    run: BatchRun,
    before: JSONObject,
    after: JSONObject,
    record: Record | None = None,
    edits: Edits | None = None,
    **subject: Any,
) -> HistoryEntry:
    """Return the unsaved history entry of an imported row, and record its provenance; values by column."""
    old, new = history_values(before, after, record)
    kept = edits.kept if edits else ()
    for row in subject.values():
        provenance.imported(row, new, kept)
    return history.entry(run.actor, IMPORTED, before=old, after=new, import_run_id=run.import_run, **subject)


def history_values(before: JSONObject, after: JSONObject, record: Record | None) -> tuple[JSONObject, JSONObject]:
    """Return changed columns before and after in the form of the history."""
    old, new = _with_extra(before, after), _with_extra(after, before)
    return history.wire_values(old, record), history.wire_values(new, record)


def _with_extra(columns: JSONObject, others: JSONObject) -> JSONObject:
    """Return *columns* with the changed additional members in the place of all of them."""
    if "extra" not in columns:
        return columns
    mine, other = columns["extra"] or {}, others["extra"] or {}
    values = {name: value for name, value in columns.items() if name != "extra"}
    for name in {**mine, **other}:
        if mine.get(name) != other.get(name):
            values[name] = mine.get(name)
    return values


# ---------------------------------------------------------------- what plugins say of a row
# A row that one refuses is reported like one that breaks a rule.


def is_company_refused(
    run: BatchRun,
    line: int,
    company: Company,
    columns: JSONObject,
    *,
    lists: tuple[JSONObject, JSONObject],
    paths: Mapping[str, str],
) -> bool:
    """
    Return whether a plugin refuses what a row changes, and report why.

    Args:
        columns: the columns of the row; empty for a new listing, which has them.
        lists: the lists beside the listing's object, as they are stored and as the row gives them, in wire form.
        paths: where a line has the members.
    """
    stored, given = lists
    after = {name: rows for name, rows in given.items() if rows != (stored.get(name) or [])}
    before = {name: stored[name] for name in after if name in stored}
    parts = (before, after)
    is_public = columns.get("state", company.state) == State.PUBLISHED
    change = change_of_company(run.actor, company, columns, parts, is_public=is_public, is_import=True)
    faults = plugin_faults(change) if change.fields else []
    for fault in faults:
        beside = fault.field if fault.field in {*given, "distribution"} else f"company.{fault.field}"
        run.tell(line, fault._replace(field=paths.get(fault.field, beside)))
    return bool(faults)


def is_person_refused(run: BatchRun, line: int, person: Person, columns: JSONObject) -> bool:
    """Return whether a plugin refuses what a row changes, and report why; *columns* are empty for a new person."""
    if is_unchecked(run):
        return False
    change = change_of_person(run.actor, person, columns, publishes=not run.draft, is_import=True)
    faults = plugin_faults(change) if change.fields else []
    for fault in faults:
        run.tell(line, fault)
    return bool(faults)


def is_unchecked(run: BatchRun) -> bool:
    """Return whether no plugin checks the rows of an import."""
    return run.restores or not is_checked_by_plugins()  # an undo brings back what was there
