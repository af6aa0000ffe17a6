"""Credits: grant them, and read transfers and purchases of all accounts."""

import re
from collections.abc import Callable
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy

from muniment.credits import operations
from muniment.credits.models import LedgerAccount, Purchase, Transfer
from muniment.credits.operations import grant, totals
from muniment.kernel.pagination import Page
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.kernel.wire import format_price
from muniment.languages.writing import number
from muniment.web.requests.access import actor_of, confirmed, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import problems_shown
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, chosen, pager
from muniment.web.views.operate.frame import operate_page

HOME: Final = "/operate/credits"
LISTS: Final = {"transfers": gettext_lazy("Transfers"), "purchases": gettext_lazy("Purchases")}
FINDERS: Final[dict[str, Callable[..., Page[Any]]]] = {
    "transfers": operations.list_transfers,
    "purchases": operations.list_purchases,
}
_SYSTEM: Final = {
    "issued": gettext_lazy("Issued by the registry"),
    "sold": gettext_lazy("Sold by the registry"),
    "revenue": gettext_lazy("Spent on reports"),
}
"""The accounts of the ledger that belong to no person."""
_AMOUNT: Final = re.compile(r"[1-9][0-9]{0,9}")


@operator()
@confirmed()
@once
def credit_lists(request: HttpRequest) -> HttpResponse:
    """List transfers or purchases; grant credits to an account."""
    actor, query, post = actor_of(request), request.GET, request.POST
    if request.method == "POST":
        with problems_shown(request, BadRequest, Conflict, NotFound):
            _grant(request)
            return HttpResponseRedirect(HOME)
    shown, words = chosen(query, "list", tuple(LISTS)) or "transfers", query.get("q", "").strip()[:254]
    found: Page[Any] = FINDERS[shown](actor, words, page=asked_page(query), page_size=PAGE_SIZE)
    context = {
        "found": found,
        "rows": [(each, _price(each), *_sides(each)) for each in found.items],
        "pager": pager(request, ("list", "q", "page"), found),
        "given": {"list": shown, "q": words},
        "lists": LISTS.items(),
        "totals": totals(),
        "entered": {"email": post.get("email", words), "amount": post.get("amount", ""), "note": post.get("note", "")},
    }
    return operate_page(request, "credits", "operate/credits.html", context)


def _price(row: Transfer | Purchase) -> str:
    return format_price(row.price_minor, row.currency) if isinstance(row, Purchase) else ""


def _sides(row: Transfer | Purchase) -> tuple[str, str]:
    """Return the payer and the recipient of a transfer: accounts, or the sides of the registry in words."""
    if isinstance(row, Purchase):
        return "", ""
    return _side(row.debit), _side(row.credit)


def _side(found: LedgerAccount) -> str:
    return str(found.account) if found.account else str(_SYSTEM.get(found.name, found.name))


def _grant(request: HttpRequest) -> None:
    post = request.POST
    amount, email = post.get("amount", "").strip(), post.get("email", "").strip()[:254]
    if not _AMOUNT.fullmatch(amount):
        raise BadRequest(gettext("Enter how many credits to grant."), gettext("Use a whole number from 1."))
    balance = grant(
        actor_of(request), email, int(amount), note=post.get("note", "")[:500], key=post.get("once", "")[:40]
    )
    said = gettext("%(email)s now has %(balance)s credits.")
    messages.success(request, said % {"email": email, "balance": number(balance.balance)})
