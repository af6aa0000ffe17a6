"""
Paste a table from a spreadsheet into a list of a listing: show what would change, then save it.

Columns are recognized by their headings, or by their order. A pasted row changes the stored row that it names, and
otherwise is a new one. Rows that the table does not name stay, unless it is said to be the whole list.
"""

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.translation import gettext, ngettext

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Conflict, TooMany
from muniment.languages.translated import stated, told
from muniment.languages.writing import number
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.company.listings import OwnedCompany
from muniment.registry.tables.catalogue import key as heading_key
from muniment.registry.tables.delimited import DELIMITERS, cells_of
from muniment.schema.validation import ChoiceFault, Fault
from muniment.web.forms import plain
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page
from muniment.web.row_editor import NEW
from muniment.web.row_lists import DISTRIBUTED, HOLDERS, PLACES, TEAM, VOTED, Cells, Column, RowList, funding_rounds
from muniment.web.views.authoring.listing_form import TITLES
from muniment.web.views.manage.companies import asked_version, frame, say

SHOWN_ROWS: Final = 200
"""Maximum rows of the preview; beyond them, it shows only rows with errors."""
_STEPS: Final = {TEAM.name: "team", PLACES.name: "team"}
_EXAMPLES: Final = {
    TEAM.name: "Name\tPosition\nAda Reef\tChair\nBo Marsh\tTreasurer",
    HOLDERS.name: "Name\tAddress\tTokens\tPercent\nTreasury\t0x1a2b\t500,000\t50%\nFounders\t\t300,000\t30%",
}
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
MAX_CHARACTERS: Final = 1_000_000
MAX_COLUMNS: Final = 40
_COMMA: Final = re.compile(r"[+-]?\d{1,3}(?:[.\s]?\d{3})*,\d+\s*%?")
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?\s*%?")
_GAPS: Final = re.compile(r"(?<=\d)[\s\u00a0\u202f'\u2019](?=\d{3})")
_WORDS: Final[Mapping[str, str]] = {
    "name": "holder shareholder stakeholder owner investor member person fullname who inhaber aktionar nom"
    " nombre titular pool category allocation round personne persona naam",
    "address": "wallet walletaddress walletid account publickey ethaddress adresse direccion",
    "tokens": "token amount quantity balance shares numberofshares units stucke anteile cantidad nombre_de_titres",
    "percentage": "percent share stake ownership pct part prozent anteil porcentaje pourcentage weight",
    "title": "role position jobtitle job function funktion titre rol cargo fonction proposal subject",
    "slug": "profile profilelink link id",
    "status": "state result outcome",
    "for": "yes votesyes pro infavour infavor",
    "against": "no votesno contra",
    "endDate": "end ends enddate deadline closes date votingends",
    "target": "goal raise amount size",
    "opened": "open opens start startdate from",
    "closed": "close closes end enddate until to",
    "address_1": "street streetaddress address1 line1 strasse rue calle",
    "address_2": "line2 address2 suite",
    "city": "town ort stadt ville ciudad",
    "state": "region province county bundesland",
    "zip": "postalcode postcode plz zipcode",
    "country": "land pays pais",
}
"""Further headings of a column, without spaces, accents and signs."""
_ORDERS: Final[Mapping[str, Sequence[tuple[str, ...]]]] = {
    "positions": (("name",), ("name", "title"), ("name", "title", "slug")),
    "capTable": (("name",), ("name", "percentage"), ("name", "tokens", "percentage")),
}
"""The columns of a table without headings, by how many it has; otherwise those of the form."""


class Table(NamedTuple):
    """
    The rows of a pasted text.

    Args:
        rows: without the headings, each with as many cells as there are columns.
        headings: the first line, if it says what the columns are.
        columns: the name of each column's member; empty where it is not taken over.
        first_line: the number of the first of *rows* in the text.
    """

    rows: list[list[str]]
    headings: list[str]
    columns: list[str]
    first_line: int


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
        queues = [self._all]
        if sure:
            queues = [self._by_sure[sure.casefold()], self._by_sure[""]]
        heads = []
        for queue in queues:
            # A row is in two queues, and was taken from one of them.
            while queue and queue[0] in self._taken:
                queue.popleft()
            if queue:
                heads.append(queue[0])
        if not heads:
            return None
        at = min(heads)
        self._taken.add(at)
        return at


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
        self.rows: list[PastedRow] = []
        choices = choices or {}
        for line, cells in enumerate(cells_by_column(table, rows.columns), table.first_line):
            self.rows.append(PastedRow(line, cells, choice=choices.get(line, "")))
        self._match()
        for row in self.rows:
            self._read(row)
        self.removed: list[int] = []
        if is_whole:
            named = {row.at for row in self.rows}
            self.removed = [at for at in range(len(stored)) if at not in named]

    def _match(self) -> None:
        """Find the stored row that each row names: by everything that identifies one, else by its name alone."""
        sure = _SURE.get(self.list.name, "")
        stored_cells = [self.list.cells(stored) for stored in self.stored]
        for identifying in _IDENTIFYING.get(self.list.name, ((self.list.columns[0].name,),)):
            candidates = self._candidates(stored_cells, identifying, sure)
            for row in self.rows:
                key = _key(row.cells, identifying)
                if row.at is None and key in candidates:
                    row.at = candidates[key].take(row.cells.get(sure, ""))

    def _candidates(
        self, stored_cells: Sequence[Cells], identifying: Sequence[str], sure: str
    ) -> dict[str, _Candidates]:
        """Return the stored rows that no row names yet, by the texts of the *identifying* members."""
        named = {row.at for row in self.rows}
        candidates: dict[str, _Candidates] = defaultdict(_Candidates)
        for at, cells in enumerate(stored_cells):
            key = _key(cells, identifying)
            if at not in named and key:
                candidates[key].add(at, cells.get(sure, ""))
        return candidates

    def _read(self, row: PastedRow) -> None:
        """Find out what a row changes, or the members of a new one."""
        blank = dict.fromkeys((column.name for column in self.list.columns), "")
        if row.choice and row.choice != NEW and "slug" in blank:
            row.cells = {**row.cells, "slug": row.choice}
        if row.at is None:
            row.members = self.list.new_row({**blank, **row.cells})
        else:
            stored = self.stored[row.at]
            stored_cells = self.list.cells(stored)
            cells = {**stored_cells, **self._different(row.cells, stored_cells)}
            row.members = self.list.changed_members(stored, cells)
        person = row.members.get("person")
        if row.choice == NEW and isinstance(person, dict):
            row.members["person"] = {**person, "isNew": True}

    def _different(self, cells: Cells, stored_cells: Cells) -> Cells:
        """Return the cells that say something else than the stored row: 2.50% and 2.5 are the same number."""
        numeric = {column.name: column for column in self.list.columns if column.is_number}
        different = {}
        for name, text in cells.items():
            column = numeric.get(name)
            if column is None or column.value(text) != column.value(stored_cells[name]):
                different[name] = text
        return different

    # ------------------------------------------------------------------ the change

    def change(self) -> JSONObject:
        """Return the change of the listing; empty if the table says what is stored."""
        operations: JSONObject = {}
        added, changed = self._added(), self._changed()
        if added:
            operations["add"] = [row.members for row in added]
        if changed:
            operations["set"] = [{"id": self.stored[row.at or 0].get("id", ""), **row.members} for row in changed]
        if self.removed:
            operations["remove"] = [self.stored[at].get("id", "") for at in self.removed]
        if not operations:
            return {}
        change = {self.list.name: operations}
        # A change of a listing has the members of the company beside its lists.
        if self.list.within in {"", "company"}:
            return change
        return {self.list.within: change}

    def counts(self) -> dict[str, int]:
        """Return the number of rows by what happens to them."""
        counts = {ADDED: 0, CHANGED: 0, UNCHANGED: 0, "removed": len(self.removed)}
        for row in self.rows:
            counts[row.effect] += 1
        return counts

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
        remaining = [at for at in range(len(self.stored)) if at not in removed]
        labels = {column.name: column.field.label for column in self.list.columns}
        for fault in faults:
            row, member = None, ""
            match = pattern.fullmatch(fault.field)
            if match:
                row = self._row_of(match[1], int(match[2]), remaining)
                member = (match[3] or "").rpartition(".")[2]
            if row is None:
                self.sentences.append(stated(fault.sentence))
                continue
            label, reason = labels.get(member, member), stated(fault.reason)
            row.faults.append(f"{label}: {reason}" if label else reason)
            if isinstance(fault, ChoiceFault):
                row.choices = fault.choices

    def _row_of(self, operation: str | None, index: int, remaining: Sequence[int]) -> PastedRow | None:
        """
        Return the row of a fault's path: ``set[0]``, or the index in the list after the change.

        Args:
            remaining: the stored rows that are not removed; the added ones follow them.
        """
        if operation is None and index < len(remaining):
            for row in self._changed():
                if row.at == remaining[index]:
                    return row
            return None
        rows = self._added()
        if operation is None:
            index -= len(remaining)
        elif operation == "set":
            rows = self._changed()
        return rows[index] if index < len(rows) else None

    @property
    def has_faults(self) -> bool:
        return bool(self.sentences or any(row.faults for row in self.rows))


@signed_in()
@once
def paste(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Show the text field; of a submitted table, what it would change; and save it when that was confirmed."""
    actor = actor_of(request)
    mine = listings.get_company(actor, slug)
    rows = _list(name)
    typed = form_data(request)
    text = _table_text(typed)
    pasted: Pasted | None = None
    preview: JSONObject = {}
    if len(text) > MAX_CHARACTERS and text.strip():
        text = text[:MAX_CHARACTERS]
        refusal = gettext("The table is too long: at most %(count)s characters.")
        messages.error(request, refusal % {"count": number(MAX_CHARACTERS)})
    elif typed is not None and text.strip():
        pasted = _pasted(rows, mine, text, typed)
        seen = _seen(pasted, text)
        is_confirmed = _is_confirmed(request, seen)
        update = _apply(request, actor, mine, pasted, is_dry=not is_confirmed)
        if update is not None and is_confirmed:
            say(request, update, _saved(pasted))
            return HttpResponseRedirect(_back(request, mine, rows))
        preview = {"seen": seen, **_preview(pasted)}
    labels = [gettext(column.field.label) for column in rows.columns]
    context = {
        **frame(mine, "edit"),
        "rows": rows,
        "list_label": gettext(rows.label),
        "text": text,
        "example": _EXAMPLES.get(rows.name, "\t".join(labels)),
        "column_names": ", ".join(labels),
        "is_whole": bool(typed and "whole" in typed),
        "back": _back(request, mine, rows),
        "step_title": TITLES[_STEPS.get(rows.name, "token")],
        "version": mine.version,
        "stored_count": len(rows.stored(mine.bundle)),
        **preview,
    }
    status = 422 if pasted and pasted.has_faults else 200
    return manage_page(request, "manage/paste.html", context, status=status)


def _is_confirmed(request: HttpRequest, seen: str) -> bool:
    """Return whether the owner saves what a page has shown; another table, or another choice, is shown first."""
    return request.method == "POST" and request.POST.get("do") == "save" and request.POST.get("seen") == seen


def _table_text(typed: QueryDict | None) -> str:
    """Return the submitted table with the line ends that every other surface uses; empty before one is."""
    text = typed.get("table", "") if typed else ""
    return text.replace("\r\n", "\n")


def _list(name: str) -> RowList:
    for rows in (TEAM, PLACES, DISTRIBUTED, VOTED, HOLDERS, funding_rounds()):
        if rows.name == name:
            return rows
    raise Http404("unknown list of a listing")


def _pasted(rows: RowList, mine: OwnedCompany, text: str, typed: QueryDict) -> Pasted:
    table = read_table(text, rows, _numbered(typed, "column"))
    most = rows.kind.max or 0
    if len(table.rows) > most:
        table = table._replace(rows=table.rows[: most + 1])  # the operation says that it is too long
    stored = plain(rows.stored(mine.bundle))
    return Pasted(rows, stored, table, is_whole="whole" in typed, choices=_numbered(typed, "choice"))


def _numbered(typed: QueryDict, name: str) -> dict[int, str]:
    """Return the values of the fields ``name-0``, ``name-1`` and so on, by their numbers."""
    values = {}
    for key, value in typed.items():
        match = re.fullmatch(rf"{name}-(\d{{1,8}})", key)
        if match:
            values[int(match[1])] = str(value)
    return values


def _apply(
    request: HttpRequest, actor: Actor, mine: OwnedCompany, pasted: Pasted, *, is_dry: bool
) -> listings.CompanyUpdate | None:
    """Save the table, or find its faults; None if there are some or nothing would change."""
    change = CompanyChange(pasted.change())
    if not pasted.table.rows:
        pasted.sentences.append(gettext("The table has headings, but no rows."))
    elif not any(pasted.table.columns):
        pasted.sentences.append(gettext("No column is recognized. Choose what each column is."))
    if not change or pasted.has_faults:
        return None
    # A preview says what the table does to the present listing; only a save may not meet a change in the meantime.
    version = None if is_dry else asked_version(request)
    try:
        return listings.update_company(actor, mine.slug, change, expected_version=version, dry_run=is_dry)
    except BadFields as refusal:
        pasted.put(refusal.faults)
    except Conflict:
        pasted.sentences.append(gettext("This listing changed in the meantime. Check the rows again, then save."))
    except TooMany as refusal:
        pasted.sentences.append(told(refusal))
    return None


def read_table(text: str, rows: RowList, chosen: Mapping[int, str] | None = None) -> Table:
    """
    Return the table in *text*, for a list of rows.

    Args:
        chosen: the member of a column, where a person said which it is.
    """
    lines = _cells_of(text)
    if not lines:
        return Table([], [], [], 1)
    width = min(max(map(len, lines)), MAX_COLUMNS)
    lines = [_of_width(line, width) for line in lines]
    first = lines[0]
    members = [_column_named(cell, rows.columns) for cell in first]
    recognized, filled = sum(map(bool, members)), sum(map(bool, first))
    # People add columns of their own, so half of the headings is enough to tell headings from a first row of values.
    if recognized and 2 * recognized >= filled:
        headings, body, first_line = first, lines[1:], 2
        columns = _once(members)
    else:
        headings, body, first_line = [], lines, 1
        columns = _by_order(rows, body, width)
    choices = {"", *(column.name for column in rows.columns)}
    for at, name in (chosen or {}).items():
        if at < width and name in choices:
            columns[at] = name
    return Table(body, headings, _once(columns), first_line)


def _of_width(cells: list[str], width: int) -> list[str]:
    return cells[:width] + [""] * (width - len(cells))


def _cells_of(text: str) -> list[list[str]]:
    """Return the cells of the lines that have any; a quoted cell may have line breaks."""
    lines = cells_of(text.strip("\r\n"), _delimiter_of(text))
    return [line for line in lines if any(line)]


def _delimiter_of(text: str) -> str:
    """Return the sign between the cells of the first line that has any."""
    filled_lines = [line for line in text.splitlines() if line.strip()]
    if filled_lines:
        for delimiter in DELIMITERS:
            if delimiter in filled_lines[0]:
                return delimiter
    return "\t"


def _column_named(heading: str, columns: Sequence[Column]) -> str:
    """Return the column that a heading means; empty if none."""
    key = heading_key(heading)
    if not key:
        return ""
    for column in columns:
        if key in {heading_key(column.name), heading_key(column.field.label)}:
            return column.name
    for column in columns:
        if key in _WORDS.get(column.name, "").split():
            return column.name
    return ""


def _by_order(rows: RowList, body: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return the columns of a table without headings, by the usual order of as many columns."""
    order = [column.name for column in rows.columns]
    for usual in _ORDERS.get(rows.name, ()):
        if len(usual) == width:
            order = list(usual)
    # Of two columns, the second may be shares or numbers of tokens: shares are at most 100.
    if rows.name == "capTable" and width == len(("name", "percentage")):
        numbers = plain_numbers([row[1] for row in body])
        are_shares = all(map(_is_share, numbers))
        order = ["name", "percentage"] if are_shares else ["name", "tokens"]
    return _of_width(order, width)


def _is_share(text: str) -> bool:
    try:
        return not text or 0 <= float(text.removesuffix("%")) <= 100
    except ValueError:
        return False


def _once(names: Sequence[str]) -> list[str]:
    """Return *names* with each of them once: the first column that has it."""
    columns: list[str] = []
    for name in names:
        if name in columns:
            columns.append("")
        else:
            columns.append(name)
    return columns


def _seen(pasted: Pasted, text: str) -> str:
    """Return a digest of what decides what a table changes, so that only what was shown is saved."""
    choices = [f"{row.line}={row.choice}" for row in pasted.rows if row.choice]
    deciding = "\0".join((text, str(pasted.is_whole), *pasted.table.columns, *choices))
    return hashlib.blake2b(deciding.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _saved(pasted: Pasted) -> str:
    counts = pasted.counts()
    words = {
        ADDED: ngettext("%(count)d row added", "%(count)d rows added", counts[ADDED]),
        CHANGED: ngettext("%(count)d row changed", "%(count)d rows changed", counts[CHANGED]),
        "removed": ngettext("%(count)d row removed", "%(count)d rows removed", counts["removed"]),
    }
    effects = []
    for name, text in words.items():
        if counts[name]:
            effects.append(text % {"count": counts[name]})
    return f"{', '.join(effects)}."


def _back(request: HttpRequest, mine: OwnedCompany, rows: RowList) -> str:
    """Return the step of the form with the list; of a new listing, the one among its further steps."""
    step = _STEPS.get(rows.name, "token")
    query = "?new=1" if "new" in request.GET else ""
    return f"/manage/companies/{quote(mine.slug, safe='')}/edit/{step}{query}#{rows.name}"


# ---------------------------------------------------------------------- the preview


def _preview(pasted: Pasted) -> JSONObject:
    columns = [column for column in pasted.list.columns if column.name in pasted.table.columns]
    shown = []
    for place, row in enumerate(pasted.rows):
        # Rows with a choice stay, or the choice would be lost with the next form that is sent.
        if place < SHOWN_ROWS or row.faults or row.choice:
            shown.append(_row(pasted, columns, row))
    counts = pasted.counts()
    return {
        "pasted": pasted,
        "headings": [gettext(column.field.label) for column in columns],
        "shown_rows": shown,
        "hidden_count": len(pasted.rows) - len(shown),
        "counts": [
            {"label": gettext("New"), "count": counts[ADDED]},
            {"label": gettext("Changed"), "count": counts[CHANGED]},
            {"label": gettext("Unchanged"), "count": counts[UNCHANGED]},
            {"label": gettext("Removed"), "count": counts["removed"]},
        ],
        "fault_count": sum(bool(row.faults) for row in pasted.rows),
        "can_save": not pasted.has_faults and bool(pasted.change()),
        "mapped": _mapped(pasted.list, pasted.table),
    }


def _row(pasted: Pasted, columns: list[Column], row: PastedRow) -> JSONObject:
    effects = {
        ADDED: (gettext("New"), "good"),
        CHANGED: (gettext("Changed"), "wait"),
        UNCHANGED: (gettext("Unchanged"), ""),
    }
    effect, tone = effects[row.effect]
    if row.faults:
        effect, tone = gettext("Error"), "bad"
    stored_cells: Cells = {}
    if row.at is not None:
        stored_cells = pasted.list.cells(pasted.stored[row.at])
    return {
        "line": row.line,
        "effect": effect,
        "tone": tone,
        "cells": [_cell(column, row, stored_cells) for column in columns],
        "faults": row.faults,
        "choices": row.choices,
        "choice": row.choice,
    }


def _cell(column: Column, row: PastedRow, stored_cells: Cells) -> JSONObject:
    text = row.cells.get(column.name, "")
    stored_text = stored_cells.get(column.name, "")
    previous = ""
    if row.at is not None and column.value(text) != column.value(stored_text):
        previous = stored_text
    return {"label": gettext(column.field.label), "text": text, "was": previous}


def _mapped(rows: RowList, table: Table) -> list[JSONObject]:
    """Return what each column of the table is, for people to change."""
    options: list[Any] = [(column.name, gettext(column.field.label)) for column in rows.columns]
    columns = []
    for at, name in enumerate(table.columns):
        heading = table.headings[at] if table.headings else ""
        sample = ""
        for row in table.rows:
            if row[at]:
                sample = row[at]
                break
        column = {
            "number": at,
            "heading": heading or gettext("Column %(n)d") % {"n": at + 1},
            "sample": sample[:40],
            "name": name,
            "options": options,
        }
        columns.append(column)
    return columns


def _key(cells: Cells, names: Sequence[str]) -> str:
    """Return the texts of *names* by which a row names a stored one; empty without the first of them."""
    texts = [" ".join(cells.get(name, "").split()).casefold() for name in names]
    return "\0".join(texts) if texts[0] else ""


def cells_by_column(table: Table, columns: Sequence[Column]) -> list[dict[str, str]]:
    """Return the cells of every row by the name of their column, numbers as forms take them."""
    numeric = {column.name for column in columns if column.is_number}
    rows: list[dict[str, str]] = [{} for _ in table.rows]
    for at, name in enumerate(table.columns):
        if not name:
            continue
        cells = [row[at] for row in table.rows]
        if name in numeric:
            cells = plain_numbers(cells)
        for row, cell in zip(rows, cells, strict=True):
            row[name] = cell
    return rows


def plain_numbers(cells: Sequence[str]) -> list[str]:
    """Return the numbers of a column with a decimal point; whether a comma is one is decided for the whole column."""
    bare = [_GAPS.sub("", cell.strip()) for cell in cells]
    has_decimal_comma = any(_COMMA.fullmatch(cell) and not _THOUSANDS.fullmatch(cell) for cell in bare)
    if has_decimal_comma:
        bare = [_with_point(cell) for cell in bare]
    return [_joined_percent(cell) for cell in bare]


def _with_point(cell: str) -> str:
    return cell.replace(".", "").replace(",", ".") if _COMMA.fullmatch(cell) else cell


def _joined_percent(cell: str) -> str:
    """Return a cell without blanks before its signs; without a pattern, which takes long for many blanks in a row."""
    *parts, last = cell.split("%")
    return "%".join([*map(str.rstrip, parts), last])
