"""An account's credits: what it has, what is held and why, what moved, and buying more."""

import csv
import io
from typing import Final, NamedTuple

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render

from muniment.credits.models import Purchase, PurchaseState
from muniment.credits.operations import Entry, get_balance
from muniment.credits.purchases import buy_credits, check_purchase, get_purchase, pending_purchases, prices
from muniment.kernel.actor import Actor
from muniment.kernel.problems import Problem
from muniment.kernel.wire import format_price, timestamp
from muniment.web.context import address
from muniment.web.presenters.charts import ChartSlice, sparkline
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.once import fresh_token, once
from muniment.web.requests.security_headers import with_forms_to

HOME: Final = "/manage/credits"
IN_FILE: Final = 100_000
WORDS: Final = {
    "start": "Starting credits",
    "grant": "Granted",
    "run": "Report run",
    "purchase": "Bought",
    "refund": "Payment returned",
}


class Told(NamedTuple):
    """What a buyer who comes back is told; *tone* is a notice's."""

    tone: str
    words: str


BOUGHT: Final = {
    PurchaseState.PAID: Told("good", "The payment came: {credits:,} credits are yours."),
    PurchaseState.PENDING: Told("wait", "Your bank has yet to confirm the payment. The {credits:,} credits come then."),
    PurchaseState.OPEN: Told(
        "wait", "The payment is not confirmed yet. Reload this page in a moment: the credits come by themselves."
    ),
    PurchaseState.FAILED: Told("bad", "The payment did not go through, and nothing was credited. Try again below."),
    PurchaseState.EXPIRED: Told("bad", "The payment page was open for too long. Nothing was charged; try again below."),
    PurchaseState.REFUSED: Told(
        "bad", "The payment does not match the order, so nothing was credited. Ask the operator about purchase {id}."
    ),
}
LEFT: Final = Told("wait", "You left the payment page. Nothing was charged.")


@signed_in()
@once
def entries(request: HttpRequest) -> HttpResponse:
    """Show the balance, what is held, and the latest entries; sell a pack."""
    if request.method == "POST":
        return _buy(request)
    actor = actor_of(request)
    told = _told(request, actor)
    found = get_balance(actor)
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
    points = [ChartSlice(f"{entry.at:%d %B %Y, %H:%M}", entry.balance) for entry in reversed(found.entries)]
    chart = sparkline("Balance", "The balance after each of the latest entries.", points, unit="Credits")
    packs = [(credits_, format_price(price_minor, settings.CURRENCY)) for credits_, price_minor in prices()]
    context = {
        "room": "manage",
        "found": found,
        "entries": shown,
        "chart": chart,
        "packs": packs,
        "pending": pending_purchases(actor),
        "told": told,
        "once": fresh_token(),
    }
    response = render(request, "manage/credits.html", context)
    if packs:
        response["Content-Security-Policy"] = with_forms_to(settings.STRIPE_CHECKOUT_URL)
    return response


def _buy(request: HttpRequest) -> HttpResponse:
    given = request.POST.get("credits", "")
    size = int(given) if given.isdecimal() and len(given) < 10 else 0
    try:
        url = buy_credits(actor_of(request), size, page_url=f"{address(request)}{HOME}")
    except Problem as problem:
        messages.error(request, f"{problem.message} {problem.hint}")
        return HttpResponseRedirect(HOME)
    response = HttpResponseRedirect(url)
    response.status_code = 303  # the payment page is asked for with GET
    return response


def _told(request: HttpRequest, actor: Actor) -> Told | None:
    """Give what to say to a buyer who comes back."""
    if bought := request.GET.get("bought"):
        return _said(check_purchase(actor, bought))
    if left := request.GET.get("left"):
        purchase = get_purchase(actor, left)
        return LEFT if purchase.state == PurchaseState.OPEN else _said(purchase)
    return None


def _said(purchase: Purchase) -> Told:
    told = BOUGHT[PurchaseState(purchase.state)]
    return Told(told.tone, told.words.format(credits=purchase.credits, id=purchase.pk))


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
    run = entry.reference if entry.kind == "run" else ""
    return [timestamp(entry.at), entry.kind, entry.amount, entry.balance, run, note]
