"""
Import a batch of companies with their parts.

Parts absent from a row stay unchanged; the company object replaces the stored one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from django.db import models

from muniment.kernel.actor import COMMAND
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry import history, provenance
from muniment.registry.company.parts import PositionRow
from muniment.registry.exchange.bad_values import without_bad_values
from muniment.registry.exchange.batch import (
    CHANGED,
    NEW,
    UNCHANGED,
    BatchCounts,
    BatchRun,
    PictureMember,
    existing_rows,
    given_columns,
    history_values,
    import_pictures,
    insert_rows,
    is_company_refused,
    is_unchecked,
    update_row,
    update_rows,
    with_stored_extra,
    without_used_slugs,
)
from muniment.registry.exchange.edits import IMPORTED, Edits, edits_of, remember
from muniment.registry.exchange.keeping import former_people, settle_columns, settle_lists, settle_rounds
from muniment.registry.exchange.parts import (
    StoredParts,
    give_ids,
    insert_parts,
    part_on_wire,
    place_key,
    rows_of_parts,
    stored_parts,
)
from muniment.registry.exchange.positions import (
    NamedPeople,
    PositionAnswers,
    StoredPositions,
    follow_merges,
    ignore_erased_people,
    keep_private,
    without_unknown_people,
)
from muniment.registry.exchange.rows import CompanyRow, columns_of
from muniment.registry.models import (
    CapTableEntry,
    Company,
    Framework,
    FundingRound,
    HistoryEntry,
    Person,
    Position,
    Proposal,
    State,
)
from muniment.registry.names import former
from muniment.registry.publishing.publisher import AffectedRows, lock_people, publish
from muniment.registry.verification.endings import end_proofs
from muniment.schema.company_parts import POSITIONS
from muniment.schema.kinds import DATE, MONTH
from muniment.schema.objects import Schema
from muniment.schema.validation import Fault

REFERENCE: Final = frozenset({"name", "symbol", "icon", "state", "listed_on"})
"""Columns of a company that people and frameworks show, or that order a person's positions."""


_LISTS: Final[tuple[tuple[str, str, type[models.Model]], ...]] = (
    ("proposals", "proposals", Proposal),
    ("cap_table", "capTable", CapTableEntry),
    ("funding_rounds", "fundingRounds", FundingRound),
)
"""The lists of a row without positions: their names in the row and on the wire, and their tables."""
_NAMES_IN_FILES: Final = (("positions", "positions"), ("proposals", "proposals"), ("cap_table", "capTable"))
"""The lists that can be in files of their own: their names in a row and on the wire."""
_DATES: Final = ("listed_on", "listed_month_only")
"""Two columns, which the history shows as one value."""


def _is_raising(row: CompanyRow) -> bool:
    return any(funding_round.is_open(now().date()) for funding_round in row.funding_rounds or ())


def import_companies(run: BatchRun, rows: list[tuple[int, CompanyRow]]) -> BatchCounts:
    """Write a batch of companies with their parts, and the people that only their positions name."""
    return _CompanyBatch(run).write(rows)


def stored_line(company: Company, schema: Schema) -> JSONObject:
    """Return a stored listing in the form of its line."""
    return _CompanyBatch(BatchRun(COMMAND, schema, dry=True)).on_wire(company, stored_parts([company.pk]))


class _CompanyBatch:
    """One batch: rows to create, to change and to publish."""

    def __init__(self, run: BatchRun) -> None:
        self.run = run
        self.counts = BatchCounts()
        self.made: list[Company] = []
        self.changed: list[Company] = []
        self.order: list[Company] = []
        self.entries: list[HistoryEntry] = []
        self.entries_of_run: dict[int, HistoryEntry] = {}
        """The entries of this import, by the key of the company, if files of lists change it once more."""
        self.extended_entries: list[HistoryEntry] = []
        self.new_parts: list[tuple[Company, CompanyRow, list[PositionRow] | None]] = []
        self.stale: dict[type[models.Model], list[int]] = defaultdict(list)
        self.affected_people: dict[int, None] = {}
        self.named_people: dict[int, None] = {}
        """People whom a row names. Those whose documents show what is not true any more are affected, too."""
        self.described: list[int] = []
        self.moved: list[int] = []
        """Companies with another website."""
        self.is_checked = False
        """Whether a plugin checks the rows."""
        self.answers = PositionAnswers()
        self.edits: dict[int, Edits] = {}
        self.paths: dict[str, str] = {}
        """The paths in a line of the members of the company's object; its parts are beside that object."""
        for field in run.schema.company.fields:
            if field.column != "distribution":
                self.paths[field.name] = f"company.{field.name}"

    def write(self, rows: list[tuple[int, CompanyRow]]) -> BatchCounts:
        """Compare, write and publish."""
        self.is_checked = not is_unchecked(self.run)
        stored = existing_rows(Company, (row.slug for _, row in rows), lock=not self.run.dry)
        parts = stored_parts([company.pk for company in stored.values()])
        if self.run.import_run and any(row.only_lists for _, row in rows):
            self.entries_of_run = self._entries_of(self.run.import_run, stored.values())
        rows = self._corrected(rows, stored, parts)
        self._leave_lists_to_files(rows)
        self.answers = PositionAnswers.read(stored.values())
        people = NamedPeople.read(self.run, _slugs_of_people(rows, parts["positions"].values()))
        keep_private(self.run, rows, people, parts["positions"], stored)
        for line, row in without_unknown_people(self.run, rows, people):
            company = stored.get(row.slug)
            if company is not None:
                self._compare(line, row, company, parts, people)
            elif row.only_lists:
                self._count_lists_of_new(line, row)
            else:
                self._new(line, row, people)
        if not self.run.dry:
            self._write(people)
        return self.counts

    def _entries_of(self, import_run: int, companies: Iterable[Company]) -> dict[int, HistoryEntry]:
        """Return the first entry that an import has made of each company, by the company's key."""
        entries = HistoryEntry.objects.filter(import_run_id=import_run, company__in=companies)
        # Of several entries of a company, the first one is last here and stays.
        return {entry.company_id or 0: entry for entry in entries.order_by("-pk")}

    def _corrected(
        self, rows: list[tuple[int, CompanyRow]], stored: Mapping[str, Company], parts: StoredParts
    ) -> list[tuple[int, CompanyRow]]:
        """Return the rows that can be stored, without values that cannot be true and people who were erased."""
        rows = without_used_slugs(self.run, "company", rows, dict(stored))
        by_key = {company.pk: company for company in stored.values()}
        self.edits = edits_of("company", list(by_key), lambda key, member: self._member(by_key[key], member, parts))
        rows = without_bad_values(self.run, rows, lambda slug: self.on_wire(stored.get(slug), parts))
        import_pictures(self.run, (PictureMember(line, "company.icon", row.columns, "icon") for line, row in rows))
        ignore_erased_people(self.run, rows)
        follow_merges(rows)
        return rows

    def _leave_lists_to_files(self, rows: list[tuple[int, CompanyRow]]) -> None:
        """Ignore the lists of companies that have a file of their own, which otherwise would be written twice."""
        for line, row in rows:
            if row.only_lists:
                continue
            for name, member in _NAMES_IN_FILES:
                if row.slug not in self.run.lists_in_files.get(member, ()):
                    continue
                if getattr(row, name):
                    said = "is ignored, because the list of this company is in a file of its own"
                    self.run.warn(line, Fault(member, said))
                setattr(row, name, None)

    def on_wire(self, company: Company | None, parts: StoredParts) -> JSONObject:
        """Return a stored listing in the form of its line; empty for a new one."""
        if company is None:
            return {}
        record = self.run.schema.company
        return {
            "company": {**record.exact(vars(company)), **(company.extra or {})},
            "distribution": company.distribution,
            "positions": [place.to_document() for place, _ in parts["positions"][company.pk]],
            "proposals": parts["proposals"][company.pk],
            "capTable": parts["cap_table"][company.pk],
            "fundingRounds": part_on_wire(parts["funding_rounds"][company.pk], self.run.schema.funding_round),
        }

    def _member(self, company: Company, member: str, parts: StoredParts) -> Any:
        """Return a stored member of a listing, of its object or beside it."""
        line = self.on_wire(company, parts)
        return line[member] if member in line else line["company"].get(member)

    def _places(self, row: CompanyRow, stored: StoredPositions, people: NamedPeople) -> list[PositionRow] | None:
        """Return the positions of a row with their people and ids; None if the row does not give them."""
        if row.positions is None:
            return None
        places = people.resolved(row.positions, stored)
        # Only now, because the id of a position is derived from the slug of its person.
        documents = [place.to_document() for place in places]
        stored_documents = [place.to_document() for place, _ in stored]
        numbered = POSITIONS.with_ids(documents, stored_documents)
        return [place._replace(item_id=document["id"]) for place, document in zip(places, numbered, strict=True)]

    def _count_lists_of_new(self, line: int, row: CompanyRow) -> None:
        """Count the lists of a company that is not stored: a rehearsal has not created it, otherwise it is unknown."""
        if row.slug in self.run.names["company"]:
            self.counts.changed += 1
        else:
            reason = Phrase("is unknown: no company has the id {slug!r}", slug=row.slug)
            self.run.tell(line, Fault("company.id", reason))

    def _new(self, line: int, row: CompanyRow, people: NamedPeople) -> None:
        give_ids(row, self.run.schema.funding_round)
        former_names = row.columns.pop("former_names", None)
        company = Company(
            slug=row.slug,
            state=State.DRAFT if self.run.draft else State.PUBLISHED,
            updated_at=row.updated_at or now(),
            raising=_is_raising(row),
            **row.columns,
        )
        company.former_names = former.of_import(company, company.name, former_names)
        places = self._places(row, [], people)
        if self._is_refused(line, company, {}, lambda: self._lists(row, places, people), {}):
            return
        self.counts.new += 1
        self.run.result(line, NEW, None)
        self.run.names["company"].add(row.slug)
        self._remember_date(row, self.run.dated)
        self.made.append(company)
        self.order.append(company)
        self.new_parts.append((company, row, places))

    def _compare(self, line: int, row: CompanyRow, company: Company, parts: StoredParts, people: NamedPeople) -> None:
        """Change a stored company, unless drafts leave it as it is."""
        self.answers.leave_out_refused(company, row, self.run, line)
        if self.run.skips(line, company):
            self.counts.unchanged += 1
            self.run.result(line, UNCHANGED, None)
        else:
            self._change(line, row, company, parts, people)

    def _change(self, line: int, row: CompanyRow, company: Company, parts: StoredParts, people: NamedPeople) -> None:
        of_company = {name: parts_by_key[company.pk] for name, parts_by_key in parts.items()}
        columns = self._settle(line, row, company, of_company, people)
        stored: StoredPositions = parts["positions"][company.pk]
        places = self._places(row, stored, people)
        if self._is_refused(line, company, columns, lambda: self._lists(row, places, people), parts):
            return
        before: JSONObject = {}
        after: JSONObject = {}
        if places is not None and _is_same_team(places, stored):
            places = None
        if places is not None:
            before["positions"] = [place.to_document() for place, _ in stored]
            after["positions"] = _on_wire(places, people)
            self.stale[Position].append(company.pk)
            self._affect(stored)
        changed_lists = self._changed_lists(row, company, parts, before, after)
        updated_at = company.updated_at
        replaced = update_row(company, columns, row.updated_at, other_changes=bool(after))
        if replaced is None:
            self.counts.unchanged += 1
            self.run.result(line, UNCHANGED, None)
            if row.updated_at == updated_at:
                self._remember_date(row, self.run.dated_before)
            return
        if self._belongs_to_row(row, before):
            company.updated_at = updated_at
        self._remember_date(row, self.run.dated)
        self.counts.changed += 1
        self.changed.append(company)
        self.order.append(company)
        self.new_parts.append((company, changed_lists, places))
        entry = self._remember_change(company, columns, replaced, before, after)
        self.run.result(line, CHANGED, entry)
        self._add_affected(company, replaced, stored)

    def _add_affected(self, company: Company, former: JSONObject, stored: StoredPositions) -> None:
        """Remember the proofs and other documents that depend on columns whose *former* values changed."""
        if "website" in former:
            self.moved.append(company.pk)
        if REFERENCE & former.keys():
            self._affect(stored)
        if {*REFERENCE, "description"} & former.keys():
            self.described.append(company.pk)

    def _remember_date(self, row: CompanyRow, dated: set[str]) -> None:
        if row.updated_at and self.run.lists_in_files:
            dated.add(row.slug)

    def _belongs_to_row(self, row: CompanyRow, before: JSONObject) -> bool:
        """Return whether *row* has only lists, which are part of the change that the line of the company brought."""
        is_first = not any(before.values())
        is_of_line = row.slug in self.run.dated or (is_first and row.slug in self.run.dated_before)
        return row.only_lists and is_of_line

    def _changed_lists(
        self, row: CompanyRow, company: Company, parts: StoredParts, before: JSONObject, after: JSONObject
    ) -> CompanyRow:
        """Return a row with only the lists that change, and add these in wire form to *before* and *after*."""
        changed = CompanyRow(row.slug, {})
        for name, member, model in _LISTS:
            of_file, stored = getattr(row, name), parts[name][company.pk]
            if of_file is None or of_file == stored:
                continue
            setattr(changed, name, of_file)
            before[member] = part_on_wire(stored, self.run.schema.funding_round)
            after[member] = part_on_wire(of_file, self.run.schema.funding_round)
            self.stale[model].append(company.pk)
        if changed.funding_rounds is not None:
            company.raising = _is_raising(changed)
        return changed

    def _affect(self, stored: StoredPositions) -> None:
        """Publish the people in *stored* positions again, whose documents show the company."""
        self.affected_people.update(dict.fromkeys(person for _, person in stored if person))

    def _remember_change(
        self, company: Company, columns: JSONObject, former: JSONObject, before: JSONObject, after: JSONObject
    ) -> HistoryEntry:
        """Record in the history what changed: columns, of which *former* are the previous values, and lists."""
        if "name" in former:
            former.pop("former_names", None)  # the history of names has them
        new_values = {name: columns[name] for name in former}
        old, new = history_values(_without_dates(former), _without_dates(new_values), self.run.schema.company)
        before |= old | _listing_date(former, columns)
        after |= new | _listing_date(new_values, columns)
        edits = self.edits.get(company.pk)
        provenance.imported(company, after, edits.kept if edits else ())
        import_run = self.run.import_run
        entry = history.entry(
            self.run.actor, IMPORTED, before=before, after=after, company=company, import_run_id=import_run
        )
        self._add_entry(company, entry)
        return entry

    def _add_entry(self, company: Company, entry: HistoryEntry) -> None:
        """Add an entry, or add its fields to the one that this import has made: an undo restores one entry."""
        of_run = self.entries_of_run.get(company.pk)
        if of_run is None or set(of_run.changed) & set(entry.changed):
            self.entries.append(entry)
        elif of_run.before or of_run.after:
            of_run.before |= entry.before
            of_run.after |= entry.after
            of_run.parts = {**(of_run.parts or {}), **(entry.parts or {})} or None
            of_run.changed += entry.changed
            self.extended_entries.append(of_run)
        # Otherwise this import has created the company, with its lists.

    def _lists(self, row: CompanyRow, places: list[PositionRow] | None, people: NamedPeople) -> JSONObject:
        """Return the lists that a row gives, in wire form."""
        lists: JSONObject = {}
        if places is not None:
            lists["positions"] = _on_wire(places, people)
        for name, member, _ in _LISTS:
            part = getattr(row, name)
            if part is not None:
                lists[member] = part_on_wire(part, self.run.schema.funding_round)
        return lists

    def _is_refused(
        self, line: int, company: Company, columns: JSONObject, lists: Callable[[], JSONObject], of: StoredParts
    ) -> bool:
        if not self.is_checked:
            return False  # without a plugin, nothing is encoded for it
        stored_lists = self.on_wire(company, of) if company.pk else {}
        both = (stored_lists, lists())
        if not is_company_refused(self.run, line, company, columns, lists=both, paths=self.paths):
            return False
        self.edits.pop(company.pk, None)  # nothing of the row is remembered
        return True

    def _settle(
        self, line: int, row: CompanyRow, company: Company, parts: Mapping[str, list[Any]], people: NamedPeople
    ) -> JSONObject:
        """Set the ids of rows, and keep what people changed and decided; return the columns to store."""
        edits = self.edits.get(company.pk)
        if edits:
            stored = parts.get("positions", [])
            places = None if row.positions is None else self._resolve(row.positions, stored, people, edits)
            settle_lists(self.run, row, edits, parts, places)
        give_ids(row, self.run.schema.funding_round, parts, company)
        if row.only_lists:
            if edits:
                self.run.report_kept(line, edits, self.paths, self.counts)
            return {}
        record = self.run.schema.company
        columns = given_columns(self.run, company, dict(row.columns), columns_of(record, row.given) | {"distribution"})
        given_former_names = columns.pop("former_names", None)
        if edits:
            settle_rounds(self.run, row, edits, parts.get("funding_rounds", []))
            settle_columns(self.run, edits, company, columns, record)
            self.run.report_kept(line, edits, self.paths, self.counts)
        with_stored_extra(self.run, company, columns, row.given)
        # After the edits, because a name that a person changed stays, and is no former one.
        self._set_former_names(company, columns, given_former_names)
        if not self.run.draft and self._may_publish(line, company, edits):
            columns |= {"state": State.PUBLISHED, "unlisted_by": ""}
        return columns

    def _set_former_names(self, company: Company, columns: JSONObject, given: Any) -> None:
        """Set the former names of a row; *given* are those of its line, None if it has none."""
        if self.run.restores:
            if "name" in columns:
                columns["former_names"] = former.without(company.former_names, columns["name"])
        elif given is not None or columns["name"] != company.name:
            columns["former_names"] = former.of_import(company, columns["name"], given)

    def _resolve(
        self, places: list[PositionRow], stored: StoredPositions, people: NamedPeople, edits: Edits
    ) -> list[PositionRow]:
        """Return *places* with their people, also those whose positions were removed since an import brought them."""
        former = former_people(places, edits)
        people.known |= {person.slug: person for person in former.values()}
        return people.resolved(places, stored, {name: person.slug for name, person in former.items()})

    def _may_publish(self, line: int, company: Company, edits: Edits | None) -> bool:
        """Return whether a listing may be public: not what was taken down, nor what a person has yet to submit."""
        is_draft_of_import = company.state == State.DRAFT and not edits
        if company.state == State.PUBLISHED or is_draft_of_import or self.run.relist:
            return True
        state = company.get_state_display().lower()
        self.run.warn(
            line,
            Fault(
                "",
                Phrase(
                    "{slug!r} is {state} and stays so; --relist publishes it", slug=company.slug, state=Phrase(state)
                ),
            ),
        )
        return False

    def _write(self, people: NamedPeople) -> None:
        insert_rows("person", list(people.made.values()))
        insert_rows("company", self.made)
        update_rows(self.changed)
        if self.moved:
            end_proofs(self.moved)
        for model, keys in self.stale.items():
            model._default_manager.filter(company_id__in=keys).delete()  # noqa: SLF001 - Django's public name
        insert_parts(self._rows_of_new_parts(people))
        self.answers.settle((company, places) for company, _, places in self.new_parts if places is not None)
        run = self.run
        history.insert_creations(run.actor, IMPORTED, "company", self.made, run.import_run)
        HistoryEntry.objects.bulk_create(self.entries)
        if self.extended_entries:
            HistoryEntry.objects.bulk_update(self.extended_entries, ["before", "after", "parts", "changed"])
        remember("company", self.edits)
        self._publish(people)

    def _rows_of_new_parts(self, people: NamedPeople) -> Iterator[models.Model]:
        for company, row, places in self.new_parts:
            yield from self._positions(company, places or (), people)
            yield from rows_of_parts(company, row)

    def _positions(self, company: Company, places: Iterable[PositionRow], people: NamedPeople) -> Iterator[Position]:
        """Yield the unsaved positions of a company; people who have one are published again."""
        for rank, place in enumerate(places):
            person = people.known.get(place.slug) or people.made.get(place.slug)
            if person:
                self.named_people[person.pk] = None
            yield Position(
                company_id=company.pk,
                rank=rank,
                person_id=person.pk if person else None,
                name="" if person else place.name,
                item_id=place.item_id,
                title=place.title,
                extra=place.extra,
            )

    def _publish(self, people: NamedPeople) -> None:
        # New people, and those whose row of this import has a time of change, are dated already.
        dated = {person.pk for person in people.made.values()}
        for slug, person in people.known.items():
            if slug in self.run.settled:
                dated.add(person.pk)
        later = {}
        if self.run.is_long:
            later = {key: key in dated for key in self.named_people if key not in self.affected_people}
            lock_people(later)
        else:
            self.affected_people |= self.named_people
        undated = [key for key in self.affected_people if key not in dated]
        Person.objects.filter(pk__in=undated).update(updated_at=now())
        affected = AffectedRows(people=self.affected_people, later=later)
        affected.company(*(company.pk for company in self.order))
        if self.described:
            affected.frameworks_of(*self.described)
            Framework.objects.filter(pk__in=list(affected.frameworks)).update(updated_at=now())
        publish(affected)


def _slugs_of_people(rows: Iterable[tuple[int, CompanyRow]], stored: Iterable[StoredPositions]) -> set[str]:
    """Return the slugs of the people whom rows or stored positions name."""
    slugs: set[str] = set()
    for _, row in rows:
        slugs.update(place.slug for place in row.positions or () if place.slug)
    for places in stored:
        slugs.update(place.slug for place, _ in places)
    return slugs


def _on_wire(places: Iterable[PositionRow], people: NamedPeople) -> list[JSONObject]:
    return [place._replace(name=people.name_of(place)).to_document() for place in places]


def _is_same_team(places: Iterable[PositionRow], stored: StoredPositions) -> bool:
    return [place_key(place) for place in places] == [place_key(place) for place, _ in stored]


def _without_dates(values: JSONObject) -> JSONObject:
    return {name: value for name, value in values.items() if name not in _DATES}


def _listing_date(values: JSONObject, columns: JSONObject) -> JSONObject:
    """Return a listing date that is among changed *values* as the history has it: its day, or only its month."""
    if not values.keys() & {*_DATES}:
        return {}
    # Of the two columns, only the changed ones are among the values.
    day, is_month = (values.get(name, columns[name]) for name in _DATES)
    if day is None or not is_month:
        return {"listedAt": DATE.wire(day)}
    return {"listedAt": None, "createdAt": MONTH.wire(day)}
