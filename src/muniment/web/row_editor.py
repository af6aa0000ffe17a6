"""
The row editor: edit a list in pages of rows, with search, blank rows, and a box to remove a row.

A form posts the rows of one page. Rows that were changed become additions, changes of single members and removals by
id; all others stay untouched. So no list is too long for a form, and no edit loses another one's rows.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from django.http import QueryDict
from django.utils.translation import gettext, ngettext

from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.languages import writing
from muniment.languages.translated import sentence, stated
from muniment.schema.kinds import Choice, Country
from muniment.schema.validation import ChoiceFault, Fault
from muniment.web.row_lists import TEAM, Cells, Column, RowList, fingerprint, one_line_end
from muniment.web.wording.places import country_names
from muniment.web.wording.states import STATES, outcome

PAGE_ROWS: Final = 25
BLANK_ROWS: Final = 2
MAX_NEW_ROWS: Final = 10
"""New rows that the script offers before the page is saved."""
NEW: Final = "?new"
"""The choice of a different person of the same name; no slug contains a question mark."""


EXAMPLES: Final = {"percentage": "12.5", "tokens": "500,000", "target": "$2.5M"}
"""Examples in the empty cells of new rows, by column."""
_DAY: Final = re.compile(r"(?:\d{4}-\d\d-\d\d)?")
"""A day that a browser's date picker can show; any other stored date is edited as text."""


def _words(text: str) -> str:
    return " ".join(text.split())


@dataclass(slots=True)
class EditedRow:
    """
    A row as the form shows it, or as it was submitted.

    Args:
        at: its index among the stored rows; None for a new row.
        cells: its texts.
        is_edited: it was submitted with changes.
        faults: by column.
        choices: slugs of existing people with the name of the row, of which the owner chooses.
        choice: the chosen one, or NEW for a different person.
        place: the number that the row is to have in the list; empty if it stays where it is.
    """

    at: int | None
    cells: Cells
    is_edited: bool = False
    remove: bool = False
    note: str = ""
    faults: dict[str, str] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    choice: str = ""
    place: str = ""


class SubmittedRow(NamedTuple):
    """
    A row as the browser sent it.

    Args:
        id: the id of the stored row that was shown; empty for a new row.
        cells: its texts.
        shown_cells: the fingerprint of the cells that were shown.
        place: the number of its place, as it was typed.
        shown_place: the number that was shown.
        remove: the box to remove it is checked.
        choice: the chosen person of the name, or NEW for a different one.
    """

    id: str
    cells: Cells
    shown_cells: str
    place: str
    shown_place: str
    remove: bool
    choice: str

    @property
    def has_text(self) -> bool:
        return any(text.strip() for text in self.cells.values())

    @property
    def new_place(self) -> str:
        """The number that the row is to have in the list; empty if it stays where it is."""
        number = re.sub(r"[.,’\s]", "", self.place)  # people write 1,200 and 1.200
        is_changed = bool(self.shown_place) and number != self.shown_place
        if is_changed and re.fullmatch(r"[1-9]\d{0,5}", number):
            return number
        return ""


class RowEditor:
    """
    One list on a page of the listing's form.

    Args:
        rows: the list.
        stored: its stored rows.
        query: the parameters of the page: ``<list>-page`` and ``<list>-q``.
    """

    def __init__(self, rows: RowList, stored: list[JSONObject], query: Mapping[str, str]) -> None:
        self.list, self.stored = rows, stored
        self.name, self.label, self.add_label = rows.name, gettext(rows.label), gettext(rows.add)
        self.hint = gettext(rows.hint) if rows.hint else ""
        self.page_parameter, self.search_parameter = f"{rows.name}-page", f"{rows.name}-q"
        self.search = self.typed_search = _words(query.get(self.search_parameter, ""))
        number = query.get(self.page_parameter, "")
        self.is_asked_for = bool(number or self.search)
        self.folds = False
        self._asked = int(number) if re.fullmatch(r"[1-9]\d{0,6}", number) else 1
        self.edited: list[EditedRow] = []
        self.sentences: list[str] = []
        self._new: list[EditedRow] = []
        self._set: list[EditedRow] = []
        self._removed: list[EditedRow] = []
        self._order: list[int] = []

    @cached_property
    def found(self) -> Page[int]:
        """The indexes of the stored rows on this page, among those that match the search."""
        indexes = list(range(len(self.stored)))
        if self.search:
            indexes = [index for index in indexes if self._matches(self.stored[index])]
        page = min(self._asked, max(1, _pages(len(indexes))))
        start = (page - 1) * PAGE_ROWS
        return Page(indexes[start : start + PAGE_ROWS], page, PAGE_ROWS, len(indexes))

    def _matches(self, row: JSONObject) -> bool:
        wanted = self.search.casefold()
        return any(wanted in _words(text).casefold() for text in self.list.cells(row).values())

    # ------------------------------------------------------------------ reading a form

    def read(self, post: QueryDict) -> None:
        """Read the rows of a submitted form; one that still says what was shown is not edited."""
        self.typed_search = _words(post.get(self.search_parameter, self.search))
        places_by_id: dict[str, list[int]] = defaultdict(list)
        for index, stored in enumerate(self.stored):
            places_by_id[stored.get("id", "")].append(index)
        for number in self._numbers(post):
            submitted = self._submitted(post, number)
            places = places_by_id.get(submitted.id, [])
            if not submitted.id:
                self._read_new(submitted)
            elif submitted.remove or fingerprint(submitted.cells) != submitted.shown_cells:
                self._read_stored(submitted, places)
            elif places:
                self._read_moved(submitted, places)

    def _numbers(self, post: QueryDict) -> list[int]:
        """Return the numbers of the submitted rows, in order."""
        numbers = set()
        for key in post:
            match = re.match(rf"{self.name}-(\d{{1,4}})-", key)
            if match:
                numbers.add(int(match[1]))
        return sorted(numbers)

    def _submitted(self, post: QueryDict, number: int) -> SubmittedRow:
        key = f"{self.name}-{number}"
        cells = {column.name: one_line_end(post.get(f"{key}-{column.name}", "")) for column in self.list.columns}
        choice = post.get(f"{key}-choice", "")
        if choice and choice != NEW and "slug" in cells:
            cells["slug"] = choice
        # What `_mark` wrote.
        mark, _, row_id = post.get(f"{key}-row", "").partition(" ")
        shown_cells, _, shown_place = mark.partition(".")
        return SubmittedRow(
            id=row_id,
            cells=cells,
            shown_cells=shown_cells,
            place=post.get(f"{key}-place", "").strip(),
            shown_place=shown_place,
            remove=f"{key}-remove" in post,
            choice=choice,
        )

    def _read_new(self, submitted: SubmittedRow) -> None:
        """Read a row that the list does not have yet; a blank one is left out."""
        if submitted.has_text:
            row = EditedRow(None, submitted.cells, is_edited=True, choice=submitted.choice)
            self._keep(row, self._new)

    def _read_stored(self, submitted: SubmittedRow, places: list[int]) -> None:
        """Read an edited row; *places* are the stored rows with its id."""
        if not places:
            if not submitted.remove:
                # What was typed is not lost: it is offered as a new row.
                note = gettext("This row was removed in the meantime. Save to add it again, or empty its fields.")
                self._keep(EditedRow(None, submitted.cells, is_edited=True, note=note), self._new)
            return
        at = self._at(places, submitted.shown_cells)
        row = EditedRow(at, submitted.cells, is_edited=True, remove=submitted.remove, choice=submitted.choice)
        row.place = submitted.new_place
        if not submitted.remove and not submitted.has_text:
            row.note = gettext("This row is empty. To remove it, select Remove.")
            self.sentences.append(f"{self.label}: {row.note}")
        if submitted.remove:
            self._keep(row, self._removed)
        else:
            self._keep(row, self._set)

    def _read_moved(self, submitted: SubmittedRow, places: list[int]) -> None:
        """Read a row whose cells are as they were shown: it is edited if it gets another place."""
        if submitted.new_place:
            at = self._at(places, submitted.shown_cells)
            row = EditedRow(at, self.list.cells(self.stored[at]), is_edited=True, place=submitted.new_place)
            self.edited.append(row)

    def _at(self, places: list[int], shown_cells: str) -> int:
        """Return the stored row whose cells were shown, among those with its id; the first if it has changed since."""
        for at in places:
            if fingerprint(self.list.cells(self.stored[at])) == shown_cells:
                return at
        return places[0]

    def _keep(self, row: EditedRow, among: list[EditedRow]) -> None:
        among.append(row)
        self.edited.append(row)

    # ------------------------------------------------------------------ the change

    def change(self) -> JSONObject | list[JSONObject]:
        """Return the operations on the rows, for the operation that updates the listing; empty without any."""
        self._set = [row for row in self._set if self._changes(row)]
        operations: JSONObject = {
            "add": [_chosen(row, self.list.new_row(row.cells)) for row in self._new],
            "set": [{"id": self._id(row), **self._changes(row)} for row in self._set],
            "remove": [self._id(row) for row in self._removed],
        }
        # Operations name rows by their ids and keep their order; where that is not enough, the whole list is sent.
        if self._has_ambiguous_ids() or self._is_moved():
            return [*self._left(), *operations["add"]]
        return {name: rows for name, rows in operations.items() if rows}

    def _has_ambiguous_ids(self) -> bool:
        """Return whether an edited row shares its id with another stored row."""
        edited = {self._id(row) for row in (*self._set, *self._removed)}
        return sum(row.get("id", "") in edited for row in self.stored) > len(edited)

    def _is_moved(self) -> bool:
        """Return whether rows change their places among the others."""
        new_places = {}
        for row in self.edited:
            if row.place and row.at is not None:
                new_places[row.at] = int(row.place)
        order = [at for at in range(len(self.stored)) if at not in new_places]
        # From the first place on, so that a row that is inserted later moves none of those that have theirs.
        for at in sorted(new_places, key=lambda at: new_places[at]):
            order.insert(new_places[at] - 1, at)
        self._order = order
        return order != sorted(order)

    def _left(self) -> list[JSONObject]:
        """Return the stored rows after the change, for a whole list; a row whose id an earlier one has gets another."""
        removed = {row.at for row in self._removed}
        changed = {row.at: self._changes(row) for row in self._set}
        rows: list[JSONObject] = []
        used_ids: set[str] = set()
        self._order = [at for at in self._order or range(len(self.stored)) if at not in removed]
        for at in self._order:
            stored = self.stored[at]
            row = self.list.changed_row(stored, changed.get(at, {}))
            if row.get("id") in used_ids:
                del row["id"]
            rows.append(row)
            used_ids.add(stored.get("id", ""))
        return rows

    def _changes(self, row: EditedRow) -> JSONObject:
        return _chosen(row, self.list.changed_members(self._stored(row), row.cells))

    def _id(self, row: EditedRow) -> str:
        return str(self._stored(row).get("id", ""))

    def _stored(self, row: EditedRow) -> JSONObject:
        return {} if row.at is None else self.stored[row.at]

    # ------------------------------------------------------------------ faults

    def put(self, faults: Iterable[Fault]) -> list[Fault]:
        """Show the faults of this list beside their cells; return the others."""
        others = []
        within = f"(?:{re.escape(self.list.within)}\\.)?" if self.list.within else ""
        pattern = re.compile(rf"{within}{re.escape(self.name)}(?:\.(add|set|remove))?(?:\[(\d+)\])?(?:\.(.*))?")
        for fault in faults:
            match = pattern.fullmatch(fault.field)
            if match:
                self._put(fault, match[1], match[2], match[3] or "")
            else:
                others.append(fault)
        return others

    def _put(self, fault: Fault, operation: str | None, index: str | None, member: str) -> None:
        reason = sentence(fault.reason)
        if index is None:
            self.sentences.append(f"{self.label}: {reason}")
            return
        row = self._row_of(operation, int(index))
        if row is None:
            self.sentences.append(stated(fault.sentence))
            return
        column = self._column_of(member)
        if column is not None:
            row.faults[column.name] = reason
            row.choices = fault.choices if isinstance(fault, ChoiceFault) else ()
        elif member:
            row.note = f"{member}: {reason}"
        else:
            row.note = reason

    def _column_of(self, member: str) -> Column | None:
        """Return the column of a fault's member: of its last name, or else of the whole member of a row."""
        last_name = member.rpartition(".")[2]
        for column in self.list.columns:
            if column.name == last_name:
                return column
        for column in self.list.columns:
            if column.member.name == member:
                return column
        return None

    def _row_of(self, operation: str | None, index: int) -> EditedRow | None:
        """Return the submitted row of a fault's path: ``set[0]``, or the index in the list after the change."""
        if operation is None:
            removed = {row.at for row in self._removed}
            order = self._order or range(len(self.stored))
            remaining = [at for at in order if at not in removed]
            if index < len(remaining):
                for row in self._set:
                    if row.at == remaining[index]:
                        return row
                return None
            # Behind the stored rows of a whole list are the added ones.
            operation, index = "add", index - len(remaining)
        rows = {"add": self._new, "set": self._set, "remove": self._removed}[operation]
        return rows[index] if index < len(rows) else None

    @property
    def has_faults(self) -> bool:
        return bool(self.sentences or any(row.faults or row.note for row in self.edited))

    # ------------------------------------------------------------------ the page

    @property
    def max_new(self) -> int:
        """Return the number of rows that the script may still add."""
        return max(0, MAX_NEW_ROWS - len(self._new))

    @property
    def is_searchable(self) -> bool:
        return bool(self.search) or len(self.stored) > PAGE_ROWS

    @property
    def is_open(self) -> bool:
        """Return whether the rows of a list that folds are shown: a page, a search or an edit of them is asked for."""
        return self.is_asked_for or bool(self.edited or self.sentences)

    @property
    def can_move(self) -> bool:
        return len(self.stored) > 1

    @property
    def summary(self) -> str:
        """Return the number of shown rows and of all rows, in words."""
        page = self.found
        before = (page.page - 1) * PAGE_ROWS
        values = {
            "first": writing.number(before + 1),
            "last": writing.number(before + len(page.items)),
            "count": writing.number(page.total),
            "total": writing.number(len(self.stored)),
        }
        if self.search and not page.total:
            return gettext("No row of %(total)s matches.") % values
        if self.search:
            return gettext("Rows %(first)s to %(last)s of %(count)s that match, of %(total)s in all.") % values
        if page.page_count > 1:
            return gettext("Rows %(first)s to %(last)s of %(total)s.") % values
        if not self.stored:
            return gettext(self.list.none)
        return ngettext("%(total)s row.", "%(total)s rows.", len(self.stored)) % values

    @property
    def headings(self) -> list[JSONObject]:
        return [{"label": gettext(column.field.label), "numeric": column.is_number} for column in self.list.columns]

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the rows that are shown."""
        parameters = {}
        if self.found.page > 1:
            parameters[self.page_parameter] = str(self.found.page)
        if self.search:
            parameters[self.search_parameter] = self.search
        return parameters

    def next_parameters(self, wanted: Mapping[str, str], *, shows_added: bool) -> dict[str, str]:
        """Return the parameters of this list after a save: a new search, the page of added rows, or those *wanted*."""
        if self.typed_search != self.search:
            return {self.search_parameter: self.typed_search} if self.typed_search else {}
        if self._new and shows_added:
            last = _pages(len(self.stored) - len(self._removed) + len(self._new))
            return {self.page_parameter: str(last)} if last > 1 else {}
        return {name: wanted[name] for name in (self.page_parameter, self.search_parameter) if wanted.get(name)}

    def rows(self) -> list[JSONObject]:
        """Return the rows of the page for the template: the stored ones, those submitted, and blank ones."""
        edited = {row.at: row for row in self.edited if row.at is not None}
        rows = []
        for at in self.found.items:
            if at in edited:
                rows.append(edited.pop(at))
            else:
                rows.append(EditedRow(at, self.list.cells(self.stored[at])))
        # Another edit may have moved these rows to a different page in the meantime.
        rows += edited.values()
        rows += [row for row in self.edited if row.at is None]
        blank = dict.fromkeys((column.name for column in self.list.columns), "")
        rows += [EditedRow(None, blank) for _ in range(BLANK_ROWS)]
        return [self._row(number, row) for number, row in enumerate(rows)]

    def _row(self, number: int, row: EditedRow) -> JSONObject:
        key = f"{self.name}-{number}"
        stored = self._stored(row)
        shown: JSONObject = {"place": gettext("New"), "wanted": row.place, "shown": ""}
        if row.at is not None:
            shown["place"] = writing.number(row.at + 1)
            shown["wanted"] = row.place or row.at + 1
            shown["shown"] = self._mark(row.at, stored)
        return {
            "key": key,
            **shown,
            "is_new": row.at is None,
            "is_edited": row.is_edited,
            "is_blank": row.at is None and not row.is_edited,
            "remove": row.remove,
            "note": row.note,
            "choices": row.choices,
            "cells": [self._cell(key, shown["place"], column, row, stored) for column in self.list.columns],
        }

    def _mark(self, at: int, stored: JSONObject) -> str:
        """Return what a form sends back of a row, so that a change of it is noticed: its cells, its place, its id."""
        return f"{fingerprint(self.list.cells(stored))}.{at + 1} {stored.get('id', '')}"

    def _cell(self, key: str, place: str, column: Column, row: EditedRow, stored: JSONObject) -> JSONObject:
        text, stored_text = row.cells[column.name], column.text(stored)
        is_date = column.is_day and all(_DAY.fullmatch(value) for value in (text, stored_text))
        lines = 0
        if "\n" in text or "\n" in stored_text:
            lines = text.count("\n") + 1
        example = ""
        if row.at is None:
            example = EXAMPLES.get(column.name, "")
        return {
            "id": f"{key}-{column.name}",
            "label": gettext(column.field.label),
            "place": place,
            "value": text,
            "choices": _choices(column, text, stored_text),
            "numeric": column.is_number,
            "type": "date" if is_date else "text",
            "example": example,
            "picks_person": self.name == TEAM.name and column.name == "name",
            "lines": lines,
            "fault": row.faults.get(column.name, ""),
        }


def _pages(rows: int) -> int:
    return math.ceil(rows / PAGE_ROWS)


def _choices(column: Column, text: str, stored_text: str) -> dict[str, str]:
    """Return the values to choose from, by the value; none for a column of texts."""
    kind: Any = column.field.kind
    choices: dict[str, str] = {}
    if isinstance(kind, Country):
        choices |= country_names()
    elif isinstance(kind, Choice):
        for value in kind.values:
            choices[value] = outcome(value) if value in STATES else value
    if choices:
        # What is stored or was submitted stays, though it is none of them.
        for value in sorted({text, stored_text} - {*choices, ""}):
            choices[value] = value
    return choices


def _chosen(row: EditedRow, members: JSONObject) -> JSONObject:
    """Return the members of a row; its person is marked as new if the owner chose none of the people of that name."""
    person = members.get("person")
    if row.choice == NEW and isinstance(person, dict):
        return {**members, "person": {**person, "isNew": True}}
    return members
