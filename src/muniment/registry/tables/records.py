"""
Turn tables into the lines of an import by their mapping: companies with their people, and people.

Rows about the same company are one line. What a row lacks is not in its line, so that an import keeps what is stored.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from muniment.kernel.http.representations import digest
from muniment.kernel.ids import new_id, slug_from_name
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry.models import Company, GivenSlug, Person
from muniment.registry.people.positions import team_of
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE, catalogue, key
from muniment.registry.tables.fields import (
    EXTRA,
    HOUSE_NUMBER,
    PEOPLE_FIELD,
    ROW_KEY,
    SKIP,
    Column,
    is_list,
    is_of_vocabulary,
)
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.headings import are_groups, group_of, header_row, headings_of, width_of_headings
from muniment.registry.tables.keeping import key_of, names_to_keep
from muniment.registry.tables.mapping import FileMapping, TableMapping
from muniment.registry.tables.persons import PersonInCell, full_name, split
from muniment.registry.tables.values import Lost, Noted, address_of, ends_with_name_of_both, people_in, value_of
from muniment.schema.company_parts import person_key

SHOWN_ROWS: Final = 5


class Loss(NamedTuple):
    """
    A value, a row or a column that is left out or changed.

    Args:
        table: the name of the table.
        row: its number in the file; 0 for a whole column or table.
        column: its heading; "" for a whole row.
        reason: what is wrong, the same for values with the same fault.
        example: the value.
        fix: what to do about it.
        is_whole: the row, or the table, is not imported.
    """

    table: str
    row: int
    column: str
    reason: str
    example: str = ""
    fix: str = ""
    is_whole: bool = False


@dataclass(slots=True)
class LossGroup:
    """Losses with the same reason in the same column."""

    first: Loss
    rows: list[int] = field(default_factory=list)
    count: int = 0

    def __str__(self) -> str:
        loss = self.first
        place = ": ".join(filter(None, (loss.table, loss.column)))
        sentence = f"{place}: {loss.reason}" if place else loss.reason
        if loss.example:
            sentence += f', for example "{_short(loss.example)}"'
        if self.rows:
            noun = "row" if len(self.rows) == 1 else "rows"
            numbers = ", ".join(f"{row:,}" for row in self.rows[:SHOWN_ROWS])
            if len(self.rows) > SHOWN_ROWS:
                numbers += ", …"
            sentence += f" ({len(self.rows):,} {noun}: {numbers})"
        return f"{sentence}. {loss.fix}" if loss.fix else f"{sentence}."


def _short(text: str) -> str:
    plain = re.sub(r"\s+", " ", text)
    return plain if len(plain) <= 60 else f"{plain[:59]}…"


def grouped(losses: Iterable[Loss]) -> list[LossGroup]:
    """Return *losses* in groups, the largest first."""
    groups: dict[tuple[str, str, str], LossGroup] = {}
    for loss in losses:
        group = groups.setdefault((loss.table, loss.column, common_reason(loss.reason)), LossGroup(loss))
        group.count += 1
        # The losses of a row follow one another, and a row is named once.
        if loss.row and loss.row not in group.rows[-1:]:
            group.rows.append(loss.row)
    return sorted(groups.values(), key=lambda group: -group.count)


def common_reason(reason: str) -> str:
    """Return what reasons that quote different values have in common, so that faults of one kind are one group."""
    if not isinstance(reason, Phrase) or not reason.values:
        return str(reason)
    reasons_within = [common_reason(value) for value in reason.values.values() if isinstance(value, Phrase)]
    return " ".join([reason.template, *reasons_within])


def lines_of(losses: Iterable[Loss]) -> Iterator[str]:
    """Yield a line for each group of losses."""
    yield from map(str, grouped(losses))


_SLUG_CHARACTERS: Final = 190


def name_key(name: str) -> str:
    """Return what two spellings of a name share: letters and digits without accents and signs."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(sign for sign in plain if sign.isalnum())


_VOCABULARIES: Final = ("type", "industry", "orgKind")


@dataclass(slots=True)
class KnownRows:
    """
    The stored rows by name, and every slug that was ever given.

    Args:
        names: the names of the companies, by slug.
        people: those that no account owns: a name alone does not say that a row means an account's profile.
        remembered: the slugs of the rows of the last import of the same source, by kind and the row's key.
        words: by field and key, the words of vocabularies as they are written.
    """

    companies: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    people: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    names: dict[str, str] = field(default_factory=dict)
    used: dict[str, set[str]] = field(default_factory=lambda: {"company": set(), "person": set()})
    remembered: dict[str, dict[str, str]] = field(default_factory=dict)
    words: dict[str, dict[str, str]] = field(default_factory=dict)
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def read(cls, remembered: dict[str, dict[str, str]] | None = None) -> "KnownRows":
        stored = cls(remembered=remembered or {})
        uses_of_words: Counter[tuple[str, str]] = Counter()
        rows = Company.objects.order_by("pk").values_list("slug", "name", "type", "industry", "org_kind")
        for slug, name, *vocabulary in rows.iterator():
            stored.companies[name_key(name)].append(slug)
            stored.names[slug] = name
            uses_of_words.update(zip(_VOCABULARIES, vocabulary, strict=True))
        # Of several spellings of a word, the one that most rows have is kept.
        for (member, word), _ in uses_of_words.most_common():
            stored.words.setdefault(member, {}).setdefault(key(word) or word, word)
        people = Person.objects.filter(account=None).order_by("pk")
        for slug, name in people.values_list("slug", "name").iterator():
            stored.people[name_key(name)].append(slug)
        for kind, slug in GivenSlug.objects.filter(kind__in=stored.used).values_list("kind", "slug").iterator():
            stored.used[kind].add(slug)
        return stored

    def new_slug(self, kind: str, name: str) -> str:
        """Return a slug that was never given; slugs of erased people are, and the importer ignores their rows."""
        stem = slug_from_name(name)[:_SLUG_CHARACTERS].rstrip("-") or new_id()
        slug, number = stem, self._numbers.get((kind, stem), 1)
        while slug in self.used[kind]:
            number += 1
            slug = f"{stem}-{number}"
        self._numbers[kind, stem] = number
        self.used[kind].add(slug)
        return slug


_USUAL_CELLS: Final = 3
"""Cells with a value in the rows of a table below which a single one can be a note."""
_NOTE_WORDS: Final = 8
"""Words from which on a text is a sentence."""
_ONE_FIELD: Final = "Map one of the columns to another field."
_OF_ITS_PARTS: Final = frozenset({"slug", "name", "name.first", "name.last", "position.title", "position.company"})
"""Values of a person's row that are no member of the person, or of which one is made."""
_NUMBER_BEFORE_STREET: Final = re.compile(
    r"^(?:rue|avenue|av\.?|boulevard|bd\.?|place|all[ée]e|chemin|impasse|quai|route|cours)\b"
    r"|\b(?:street|st|road|rd|avenue|ave|lane|ln|drive|dr|boulevard|blvd|way|court|square|close|crescent|terrace)\.?$",
    re.IGNORECASE,
)
"""Streets of French and English, in which the number comes first."""
_NUMBER_AFTER_CITY: Final = re.compile(r"(.*\S)\s*\(\d[\d.,'’\s]*\)")
_COMPARED: Final = 100
"""Companies of one name that a further row of the name is compared with."""
_encoded = msgspec.json.Encoder(order="deterministic").encode


@dataclass(slots=True)
class RowRecord:
    """
    What the rows of tables say of a company or a person. ``members`` are those of its object.

    Args:
        key: what the source has for its key; "" if it has none.
    """

    row: int
    slug: str
    members: JSONObject
    key: str = ""
    _entries: dict[str, set[bytes]] = field(default_factory=dict)
    """The entries of lists that rows are combined to, encoded: a name may be that of every row of a table."""

    def add_entries(self, member: str, entries: Sequence[Any]) -> None:
        """Add the entries that a list of the company does not have."""
        own_entries = self.members[member]
        encoded_entries = self._entries.get(member)
        if encoded_entries is None:
            encoded_entries = self._entries[member] = {_encoded(entry) for entry in own_entries}
        for entry in entries:
            encoded = _encoded(entry)
            if encoded not in encoded_entries:
                encoded_entries.add(encoded)
                own_entries.append(entry)


@dataclass(slots=True)
class CompanyRecord(RowRecord):
    """
    A company of the tables, with the positions of its people.

    Args:
        is_named_only: no row is about it; rows of people name it.
    """

    people: list[PersonInCell] = field(default_factory=list)
    is_stored: bool = False
    is_named_only: bool = False
    _seen: set[PersonInCell] = field(default_factory=set)

    def add_people(self, people: Sequence[PersonInCell]) -> None:
        """Add the people that the company does not have."""
        if not self._seen:
            self._seen.update(self.people)
        for person in people:
            if person not in self._seen:
                self._seen.add(person)
                self.people.append(person)


@dataclass(slots=True)
class Records:
    """
    The records in tables: lines by kind, each with its row, and the losses.

    Args:
        keys: the slugs of the rows that the tables are about, by kind and key; people whom a company's row names have
            no row of their own.
    """

    companies: list[tuple[int, JSONObject]] = field(default_factory=list)
    people: list[tuple[int, JSONObject]] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    keys: dict[str, dict[str, str]] = field(default_factory=dict)


class _Row(NamedTuple):
    table: str
    number: int
    values: JSONObject
    people: list[PersonInCell]
    headings: dict[str, str]
    """The heading of the column that holds a field."""
    key: str = ""
    """What the source has for its key."""
    combines: bool = False
    """Whether it is about the organization of an earlier row with its key or name, whatever its values are."""


def records_of(sheets: Sequence[Sheet], mapping: FileMapping, known: KnownRows, currency: str) -> Records:
    """Return the lines of all tables; companies first, since people can name them."""
    work = _Conversion(mapping, known, currency)
    pairs = work.mapped(sheets)
    for sheet, table in pairs:
        if table.kind == SKIP:
            fix = 'Set its kind, and field = "name" on a column.'
            work.losses.append(
                Loss(sheet.name, 0, "", "is left out: no column is the name of a row", fix=fix, is_whole=True)
            )
        elif table.kind == COMPANIES:
            for row in work.rows(sheet, table):
                work.add_company(row)
    for sheet, table in pairs:
        if table.kind == PEOPLE:
            for row in work.rows(sheet, table):
                work.add_person(row)
    return work.finish()


def table_of(mapping: FileMapping, sheet: Sheet, sheets: int) -> TableMapping | None:
    """Return the mapping of *sheet*: by its name, or the only one for the only table of a file."""
    for table in mapping.table:
        if table.name == sheet.name:
            return table
    is_only = sheets == 1 and len(mapping.table) == 1
    return mapping.table[0] if is_only else None


class _Conversion:
    """The state of one conversion."""

    def __init__(self, mapping: FileMapping, known: KnownRows, currency: str) -> None:
        self.mapping, self.known, self.currency = mapping, known, currency
        self.losses: list[Loss] = []
        self.companies: dict[str, list[CompanyRecord]] = {}
        self.people: dict[str, RowRecord] = {}
        self.named: dict[str, str] = {}
        self.keys: dict[str, dict[str, str]] = {"company": {}, "person": {}}
        self.taken: dict[str, set[str]] = {"company": set(), "person": set()}
        self.repeats: Counter[tuple[str, str]] = Counter()
        self.own_keys: dict[str, set[str]] = {"company": set(), "person": set()}
        self.by_key: dict[str, CompanyRecord] = {}
        self.people_by_key: dict[str, str] = {}

    def mapped(self, sheets: Sequence[Sheet]) -> list[tuple[Sheet, TableMapping]]:
        """Return the sheets that have a table in the mapping, and report the others."""
        for sheet in sheets:
            self.losses += [Loss(sheet.name, 0, "", note.rstrip(".")) for note in sheet.notes]
        pairs = []
        for sheet in sheets:
            table = table_of(self.mapping, sheet, len(sheets))
            if table is not None:
                pairs.append((sheet, table))
            else:
                self.losses.append(Loss(sheet.name, 0, "", "is not in the mapping and is left out", is_whole=True))
        return pairs

    # ------------------------------------------------------------------ cells

    def rows(self, sheet: Sheet, table: TableMapping) -> Iterator[_Row]:
        """Yield the rows of a table with their values."""
        at, headings = _headings(sheet, table)
        columns = _columns_in_file(table, headings)
        self._report_columns(sheet, table, at, headings)
        self._report_rows_above(sheet, table)
        self._report_cells_beyond(sheet, at)
        # A file of several parts repeats its headings, and those of the groups over them.
        repeated = {tuple(headings), *map(tuple, sheet.rows[max(0, at - 2) : at])}
        typical = _typical_cells(sheet.rows[at : at + 200])
        after_blank = False
        for number, cells in enumerate(sheet.rows[at:], at + 1):
            if not any(cells):
                after_blank = True
                continue
            is_repeated = tuple(cells) in repeated
            loss = _loss_of_row(sheet, number, cells, typical, is_repeated=is_repeated, after_blank=after_blank)
            if loss is not None:
                self.losses.append(loss)
                continue
            row = self._row(sheet, number, cells, columns)
            yield row._replace(combines=table.combine == "yes")
            after_blank = False

    def _report_rows_above(self, sheet: Sheet, table: TableMapping) -> None:
        """Report the rows above the headings, with what they say."""
        above = sheet.rows[: max(0, table.header - 1)]
        if above and are_groups(above[-1]):
            above = above[:-1]  # which are parts of the headings
        for number, cells in enumerate(above, 1):
            text = " · ".join(dict.fromkeys(filter(None, cells)))
            if text:
                self.losses.append(
                    Loss(sheet.name, number, "", "is above the headings, and is left out", text, is_whole=True)
                )

    def _report_cells_beyond(self, sheet: Sheet, at: int) -> None:
        """Report the rows of a text that have more cells than there are headings."""
        if not sheet.delimiter or not at:
            return
        width = width_of_headings(sheet.rows, at - 1)
        for number, cells in enumerate(sheet.rows[at:], at + 1):
            if any(cells[width:]):
                reason = "has more cells than there are headings, so values may be in the wrong columns"
                fix = "Put cells with separators or decimal commas in quotation marks."
                self.losses.append(Loss(sheet.name, number, "", reason, " · ".join(filter(None, cells[width:])), fix))

    def _report_columns(self, sheet: Sheet, table: TableMapping, at: int, headings: list[str]) -> None:
        """Report the columns of the file that are not mapped, and those of the mapping that the file has not."""
        mapped = {column.heading for column in table.column if column.field}
        names = {table.column[place].heading: name for place, name in names_to_keep(table, headings).items()}
        for n, heading in enumerate(headings):
            if heading in mapped:
                continue
            example = next((row[n] for row in sheet.rows[at:] if row[n]), "")
            if example:
                fix = Phrase(
                    'Set its field in the mapping, or keep it: field = "{extra}{member}".',
                    extra=EXTRA,
                    member=names.get(heading) or key_of(heading, n + 1),
                )
                column = heading or Phrase("column {number}", number=n + 1)
                self.losses.append(Loss(sheet.name, 0, column, "is not mapped and is left out", example, fix))
        for heading in mapped - set(headings):
            self.losses.append(Loss(sheet.name, 0, heading, "is in the mapping and not in the file"))

    def _row(self, sheet: Sheet, number: int, cells: Sequence[str], columns: list[tuple[int, Column]]) -> _Row:
        values: JSONObject = {}
        people: list[PersonInCell] = []
        for at, column in columns:
            content = self._content_of_cell(sheet, number, column, cells[at])
            if content is None:
                continue
            if column.field == PEOPLE_FIELD:
                people += content
                continue
            for member, value in self._members_of_cell(sheet, number, column, content).items():
                if member not in values:
                    values[member] = value
                elif _is_part_of_name(column, columns):
                    # A name that is merged over the columns of a group is in each of them.
                    is_merged = column.field == "name" and values[member] == value
                    values[member] = value if is_merged else f"{values[member]} {value}"
                elif values[member] != value and member == column.field:
                    reason = "is left out: another column of the same field has a value in this row"
                    self.losses.append(Loss(sheet.name, number, column.heading, reason, cells[at], _ONE_FIELD))
        row_key = values.pop(ROW_KEY, "")
        self._add_house_number(sheet, number, values)
        people = self._people_of_row(sheet, number, values, people)
        self._report_team_size(sheet, number, cells, columns, values, people)
        headings = {column.field: column.heading for _, column in columns}
        return _Row(sheet.name, number, values, people, headings, row_key)

    def _content_of_cell(self, sheet: Sheet, number: int, column: Column, text: str) -> Any:
        """Return the value of a cell, or its people; None if it has none. Report what is left out of it."""
        if column.field == PEOPLE_FIELD:
            content: Any = people_in(column, text)
        else:
            content = value_of(column, text, self.currency)
        if isinstance(content, Noted):
            self.losses.append(Loss(sheet.name, number, column.heading, content.reason, text, content.fix))
            content = content.value
        if isinstance(content, Lost):
            self.losses.append(Loss(sheet.name, number, column.heading, content.reason, text, content.fix))
            return None
        return content

    def _add_house_number(self, sheet: Sheet, number: int, values: JSONObject) -> None:
        """Write a house number of another column beside the street, unless the street has it."""
        house = values.pop(HOUSE_NUMBER, "")
        street = values.get("address.address_1", "")
        if house and not street:
            self.losses.append(Loss(sheet.name, number, "", "is a house number without a street", house))
        elif house and house.casefold() not in street.casefold().replace(",", " ").split():
            is_before = bool(_NUMBER_BEFORE_STREET.search(street))
            values["address.address_1"] = f"{house} {street}" if is_before else f"{street} {house}"

    def _members_of_cell(self, sheet: Sheet, number: int, column: Column, value: Any) -> JSONObject:
        """Return the values by field that the value of a cell gives; those of an address are several."""
        field = column.field
        if field == "address":
            return self._members_of_address(sheet, number, column, value)
        if field == "address.zip_city":
            return {f"address.{member}": part for member, part in value.items()}
        content = value
        if field == "position.company":
            content = split(str(value), column.separator)
        elif field == "name":
            content = full_name(str(value), column.order)
        elif field == "address.city":
            city_and_number = _NUMBER_AFTER_CITY.fullmatch(str(value))
            if city_and_number:
                content = city_and_number[1]
                reason = "is imported without the number in brackets"
                self.losses.append(Loss(sheet.name, number, column.heading, reason, str(value)))
        elif is_of_vocabulary(field):
            content = self._as_in_use(sheet, number, column, str(value))
        return {field: content}

    def _members_of_address(self, sheet: Sheet, number: int, column: Column, text: str) -> JSONObject:
        parts = address_of(text, column.end)
        if "country" in parts and ends_with_name_of_both(text):
            reason = "ends with what can be a country or a state, and is imported as the country"
            fix = 'If it is a state, set end = "state" on the column, or write the country after it.'
            self.losses.append(Loss(sheet.name, number, column.heading, reason, text, fix))
        return {f"address.{member}": part for member, part in parts.items()}

    def _as_in_use(self, sheet: Sheet, number: int, column: Column, word: str) -> str:
        """Return a word of a vocabulary as it is written already: "non profit" is "Nonprofit", where that is in use."""
        in_use = self.known.words.setdefault(column.field, {}).setdefault(key(word) or word, word)
        if in_use != word:
            reason = Phrase('is imported as "{in_use}", the spelling in use', in_use=in_use)
            self.losses.append(Loss(sheet.name, number, column.heading, reason, word))
        return in_use

    def _report_team_size(  # noqa: PLR0917 - a row and what was made of it
        self,
        sheet: Sheet,
        number: int,
        cells: Sequence[str],
        columns: list[tuple[int, Column]],
        values: JSONObject,
        people: list[PersonInCell],
    ) -> None:
        """Report a team size that no page shows: while people are listed, the team size is their number."""
        size = values.get("teamSize")
        if size is None or not people:
            return
        listed = {person_key("", person.name) for person in people}
        if size == len(listed):
            return
        for at, column in columns:
            if column.field == "teamSize" and cells[at]:
                reason = "is stored, but pages show the number of listed people as the team size"
                fix = 'To show it too, keep it as an additional field: field = "extra:employees".'
                self.losses.append(Loss(sheet.name, number, column.heading, reason, cells[at], fix))
                return

    def _people_of_row(
        self, sheet: Sheet, number: int, values: JSONObject, people: list[PersonInCell]
    ) -> list[PersonInCell]:
        """Return the people of a row: with the one of two columns, and with the position of another column."""
        title = values.pop("people.title", "")
        first, last = values.pop("people.first", ""), values.pop("people.last", "")
        name = " ".join(filter(None, (first, last)))
        if name:
            people = [*people, PersonInCell(name, title)]
        elif title and len(people) == 1:
            people = [PersonInCell(people[0].name, title)]
        elif title:
            reason = "is a position of one of several people" if people else "is a position, but the row has no person"
            self.losses.append(Loss(sheet.name, number, "", reason, title, "Write it after the name, in brackets."))
        return people

    # ------------------------------------------------------------------ companies

    def add_company(self, row: _Row) -> None:
        name = row.values.get("name", "")
        if not name:
            self.losses.append(
                Loss(row.table, row.number, "", "has no name and is left out", fix="Add the name.", is_whole=True)
            )
            return
        members = _members(row)
        slug = members.pop("id", "")
        namesakes = self.companies.setdefault(name_key(name) or name, [])
        company = self._company_of_row(row, namesakes, slug, members)
        if company:
            self._combine(company, members, row)
            company.add_people(row.people)
            if company.row != row.number:
                reason = "is about the company of an earlier row, and is combined with it"
                self.losses.append(Loss(row.table, row.number, "", reason, name))
            return
        if namesakes and not slug:
            reason = "has the name of another row but other values, and is a company of its own"
            self.losses.append(Loss(row.table, row.number, "", reason, name))
        self._add_new_company(row, namesakes, slug, members)

    def _add_new_company(self, row: _Row, namesakes: list[CompanyRecord], slug: str, members: JSONObject) -> None:
        """Add a company that no earlier row is about: a stored one by its slug, its last import or name, or a new."""
        name = members["name"]
        row_key = self._row_key("company", slug or row.key, name)
        slug = slug or self._remembered("company", row_key, row, name)
        # Stored companies of one name are given to the rows of the name in their order.
        stored = self.known.companies.get(name_key(name), [])[len(namesakes) :]
        unmatched = [stored_slug for stored_slug in stored if stored_slug not in self.taken["company"]]
        is_stored = bool(unmatched) or (bool(slug) and slug in self.known.used["company"])
        if not slug:
            slug = unmatched[0] if unmatched else self.known.new_slug("company", name)
        self._take("company", row_key, slug)
        record = CompanyRecord(row.number, slug, members, row.key, people=list(row.people), is_stored=is_stored)
        namesakes.append(record)
        if row.key:
            self.by_key.setdefault(row.key, record)

    def _company_of_row(
        self, row: _Row, namesakes: list[CompanyRecord], slug: str, members: JSONObject
    ) -> CompanyRecord | None:
        """Return the company of an earlier row that a row is about, too: by its key if it has one, or else its name."""
        if row.key and row.combines:
            return self.by_key.get(row.key)
        candidates = []
        for company in namesakes[:_COMPARED]:
            # Two keys are two companies; a row without a key may be about one that has it.
            if company.key == row.key or not company.key or not row.key:
                candidates.append(company)
        company_that_agrees = _same_company(candidates, slug, members)
        if company_that_agrees is None and row.combines and candidates:
            return candidates[0]
        return company_that_agrees

    def _combine(self, record: RowRecord, members: JSONObject, row: _Row) -> None:
        """Add what a further row says of a company or person: lists grow; of other values, the first one stays."""
        for member, value in members.items():
            first_value = record.members.setdefault(member, value)
            if isinstance(first_value, list) and isinstance(value, list):
                record.add_entries(member, value)
            elif isinstance(first_value, dict) and isinstance(value, dict):
                for name, part in value.items():
                    if first_value.setdefault(name, part) != part:
                        self._report_differing(row, f"{member}.{name}", part)
            elif member == "name":
                # Spellings of one name, such as "Alder GmbH" and "ALDER GmbH", are no difference.
                if name_key(str(first_value)) != name_key(str(value)):
                    self._report_differing(row, member, value)
            elif first_value != value:
                self._report_differing(row, member, value)

    def _report_differing(self, row: _Row, field: str, value: Any) -> None:
        heading = row.headings.get(field) or row.headings.get(f"{EXTRA}{field}", field)
        reason = "differs from the first row of the same name or key, and is left out"
        self.losses.append(Loss(row.table, row.number, heading, reason, str(value)))

    def _row_key(self, kind: str, own: str, name: str) -> str:
        """Return a digest of what tells a row from the others of its source: its slug or key, or its name."""
        if own and own not in self.own_keys[kind]:
            self.own_keys[kind].add(own)
            return digest(f"slug {own}".encode())[:16]
        stem = f"name {name_key(name) or name}"
        self.repeats[kind, stem] += 1  # rows of one name are told apart by their order
        return _digest_of_name(stem, self.repeats[kind, stem])

    def _remembered(self, kind: str, row_key: str, row: _Row, name: str) -> str:
        """Return the slug that the last import of the source had for a row; empty if another row has it now."""
        slugs_by_row_key = self.known.remembered.get(kind, {})
        slug = slugs_by_row_key.get(row_key, "")
        if not slug and row.key:  # the first import with keys finds the rows of the one before by their names
            slug = slugs_by_row_key.get(_digest_of_name(f"name {name_key(name) or name}", 1), "")
        return "" if slug in self.taken[kind] else slug

    def _take(self, kind: str, row_key: str, slug: str) -> None:
        self.keys[kind][row_key] = slug
        self.taken[kind].add(slug)

    # ------------------------------------------------------------------ people

    def add_person(self, row: _Row) -> None:
        values = row.values
        name = values.get("name") or " ".join(filter(None, (values.get("name.first"), values.get("name.last"))))
        if not name:
            self.losses.append(
                Loss(row.table, row.number, "", "has no name and is left out", fix="Add the name.", is_whole=True)
            )
            return
        slug = self._person_of_row(row, name)
        if slug is None:
            self._ambiguous(row.table, row.number, name, is_whole=True)
            return
        record = self.people.get(slug)
        if record is None:
            record = self.people[slug] = RowRecord(row.number, slug, {"name": name})
        own_members = [member for member in values if member not in _OF_ITS_PARTS]
        self._combine(record, {member.removeprefix(EXTRA): values[member] for member in own_members}, row)
        if record.row != row.number:
            reason = "is about the person of an earlier row, and is combined with it"
            self.losses.append(Loss(row.table, row.number, "", reason, name))
        self._add_positions(row, name, slug)

    def _add_positions(self, row: _Row, name: str, slug: str) -> None:
        """Add the person of a row to the organizations that the row names."""
        companies = row.values.get("position.company", [])
        title = row.values.get("position.title", "")
        titles = _titles_of(title, len(companies))
        reason = ""
        if titles is None:
            reason = "does not name one position for each organization, and is left out"
            titles = [""] * len(companies)
        elif title and not companies:
            reason = "is a position without an organization, and is left out"
        if reason:
            self.losses.append(Loss(row.table, row.number, row.headings["position.title"], reason, title))
        for company, title_there in zip(companies, titles, strict=True):
            self._place(row, company, PersonInCell(name, title_there, slug))

    def _person_of_row(self, row: _Row, name: str) -> str | None:
        """Return the slug of the person whom a row is about; None if several stored ones have the name."""
        slug = row.values.get("slug", "")
        if row.key in self.people_by_key:
            return self.people_by_key[row.key]
        is_known_by_name = not slug and not row.key and name_key(name) in self.named
        if is_known_by_name and self.mapping.same_name_is_same_person:
            return self.named[name_key(name)]
        row_key = self._row_key("person", slug or row.key, name)
        if not slug:
            slug = self._slug_besides_name(row, row_key, name)
        slug_of_row = self._person(name, row.number, slug)
        if slug_of_row is not None:
            self._take("person", row_key, slug_of_row)
            if row.key:
                self.people_by_key[row.key] = slug_of_row
        return slug_of_row

    def _slug_besides_name(self, row: _Row, row_key: str, name: str) -> str:
        """Return the slug that the last import or the key of a row gives its person; "" if only the name can tell."""
        compared_name = name_key(name)
        slug = self._remembered("person", row_key, row, name)
        if slug:
            self.named[compared_name] = slug
        elif row.key and self.named.get(compared_name, "") in self.taken["person"]:
            # A namesake with a key of its own is another person.
            slug = self.known.new_slug("person", name)
        return slug

    def _place(self, row: _Row, company: str, person: PersonInCell) -> None:
        """Add a person to the company of a name, which is in a table or stored; report a name that is not one's."""
        compared_name = name_key(company)
        namesakes = self.companies.get(compared_name, [])
        stored = self.known.companies.get(compared_name, [])
        if not namesakes and len(stored) == 1:
            record = CompanyRecord(row.number, stored[0], {"name": self.known.names[stored[0]]})
            record.is_stored = record.is_named_only = True
            namesakes = self.companies[compared_name] = [record]
        if len(namesakes) != 1:
            is_unknown = not namesakes and not stored
            reason = "is not in the registry" if is_unknown else "is the name of several companies"
            fix = "Import the companies first, then this file again."
            self.losses.append(Loss(row.table, row.number, row.headings["position.company"], reason, company, fix))
            return
        namesakes[0].add_people([person])

    def _person(self, name: str, row: int, slug: str = "") -> str | None:
        """Return the slug of a person, new or stored; None if several stored ones have the name."""
        if slug:
            return slug
        compared_name = name_key(name)
        if self.mapping.same_name_is_same_person and compared_name in self.named:
            return self.named[compared_name]
        stored = self.known.people.get(compared_name, [])
        if len(stored) > 1:
            return None
        slug = stored[0] if stored else self.known.new_slug("person", name)
        self.people[slug] = RowRecord(row, slug, {"name": name})
        self.named[compared_name] = slug
        return slug

    def _ambiguous(self, table: str, row: int, name: str, *, is_whole: bool = False) -> None:
        """Report a person who cannot be told from others of the name; *is_whole*: the row is about the person."""
        reason = "is the name of several people in the registry, so it is unclear which of them is meant"
        fix = "Give the slug, or add the position on the listing's page."
        self.losses.append(Loss(table, row, "", reason, name, fix, is_whole))

    # ------------------------------------------------------------------ lines

    def finish(self) -> Records:
        records = Records(losses=self.losses, keys=self.keys)
        for company in chain.from_iterable(self.companies.values()):
            line: JSONObject = {"company": {"id": company.slug, **company.members}}
            positions = self._positions(company)
            if positions:
                line["positions"] = positions
            # Of a company that only rows of people name, there is nothing else to say.
            if positions or not company.is_named_only:
                records.companies.append((company.row, line))
        stored = set(chain.from_iterable(self.known.people.values()))
        for person in self.people.values():
            has_row = person.slug in self.taken["person"]
            if has_row or person.slug not in stored:
                records.people.append((person.row, {"slug": person.slug, **person.members}))
        return records

    def _positions(self, record: CompanyRecord) -> list[JSONObject]:
        """Return the stored positions with the new ones; none if the table brings no new one."""
        if not record.people:
            return []
        former = team_of(record.slug) if record.is_stored else []
        slugs_by_name, listed = _people_of_team(former)
        new: list[JSONObject] = []
        for person in record.people:
            name = name_key(person.name)
            name_and_title = (name, name_key(person.title))
            has_any_position = not person.title and name in slugs_by_name
            if name_and_title in listed or has_any_position:
                continue
            listed.add(name_and_title)
            slug = person.slug or slugs_by_name.get(name) or self._person(person.name, record.row)
            if slug is None:
                self._ambiguous("", record.row, person.name)
            else:
                new.append(_position(person, slug))
        return [*former, *new] if new else []


def _digest_of_name(stem: str, place: int) -> str:
    return digest(f"{stem} {place}".encode())[:16]


def _people_of_team(team: Sequence[JSONObject]) -> tuple[dict[str, str], set[tuple[str, str]]]:
    """Return the slugs of the people of a team by name, and every name with its position; both as names compare."""
    slugs_by_name: dict[str, str] = {}
    names_and_titles: set[tuple[str, str]] = set()
    for position in team:
        name = name_key(position["person"].get("name") or "")
        slugs_by_name[name] = position["person"].get("slug", "")
        names_and_titles.add((name, name_key(position.get("title") or "")))
    return slugs_by_name, names_and_titles


def _position(person: PersonInCell, slug: str) -> JSONObject:
    """Return a position in the form of a line."""
    position: JSONObject = {"person": {"name": person.name}}
    if slug:
        position["person"]["slug"] = slug
    return {"title": person.title, **position} if person.title else position


def _titles_of(text: str, companies: int) -> list[str] | None:
    """Return the position at each of several companies; None if a cell has neither one position nor one for each."""
    if not text:
        return [""] * companies
    for separator in (";", "|", "\n", ","):
        titles = split(text, separator)
        if companies > 1 and len(titles) == companies:
            return titles
    is_one = companies <= 1 or not re.search(r"[;|\n]", text)
    return [text] * companies if is_one else None


def _headings(sheet: Sheet, table: TableMapping) -> tuple[int, list[str]]:
    """Return the index of the first row below the headings, and the headings."""
    mapped = {column.heading for column in table.column}
    # The file may have them in another row than the mapping says.
    for at in (table.header - 1, header_row(sheet.rows).at):
        if -1 <= at < len(sheet.rows):
            headings = headings_of(sheet.rows, at)
            if not mapped.isdisjoint(headings):
                return at + 1, headings
    return table.header, headings_of(sheet.rows, min(table.header, len(sheet.rows)) - 1)


def _columns_in_file(table: TableMapping, headings: Sequence[str]) -> list[tuple[int, Column]]:
    """Return the columns of a mapping that hold a field and that the file has, each with its place in the file."""
    places: dict[str, int] = {}
    for place, heading in enumerate(headings):
        places.setdefault(heading, place)  # of headings that are alike, the first column counts
    columns = []
    for column in table.column:
        if column.field and column.heading in places:
            columns.append((places[column.heading], column))
    return columns


def _loss_of_row(
    sheet: Sheet, number: int, cells: Sequence[str], typical: int, *, is_repeated: bool, after_blank: bool
) -> Loss | None:
    """
    Return why a row of a table is left out: it is a total, a heading, a title or a note; None if it is not.

    Args:
        typical: how many cells of a row have a value, in the median.
        is_repeated: it has the cells of the headings, or of a row above them.
        after_blank: no row is between it and a blank one.
    """
    texts = [cell for cell in cells if cell]
    if _is_total(cells, typical):
        return Loss(sheet.name, number, "", "is a total, and is left out", is_whole=True)
    if is_repeated:
        return Loss(sheet.name, number, "", "repeats the headings, and is left out", is_whole=True)
    if not sheet.delimiter and _is_merged(cells):
        reason = "is one text over several columns, and is left out"
        return Loss(sheet.name, number, "", reason, texts[0], is_whole=True)
    # A company that has only a name is a row; a note is a sentence.
    is_only_text = len(texts) == 1 and typical >= _USUAL_CELLS
    if after_blank and is_only_text and _is_sentence(texts[0]):
        return Loss(sheet.name, number, "", "is a note below the table, and is left out", texts[0], is_whole=True)
    return None


def _is_part_of_name(column: Column, columns: Sequence[tuple[int, Column]]) -> bool:
    """Return whether several columns hold one name: two last names, or the columns of one group."""
    group = group_of(column.heading)
    others = [other for _, other in columns if other is not column and other.field == column.field]
    is_of_one_group = any(group_of(other.heading) == group for other in others)
    if column.field in {"name.last", "people.last"}:
        return is_of_one_group
    return column.field == "name" and bool(group) and is_of_one_group


_MERGED_CELLS: Final = 3


def _is_merged(cells: Sequence[str]) -> bool:
    """Return whether a row of a workbook is one text in a merged cell, as titles between rows are."""
    texts = [cell for cell in cells if cell]
    return len(texts) >= _MERGED_CELLS and len({*texts}) == 1


def _is_sentence(text: str) -> bool:
    return text.startswith(("*", "©", "¹")) or ": " in text or len(text.split()) >= _NOTE_WORDS


def _typical_cells(rows: Sequence[Sequence[str]]) -> int:
    """Return how many cells of a row have a value, in the median."""
    counts = sorted(sum(map(bool, row)) for row in rows)
    return counts[len(counts) // 2] if counts else 0


def _is_total(cells: Sequence[str], typical: int) -> bool:
    """Return whether a row begins with a word for a total, and has numbers and gaps, as sums do."""
    totals = catalogue().totals
    if totals.isdisjoint(map(key, cells[:2])):
        return False
    sums = [cell for cell in cells if cell and key(cell) not in totals]
    for cell in sums:
        if not any(map(str.isdigit, cell)):
            return False
    return len(sums) < max(typical, 2)


def _members(row: _Row) -> JSONObject:
    """Return the members of a company's object."""
    members: JSONObject = {}
    objects: dict[str, JSONObject] = {}
    for name, value in row.values.items():
        group, _, member = name.partition(".")
        if member:
            objects.setdefault(group, {})[member] = value
        elif name == "treasury":
            members["treasuryAmount"] = value  # whose cents the treasury does not have
        else:
            members[name.removeprefix(EXTRA)] = value
    for name, values_of_object in objects.items():
        members[name] = [values_of_object] if is_list(name) else values_of_object
    return members


def _same_company(companies: Sequence[CompanyRecord], slug: str, members: JSONObject) -> CompanyRecord | None:
    """Return the company that a further row of its name is about; None if the row contradicts all of them."""
    for company in companies:
        is_same_slug = not slug or slug == company.slug
        if is_same_slug and _agree(company.members, members):
            return company
    return None


def _agree(one: JSONObject, other: JSONObject) -> bool:
    """Return whether two rows of one name say the same where both say something."""
    compared = (one.keys() & other.keys()) - {"name"}
    return all(one[member] == other[member] for member in compared)
