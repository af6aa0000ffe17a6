"""
Credits, as part of an account's personal data.

Ledger rows are never changed or deleted: those of a deleted account stay under its number.
"""

from collections.abc import Iterator

from muniment.accounts.models import Account
from muniment.accounts.personal_data import ArchiveEntry, Part
from muniment.credits.models import Hold, LedgerAccount, Purchase
from muniment.credits.operations import get_balance
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import timestamp

EVERY: int = 2**31


def _export(account: Account) -> Iterator[ArchiveEntry]:
    ledger = LedgerAccount.objects.filter(account=account).first()
    if ledger is None:
        return
    yield ArchiveEntry("credits.json", get_balance(account.actor("system"), entries=EVERY).to_wire())
    holds = Hold.objects.filter(account=ledger).order_by("at", "pk")
    yield ArchiveEntry("holds.json", [_hold(row) for row in holds])
    purchases = Purchase.objects.filter(account=ledger).order_by("at", "pk")
    yield ArchiveEntry("purchases.json", [_purchase(row) for row in purchases])


def _hold(row: Hold) -> JSONObject:
    return {"id": row.pk, "amount": row.amount, "state": row.state, "note": row.note, "at": timestamp(row.at)}


def _purchase(row: Purchase) -> JSONObject:
    return {
        "id": row.pk,
        "credits": row.credits,
        "priceMinor": row.price_minor,
        "currency": row.currency,
        "state": row.state,
        "at": timestamp(row.at),
    }


def _delete(account: Account) -> None:
    """Keep the ledger: it names the account by number only."""


PART = Part(name="credits", export=_export, delete=_delete)
