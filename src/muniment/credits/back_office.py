"""The ledger and purchases, as operators read them."""

from django.db.models import Q

from muniment.accounts.operations import require_operator
from muniment.credits.models import Purchase, Transfer
from muniment.kernel.actor import Actor
from muniment.kernel.pagination import Page


def list_transfers(actor: Actor, words: str = "", *, page: int = 1, page_size: int = 25) -> Page[Transfer]:
    """List the transfers of all accounts, the latest first; *words* is part of an address."""
    require_operator(actor)
    found = Transfer.objects.select_related("debit__account", "credit__account").order_by("-at", "-pk")
    if words:
        found = found.filter(Q(debit__account__email__icontains=words) | Q(credit__account__email__icontains=words))
    return Page.of(found, page, page_size)


def list_purchases(actor: Actor, words: str = "", *, page: int = 1, page_size: int = 25) -> Page[Purchase]:
    """List the purchases of all accounts, the latest first; *words* is part of an address."""
    require_operator(actor)
    found = Purchase.objects.select_related("account__account").order_by("-at", "-pk")
    if words:
        found = found.filter(account__account__email__icontains=words)
    return Page.of(found, page, page_size)
