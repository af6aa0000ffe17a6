"""
The rows that a pasted table adds to a list of a listing or changes in it. Pure.

A pasted row changes the stored row that it names, and otherwise is a new one. Rows that the table does not name stay,
unless it is said to be the whole list.
"""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from muniment.kernel.json import JSONObject
from muniment.languages.translated import stated
from muniment.schema.validation import ChoiceFault, Fault
from muniment.web.authoring.tables import Table, cells_by_column
from muniment.web.row_editor import NEW
from muniment.web.row_lists import Cells, RowList

ADDED: Final = "new"
CHANGED: Final = "changed"
UNCHANGED: Final = "unchanged"
_IDENTIFYING: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "positions": (("slug", "title"), ("name", "title"), ("slug",), ("name",)),
    "capTable": (("address",), ("name",)),
    "proposals": (("title",),),
    "address": (("address_1", "city"),),
}
"""The members that name a row, the surest first; by default its first column."""
_SURE: Final = {"positions": "slug", "capTable": "address"}
"""The member that tells rows of the same name apart."""


@dataclass(slots=True)
class PastedRow:
    """
    A row of the table.

    Args:
        line: its number in the text.
        cells: the cells of the columns that the table has.
        at: the stored row that it changes; None for a new one.
        members: what it changes, or the new row.
    """

    line: int
    cells: Cells
    at: int | None = None
    members: JSONObject = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    choices: tuple[str, ...] = ()
    choice: str = ""

    @property
    def effect(self) -> str:
        if self.at is None:
            return ADDED
        return CHANGED if self.members else UNCHANGED


class _Candidates:
    """
    Stored rows of one name, of which each can be named once. Taking one costs the same however many there are.

    Rows that differ in the member that tells rows of one name apart are not the same; a row without it may be any.
    """

    def __init__(self) -> None:
        self._by_sure: dict[str, deque[int]] = defaultdict(deque)
        self._all: deque[int] = deque()
        self._taken: set[int] = set()

    def add(self, at: int, sure: str) -> None:
        self._by_sure[sure.casefold()].append(at)
        self._all.append(at)

    def take(self, sure: str) -> int | None:
        """Return the first row that may be meant, which is then no candidate any more; None if there is none."""
        queues = [self._by_sure[each] for each in (sure.casefold(), "")] if sure else [self._all]
        heads = [queue[0] for queue in map(self._untaken, queues) if queue]
        found = min(heads, default=None)
        if found is not None:
            self._taken.add(found)
        return found

    def _untaken(self, queue: deque[int]) -> deque[int]:
        while queue and queue[0] in self._taken:
            queue.popleft()
        return queue


class Pasted:
    """
    A pasted table beside the stored rows of a list.

    Args:
        is_whole: stored rows that the table does not name are removed.
        choices: by line, the slug of the person whom a row names.
    """

    def __init__(
        self,
        rows: RowList,
        stored: Sequence[JSONObject],
        table: Table,
        *,
        is_whole: bool = False,
        choices: Mapping[int, str] | None = None,
    ) -> None:
        self.list, self.stored, self.table, self.is_whole = rows, stored, table, is_whole
        self.sentences: list[str] = []
        self.rows = [
            PastedRow(table.first_line + n, cells, choice=(choices or {}).get(table.first_line + n, ""))
            for n, cells in enumerate(cells_by_column(table, rows.columns))
        ]
        self._match()
        for row in self.rows:
            self._read(row)
        named = {row.at for row in self.rows}
        self.removed = [at for at in range(len(stored)) if at not in named] if is_whole else []

    def _match(self) -> None:
        """Find the stored row that each row names: by everything that identifies one, else by its name alone."""
        taken: set[int] = set()
        sure = _SURE.get(self.list.name, "")
        shown = [self.list.cells(stored) for stored in self.stored]
        for key in _keys(self.list):
            places: dict[str, _Candidates] = defaultdict(_Candidates)
            for at, cells in enumerate(shown):
                if at not in taken and (text := key(cells)):
                    places[text].add(at, cells.get(sure, ""))
            for row in self.rows:
                if row.at is None and (found := places.get(key(row.cells))):
                    row.at = found.take(row.cells.get(sure, ""))
            taken = {row.at for row in self.rows if row.at is not None}

    def _read(self, row: PastedRow) -> None:
        if row.choice and row.choice != NEW and "slug" in {column.name for column in self.list.columns}:
            row.cells = {**row.cells, "slug": row.choice}
        if row.at is None:
            blank = dict.fromkeys((column.name for column in self.list.columns), "")
            row.members = self.list.new_row({**blank, **row.cells})
        else:
            stored = self.stored[row.at]
            shown = self.list.cells(stored)
            row.members = self.list.changed_members(stored, {**shown, **self._meant(row.cells, shown)})
        if row.choice == NEW and isinstance(person := row.members.get("person"), dict):
            row.members["person"] = {**person, "isNew": True}

    def _meant(self, cells: Cells, shown: Cells) -> Cells:
        """Return the cells that say something else than the stored row: 2.50% and 2.5 are the same number."""
        numeric = {column.name: column for column in self.list.columns if column.is_number}
        return {
            name: text
            for name, text in cells.items()
            if name not in numeric or numeric[name].value(text) != numeric[name].value(shown[name])
        }

    # ------------------------------------------------------------------ the change

    def change(self) -> JSONObject:
        """Return the change of the listing; empty if the table says what is stored."""
        operations: JSONObject = {
            "add": [row.members for row in self._added()],
            "set": [{"id": self.stored[row.at or 0].get("id", ""), **row.members} for row in self._changed()],
            "remove": [self.stored[at].get("id", "") for at in self.removed],
        }
        operations = {name: given for name, given in operations.items() if given}
        if not operations:
            return {}
        change = {self.list.name: operations}
        return {self.list.within: change} if self.list.within not in {"", "company"} else change

    def counts(self) -> dict[str, int]:
        """Return the number of rows by what happens to them."""
        effects = [row.effect for row in self.rows]
        return {**{each: effects.count(each) for each in (ADDED, CHANGED, UNCHANGED)}, "removed": len(self.removed)}

    def _added(self) -> list[PastedRow]:
        return [row for row in self.rows if row.at is None]

    def _changed(self) -> list[PastedRow]:
        return [row for row in self.rows if row.at is not None and row.members]

    # ------------------------------------------------------------------ faults

    def put(self, faults: Iterable[Fault]) -> None:
        """Show each fault in its row, and the others above the table."""
        within = f"(?:{re.escape(self.list.within)}\\.)?" if self.list.within else ""
        pattern = re.compile(rf"{within}{re.escape(self.list.name)}(?:\.(add|set))?\[(\d+)\](?:\.(.*))?")
        removed = set(self.removed)
        left = [at for at in range(len(self.stored)) if at not in removed]
        for fault in faults:
            match = pattern.fullmatch(fault.field)
            row = self._row_of(match[1], int(match[2]), left) if match else None
            if row is None:
                self.sentences.append(stated(fault.sentence))
                continue
            member = (match[3] or "").rpartition(".")[2] if match else ""
            label = next((each.field.label for each in self.list.columns if each.name == member), member)
            row.faults.append(f"{label}: {stated(fault.reason)}" if label else stated(fault.reason))
            row.choices = fault.choices if isinstance(fault, ChoiceFault) else row.choices

    def _row_of(self, operation: str | None, index: int, left: Sequence[int]) -> PastedRow | None:
        """
        Return the row of a fault's path: ``set[0]``, or the index in the list after the change.

        Args:
            left: the stored rows that are not removed.
        """
        if operation is None:
            if index < len(left):
                return next((row for row in self._changed() if row.at == left[index]), None)
            operation, index = "add", index - len(left)
        rows = self._added() if operation == "add" else self._changed()
        return rows[index] if index < len(rows) else None

    @property
    def has_faults(self) -> bool:
        return bool(self.sentences or any(row.faults for row in self.rows))


def _keys(rows: RowList) -> list[Callable[[Cells], str]]:
    """Return by what a row names a stored one, the surest first."""
    names = [column.name for column in rows.columns]
    sets = _IDENTIFYING.get(rows.name, ((names[0],),))
    return [_key_of(each) for each in sets]


def _key_of(names: tuple[str, ...]) -> Callable[[Cells], str]:
    def key(cells: Mapping[str, str]) -> str:
        parts = [" ".join(str(cells.get(name, "")).split()).casefold() for name in names]
        return "\0".join(parts) if parts[0] else ""

    return key
