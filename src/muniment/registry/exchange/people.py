"""A batch of imported people becomes rows of the tables."""

from typing import Any

from muniment.kernel.ids import new_id, now
from muniment.registry.exchange.batch import (
    BatchCounts,
    BatchRun,
    alter,
    imported,
    make,
    not_given_before,
    save,
    standing_rows,
)
from muniment.registry.exchange.rows import PersonRow
from muniment.registry.models import Company, HistoryEntry, Person
from muniment.registry.publishing.publisher import Touched, publish


def import_people(run: BatchRun, rows: list[tuple[int, PersonRow]]) -> BatchCounts:
    """Write a batch of people. Imported people are public, unless as drafts."""
    counts = BatchCounts()
    standing = standing_rows(Person, (row.slug for _, row in rows), lock=not run.dry)
    made: list[Person] = []
    changed: list[Person] = []
    renamed: list[int] = []
    adopted: list[int] = []
    entries: list[HistoryEntry] = []
    for line, row in not_given_before(run, "person", rows, standing):
        run.settle(row)
        person = standing.get(row.slug)
        if run.leaves(line, person):
            counts.unchanged += 1
            continue
        columns = {name: value for name, value in row.columns.items() if value or name != "document_id"}
        if person is None:
            run.names["person"].add(row.slug)
            columns.setdefault("document_id", new_id())
            person = Person(slug=row.slug, listed=not run.draft, updated_at=row.updated_at or now(), **columns)
            made.append(person)
            entries.append(imported(run, {}, {}, person=person))
            continue
        adopted += _adopt(run, person, columns)
        before = alter(person, columns, row.updated_at)
        if row.updated_at != person.updated_at:
            run.settled.discard(row.slug)
        if before is None:
            counts.unchanged += 1
            continue
        if "name" in before:
            renamed.append(person.pk)
        changed.append(person)
        after = {name: columns[name] for name in before}
        entries.append(imported(run, before, after, run.schema.person, person=person))
    counts.new, counts.changed = len(made), len(changed)
    if run.dry:
        return counts
    make("person", made)
    save(changed)
    Person.objects.filter(pk__in=adopted).update(listed=True)
    HistoryEntry.objects.bulk_create(entries)
    touched = Touched().person(*(person.pk for person in (*made, *changed)))
    if renamed:
        touched.person_with_companies(*renamed)
        Company.objects.filter(pk__in=list(touched.companies)).update(updated_at=now())
    publish(touched)
    return counts


def _adopt(run: BatchRun, person: Person, columns: dict[str, Any]) -> list[int]:
    """Make *person* public by itself; one who was so through a position changes nothing that is shown."""
    if person.published and not person.listed:
        person.listed = True
        return [person.pk]
    if not run.draft:
        columns["listed"] = True
    return []
