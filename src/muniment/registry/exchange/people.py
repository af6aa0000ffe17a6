"""Import a batch of people."""

from dataclasses import dataclass, field, replace

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry import history
from muniment.registry.exchange.batch import (
    CHANGED,
    NEW,
    UNCHANGED,
    BatchCounts,
    BatchRun,
    PictureMember,
    existing_rows,
    given_columns,
    history_entry,
    import_pictures,
    insert_rows,
    is_person_refused,
    merged_slugs,
    update_row,
    update_rows,
    with_stored_extra,
    without_used_slugs,
)
from muniment.registry.exchange.edits import IMPORTED, Edits, edits_of, remember
from muniment.registry.exchange.keeping import settle_columns
from muniment.registry.exchange.rows import PersonRow, columns_of
from muniment.registry.models import Company, HistoryEntry, Person, UnlistedBy
from muniment.registry.people.suppression import Suppressions
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.schema.validation import Fault


def import_people(run: BatchRun, rows: list[tuple[int, PersonRow]]) -> BatchCounts:
    """Write a batch of people. Imported people are public, except drafts."""
    existing = existing_rows(Person, (row.slug for _, row in rows), lock=not run.dry)
    batch = _Batch(run, edits_of("person", [person.pk for person in existing.values()]))
    kept = _without_removed(run, rows)
    batch.counts.unchanged = len(rows) - len(kept)
    for line, row in _without_bad_values(run, without_used_slugs(run, "person", kept, existing), existing):
        run.settle(row)
        person = existing.get(row.slug)
        if run.skips(line, person):
            batch.leave(line)
        elif person is None:
            batch.add(line, row)
        else:
            batch.change(line, row, person)
    batch.counts.new, batch.counts.changed = len(batch.made), len(batch.changed)
    if not run.dry:
        batch.store()
    return batch.counts


@dataclass(slots=True)
class _Batch:
    """
    The people of a batch, as their rows are read, until they are written together.

    Args:
        edits: what people changed of those that are stored, by primary key.
        adopted: public by a position until now, and listed by themselves from now on.
    """

    run: BatchRun
    edits: dict[int, Edits]
    counts: BatchCounts = field(default_factory=BatchCounts)
    made: list[Person] = field(default_factory=list)
    changed: list[Person] = field(default_factory=list)
    renamed: list[int] = field(default_factory=list)
    adopted: list[int] = field(default_factory=list)
    entries: list[HistoryEntry] = field(default_factory=list)

    def leave(self, line: int) -> None:
        """Report a row that changes nothing."""
        self.counts.unchanged += 1
        self.run.result(line, UNCHANGED, None)

    def add(self, line: int, row: PersonRow) -> None:
        """Add a person who is not stored, unless a plugin refuses the row."""
        run = self.run
        columns = _given(row)
        person = Person(slug=row.slug, listed=not run.draft, updated_at=row.updated_at or now(), **columns)
        if not is_person_refused(run, line, person, {}):
            run.names["person"].add(row.slug)
            self.made.append(person)
            run.result(line, NEW, None)

    def change(self, line: int, row: PersonRow, person: Person) -> None:
        """Change a stored person by a row, except what was changed here since, unless a plugin refuses the row."""
        run = self.run
        columns = given_columns(run, person, _given(row), columns_of(run.schema.person, row.given))
        person_edits = self.edits.get(person.pk)
        self.counts.kept += _settle(run, (line, row), person, columns, person_edits)
        if is_person_refused(run, line, person, columns):
            self.edits.pop(person.pk, None)  # nothing of the row is remembered
            return
        self.adopted += _adopt(run, line, person, columns)
        before = update_row(person, columns, row.updated_at)
        if row.updated_at != person.updated_at:
            run.settled.discard(row.slug)
        if before is None:
            self.leave(line)
            return
        if "name" in before:
            self.renamed.append(person.pk)
        self.changed.append(person)
        after = {name: columns[name] for name in before}
        entry = history_entry(run, before, after, run.schema.person, person_edits, person=person)
        self.entries.append(entry)
        run.result(line, CHANGED, entry)

    def store(self) -> None:
        """Write new and changed people with their history, and publish them."""
        remember("person", self.edits)
        insert_rows("person", self.made)
        update_rows(self.changed)
        Person.objects.filter(pk__in=self.adopted).update(listed=True)
        history.insert_creations(self.run.actor, IMPORTED, "person", self.made, self.run.import_run)
        HistoryEntry.objects.bulk_create(self.entries)
        affected = AffectedRows().person(*(person.pk for person in (*self.made, *self.changed)))
        if self.renamed:
            affected.person_with_companies(*self.renamed)
            Company.objects.filter(pk__in=list(affected.companies)).update(updated_at=now())
        publish(affected)


def _given(row: PersonRow) -> JSONObject:
    """Return the columns of a row; one without a document's id leaves the stored one as it is."""
    columns = dict(row.columns)
    if not columns.get("document_id"):
        columns.pop("document_id", None)
    return columns


def _settle(
    run: BatchRun, numbered: tuple[int, PersonRow], person: Person, columns: JSONObject, edits: Edits | None
) -> int:
    """Keep what people changed, and in a partial import the members that the row lacks; return how many are kept."""
    line, row = numbered
    counts = BatchCounts()
    if edits:
        settle_columns(run, edits, person, columns, run.schema.person)
        run.report_kept(line, edits, {}, counts)
    with_stored_extra(run, person, columns, row.given)
    return counts.kept


def _without_removed(run: BatchRun, rows: list[tuple[int, PersonRow]]) -> list[tuple[int, PersonRow]]:
    """Return the rows of people who were neither erased nor merged into others, and report the rest."""
    suppressed, merged = Suppressions(), merged_slugs(row.slug for _, row in rows)
    kept = []
    for line, row in rows:
        if suppressed.has_person(row.slug, row.columns.get("document_id") or ""):
            run.warn(line, Fault("slug", Phrase("{slug!r} was erased; the row is ignored", slug=row.slug)))
        elif row.slug in merged:
            run.warn(
                line,
                Fault(
                    "slug",
                    Phrase(
                        "{slug!r} was merged into {other!r}; the row is ignored", slug=row.slug, other=merged[row.slug]
                    ),
                ),
            )
        else:
            kept.append((line, row))
    return kept


def _without_bad_values(
    run: BatchRun, rows: list[tuple[int, PersonRow]], existing: JSONObject
) -> list[tuple[int, PersonRow]]:
    kept = []
    for line, row in rows:
        person = existing.get(row.slug)
        has_bad_name = any(breach.path == ("name",) for breach in row.broken)
        if person is None and has_bad_name:  # a new person cannot be without a name
            for breach in row.broken:
                run.tell(line, breach.fault)
        elif row.broken:
            kept.append((line, _corrected(run, line, row, person)))
        else:
            kept.append((line, row))
    import_pictures(run, (PictureMember(line, "picture", row.columns["extra"], "picture") for line, row in kept))
    return kept


def _corrected(run: BatchRun, line: int, row: PersonRow, person: Person | None) -> PersonRow:
    """Return *row* with the stored values in the place of bad ones, or without them."""
    columns = {**row.columns, "extra": dict(row.columns["extra"])}
    for breach in row.broken:
        name = str(breach.path[0])
        field = run.schema.person.by_name.get(name)
        column = field.column if field else ""
        given = columns if column else columns["extra"]
        stored: JSONObject = {}
        if person is not None:
            stored = vars(person) if column else person.extra or {}
        member = column or name  # a field without a column is a member of one
        before, value = stored.get(member), given.pop(member, None)
        if before is not None:
            given[member] = before
        fault = breach.fault
        if before == value:
            run.warn(
                line,
                Fault(
                    fault.field,
                    Phrase("{reason}; it stays, since it is stored already", reason=Phrase.of(fault.reason)),
                ),
            )
        else:
            run.drop(line, Fault(fault.field, Phrase("{reason}; left out", reason=Phrase.of(fault.reason))))
    return replace(row, columns=columns)


def _adopt(run: BatchRun, line: int, person: Person, columns: JSONObject) -> list[int]:
    """List *person* by itself; nothing changes for readers if a position made them public already."""
    if run.draft or not _may_publish(run, line, person):
        return []
    if person.unlisted_by:
        columns["unlisted_by"] = ""
    if person.published and not person.listed:
        person.listed = True
        return [person.pk]
    columns["listed"] = True
    return []


def _may_publish(run: BatchRun, line: int, person: Person) -> bool:
    """Return whether an import may list a person: not a private profile of an account, nor a person taken down."""
    if person.account_id is not None and (not person.listed or person.unlisted_by == UnlistedBy.OWNER):
        if not person.published:
            run.warn(
                line,
                Fault(
                    "",
                    Phrase("{slug!r} is a private profile and stays so; its owner can publish it", slug=person.slug),
                ),
            )
        return False
    if person.unlisted_by and not run.relist:
        run.warn(line, Fault("", Phrase("{slug!r} is unlisted and stays so; --relist publishes it", slug=person.slug)))
        return False
    return True
