"""
Propose the mapping of a file: what its headings mean and its values fit, and how the values of a column are written.

A heading that the values contradict means nothing. A column without a known heading may be guessed by its values. A
decision counts for the whole column and never for a cell: if two readings fit equally well and differ, the mapping
asks.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from django.conf import settings

from muniment.registry.tables.amounts import amount_in, currency_in_heading, decimal_sign
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE, catalogue, key, words_in
from muniment.registry.tables.dates import ORDERS, day_of, is_serial, is_year, month_of, order_of_dates
from muniment.registry.tables.fields import (
    ASK,
    HOUSE_NUMBER,
    PEOPLE_FIELD,
    ROW_KEY,
    SKIP,
    Column,
    TableField,
    field_named,
    is_of_vocabulary,
)
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.headings import (
    KNOWN,
    NEAR,
    HeaderRow,
    Match,
    field_of,
    group_of,
    header_row,
    headings_of,
    is_of_figures,
    is_of_people_too,
    kind_of_table,
    meaning_of,
    meanings_of,
    width_of_headings,
)
from muniment.registry.tables.keeping import propose_kind
from muniment.registry.tables.mapping import NAMES, FileMapping, TableMapping
from muniment.registry.tables.persons import (
    are_both,
    are_like_persons,
    are_organizations,
    are_persons,
    is_one_person,
    is_title,
    order_of_names,
    separator_of_people,
    split_names,
)
from muniment.registry.tables.presets import Preset, preset_of
from muniment.registry.tables.values import (
    NO,
    YES,
    ZIP_CITY,
    addresses_in,
    code_of_country,
    end_of_addresses,
    is_blank,
    is_link,
    separator_of,
    values_in,
)
from muniment.schema.declared.declarations import MAX_ENTRY
from muniment.schema.kinds import (
    Country,
    Email,
    Integer,
    Items,
    Kind,
    Link,
    Money,
    Number,
    PictureLink,
    Profile,
    Slug,
    Text,
)

JUDGED: Final = 300
"""Characters of a cell by which its column is judged."""
_PROFILE_ROWS: Final = 5_000
_NO_HEADERS: Final[Mapping[str, int]] = {}


def propose(sheets: Sequence[Sheet], file_name: str, headers: Mapping[str, int] = _NO_HEADERS) -> FileMapping:
    """
    Return a mapping of *sheets* by their headings and values.

    Args:
        headers: the numbers of rows with headings that a person chose, by the name of the table; 0 for none.
    """
    tables = [_propose_table(sheet, file_name, headers.get(sheet.name), is_only=len(sheets) == 1) for sheet in sheets]
    _skip_notes([table for table in tables if table.name not in headers])
    first = sheets[0]
    return FileMapping(tables, first.encoding, first.delimiter)


def _skip_notes(tables: Sequence[TableMapping]) -> None:
    """Leave out tables beside others that have names: notes and lists of topics, in which no heading means a field."""
    if not any(map(_has_sure_name, tables)):
        return
    for table in tables:
        has_meaning = any(column.field and not column.check for column in table.column)
        # Headings that are asked for may be wrong, so that nothing is known of what the table has.
        if not has_meaning and "header" not in table.check:
            table.kind, table.check, table.combine = SKIP, [], ""


def _has_sure_name(table: TableMapping) -> bool:
    return any(column.field in NAMES and not column.check for column in table.column)


def _propose_table(sheet: Sheet, file_name: str, header: int | None, *, is_only: bool) -> TableMapping:
    headings_row = header_row(sheet.rows)
    if header is not None and header <= len(sheet.rows):
        headings_row = HeaderRow(header - 1)  # a person chose it
    at = headings_row.at
    headings = headings_of(sheet.rows, at)
    body = sheet.rows[at + 1 : at + 1 + _PROFILE_ROWS]
    values = [values_in([row[n][:JUDGED] for row in body]) for n in range(len(headings))]
    check = ["header"] if headings_row.is_guess else []
    preset = preset_of(headings)
    if preset:
        table = TableMapping(sheet.name, preset.kind, at + 1, _preset_columns(headings, values, preset), check)
    else:
        kind = _kind_of_rows(headings, values, f"{sheet.name} {file_name}", is_only=is_only)
        if kind.is_guess:
            check.append("kind")
        table = TableMapping(sheet.name, kind.rows, at + 1, propose_columns(headings, values, kind.rows), check)
    if not any(column.field in NAMES for column in table.column):
        table.kind, table.check = SKIP, []
        return table
    if any(map(_is_in_another_currency, table.column, values)):
        table.check.append("currency")
    if has_cells_beyond(sheet, at):
        table.check.append("cells")
    if not preset:
        _take_key(table, body)
    _settle_rows(table, body, values)
    return table


def has_cells_beyond(sheet: Sheet, at: int) -> bool:
    """Return whether rows of a text have more cells than there are headings: a cell has a separator without quotes."""
    if not sheet.delimiter or at < 0:
        return False
    width = width_of_headings(sheet.rows, at)
    cells_beyond = (row[width:] for row in sheet.rows[at + 1 :])
    return any(map(any, cells_beyond))


def _settle_rows(table: TableMapping, body: Sequence[Sequence[str]], values: Sequence[list[str]]) -> None:
    """Settle what the columns of companies or people mean for several rows of one, and beside one another."""
    if table.kind == COMPANIES:
        _leave_names_to_whole_ones(table.column, body)
        _propose_to_combine(table, body)
    if table.kind == PEOPLE:
        _keep_positions_nowhere(table.column, values)
        _keep_differences_of_persons(table, body)


def _leave_names_to_whole_ones(columns: Sequence[Column], body: Sequence[Sequence[str]]) -> None:
    """Keep first and last names as they are if another column has the whole name: one person would become two."""
    places = {column.field: n for n, column in enumerate(columns)}
    if "people" not in places or "people.last" not in places:
        return
    whole, last = places["people"], places["people.last"]
    rows = [row for row in body[:SAMPLED] if row[last]]
    with_last_name_in_whole = [row for row in rows if key(row[last]) in key(row[whole])]
    if 2 * len(with_last_name_in_whole) < len(rows):
        return
    for part in ("people.first", "people.last"):
        if part in places:
            n = places[part]
            _keep_as_it_is(columns[n], [row[n] for row in body])


def _keep_as_it_is(column: Column, texts: Sequence[str]) -> None:
    """Take its field from a column, and propose one of its own."""
    column.field, column.check = "", False
    propose_kind(column, [text for text in texts if not is_blank(text)])


def _keep_positions_nowhere(columns: Sequence[Column], values: Sequence[list[str]]) -> None:
    """Propose a field for positions without a column of organizations: a position is at one, and would be left out."""
    if any(column.field == "position.company" for column in columns):
        return
    for column, cells in zip(columns, values, strict=True):
        if column.field == "position.title":
            column.field, column.check = "", False
            propose_kind(column, cells)


def _keep_differences_of_persons(table: TableMapping, body: Sequence[Sequence[str]]) -> None:
    """Propose lists for the kept columns that differ within the rows of a person, if many persons have several rows."""
    names = [n for n, column in enumerate(table.column) if column.field in {"name", "name.first", "name.last"}]
    groups = _differing_rows(body, names, range(len(table.column)))
    if sum(map(len, groups)) >= _SOME * len(body):
        _keep_differences_as_lists(table, body, groups)


def _propose_to_combine(table: TableMapping, body: Sequence[Sequence[str]]) -> None:
    """Ask whether rows of one name are one organization, if many have other values; what differs is kept as lists."""
    name_at = next((n for n, column in enumerate(table.column) if column.field == "name"), None)
    if name_at is None or len(body) < _FEW_VALUES:
        return
    # Rows that name further people of a company are about one company, whatever the answer.
    compared = [n for n, column in enumerate(table.column) if column.field.partition(".")[0] != PEOPLE_FIELD]
    groups = _differing_rows(body, [name_at], compared)
    if sum(map(len, groups)) < _SOME * len(body):
        return
    table.combine = ASK
    _take_key_of_several_rows(table, body)
    _keep_differences_as_lists(table, body, groups)


_OF_KEYS: Final = re.compile(
    r"(?:^|[\s_./-]|(?<=[a-z]))(?:ids?|uuid|guid|identifier|key|kennung|kennziffer)$", re.IGNORECASE
)
_OF_OTHER_ROWS: Final = re.compile(r"parent|former|old\b|previous|ober|mère|padre|pai\b", re.IGNORECASE)


def _may_be_key(column: Column) -> bool:
    is_free = not column.field and not column.check
    return is_free and bool(_OF_KEYS.search(column.heading)) and not _OF_OTHER_ROWS.search(column.heading)


def _take_key(table: TableMapping, body: Sequence[Sequence[str]]) -> None:
    """
    Let the first column of ids that differ in all rows be the key of the rows, if no column has their slugs.

    By it, the next version of the file finds a row again whose name has changed. Numbers of rows are none: they move.
    """
    if _has_slugs(table):
        return
    rows = [row for row in body if any(row)]
    for n, column in enumerate(table.column):
        if _may_be_key(column) and _are_ids_of_rows([row[n] for row in rows]):
            _make_key(column)
            return


def _are_ids_of_rows(ids: list[str]) -> bool:
    """Return whether every row has an id of its own, which is not its number."""
    are_own = len(ids) > 1 and all(ids) and len({*ids}) == len(ids)
    return are_own and ids != [str(number) for number in range(1, len(ids) + 1)]


def _has_slugs(table: TableMapping) -> bool:
    return any(column.field in {"id", "slug"} for column in table.column)


def _make_key(column: Column) -> None:
    column.field, column.kind, column.choices = ROW_KEY, "", []


def _take_key_of_several_rows(table: TableMapping, body: Sequence[Sequence[str]]) -> None:
    """Let a column of ids that the rows of one name share be their key, for rows that are combined."""
    for n, column in enumerate(table.column):
        if column.field == ROW_KEY:  # which differs in all rows, so that none could be combined by it
            _keep_as_it_is(column, [row[n] for row in body])
    if _has_slugs(table):
        return
    name_at = next(n for n, column in enumerate(table.column) if column.field == "name")
    named_rows = [row for row in body if row[name_at]]
    names = [key(row[name_at]) for row in named_rows]
    for n, column in enumerate(table.column):
        if _may_be_key(column) and _is_shared_key([row[n] for row in named_rows], names):
            _make_key(column)
            return


def _is_shared_key(keys: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether several rows share a key, and nearly every key has one name; a missing one is none."""
    names_of_keys: dict[str, set[str]] = {}
    for row_key, name in zip(keys, names, strict=True):
        if not row_key:
            return False
        names_of_keys.setdefault(row_key, set()).add(name)
    with_one_name = sum(len(names_of_key) == 1 for names_of_key in names_of_keys.values())
    is_shared = len(names_of_keys) < len(keys)
    return is_shared and with_one_name >= _MOST_KEYS * len(names_of_keys)


_MOST_KEYS: Final = 0.9


def _differing_rows(
    body: Sequence[Sequence[str]], parts: Sequence[int], compared: Sequence[int]
) -> list[list[Sequence[str]]]:
    """Return the rows of each name, in the columns *parts*, that has other values in the columns *compared*."""
    rows_of_name: dict[str, list[Sequence[str]]] = {}
    for row in body:
        name = key(" ".join(row[n] for n in parts))
        if name:
            rows_of_name.setdefault(name, []).append(row)
    return [rows for rows in rows_of_name.values() if _differ(rows, compared)]


def _keep_differences_as_lists(
    table: TableMapping, body: Sequence[Sequence[str]], groups: list[list[Sequence[str]]]
) -> None:
    """Propose a list for each column that is kept as a declared field and differs within the rows of a name."""
    for n, column in enumerate(table.column):
        is_kept = not column.field and bool(column.kind)
        if is_kept and _is_list_of_differences([{row[n] for row in rows} - {""} for rows in groups]):
            column.kind, column.choices = "list", []
            decide_options(column, [row[n] for row in body])  # as the next import decides them for the field


def _is_list_of_differences(values_of_groups: Sequence[set[str]]) -> bool:
    """Return whether the rows of a name have several values, and nearly all of these can be entries of a list."""
    if max(map(len, values_of_groups), default=0) < 2:
        return False
    entries = [value for values in values_of_groups for value in values]
    # A few long ones are reported; as a text, the column would keep one value of each organization.
    too_long = [entry for entry in entries if len(entry) > MAX_ENTRY]
    return len(too_long) <= _FEW_TOO_LONG * len(entries)


def _differ(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> bool:
    return len({tuple(row[n] for n in columns) for row in rows}) > 1


class _Kind(NamedTuple):
    """The kind of the rows; *is_guess*: headings and values do not agree, or say nothing."""

    rows: str
    is_guess: bool = False


_COMPANIES_ALONE: Final = frozenset({"symbol", "teamSize", "treasury", "dao_website", "extra:lei", "themes"})
"""Fields whose headings speak against a table of people, even if the names are names of persons."""


def _kind_of_rows(headings: Sequence[str], values: Sequence[list[str]], name: str, *, is_only: bool) -> _Kind:
    """Return the kind of the rows by what the headings say and whose names the values are."""
    # What the columns would be of either kind, and which values would then be the names.
    of_companies = propose_columns(headings, values, COMPANIES)
    of_people = propose_columns(headings, values, PEOPLE)
    companies = _values_of(of_companies, values, "name")
    people = _values_of(of_people, values, "name")
    fields_of_people = {column.field for column in of_people}

    if kind_of_table(headings, name, is_only=is_only) == PEOPLE:
        return _kind_of_rows_called_people(people, fields_of_people)
    if _is_name_of_persons_alone(of_companies, of_people, values):
        return _Kind(PEOPLE, is_guess=are_organizations(people))
    # A name that is only in the first of several rows is that of a group: the rows are what is in all of them.
    if are_persons(people) and _are_rows_of_groups(of_companies, of_people, values):
        return _Kind(PEOPLE, is_guess=bool(companies) or are_both(people))
    are_mixed = are_both(companies)
    if are_persons(companies) and not are_mixed:
        return _kind_of_names_like_persons(of_companies, fields_of_people, values)
    # One organization in many rows, each with a person of its own: the rows are people.
    are_repeated = len({*companies}) < _MOST * len(companies)
    if are_repeated and _are_rows_of_persons(companies, of_companies, of_people, values):
        return _Kind(PEOPLE, is_guess=fields_of_people.isdisjoint({"position.title", "bio"}))
    return _kind_of_other_names(companies, of_companies, of_people, values, are_mixed=are_mixed)


def _are_rows_of_groups(
    of_companies: Sequence[Column], of_people: Sequence[Column], values: Sequence[list[str]]
) -> bool:
    """Return whether the name of a company is only in the first of several rows, and that of a person in most."""
    count_of_people = _count_of(of_people, values, "name")
    are_in_most_rows = 2 * count_of_people >= max(map(len, values), default=0)
    return are_in_most_rows and 2 * _count_of(of_companies, values, "name") < count_of_people


def _have_positions(of_people: Sequence[Column], values: Sequence[list[str]]) -> bool:
    """Return whether most rows have a name of their own, which is called no more than "name", and a known position."""
    heading = _heading_of_sure_name(of_people)
    if heading is None or not _is_general(heading) or not _values_of(of_people, values, "position.company"):
        return False
    names = _values_of(of_people, values, "name")
    titles = _values_of(of_people, values, "position.title")
    are_different = len({*names}) >= _MOST * len(names)
    are_in_most_rows = 2 * _count_of(of_people, values, "position.title") >= _count_of(of_people, values, "name")
    # A list knows few of all positions.
    return are_different and are_in_most_rows and share(titles, is_title) >= _SOME


def _kind_of_other_names(
    companies: Sequence[str],
    of_companies: Sequence[Column],
    of_people: Sequence[Column],
    values: Sequence[list[str]],
    *,
    are_mixed: bool,
) -> _Kind:
    """Return the kind of rows whose names no list of given names shows to be those of persons."""
    if _have_positions(of_people, values) and not are_organizations(_values_of(of_people, values, "name")):
        # Names that no list has, each with a position at an organization; only a person can tell.
        return _Kind(PEOPLE, is_guess=True)
    if are_like_persons(companies) and _is_general(_heading_of_name(of_companies)):
        # Names in the form of those of persons, such as those of South Asia.
        fields = {column.field for column in (*of_people, *of_companies)}
        have_roles = not fields.isdisjoint({"position.title", "people.title"})
        return _Kind(PEOPLE if have_roles else COMPANIES, is_guess=True)
    is_unproven = _is_name_guessed(of_companies) and not are_organizations(companies)
    return _Kind(COMPANIES, is_guess=are_mixed or is_unproven)


def _is_name_of_persons_alone(
    of_companies: Sequence[Column], of_people: Sequence[Column], values: Sequence[list[str]]
) -> bool:
    """Return whether most rows have a value below a heading that only persons have: "full name", "speaker", "氏名"."""
    heading = _heading_of_sure_name(of_people)
    if heading is None or _heading_of_sure_name(of_companies) is not None:
        return False
    if meaning_of(heading, PEOPLE).quality < KNOWN:
        return False
    return 2 * _count_of(of_people, values, "name") >= max(map(len, values))


def _are_rows_of_persons(
    companies: Sequence[str], of_companies: Sequence[Column], of_people: Sequence[Column], values: Sequence[list[str]]
) -> bool:
    """Return whether most rows that name an organization have a different person."""
    if _is_name_guessed(of_people):
        return False
    people = _values_of(of_people, values, "name")
    count = _count_of(of_people, values, "name")
    if not people and _values_of(of_people, values, "name.first"):
        # Contacts of organizations have first and last names too, beside what only organizations have.
        fields = {column.field for column in of_companies if not column.check} - {""}
        if not all(map(is_of_people_too, fields)) or len({*companies}) >= _HALF * len(companies):
            return False
        people = _values_of(of_people, values, "name.last")
        count = _count_of(of_people, values, "name.last")
    elif not are_persons(people):
        return False
    are_different = bool(people) and len({*people}) >= _MOST * len(people)
    return are_different and 2 * count >= _count_of(of_companies, values, "name")


def _kind_of_rows_called_people(names: Sequence[str], fields: set[str]) -> _Kind:
    """Return the kind of rows whose headings are those of people, by whose *names* they have."""
    has_both_names = {"name.first", "name.last"} <= fields
    if has_both_names:
        return _Kind(PEOPLE)
    if are_organizations(names) and not are_persons(names):
        return _Kind(COMPANIES, is_guess=True)
    return _Kind(PEOPLE, is_guess=are_both(names))


def _kind_of_names_like_persons(
    columns: Sequence[Column], fields_of_people: set[str], values: Sequence[list[str]]
) -> _Kind:
    """Return the kind of rows whose names are like those of persons, by what the other columns of companies say."""
    signs = _signs_of_organizations(columns, values)
    if signs:
        return _Kind(COMPANIES, is_guess=signs == 1)
    have_positions = {"position.title", "position.company"} <= fields_of_people
    sure_fields = {column.field for column in columns if not column.check}
    return _Kind(PEOPLE, is_guess=not have_positions and not _COMPANIES_ALONE.isdisjoint(sure_fields))


def _signs_of_organizations(columns: Sequence[Column], values: Sequence[list[str]]) -> int:
    """
    Return how much says that names like those of persons are names of organizations: their heading, or legal forms.

    "Amber Bakery" and "Iris Ferry" begin like persons, and so do organizations that are named after one.
    """
    signs = 0
    for column, cells in zip(columns, values, strict=True):
        sample = sampled(cells)
        is_called_so = column.field == "name" and _OF_ORGANIZATIONS.search(column.heading)
        if is_called_so and not _OF_CONTACTS.search(column.heading):
            signs += 1
        if column.field == "type" and sample and share(sample, _is_type_of_organizations) >= _MOST:
            signs += 1
    return signs


def _is_type_of_organizations(text: str) -> bool:
    return _has_word_of_types(text) and key(text) not in _TYPES_OF_PERSONS


_TYPES_OF_PERSONS: Final = words_in(
    "person, individual, natural person, natürliche Person, Einzelperson, private, privat"
)
_OF_ORGANIZATIONS: Final = re.compile(
    r"\borg\b|organi[sz]a|\bcompan|\bfirm|institut|\bverein|verband|unternehmen|einrichtung|soci[eé]t[eé]|empresa|entidad"
    r"|entreprise|association|charity|business|nonprofit|\bngo\b",
    re.IGNORECASE,
)


def _heading_of_name(columns: Sequence[Column]) -> str:
    return next((column.heading for column in columns if column.field == "name"), "")


def _heading_of_sure_name(columns: Sequence[Column]) -> str | None:
    """Return the heading of the column that is no guess to be the name; None if there is none."""
    for column in columns:
        if column.field == "name" and not column.check:
            return column.heading
    return None


def _is_name_guessed(columns: Sequence[Column]) -> bool:
    return any(column.check for column in columns if column.field == "name")


def _count_of(columns: Sequence[Column], values: Sequence[list[str]], field: str) -> int:
    """Return in how many rows the column of *field* has a value."""
    return len(_all_values_of(columns, values, field))


def _values_of(columns: Sequence[Column], values: Sequence[list[str]], field: str) -> list[str]:
    """Return a sample of the values of the column that holds *field*; none if there is no such column."""
    return list(sampled(_all_values_of(columns, values, field)))


def _all_values_of(columns: Sequence[Column], values: Sequence[list[str]], field: str) -> list[str]:
    for column, cells in zip(columns, values, strict=True):
        if column.field == field:
            return cells
    return []


def _preset_columns(headings: Sequence[str], values: Sequence[list[str]], preset: Preset) -> list[Column]:
    """Return the columns of a public format: its fields, unless the values contradict or another column has them."""
    columns: list[Column] = []
    for heading, cells in zip(headings, values, strict=True):
        column = Column(heading, **preset.options_of(heading))
        if column.field.startswith(f"{PEOPLE_FIELD}:"):  # people with the position that the heading says
            column.field, _, title = column.field.partition(":")
            column.title = column.title or title
        is_taken = any(other.field == column.field for other in columns)
        # Several columns can hold people; for any other field, only the first column counts.
        is_right = bool(column.words) or fits(column.field, cells)
        if (is_taken and column.field != PEOPLE_FIELD) or not is_right:
            column.field = ""
        decide_options(column, cells)
        columns.append(column)
    return columns


def propose_columns(headings: Sequence[str], values: Sequence[list[str]], kind: str) -> list[Column]:
    """Return the columns of a table: what headings mean and values fit, then guesses by values alone."""
    matches = meanings_of(headings, kind)
    columns = [Column(heading) for heading in headings]
    taken: dict[str, int] = {}
    if kind == COMPANIES:
        _take_names_in_parts(columns, taken)
        matches = [_as_contact(heading, match) for heading, match in zip(headings, matches, strict=True)]
    # A column without a value takes no field from one that has any.
    best_first = sorted(range(len(columns)), key=lambda n: (not values[n], *_rank(headings[n], matches[n], n)))
    for n in best_first:
        if not columns[n].field:
            _take(columns[n], matches[n], values[n], taken, n)
    _take_second_last_names(columns, taken)
    if kind == PEOPLE:
        _take_other_part_of_name(columns, values, taken)
    if kind == COMPANIES:
        _people_of_two_columns(columns, matches, taken)
        _guess_by_values(columns, matches, values, taken)
    if taken.keys().isdisjoint(NAMES):
        _guess_name(columns, matches, values, kind)
    if kind == PEOPLE and "name.last" in taken and taken.keys().isdisjoint({"name", "name.first"}):
        _guess_full_name(columns, matches, values)
    _settle_columns(columns, values, matches, kind)
    return columns


def _settle_columns(
    columns: Sequence[Column], values: Sequence[list[str]], matches: Sequence[Match], kind: str
) -> None:
    """Mark what a person should check, propose fields for what has none, and decide how values are written."""
    name = _heading_of_name(columns)
    for column, cells, match in zip(columns, values, matches, strict=True):
        if column.field and (_is_of_projects(column, name) or _is_of_another(column.heading)):
            column.check = True
        if _needs_check(column, cells):
            column.check = True
        is_kept = not match.is_left_out or is_of_figures(column.heading)
        if not column.field and is_kept and not _are_contacts_of_persons(column.heading, cells, kind):
            propose_kind(column, cells)
        decide_options(column, cells)
        if kind == PEOPLE and column.field == "name":
            column.order = order_of_names(sampled(cells))


def _take_names_in_parts(columns: Sequence[Column], taken: dict[str, int]) -> None:
    """
    Let the columns of one group be one name, of the organization or of a person, as the group says.

    Registers of natural and legal persons have them: the name of an organization is merged over first and last names.
    """
    for group, places in _columns_of_groups(columns).items():
        name_of_group = field_of(group, COMPANIES).partition(":")[0]
        parts = {n: _part_of_name(columns[n].heading) for n in places}
        has_parts_alone = all(parts.values()) and len({*parts.values()}) > 1
        if name_of_group not in {"name", PEOPLE_FIELD} or name_of_group in taken or not has_parts_alone:
            continue
        # The fields hold one person of a row: a second group would be taken for more names of the first person.
        if name_of_group == PEOPLE_FIELD and not taken.keys().isdisjoint({"people.first", "people.last"}):
            continue
        for n, part in parts.items():
            field = "name" if name_of_group == "name" else f"people.{part}"
            columns[n].field = field
            taken.setdefault(field, n)


def _columns_of_groups(columns: Sequence[Column]) -> dict[str, list[int]]:
    """Return the places of the columns that are under a group, by its heading."""
    columns_of_groups: dict[str, list[int]] = {}
    for n, column in enumerate(columns):
        group = group_of(column.heading)
        if group:
            columns_of_groups.setdefault(group, []).append(n)
    return columns_of_groups


def _part_of_name(heading: str) -> str:
    """Return the part of the name of a person that a heading under a group means: first, last, or "" for none."""
    part = heading.rpartition(" / ")[2]
    if key(re.sub(r"\(\d+\)$", "", part)) in _SECOND_LAST_NAMES:
        return "last"
    for field in meaning_of(part, PEOPLE).fields:
        if field in {"name.first", "name.last"}:
            return field.partition(".")[2]
    return ""


_SECOND_LAST_NAMES: Final = words_in(
    "apellido materno, segundo apellido, materno, second last name, second surname, maternal surname, segundo sobrenome"
)


def _take_second_last_names(columns: Sequence[Column], taken: Mapping[str, int]) -> None:
    """Let the second last name, which is in a column of its own in Spanish, follow the first one."""
    for field in ("name.last", "people.last"):
        if field not in taken:
            continue
        for column in columns:
            if not column.field and key(column.heading) in _SECOND_LAST_NAMES:
                column.field = field


def _take_other_part_of_name(columns: Sequence[Column], values: Sequence[list[str]], taken: dict[str, int]) -> None:
    """Let a general heading beside one part of a name be the other part: "Nom" beside "Prénom"."""
    if "name" not in taken or ("name.first" in taken) == ("name.last" in taken):
        return
    part, other = "name.first", "name.last"
    if part not in taken:
        part, other = other, part
    values_of_part = {key(value) for value in values[taken[part]]}
    names = values[taken["name"]]
    with_both_parts = share(sampled(names), lambda name: _has_part(name, values_of_part))
    if names and with_both_parts < _HALF:
        n = taken.pop("name")
        columns[n].field = other
        taken[other] = n


def _has_part(name: str, parts: Container[str]) -> bool:
    """Return whether a name has more words than one of *parts*, which it begins or ends with."""
    words = [key(word) for word in name.replace(",", " ").split()]
    for count in range(1, len(words)):
        beginning, end = "".join(words[:count]), "".join(words[-count:])
        if beginning in parts or end in parts:
            return True
    return False


def _as_contact(heading: str, match: Match) -> Match:
    """Return the meaning of "contact name", which is no name of an organization; a person should check it."""
    if match.fields[:1] == ("name",) and _OF_CONTACTS.search(heading):
        return Match((PEOPLE_FIELD,), is_guess=True)
    return match


def _is_of_projects(column: Column, name: str) -> bool:
    """Return whether a text is about projects, beside a column with the *name* of the organization."""
    is_text = column.field in {"description", "body"}
    return is_text and bool(_OF_PROJECTS.search(column.heading)) and not _OF_PROJECTS.search(name)


def _is_of_another(heading: str) -> bool:
    """Return whether a heading begins with "other" or the like: an "other role" may be at another organization."""
    return bool(re.match(_OTHER, heading, re.IGNORECASE))


_OTHER: Final = (
    r"(?:other|weitere|sonstige|andere|autre|otr[oa]|outr[oa]|altr[oa]|annan|andra|inne|jin[ée])[rs]?"
    r"(?=[\W_]|(?-i:[A-Z]))"
)
_OF_PROJECTS: Final = re.compile(
    r"project|projekt|projet|proyecto|proje[ct]to|progett|プロジェクト|事業|项目|項目|사업", re.IGNORECASE
)


def _are_contacts_of_persons(heading: str, values: Sequence[str], kind: str) -> bool:
    """Return whether values are addresses of mail or phone numbers of persons, which are not proposed to be public."""
    if not _are_contacts(values):
        return False
    return kind == PEOPLE or bool(_OF_CONTACTS.search(heading)) or any(map(_is_address_of_a_person, values))


def _are_contacts(values: Sequence[str]) -> bool:
    """Return whether values are addresses of mail or phone numbers."""
    sample = sampled(values)
    are_numbers = share(sample, lambda text: bool(_SURE_PHONE.fullmatch(text))) >= _HALF
    return bool(sample) and (share(sample, _is_email) >= _HALF or are_numbers)


def _guess_by_values(
    columns: Sequence[Column], matches: Sequence[Match], values: Sequence[list[str]], taken: dict[str, int]
) -> None:
    """Let columns whose headings mean nothing hold what their values surely are, for a person to check."""
    for n, (column, match) in enumerate(zip(columns, matches, strict=True)):
        if column.field or match.is_left_out or match.fields:
            continue
        field = looks_like(values[n], lambda field: field not in taken)
        if field:
            column.field, column.check = field, True
            taken.setdefault(field, n)


def _rank(heading: str, match: Match, n: int) -> tuple[bool, int, bool, int]:
    """Return what a column is sorted by, so that of two columns the better heading has the field."""
    is_general = _is_general(heading)
    quality = match.quality
    if is_general:
        quality = min(quality, KNOWN)  # "Name" beside "Organization" can be the name of a person
    # "State code" gives way to "State name", whatever words each has.
    if match.fields[:1] == ("address.state",) and _OF_CODES.search(heading.replace("_", " ")):
        quality = NEAR
    return (match.is_guess, -quality, is_general, n)


def _is_general(heading: str) -> bool:
    """Return whether a heading gives way to others of its field: "Name" can be that of a person, too."""
    if heading.casefold().strip() in _BETTER_LAST:
        return True
    names_of_persons = {"name", "name.first", "name.last"}.intersection(meaning_of(heading, PEOPLE).fields)
    return field_of(heading, COMPANIES) == "name" and bool(names_of_persons)


_OF_CODES: Final = re.compile(
    r"\b(?:code|cod|kode|kód|kod|código|codice|iso|nr|id)\b|代码|代碼|コード|코드", re.IGNORECASE
)
_OF_PERSONS: Final = ("people", "people.first", "people.last")


def _needs_check(column: Column, values: Sequence[str]) -> bool:
    """Return whether a person should check a field that the heading means, because the values alone do not show it."""
    if not values:
        return False
    sample = sampled(values)
    if column.field in _VOCABULARIES:
        is_of_types = column.field in {"type", "orgKind"}
        return _are_free_texts(values) or (is_of_types and share(sample, _has_word_of_types) < _SOME)
    if column.field == "address.state" and key(column.heading) in _COUNTRIES_TOO:
        return True
    if column.field == "status":
        return share(sample, is_status) < _MOST or share(sample, _is_of_ownership) >= _HALF
    if column.field == "website":  # pages of a directory, or of a source
        return key(column.heading) != "website" and _are_of_one_site(sample)
    return _may_publish_a_person(column, values)


def _may_publish_a_person(column: Column, values: Sequence[str]) -> bool:
    """Return whether a column would make public who or how to reach a person, which its heading does not say."""
    if column.field == "socials.email":
        return any(map(_may_reach_a_person, values))
    if column.field in _OF_PERSONS and _OF_CONTACTS.search(column.heading):
        return True
    # The heading does not say what the person is to the organization.
    return column.field == PEOPLE_FIELD and key(column.heading) in {"fullname", "person", "personname"}


def _may_reach_a_person(text: str) -> bool:
    """Return whether a cell has the address of a person, or several: the first would be published, whosever it is."""
    return len(addresses_in(text)) > 1 or _is_address_of_a_person(text)


def _is_of_ownership(text: str) -> bool:
    """Return whether a word says who owns an organization or where its shares are listed, and not whether it exists."""
    return key(text) in _OWNERSHIP


_OWNERSHIP: Final = words_in("public, private, ipo, listed, unlisted, state-owned, publicly traded, privately held")
_COUNTRIES_TOO: Final = frozenset({"land"})
"""Headings that mean a country first: what is no known one may be a state, or a country in another spelling."""
_VOCABULARIES: Final = frozenset({"type", "orgKind", "industry", "themes"})
_LEAST_FREE: Final = 20
"""Values from which on it shows that a column has free texts instead of the words of a vocabulary."""


def _are_free_texts(values: Sequence[str]) -> bool:
    """Return whether nearly all values differ, as no words of a vocabulary do."""
    return len(values) >= _LEAST_FREE and len({*map(key, values)}) >= _MOST * len(values)


_OF_CONTACTS: Final = re.compile(
    r"contact|kontakt|ansprech|referent|contato|contatt|contacto|poc\b|担当|联系|聯絡|담당", re.IGNORECASE
)
_PRIVATE_HOSTS: Final = re.compile(
    r"@(?:gmail|googlemail|yahoo|hotmail|outlook|live|icloud|me|aol|gmx|web|t-online|orange|wanadoo|free|laposte|libero"
    r"|seznam|wp|o2|qq|163|126|naver|protonmail|proton|mail)\.",
    re.IGNORECASE,
)


def _is_address_of_a_person(text: str) -> bool:
    """Return whether an address of mail begins with the name of a person, or is of a host of private mail boxes."""
    if "@" not in text:
        return False
    # Of several addresses, the first one would be published.
    address = next(iter(addresses_in(text)), text.removeprefix("mailto:"))
    name_before = text.partition("<")[0] if "<" in text else ""
    first_words = [_first_word(address.partition("@")[0]), _first_word(name_before)]
    is_given_name = any(word in catalogue().given_names and word not in _ALSO_OFFICES for word in first_words)
    return is_given_name or bool(_PRIVATE_HOSTS.search(address))


def _first_word(text: str) -> str:
    """Return the key of the first word of a name or of the local part of an address; "" if there is none."""
    for word in re.split(r"[\s._\-+\d]+", text):
        if word:
            return key(word)
    return ""


_ALSO_OFFICES: Final = frozenset({"mark", "media", "grace", "rose", "will", "art"})
"""Given names that begin the addresses of offices too: media@, art@."""
_WORDS_OF_TYPES: Final = words_in(
    """nonprofit, profit, public, private, government, governmental, charity, charitable, startup, dao, ngo, npo,
corporation, corporate, cooperative, collective, accelerator, incubator, vc, investor, municipal, religious,
educational, person, individual, verein, stiftung, gmbh, association, fondation, fundacion, sole, trader,
mutual, community, interest, social"""
)


_NO_TYPES: Final = words_in(
    """services, service, solutions, systems, technologies, technology, tech, software, digital, energy, health,
medical, media, capital, global, international, national, foods, insurance, consulting, hardware, the, of, for"""
)
"""Words in names of organizations that say what one does, and not what it is."""


def _has_word_of_types(text: str) -> bool:
    known = (_WORDS_OF_TYPES | catalogue().organizations) - _NO_TYPES
    words = map(key, re.split(r"[\s\-/,()]+", text))
    return key(text) in known or any(word in known for word in words)


_BETTER_LAST: Final = (
    *("title", "titel", "titre", "título", "titolo", "label", "bezeichnung", "contact", "kontakt"),
    *(
        "project",
        "project name",
        "projekt",
        "projektname",
        "projet",
        "nom du projet",
        "proyecto",
        "projeto",
        "progetto",
    ),
)
"""Headings of names that give way to others: a grant has the name of its project, and of who has it."""


def _take(column: Column, match: Match, values: Sequence[str], taken: dict[str, int], n: int) -> None:
    """Let a column hold the first field that it can mean, that is free, and that its values fit."""
    # Several columns can hold people; any other field has one column.
    free = [meaning for meaning in match.fields if meaning.startswith(_PEOPLE_AS) or meaning not in taken]
    if not free and PEOPLE_FIELD in match.fields:
        free = [PEOPLE_FIELD]
    # People with a position, "people:Founder", are tried as people; of several positions, the first counts.
    titles_by_field: dict[str, str] = {}
    for meaning in free:
        if meaning.startswith(_PEOPLE_AS):
            titles_by_field.setdefault(PEOPLE_FIELD, meaning.removeprefix(_PEOPLE_AS))
        else:
            titles_by_field.setdefault(meaning, "")
    field = fits_best(list(titles_by_field), values)
    is_of_people = field == PEOPLE_FIELD
    # The values may fit another part of an address, which another column has.
    if not field or (field in taken and not is_of_people):
        return
    column.field, column.check = field, match.is_guess
    if is_of_people:
        column.title = titles_by_field[PEOPLE_FIELD]
    taken.setdefault(field, n)


_PEOPLE_AS: Final = f"{PEOPLE_FIELD}:"


def _people_of_two_columns(columns: Sequence[Column], matches: Sequence[Match], taken: Mapping[str, int]) -> None:
    """Let a general heading be the other part of a name: "Nom" beside "Prénom" and "Société"."""
    for part, other in (("people.first", "people.last"), ("people.last", "people.first")):
        if part not in taken or other in taken:
            continue
        for column, match in zip(columns, matches, strict=True):
            names = {"name", "name.first", "name.last"}.intersection(meaning_of(column.heading, PEOPLE).fields)
            if names and not column.field and not match.is_left_out:
                column.field = other
                break


def _guess_name(columns: Sequence[Column], matches: Sequence[Match], values: Sequence[list[str]], kind: str) -> None:
    """Let the first column of mostly different short texts be the name, for a person to check; one of persons first."""
    free = _columns_without_meaning(columns, matches)
    of_persons = [n for n in free if are_persons(sampled(values[n]))]
    of_names = [n for n in free if looks_like_names(values[n])]
    if kind == PEOPLE:
        candidates = of_persons or of_names
    else:
        candidates = of_names or of_persons
        if not candidates:
            # Several rows can be about one organization, as those of grants are.
            candidates = [n for n in free if _look_like_organizations(values[n])]
    if candidates:
        column = columns[candidates[0]]
        column.field, column.check = "name", True


def _columns_without_meaning(columns: Sequence[Column], matches: Sequence[Match]) -> list[int]:
    """Return the places of the columns that hold no field, and that no heading leaves out."""
    return [n for n, match in enumerate(matches) if not columns[n].field and not match.is_left_out]


def _guess_full_name(columns: Sequence[Column], matches: Sequence[Match], values: Sequence[list[str]]) -> None:
    """Let a column whose names have two words and more be the name, for a person to check: last names are no names."""
    for n in _columns_without_meaning(columns, matches):
        sample = sampled(values[n])
        if share(sample, _has_words) >= _HALF and looks_like_names(sample) and are_persons(sample):
            columns[n].field, columns[n].check = "name", True
            return


def _has_words(text: str) -> bool:
    return " " in text.strip()


def decide_options(column: Column, values: Sequence[str]) -> None:
    """Decide how the values of a column are written, for the field that it holds; blank values do not count."""
    field = column.table_field
    if field is None:
        return
    values = [value[:JUDGED] for value in values if not is_blank(value)]
    if "separator" in field.options:
        column.separator = _separator_in(column, values)
    if "order" in field.options:
        column.order = _order_in(column, values)
    if "end" in field.options:
        column.end = end_of_addresses(values)
    if "decimal" in field.options:
        column.decimal = _decimal_of(column, field, values)
    if "currency" in field.options:
        column.currency, column.unit = currency_in_heading(column.heading)
        if not column.currency and any(map(_names_no_currency, values)):
            column.currency = ASK


def _order_in(column: Column, values: Sequence[str]) -> str:
    """Return the order of the names of people, or of the dates, in a column."""
    if column.field != PEOPLE_FIELD:
        return column.order or order_of_dates(values) or "YMD"
    names: list[str] = []
    for value in values:
        names += split_names(value, column.separator)
    return order_of_names(names)


def _separator_in(column: Column, values: Sequence[str]) -> str:
    if column.field == PEOPLE_FIELD:
        return separator_of_people(values)
    separator = separator_of(values)
    is_unsure = column.field == "position.company" and separator in {",", "\n"}
    if is_unsure and not _are_lists_of_organizations(values):
        return ""
    return separator


def _decimal_of(column: Column, field: TableField, values: Sequence[str]) -> str:
    """Return the decimal sign of a column; "1,200" beside whole numbers is a whole number, where no field says more."""
    sign = decimal_sign(values, is_count=isinstance(field.kind, Integer))
    is_declared = bool(column.kind) or field.declaration is not None
    if sign == ASK and is_declared:
        sign = decimal_sign(values, is_count=True)
    return sign


def _are_lists_of_organizations(values: Sequence[str]) -> bool:
    """Return whether a comma separates organizations: each is alone in other cells; "Alder, Inc." is one."""
    whole = {value.strip() for value in values}
    parts: list[str] = []
    for value in values:
        if "," in value:
            parts += [part.strip() for part in value.split(",")]
    alone_elsewhere = [part for part in parts if part in whole]
    return 2 * len(alone_elsewhere) > len(parts)


def _is_in_another_currency(column: Column, values: Sequence[str]) -> bool:
    """Return whether a heading or many cells of amounts name another currency than that of the registry."""
    field = column.table_field
    if field is None or not isinstance(field.kind, Money):
        return False
    if column.currency not in {"", ASK, settings.CURRENCY}:
        return True
    sample = sampled(values)
    count_of_foreign = 0
    for text in sample:
        amount = amount_in(text[:JUDGED], column.decimal or ".")
        if amount is not None and amount.currency not in {"", settings.CURRENCY}:
            count_of_foreign += 1
    return count_of_foreign > 0 and count_of_foreign >= _SOME * len(sample)


def _names_no_currency(text: str) -> bool:
    return not any(sign.isalpha() or sign in "€$£¥" for sign in text)


SAMPLED: Final = 300
_SOME: Final = 0.2
_HALF: Final = 0.5
_MOST: Final = 0.8
_EMAIL: Final = re.compile(
    r"(?<![^\s@<>,;])[^\s@<>,;(\[]++(?:@|\s?[(\[]at[)\]]\s?)[^\s@<>,;]+\.[^\W\d_]{2,}", re.IGNORECASE
)
_PHONE: Final = re.compile(r"(?:tel\.?:?\s*)?[+(\d][\d\s()./\-–+]{4,}\d(?:\s*(?:x|ext\.?|-)\s*\d+)?", re.IGNORECASE)
_SURE_PHONE: Final = re.compile(r"(?:\+|00)\d[\d\s()./\-]{6,}\d")
_NUMBER: Final = re.compile(r"^\D{0,8}\d[\d.,'’\s\u00a0\u202f\u2009]*")
_ONLY_NUMBER: Final = re.compile(r"[-+−]?[\d.,'’\s\u00a0\u202f\u2009%]+")
_ZIP: Final = re.compile(r"(?:[A-Z]{1,3}[- ]?)?[\dA-Z][\dA-Z\- ]{1,9}|〒?\d{3}-?\d{4}", re.IGNORECASE)
_SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LEI: Final = re.compile(r"[A-Z0-9]{18}\d{2}", re.IGNORECASE)
_BOOLEANS: Final = YES | NO
_LETTER: Final = re.compile(r"[^\W\d_]")
_HOSTS: Final[Mapping[str, str]] = {
    "linkedin.com": "socials.linkedin",
    "facebook.com": "socials.facebook",
    "fb.com": "socials.facebook",
    "instagram.com": "socials.instagram",
    "youtube.com": "socials.youtube",
    "tiktok.com": "socials.tiktok",
    "twitter.com": "socials.twitter",
    "x.com": "socials.twitter",
}
_MAX_NAME: Final = 100
_MAX_WORDS: Final = 12
_FEW: Final = 3


def _is_slug(text: str) -> bool:
    """Return whether a text is a slug; numbers and identifiers of other systems are none."""
    return bool(_SLUG.fullmatch(text)) and 3 * sum(map(str.isdigit, text)) < len(text)


def _is_email(text: str) -> bool:
    return bool(_EMAIL.search(text))


def _is_date(text: str) -> bool:
    return any(day_of(text, order) for order in ORDERS) or bool(month_of(text)) or is_year(text)


def _is_numeric(text: str) -> bool:
    return bool(_ONLY_NUMBER.fullmatch(text))


def _is_text(text: str) -> bool:
    """Return whether a cell has letters and is no address of something, no date and no yes or no."""
    if not _LETTER.search(text) or is_link(text) or _EMAIL.fullmatch(text):
        return False
    return not _is_date(text) and key(text) not in _BOOLEANS


def _is_name_of_person(text: str) -> bool:
    return _is_text(text) and not re.fullmatch(r"[A-Z_\-]*\d[A-Z0-9_\-]*|[A-Z]{1,3}", text)


def _are_names_of_persons(text: str) -> bool:
    """Return whether a cell can name persons: two words, or signs of East Asia, and no address, role or company."""
    first_line = re.split(r"[;|\n、]", text)[0]
    is_long = " " in first_line.strip() or not first_line.isascii()
    if not is_long or not _is_name_of_person(text):
        return False
    names = split_names(first_line, "")
    return not names or is_one_person(_without_title(names[0]))


def _without_title(text: str) -> str:
    return re.sub(r"\s*[(\[（].*?[)\]）]|^[^:：]{2,40}[:：]|\s+[-–—]\s.*$|,.*$", "", text) or text


def _is_place(text: str) -> bool:
    return bool(_LETTER.search(text)) and not is_link(text) and "@" not in text and not _is_date(text)


_CONTINENTS: Final = words_in(
    """europe, europa, afrika, africa, asia, asien, america, amerika, oceania, australasia, northamerica,
southamerica, global, world, emea, apac, latam, worldwide, international, middleeast"""
)


def _is_city(text: str) -> bool:
    return _is_place(text) and "," not in text


def _is_zip_city(text: str) -> bool:
    return bool(ZIP_CITY.fullmatch(text))


def _is_country(text: str) -> bool:
    return bool(code_of_country(text))


def _is_state(text: str) -> bool:
    """Return whether a text can be a state; a continent, a county of the United States and a number are none."""
    is_county = text.casefold().endswith((" county", " parish", " borough"))
    is_continent = key(text) in _CONTINENTS
    return _is_place(text) and not re.search(r"[,\d]", text) and not is_county and not is_continent


def _is_name(text: str) -> bool:
    """Return whether a text can be a name: no code such as "gov:BNS" or "R"."""
    is_code = bool(re.fullmatch(r"[\w-]+:\S+|[A-Z]{1,2}", text)) or (" " not in text and text.count("-") > 3)
    return _is_place(text) and key(text) not in _BOOLEANS and not is_code


def _is_prose(text: str) -> bool:
    return _is_text(text) and (len(text.split()) > 2 or not text.isascii())


def _is_word(text: str) -> bool:
    """Return whether a text can be a word of a vocabulary, and no code and no list."""
    return _is_text(text) and len(key(text)) > 1 and not re.fullmatch(r"[A-Z]\d+", text) and "," not in text


def _is_registration_number(text: str) -> bool:
    return _has_digit(text) and len(text) > 4


def _is_profile(text: str) -> bool:
    return " " not in text.strip() and "@" not in text[1:] and not _is_numeric(text) and key(text) not in _BOOLEANS


def _is_count(text: str) -> bool:
    return bool(_NUMBER.match(text)) and not _is_date_and_no_year(text) and sum(map(str.isdigit, text)) <= _MAX_WORDS


def _is_date_and_no_year(text: str) -> bool:
    return not is_year(text) and not _is_numeric(text) and _is_date(text)


def _is_amount(text: str) -> bool:
    return bool(_NUMBER.match(text)) and not _is_date_and_no_year(text)


def is_status(text: str) -> bool:
    return key(text) in catalogue().statuses


def _has_digit(text: str) -> bool:
    return bool(re.search(r"\d", text))


_LOOKS: Final[dict[str, Callable[[str], bool]]] = {
    "symbol": lambda text: len(text) <= _MAX_WORDS and " " not in text and bool(_LETTER.search(text)),
    "socials.phone_number": lambda text: bool(_PHONE.match(text)) and not _is_date(text),
    "address.zip": lambda text: bool(_ZIP.fullmatch(text)) and _has_digit(text),
    **dict.fromkeys(("address", "address.address_1"), _is_place),
    "address.city": _is_city,
    "address.state": _is_state,
    "address.zip_city": _is_zip_city,
    HOUSE_NUMBER: lambda text: len(text) <= _MAX_WORDS and _has_digit(text),
    "status": is_status,
    "themes": _is_text,
    "name": _is_name,
    "people": _are_names_of_persons,
    **dict.fromkeys(("people.first", "people.last", "name.first", "name.last"), _is_name_of_person),
    **dict.fromkeys(("people.title", "position.title"), _is_text),
    "position.company": lambda text: _is_text(text) and not re.fullmatch(r"[A-Z]{1,2}", text),
    "extra:lei": lambda text: bool(_LEI.fullmatch(text)),
    "extra:registrationNumber": _is_registration_number,
}
"""Fields whose values look like something that their kind does not say."""
_LOOKS_OF_KINDS: Final[tuple[tuple[type[Kind], Callable[[str], bool]], ...]] = (
    (Slug, _is_slug),
    (Integer, _is_count),
    (Number, _is_amount),
    (Money, _is_amount),
    (Email, _is_email),
    (Profile, _is_profile),
    (PictureLink, lambda text: "/" in text),
    (Link, is_link),
    (Country, _is_country),
)


def _look_of(name: str) -> Callable[[str], bool] | None:
    """Return what the values of a field look like; None if they can be any text."""
    field = field_named(name)
    if name in _LOOKS or field is None:
        return _LOOKS.get(name)
    if field.is_date:
        return lambda text: _is_date(text) or is_serial(text)
    for kind, looks_right in _LOOKS_OF_KINDS:
        if isinstance(field.kind, kind):
            return looks_right
    if field.is_prose:
        return _is_prose
    return _is_word if is_of_vocabulary(name) else None


_LEAST: Final = {
    "address.country": 0.3,
    "extra:registrationNumber": 0.3,
    "people": 0.3,
    "status": 0.3,
}
"""Shares of values that must fit, where they are not half."""


def sampled(values: Sequence[str]) -> Sequence[str]:
    """Return at most SAMPLED values from all over a column: a table may be sorted."""
    return values[:: max(1, -(-len(values) // SAMPLED))]


def share(values: Sequence[str], is_one: Callable[[str], bool]) -> float:
    return sum(map(is_one, values)) / len(values) if values else 0.0


_FEW_VALUES: Final = 5
_LEAST_PROSE: Final = 0.3


def fits(field: str, values: Sequence[str]) -> bool:
    """Return whether the values of a column can be those of *field*; a column without values fits."""
    looks_right = _look_of(field)
    table_field = field_named(field)
    if table_field is not None and _are_too_long(table_field, values):
        return False
    if not values or looks_right is None:
        return True
    is_prose = table_field is not None and table_field.is_prose
    # Such fields can hold any text, so that only many values contradict a heading.
    is_loose = is_prose or is_of_vocabulary(field)
    if is_loose and len(values) < _FEW_VALUES:
        return share(values, _is_text) >= _HALF
    least = _LEAST_PROSE if is_prose else _LEAST.get(field, _HALF)
    return share(sampled(values), looks_right) >= least


_FEW_TOO_LONG: Final = 0.05


def _are_too_long(field: TableField, values: Sequence[str]) -> bool:
    """Return whether a field could not hold more than a few of the values, or of their entries."""
    kind, texts = field.kind, values
    if isinstance(kind, Items):
        kind, texts = kind.of, _entries_in(values)
    most = kind.max if isinstance(kind, Text) else None
    # How long a longer text is does not show: the values are cut at JUDGED.
    if not most or most >= JUDGED or field.name in NAMES:
        return False
    # Of a few values each is a large share: one that is too long is reported, and contradicts nothing.
    tolerated = _FEW_TOO_LONG if len(texts) >= _FEW_VALUES else _HALF
    too_long = [text for text in texts if len(text.strip()) > most]
    return len(too_long) > tolerated * len(texts)


def _entries_in(values: Sequence[str]) -> Sequence[str]:
    """Return the entries of the lists in a column."""
    separator = separator_of(values)
    if not separator:
        return values
    entries: list[str] = []
    for value in values:
        entries += value.split(separator)
    return entries


def _are_of_one_site(values: Sequence[str]) -> bool:
    """Return whether most links of a longer column are pages of one site, as a directory or a source has them."""
    hosts = Counter(map(_host, values))
    return len(values) >= _LEAST_OF_A_SITE and hosts.most_common(1)[0][1] >= _MOST * len(values)


_LEAST_OF_A_SITE: Final = 5


def fits_best(fields: Sequence[str], values: Sequence[str]) -> str:
    """Return the first of *fields* that the values fit; those with known words before others."""
    sample = sampled(values)
    if len(fields) > 1:
        field_of_known_words = _field_of_known_words(fields, sample)
        if field_of_known_words:
            return field_of_known_words
    for field in fields:
        if field == "address" and "address.city" in fields:
            # A city has neither commas nor numbers.
            if share(sample, _is_like_an_address) >= _HALF:
                return field
            continue
        better = _better_part_of_address(field, sample)
        if better or fits(field, values):
            return better or field
    return ""


def _better_part_of_address(field: str, sample: Sequence[str]) -> str:
    """Return the part of an address that values are instead of *field*; "" if they are none."""
    if field in {"address.city", "address.zip"} and share(sample, _is_zip_city) >= _HALF:
        return "address.zip_city"
    if field in {"address", "address.city"} and share(sample, _is_country) >= _MOST:
        return "address.country"
    return ""


def _field_of_known_words(fields: Sequence[str], sample: Sequence[str]) -> str:
    for field, is_known in (("address.country", _is_country), ("status", is_status)):
        if field in fields and share(sample, is_known) >= _HALF:
            return field
    return ""


def _is_like_an_address(text: str) -> bool:
    return bool(re.search(r"[,\n]|\d", text))


def looks_like(values: Sequence[str], free: Callable[[str], bool]) -> str:
    """
    Return the field that the values of a column without a known heading look like; empty if none.

    Args:
        free: whether no other column holds a field.
    """
    values = sampled(values)
    if not values:
        return ""
    hosts = list(map(_host, values))
    for host, field in _HOSTS.items():
        if free(field) and hosts.count(host) >= _MOST * len(values):
            return field
    for field, fits_surely in _SURE_LOOKS.items():
        if free(field) and fits_surely(values):
            return field
    return ""


def _are_email_addresses(values: Sequence[str]) -> bool:
    return share(values, lambda text: bool(_EMAIL.fullmatch(text))) >= _MOST


def _are_websites(values: Sequence[str]) -> bool:
    """Return whether values are home pages of different hosts, and not pages of one site."""
    return share(values, _is_home) >= _MOST and len({*map(_host, values)}) >= _MOST * len(values)


def _are_countries(values: Sequence[str]) -> bool:
    """Return whether values are names of countries, and not only codes, which languages and states have too."""
    return share(values, _is_country) >= _MOST and any(len(text) > _FEW for text in values)


def _are_phone_numbers(values: Sequence[str]) -> bool:
    return share(values, lambda text: bool(_SURE_PHONE.fullmatch(text))) >= _MOST


_SURE_LOOKS: Final[Mapping[str, Callable[[Sequence[str]], bool]]] = {
    "socials.email": _are_email_addresses,
    "website": _are_websites,
    "address.country": _are_countries,
    "socials.phone_number": _are_phone_numbers,
}
"""Fields that values show without a heading, in the order in which they are tried."""


def _host(text: str) -> str:
    try:
        host = urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:
        return ""
    host = host.removeprefix("www.")
    domain = ".".join(host.split(".")[-2:])
    return domain if domain in _HOSTS else host


def _is_home(text: str) -> bool:
    return is_link(text) and text.rstrip("/").count("/") <= _FEW and _host(text) not in _HOSTS


def looks_like_names(values: Sequence[str]) -> bool:
    """Return whether values are mostly different short texts of letters, as names are."""
    values = sampled(values)
    if len(values) < 2 or len({*values}) < _MOST * len(values):
        return False
    return share(values, _is_like_a_name) >= _MOST


def _look_like_organizations(values: Sequence[str]) -> bool:
    """Return whether values are short texts of letters, many different ones, and have words of organizations."""
    values = sampled(values)
    are_different = len({*values}) >= max(2, _SOME * len(values))
    return are_different and share(values, _is_like_a_name) >= _MOST and are_organizations(values)


def _is_like_a_name(text: str) -> bool:
    letters = sum(map(str.isalpha, text))
    is_short = len(text) <= _MAX_NAME and len(text.split()) <= _MAX_WORDS
    return is_short and 2 * letters > len(text) and letters > 1 and _is_place(text) and not _is_country(text)
