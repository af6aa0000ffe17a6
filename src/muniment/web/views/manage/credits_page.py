"""An account's credits: balance, holds, entries, and buying more."""

from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.dateformat import format as date_format
from django.utils.translation import gettext, gettext_lazy

from muniment.credits.models import Purchase, PurchaseState
from muniment.credits.operations import Entry, get_balance
from muniment.credits.purchases import buy_credits, check_purchase, get_purchase, pending_purchases, prices
from muniment.kernel.actor import Actor
from muniment.kernel.csv_text import CsvText
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Problem
from muniment.kernel.wire import format_price, timestamp
from muniment.languages.writing import number
from muniment.web.context import address
from muniment.web.presenters.charts import ChartSlice, sparkline
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page, show_problem
from muniment.web.requests.pagination import whole_number
from muniment.web.requests.security_headers import with_forms_to

HOME: Final = "/manage/credits"
IN_FILE: Final = 100_000
WORDS: Final = {
    "start": gettext_lazy("Starting balance"),
    "grant": gettext_lazy("Granted by the operator"),
    "run": gettext_lazy("Report run"),
    "purchase": gettext_lazy("Purchase"),
    "refund": gettext_lazy("Refund"),
}


BOUGHT: Final = {
    PurchaseState.PAID: ("good", gettext_lazy("Payment received. We added %(credits)s credits.")),
    PurchaseState.PENDING: (
        "wait",
        gettext_lazy("Your bank has not confirmed the payment yet. We'll add %(credits)s credits when it does."),
    ),
    PurchaseState.OPEN: ("wait", gettext_lazy("The payment is not confirmed yet. Reload this page in a moment.")),
    PurchaseState.FAILED: ("bad", gettext_lazy("The payment failed. No credits were added. Try again below.")),
    PurchaseState.EXPIRED: ("bad", gettext_lazy("The payment page expired. You were not charged. Try again below.")),
    PurchaseState.REFUSED: (
        "bad",
        gettext_lazy(
            "The payment doesn't match the order, so no credits were added. Ask the operator about purchase %(id)s."
        ),
    ),
}
DRAWN: Final = 5
"""Entries that say more as a line than as a table."""
LEFT: Final = ("wait", gettext_lazy("You left the payment page. You were not charged."))


def _row_of(entry: Entry) -> JSONObject:
    """Return an entry as the table shows it; the word for the starting credits says what their note would."""
    return {
        "at": entry.at,
        "word": WORDS.get(entry.kind, entry.kind),
        "note": "" if entry.kind == "start" else entry.note,
        "run": entry.reference if entry.kind == "run" else "",
        "amount": entry.amount,
        "balance": entry.balance,
    }


@signed_in()
@once
def entries(request: HttpRequest) -> HttpResponse:
    """Show the balance, the holds and the latest entries; sell a pack."""
    if request.method == "POST":
        return _buy(request)
    actor = actor_of(request)
    # First, because a purchase that is found to be paid changes the balance.
    notice = _notice(request, actor)
    balance = get_balance(actor)
    chart = ""
    if len(balance.entries) >= DRAWN:
        points = []
        for entry in reversed(balance.entries):
            points.append(ChartSlice(date_format(entry.at, "j F Y, H:i"), entry.balance))
        description = gettext("The balance after each of the latest entries.")
        chart = sparkline(gettext("Balance"), description, points, unit=gettext("Credits"))
    packs = [(credits_, format_price(price_minor, settings.CURRENCY)) for credits_, price_minor in prices()]
    context = {
        "found": balance,
        "entries": [_row_of(entry) for entry in balance.entries],
        "chart": chart,
        "packs": packs,
        "pending": pending_purchases(actor),
        "told": notice,
    }
    response = manage_page(request, "manage/credits.html", context)
    if packs:
        response["Content-Security-Policy"] = with_forms_to(settings.STRIPE_CHECKOUT_URL)
    return response


def _buy(request: HttpRequest) -> HttpResponse:
    size = whole_number(request.POST.get("credits", "")) or 0
    try:
        url = buy_credits(actor_of(request), size, page_url=f"{address(request)}{HOME}")
    except Problem as problem:
        show_problem(request, problem)
        return HttpResponseRedirect(HOME)
    return HttpResponseRedirect(url, status=303)  # the browser must request the payment page with GET


def _notice(request: HttpRequest, actor: Actor) -> JSONObject | None:
    """Return the notice for a buyer who returns from the payment page."""
    bought, left = request.GET.get("bought"), request.GET.get("left")
    if bought:
        return _outcome(check_purchase(actor, bought))
    if left:
        purchase = get_purchase(actor, left)
        if purchase.state == PurchaseState.OPEN:
            return {"tone": LEFT[0], "words": LEFT[1]}
        return _outcome(purchase)
    return None


def _outcome(purchase: Purchase) -> JSONObject:
    tone, words = BOUGHT[PurchaseState(purchase.state)]
    return {"tone": tone, "words": words % {"credits": number(purchase.credits), "id": purchase.pk}}


@signed_in("GET", "HEAD")
def as_csv(request: HttpRequest) -> HttpResponse:
    """Return every entry as CSV, the newest first."""
    text = CsvText()
    text.write(["at", "kind", "amount", "balance", "run", "note"])
    for entry in get_balance(actor_of(request), entries=IN_FILE).entries:
        text.write(_row(entry))
    response = HttpResponse(text.take(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="credits.csv"'
    return response


def _row(entry: Entry) -> list[object]:
    run = entry.reference if entry.kind == "run" else ""
    return [timestamp(entry.at), entry.kind, entry.amount, entry.balance, run, entry.note]
