"""An account's credits: what it has, what is held and why, what moved."""

import csv
import io
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from muniment.credits.operations import Entry, get_balance
from muniment.kernel.wire import timestamp
from muniment.web.charts import Slice, sparkline
from muniment.web.doors import actor_of, signed_in

IN_FILE: Final = 100_000
WORDS: Final = {"start": "Starting credits", "grant": "Granted", "run": "Report run"}


@signed_in("GET", "HEAD")
def entries(request: HttpRequest) -> HttpResponse:
    """Show the balance, what is held, and the latest entries."""
    found = get_balance(actor_of(request))
    shown = [
        {
            "at": entry.at,
            "word": WORDS.get(entry.kind, entry.kind),
            "note": "" if entry.kind == "start" else entry.note,
            "run": entry.reference if entry.kind == "run" else "",
            "amount": entry.amount,
            "balance": entry.balance,
        }
        for entry in found.entries
    ]
    points = [Slice(f"{entry.at:%d %B %Y, %H:%M}", entry.balance) for entry in reversed(found.entries)]
    chart = sparkline("Balance", "The balance after each of the latest entries.", points, unit="Credits")
    context = {"room": "manage", "found": found, "entries": shown, "chart": chart}
    return render(request, "manage/credits.html", context)


@signed_in("GET", "HEAD")
def as_csv(request: HttpRequest) -> HttpResponse:
    """Give every entry as a file, the newest first."""
    text = io.StringIO()
    out = csv.writer(text)
    out.writerow(["at", "kind", "amount", "balance", "run", "note"])
    out.writerows(_row(entry) for entry in get_balance(actor_of(request), entries=IN_FILE).entries)
    answer = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="credits.csv"'
    return answer


def _row(entry: Entry) -> list[object]:
    # A spreadsheet runs what begins so as a formula.
    note = f"'{entry.note}" if entry.note[:1] in {"=", "+", "-", "@", "\t", "\r"} else entry.note
    return [timestamp(entry.at), entry.kind, entry.amount, entry.balance, entry.reference, note]
