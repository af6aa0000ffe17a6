"""
What is done with credits.

An overdraft is kept off by one conditional update, never by reading and writing back. Settling a hold
twice, or sending a transfer's id again, does nothing.

Source: decisions, section 5, credits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Max, Q, Subquery, Sum

from muniment.accounts.operations import find_account
from muniment.credits import billing
from muniment.credits.models import Hold, HoldState, LedgerAccount, Purchase, PurchaseState, Transfer
from muniment.kernel.actor import Actor
from muniment.kernel.ids import new_id, now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.kernel.texts import text_fault
from muniment.kernel.wire import timestamp
from muniment.store.database.snapshots import snapshot

ENTRIES: Final = 50
MAX_GRANT: Final = 10**9
ISSUED: Final = "issued"
SOLD: Final = "sold"
REVENUE: Final = "revenue"


@dataclass(frozen=True, slots=True)
class Entry:
    """A transfer as one account sees it: what came is positive, what went is negative."""

    id: str
    amount: int
    kind: str
    reference: str
    note: str
    at: datetime
    balance: int
    """What was on the account once it had moved."""

    def to_wire(self) -> dict[str, Any]:
        """Give the entry as the tools show it."""
        return {
            "entryId": self.id,
            "amount": self.amount,
            "kind": self.kind,
            "note": self.note,
            "balance": self.balance,
            "at": timestamp(self.at),
            **({"runId": self.reference} if self.kind == "run" else {}),
        }


@dataclass(frozen=True, slots=True)
class Balance:
    """What an account has: ``available`` is what is not held."""

    balance: int
    held: int
    entries: list[Entry]
    holds: list[Hold]

    @property
    def available(self) -> int:
        """Give what can be spent."""
        return self.balance - self.held

    def to_wire(self) -> dict[str, Any]:
        """Give it as the tools show it."""
        return {
            "balance": self.balance,
            "held": self.held,
            "available": self.available,
            "entries": [entry.to_wire() for entry in self.entries],
        }


def get_balance(actor: Actor, *, entries: int = ENTRIES) -> Balance:
    """
    Give what the actor's account has, with its latest entries, the newest first.

    Raises:
        Forbidden: the actor has no account.
    """
    with transaction.atomic():
        account = own_account(actor)
        found = list(
            Transfer.objects.filter(Q(debit=account) | Q(credit=account)).order_by("-at", "-pk")[: max(0, entries)]
        )
        holds = list(Hold.objects.filter(account=account, state=HoldState.HELD).order_by("at", "pk"))
    return Balance(account.posted, account.held, list(_seen_from(account, found)), holds)


def _seen_from(account: LedgerAccount, newest_first: list[Transfer]) -> Iterator[Entry]:
    balance = account.posted
    for each in newest_first:
        amount = each.amount if each.credit_id == account.pk else -each.amount
        yield Entry(each.pk, amount, each.kind, each.reference, each.note, each.at, balance)
        balance -= amount


def available(actor: Actor) -> int:
    """Give what the actor can spend."""
    with transaction.atomic():
        account = own_account(actor)
    return account.posted - account.held


def grant(actor: Actor, email: str, amount: int, *, note: str = "", key: str = "") -> Balance:
    """
    Give credits to the account at *email*.

    Args:
        actor: an operator.
        key: sent again, it grants nothing a second time; made when empty.

    Raises:
        Forbidden: the actor is no operator.
        NotFound: there is no such account.
        BadRequest: the amount, or the note.
        Conflict: the key was used for another grant.
    """
    if actor.role != "operator" or actor.via not in {"web", "command", "system"}:
        raise Forbidden("Only an operator grants credits.", "Ask the operator of this registry.")
    if not 1 <= amount <= MAX_GRANT:
        raise BadRequest(f"{amount} credits cannot be granted.", f"Grant a whole number from 1 to {MAX_GRANT:,}.")
    if fault := text_fault(note):
        raise BadRequest(f"The note {fault}.", "Write it without.")
    if len(key) > 100:
        raise BadRequest("The key is longer than 100 characters.", "Choose a shorter one.")
    found = find_account(email)
    with transaction.atomic():
        account = opened(found.pk)
        move(f"grant:{key or new_id()}", system(ISSUED), account, amount, kind="grant", note=note)
    return get_balance(found.actor("system"), entries=1)


def hold(actor: Actor, key: str, amount: int, *, note: str = "") -> None:
    """
    Set credits aside for *key*, in the caller's transaction. Holding for the same key again does nothing.

    Raises:
        Conflict: fewer credits are available.
    """
    with transaction.atomic():
        account = LedgerAccount.objects.select_for_update().get(pk=own_account(actor).pk)
        if Hold.objects.filter(pk=key).exists():
            return
        enough = Q(may_go_negative=True) | Q(posted__gte=F("held") + amount)
        if not LedgerAccount.objects.filter(enough, pk=account.pk).update(held=F("held") + amount):
            raise Conflict(
                f"This costs {amount} credits, and {account.posted - account.held} are available.", _way_out()
            )
        Hold.objects.create(pk=key, account=account, amount=amount, note=note)


def capture(key: str, *, kind: str = "run") -> bool:
    """
    Take what was held for *key*, in the caller's transaction.

    Returns:
        Whether this call took it: False when it was taken or released before, or never held.
    """
    with transaction.atomic():
        found = _settle(key, HoldState.CAPTURED)
        if found is None:
            return False
        if found.amount:
            revenue = system(REVENUE)
            Transfer.objects.create(
                pk=f"{kind}:{key}",
                debit_id=found.account_id,
                credit=revenue,
                amount=found.amount,
                kind=kind,
                reference=key,
                note=found.note,
            )
            LedgerAccount.objects.filter(pk=found.account_id).update(
                posted=F("posted") - found.amount, held=F("held") - found.amount
            )
            LedgerAccount.objects.filter(pk=revenue.pk).update(posted=F("posted") + found.amount)
    return True


def _way_out() -> str:
    page = f"{settings.BASE_URL}/manage/credits"
    if billing.is_on():
        return f"Buy more at {page}, then send it again."
    return f"The page {page} shows what you have, and how to get more."


def release(key: str) -> bool:
    """
    Give back what was held for *key*, in the caller's transaction.

    Returns:
        Whether this call gave it back.
    """
    with transaction.atomic():
        found = _settle(key, HoldState.RELEASED)
        if found is None:
            return False
        LedgerAccount.objects.filter(pk=found.account_id).update(held=F("held") - found.amount)
    return True


def move(
    key: str,
    debit: LedgerAccount,
    credit: LedgerAccount,
    amount: int,
    *,
    kind: str,
    reference: str = "",
    note: str = "",
) -> bool:
    """
    Move credits, in the caller's transaction. The same key moves once.

    Returns:
        Whether this call moved them.

    Raises:
        Conflict: the key was used for another transfer.
    """
    sides = sorted(((debit.pk, -amount), (credit.pk, amount)))  # one order for all, so that none waits in a circle
    try:
        with transaction.atomic():
            Transfer.objects.create(
                pk=key, debit=debit, credit=credit, amount=amount, kind=kind, reference=reference, note=note
            )
            for pk, change in sides:
                LedgerAccount.objects.filter(pk=pk).update(posted=F("posted") + change)
    except IntegrityError:
        standing = Transfer.objects.filter(pk=key).first()
        if standing is None:
            raise
        if (standing.debit_id, standing.credit_id, standing.amount) != (debit.pk, credit.pk, amount):
            raise Conflict("This key was used for another transfer.", "Choose another key.") from None
        return False
    return True


class Totals(NamedTuple):
    """The ledger in three numbers: what people have, what of it is held, and whether the sums agree."""

    balance: int
    held: int
    agrees: bool


def totals() -> Totals:
    """
    Sum the ledger up, in one statement and so in one snapshot, without a lock.

    The sums agree when all accounts together make zero and what is held is what the open holds make;
    :func:`prove` looks at each account.
    """
    holds = Hold.objects.filter(state=HoldState.HELD).order_by().values("state").annotate(total=Sum("amount"))
    sums = LedgerAccount.objects.aggregate(
        everything=Sum("posted", default=0),
        balance=Sum("posted", filter=Q(account__isnull=False), default=0),
        held=Sum("held", default=0),
        open_holds=Max(Subquery(holds.values("total"))),
    )
    held = int(sums["held"])
    agrees = not sums["everything"] and held == int(sums["open_holds"] or 0)
    return Totals(int(sums["balance"]), held, agrees)


def prove() -> list[str]:
    """
    Hold every balance against the transfers and holds that make it.

    Returns:
        What does not agree; nothing when the ledger is whole.
    """
    with snapshot():  # of statements that each see another moment, none would agree while others spend
        return [*_accounts_unproved(), *_purchases_unproved()]


def _accounts_unproved() -> list[str]:
    """Hold every balance, and every captured hold, against the transfers."""
    accounts = list(LedgerAccount.objects.order_by("pk"))
    came = dict(Transfer.objects.values_list("credit").annotate(Sum("amount")).order_by())
    went = dict(Transfer.objects.values_list("debit").annotate(Sum("amount")).order_by())
    held = dict(Hold.objects.filter(state=HoldState.HELD).values_list("account").annotate(Sum("amount")).order_by())
    captured = Hold.objects.filter(state=HoldState.CAPTURED, amount__gt=0).values_list("pk", "amount", "account")
    paid = dict(Transfer.objects.filter(kind="run").values_list("reference", "amount"))
    faults = []
    for account in accounts:
        posted = came.get(account.pk, 0) - went.get(account.pk, 0)
        if account.posted != posted:
            faults.append(f"{account} shows {account.posted}, its transfers make {posted}")
        if account.held != held.get(account.pk, 0):
            faults.append(f"{account} holds {account.held}, its open holds make {held.get(account.pk, 0)}")
    total = sum(account.posted for account in accounts)
    if total:
        faults.append(f"all accounts together make {total}, not 0")
    settled = {key: amount for key, amount, _ in captured}
    faults += [
        f"{key} was captured for {amount}, and its transfer says {paid.get(key)}"
        for key, amount in settled.items()
        if paid.get(key) != amount
    ]
    faults += [f"{key} was charged without a hold" for key in paid if key not in settled]
    return faults


def _purchases_unproved() -> list[str]:
    """Hold every paid purchase against the transfers that name it."""
    bought = {row[0]: row[1:] for row in Purchase.objects.values_list("pk", "state", "credits", "taken_back")}
    moved = list(
        Transfer.objects.filter(kind__in=["purchase", "refund"]).values_list(
            "reference", "kind", "debit__name", "amount"
        )
    )
    came = dict.fromkeys(bought, 0)
    went = dict.fromkeys(bought, 0)
    faults = []
    for key, kind, debit, amount in moved:
        if key not in bought:
            faults.append(f"{key} moved {amount} as a {kind}, and no purchase has this id")
        elif kind == "purchase":
            came[key] += amount
        else:
            went[key] += -amount if debit == SOLD else amount
    for key, (state, amount, taken_back) in bought.items():
        due = amount if state == PurchaseState.PAID else 0
        if came[key] != due:
            faults.append(f"purchase {key} is {state} and is due {due}, its transfers make {came[key]}")
        if went[key] != taken_back:
            faults.append(f"of purchase {key} {taken_back} were taken back, its transfers make {went[key]}")
    return faults


def own_account(actor: Actor) -> LedgerAccount:
    """
    Give the actor's ledger account.

    Raises:
        Forbidden: the actor has no account.
    """
    if actor.account_id is None:
        raise Forbidden("Credits belong to accounts, and nobody is named.", "Sign in, or send a bearer token.")
    return opened(actor.account_id)


def opened(account_id: int) -> LedgerAccount:
    """Give a person's ledger account; the first use opens it with the registry's starting credits."""
    found = LedgerAccount.objects.filter(account_id=account_id).first()
    if found is not None:
        return found
    LedgerAccount.objects.bulk_create(
        [LedgerAccount(name=f"account:{account_id}", account_id=account_id)], ignore_conflicts=True
    )
    found = LedgerAccount.objects.filter(account_id=account_id).first()
    if found is None:
        raise NotFound("There is no such account.", "List them with user list.")
    if settings.STARTING_CREDITS:
        move(
            f"start:{account_id}",
            system(ISSUED),
            found,
            settings.STARTING_CREDITS,
            kind="start",
            note="Starting credits",
        )
        found.refresh_from_db()
    return found


def system(name: str) -> LedgerAccount:
    """Give one of the registry's own accounts; the first use makes it."""
    found = LedgerAccount.objects.filter(name=name).first()
    if found is None:
        LedgerAccount.objects.bulk_create([LedgerAccount(name=name, may_go_negative=True)], ignore_conflicts=True)
        found = LedgerAccount.objects.get(name=name)
    return found


def _settle(key: str, state: HoldState) -> Hold | None:
    if not Hold.objects.filter(pk=key, state=HoldState.HELD).update(state=state, settled_at=now()):
        return None
    return Hold.objects.get(pk=key)
