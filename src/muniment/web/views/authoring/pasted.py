"""Paste a table from a spreadsheet into a list of a listing: show what would change, then save it."""

import hashlib
from typing import Any, Final
from urllib.parse import quote

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.translation import gettext, ngettext

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Conflict, TooMany
from muniment.languages.translated import told
from muniment.languages.writing import number
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.company.listings import OwnedCompany
from muniment.web.authoring.pasting import ADDED, CHANGED, UNCHANGED, Pasted, PastedRow
from muniment.web.authoring.tables import MAX_CHARACTERS, Table, read_table
from muniment.web.forms import plain
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page
from muniment.web.row_lists import DISTRIBUTED, HOLDERS, PLACES, TEAM, VOTED, Column, RowList, funding_rounds
from muniment.web.views.authoring.listing_form import TITLES
from muniment.web.views.manage.companies import asked_version, frame, say

SHOWN_ROWS: Final = 200
"""Maximum rows of the preview; beyond them, it shows only rows with errors."""
_STEPS: Final = {TEAM.name: "team", PLACES.name: "team"}
_EXAMPLES: Final = {
    TEAM.name: "Name\tPosition\nAda Reef\tChair\nBo Marsh\tTreasurer",
    HOLDERS.name: "Name\tAddress\tTokens\tPercent\nTreasury\t0x1a2b\t500,000\t50%\nFounders\t\t300,000\t30%",
}


@signed_in()
@once
def paste(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Show the text field; of a submitted table, what it would change; and save it when that was confirmed."""
    actor = actor_of(request)
    mine = listings.get_company(actor, slug)
    rows = _list(name)
    typed = form_data(request)
    text = (typed.get("table", "") if typed else "").replace("\r\n", "\n")
    pasted = None
    if typed is not None and text.strip():
        if len(text) > MAX_CHARACTERS:
            text, pasted = text[:MAX_CHARACTERS], None
            messages.error(
                request,
                gettext("The table is too long: at most %(count)s characters.") % {"count": number(MAX_CHARACTERS)},
            )
        else:
            pasted = _pasted(rows, mine, text, typed)
            is_confirmed = request.method == "POST" and typed.get("do") == "save"
            is_confirmed = is_confirmed and typed.get("seen") == _seen(pasted, text)
            done = _apply(request, actor, mine, pasted, is_dry=not is_confirmed)
            if done is not None and is_confirmed:
                say(request, done, _saved(pasted))
                return HttpResponseRedirect(_back(request, mine, rows))
    context = {
        **frame(mine, "edit"),
        "rows": rows,
        "list_label": gettext(rows.label),
        "text": text,
        "example": _EXAMPLES.get(rows.name, "\t".join(gettext(column.field.label) for column in rows.columns)),
        "column_names": ", ".join(gettext(column.field.label) for column in rows.columns),
        "is_whole": bool(typed and "whole" in typed),
        "back": _back(request, mine, rows),
        "step_title": TITLES[_STEPS.get(rows.name, "token")],
        "version": mine.version,
        "stored_count": len(rows.stored(mine.bundle)),
        **({"seen": _seen(pasted, text), **_shown(pasted)} if pasted else {}),
    }
    status = 422 if pasted and pasted.has_faults else 200
    return manage_page(request, "manage/paste.html", context, status=status)


def _list(name: str) -> RowList:
    lists = {each.name: each for each in (TEAM, PLACES, DISTRIBUTED, VOTED, HOLDERS, funding_rounds())}
    if name not in lists:
        raise Http404("unknown list of a listing")
    return lists[name]


def _pasted(rows: RowList, mine: OwnedCompany, text: str, typed: QueryDict) -> Pasted:
    numbers = {key[7:]: value for key, value in typed.items() if key.startswith("column-") and key[7:].isdecimal()}
    chosen = {int(number): str(value) for number, value in numbers.items() if len(number) < 4}
    choices = {
        int(key[7:]): str(value)
        for key, value in typed.items()
        if key.startswith("choice-") and key[7:].isdecimal() and len(key) < 16
    }
    table = read_table(text, rows, chosen)
    most = rows.kind.max or 0
    if len(table.rows) > most:
        table = table._replace(rows=table.rows[: most + 1])  # the operation says that it is too long
    is_whole = "whole" in typed
    return Pasted(rows, plain(rows.stored(mine.bundle)), table, is_whole=is_whole, choices=choices)


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
    version = asked_version(request) if not is_dry else None
    try:
        return listings.update_company(actor, mine.slug, change, expected_version=version, dry_run=is_dry)
    except BadFields as refusal:
        pasted.put(refusal.faults)
    except Conflict:
        pasted.sentences.append(gettext("This listing changed in the meantime. Check the rows again, then save."))
    except TooMany as refusal:
        pasted.sentences.append(told(refusal))
    return None


def _seen(pasted: Pasted, text: str) -> str:
    """Return a digest of what decides what a table changes, so that only what was shown is saved."""
    choices = [f"{row.line}={row.choice}" for row in pasted.rows if row.choice]
    said = "\0".join((text, str(pasted.is_whole), *pasted.table.columns, *choices))
    return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _saved(pasted: Pasted) -> str:
    counts = pasted.counts()
    words = {
        ADDED: ngettext("%(count)d row added", "%(count)d rows added", counts[ADDED]),
        CHANGED: ngettext("%(count)d row changed", "%(count)d rows changed", counts[CHANGED]),
        "removed": ngettext("%(count)d row removed", "%(count)d rows removed", counts["removed"]),
    }
    return f"{', '.join(text % {'count': counts[name]} for name, text in words.items() if counts[name])}."


def _back(request: HttpRequest, mine: OwnedCompany, rows: RowList) -> str:
    """Return the step of the form with the list; of a new listing, the one among its further steps."""
    step = _STEPS.get(rows.name, "token")
    query = "?new=1" if "new" in request.GET else ""
    return f"/manage/companies/{quote(mine.slug, safe='')}/edit/{step}{query}#{rows.name}"


# ---------------------------------------------------------------------- the preview


def _shown(pasted: Pasted) -> JSONObject:
    columns = [column for column in pasted.list.columns if column.name in pasted.table.columns]
    shown = [row for n, row in enumerate(pasted.rows) if n < SHOWN_ROWS or row.faults or row.choice]
    return {
        "pasted": pasted,
        "headings": [gettext(column.field.label) for column in columns],
        "shown_rows": [_row(pasted, columns, row) for row in shown],
        "hidden_count": len(pasted.rows) - len(shown),
        "counts": [
            {"label": label, "count": pasted.counts()[name]}
            for name, label in (
                (ADDED, gettext("New")),
                (CHANGED, gettext("Changed")),
                (UNCHANGED, gettext("Unchanged")),
                ("removed", gettext("Removed")),
            )
        ],
        "fault_count": sum(bool(row.faults) for row in pasted.rows),
        "can_save": not pasted.has_faults and bool(pasted.change()),
        "mapped": _mapped(pasted.list, pasted.table),
    }


def _row(pasted: Pasted, columns: list[Column], row: PastedRow) -> JSONObject:
    was = pasted.list.cells(pasted.stored[row.at]) if row.at is not None else {}
    effects = {ADDED: gettext("New"), CHANGED: gettext("Changed"), UNCHANGED: gettext("Unchanged")}
    return {
        "line": row.line,
        "effect": gettext("Error") if row.faults else effects[row.effect],
        "tone": "bad" if row.faults else {ADDED: "good", CHANGED: "wait"}.get(row.effect, ""),
        "cells": [_cell(column, row, was) for column in columns],
        "faults": row.faults,
        "choices": row.choices,
        "choice": row.choice,
    }


def _cell(column: Column, row: PastedRow, was: dict[str, str]) -> JSONObject:
    text = row.cells.get(column.name, "")
    before = was.get(column.name, "")
    is_changed = row.at is not None and column.value(text) != column.value(before)
    return {"label": gettext(column.field.label), "text": text, "was": before if is_changed else ""}


def _mapped(rows: RowList, table: Table) -> list[JSONObject]:
    """Return what each column of the table is, for people to change."""
    options: list[Any] = [(column.name, gettext(column.field.label)) for column in rows.columns]
    columns = []
    for at, name in enumerate(table.columns):
        heading = table.headings[at] if table.headings else ""
        column = {
            "number": at,
            "heading": heading or gettext("Column %(n)d") % {"n": at + 1},
            "sample": next((row[at] for row in table.rows if row[at]), "")[:40],
            "name": name,
            "options": options,
        }
        columns.append(column)
    return columns
