"""
Operations on credits: balance, grant, hold, capture, release and transfer.

A single conditional update prevents overdrafts. Settling a hold twice or repeating a transfer's id does nothing.

Source: decisions, section 5, credits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Max, Q, Subquery, Sum

from muniment.accounts.operations import find_account, require_operator
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.credits import billing
from muniment.credits.models import Hold, HoldState, LedgerAccount, Purchase, PurchaseState, Transfer
from muniment.kernel.actor import Actor
from muniment.kernel.ids import new_id, now
from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.kernel.texts import text_fault
from muniment.kernel.wire import timestamp
from muniment.scrub.checks import RESTORE, Check, Damage, Slice
from muniment.store.database.snapshots import snapshot
from muniment.webhooks import events

ENTRIES: Final = 50
MAX_GRANT: Final = 10**9
ISSUED: Final = "issued"
SOLD: Final = "sold"
REVENUE: Final = "revenue"
LEDGER: Final = "credit ledger"
"""The name of the check of the scrub."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A transfer from the point of view of one account: incoming is positive, outgoing negative."""

    id: str
    amount: int
    kind: str
    reference: str
    note: str
    at: datetime
    balance: int
    """The balance after this transfer."""

    def to_wire(self) -> JSONObject:
        wire: JSONObject = {
            "entryId": self.id,
            "amount": self.amount,
            "kind": self.kind,
            "note": self.note,
            "balance": self.balance,
            "at": timestamp(self.at),
        }
        if self.kind == "run":
            wire["runId"] = self.reference
        return wire


@dataclass(frozen=True, slots=True)
class Balance:
    """An account's balance; ``available`` excludes what is held."""

    balance: int
    held: int
    entries: list[Entry]
    holds: list[Hold]

    @property
    def available(self) -> int:
        return self.balance - self.held

    def to_wire(self) -> JSONObject:
        return {
            "balance": self.balance,
            "held": self.held,
            "available": self.available,
            "entries": [entry.to_wire() for entry in self.entries],
        }


def get_balance(actor: Actor, *, entries: int = ENTRIES) -> Balance:
    """Return the balance of the actor's account with its latest entries, newest first, or raise Forbidden."""
    with transaction.atomic():
        account = own_account(actor)
        latest = _latest_transfers(account, max(0, entries))
        holds = list(Hold.objects.filter(account=account, state=HoldState.HELD).order_by("at", "pk"))
    return Balance(account.posted, account.held, list(_entries_of(account, latest)), holds)


def _latest_transfers(account: LedgerAccount, count: int) -> list[Transfer]:
    """Return the account's latest transfers, newest first."""
    # Each side has an index in this order; with both in one condition, all transfers of the account would be sorted.
    sides = (Transfer.objects.filter(debit=account), Transfer.objects.filter(credit=account))
    transfers = [transfer for side in sides for transfer in side.order_by("-at", "-pk")[:count]]
    transfers.sort(key=lambda transfer: (transfer.at, transfer.pk), reverse=True)
    return transfers[:count]


def _entries_of(account: LedgerAccount, newest_first: list[Transfer]) -> Iterator[Entry]:
    balance = account.posted
    for transfer in newest_first:
        amount = transfer.amount if transfer.credit_id == account.pk else -transfer.amount
        yield Entry(
            id=transfer.pk,
            amount=amount,
            kind=transfer.kind,
            reference=transfer.reference,
            note=transfer.note,
            at=transfer.at,
            balance=balance,
        )
        balance -= amount


def available(actor: Actor) -> int:
    with transaction.atomic():
        account = own_account(actor)
    return account.posted - account.held


def grant(actor: Actor, email: str, amount: int, *, note: str = "", key: str = "") -> Balance:
    """
    Grant credits to the account at *email*.

    Args:
        actor: an operator.
        key: makes the call idempotent; generated when empty.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: there is no such account.
        BadRequest: the amount, the note or the key is invalid.
        Conflict: the key was used for another grant.
    """
    if actor.role != "operator" or actor.via not in {"web", "command", "system"}:
        raise Forbidden("Only operators can grant credits.", "Ask the operator of this registry.")
    if not 1 <= amount <= MAX_GRANT:
        raise BadRequest(
            Phrase("{amount} credits cannot be granted.", amount=amount),
            Phrase("Grant a whole number from 1 to {limit:,}.", limit=MAX_GRANT),
        )
    fault = text_fault(note)
    if fault:
        raise BadRequest(Phrase("The note {fault}.", fault=Phrase.of(fault)), "Remove that character.")
    if len(key) > 100:
        raise BadRequest("The key is longer than 100 characters.", "Use a shorter key.")
    account = find_account(email)
    with transaction.atomic():
        own = ledger_account_of(account.pk)
        if move(f"grant:{key or new_id()}", system(ISSUED), own, amount, kind="grant", note=note):
            record(Event.CREDITS_GRANTED, account=account, actor=actor, detail={"credits": amount})
    return get_balance(account.actor("system"), entries=1)


def hold(actor: Actor, key: str, amount: int, *, note: str = "") -> None:
    """Reserve credits for *key*, once, in the caller's transaction; raise Conflict if too few are available."""
    with transaction.atomic():
        account = LedgerAccount.objects.select_for_update().get(pk=own_account(actor).pk)
        if Hold.objects.filter(pk=key).exists():
            return
        enough = Q(may_go_negative=True) | Q(posted__gte=F("held") + amount)
        if not LedgerAccount.objects.filter(enough, pk=account.pk).update(held=F("held") + amount):
            raise Conflict(
                Phrase(
                    "This costs {amount} credits, but only {available} are available.",
                    amount=amount,
                    available=account.posted - account.held,
                ),
                _how_to_get_credits(),
            )
        Hold.objects.create(pk=key, account=account, amount=amount, note=note)


def _how_to_get_credits() -> str:
    page = f"{settings.BASE_URL}/manage/credits"
    if billing.is_on():
        return Phrase("Buy credits at {page}, then try again.", page=page)
    return Phrase("See {page} for your balance and how to get more credits.", page=page)


def capture(key: str, *, kind: str = "run") -> bool:
    """Charge the credits held for *key*, in the caller's transaction. Return whether they were still held."""
    with transaction.atomic():
        captured = _settle(key, HoldState.CAPTURED)
        if captured is None:
            return False
        if captured.amount:
            revenue = system(REVENUE)
            Transfer.objects.create(
                pk=f"{kind}:{key}",
                debit_id=captured.account_id,
                credit=revenue,
                amount=captured.amount,
                kind=kind,
                reference=key,
                note=captured.note,
            )
            LedgerAccount.objects.filter(pk=captured.account_id).update(
                posted=F("posted") - captured.amount, held=F("held") - captured.amount
            )
            LedgerAccount.objects.filter(pk=revenue.pk).update(posted=F("posted") + captured.amount)
            _tell_webhooks(captured.account, -captured.amount, kind)
    return True


def _tell_webhooks(account: LedgerAccount, change: int, kind: str) -> None:
    """Record a change of an account's credits for its webhooks, in the caller's transaction; not of the registry's."""
    if account.account_id is not None:
        told = {"credits": change, "kind": kind, "url": f"{settings.BASE_URL}/manage/credits"}
        events.record("credits.changed", told, accounts=[account.account_id])


def release(key: str) -> bool:
    """Release the credits held for *key*, in the caller's transaction. Return whether they were still held."""
    with transaction.atomic():
        released = _settle(key, HoldState.RELEASED)
        if released is None:
            return False
        LedgerAccount.objects.filter(pk=released.account_id).update(held=F("held") - released.amount)
    return True


def _settle(key: str, state: HoldState) -> Hold | None:
    if not Hold.objects.filter(pk=key, state=HoldState.HELD).update(state=state, settled_at=now()):
        return None
    return Hold.objects.get(pk=key)


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
    Transfer credits, in the caller's transaction. Return whether this call moved them; repeating a key does nothing.

    Raises:
        Conflict: the key was used for another transfer.
    """
    sides = sorted(((debit.pk, -amount), (credit.pk, amount)))  # a fixed lock order prevents deadlocks
    try:
        with transaction.atomic():
            Transfer.objects.create(
                pk=key, debit=debit, credit=credit, amount=amount, kind=kind, reference=reference, note=note
            )
            for pk, change in sides:
                LedgerAccount.objects.filter(pk=pk).update(posted=F("posted") + change)
            _tell_webhooks(debit, -amount, kind)
            _tell_webhooks(credit, amount, kind)
    except IntegrityError:
        existing = Transfer.objects.filter(pk=key).first()
        if existing is None:
            raise
        if (existing.debit_id, existing.credit_id, existing.amount) != (debit.pk, credit.pk, amount):
            raise Conflict("This key was used for another transfer.", "Use another key.") from None
        return False
    return True


class Totals(NamedTuple):
    """The ledger's totals: the users' balance, how much of it is held, and whether the sums agree."""

    balance: int
    held: int
    agrees: bool


def totals() -> Totals:
    """
    Return the ledger's totals, in one statement (so one snapshot) and without a lock.

    The sums agree when all accounts add up to zero and the held amounts equal the open holds;
    :func:`check_ledger` checks each account.
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


def check_ledger() -> list[str]:
    """Check every balance against its transfers and holds, and return the discrepancies."""
    with snapshot():  # without one snapshot, concurrent spending would look like a discrepancy
        return [*_account_discrepancies(), *_purchase_discrepancies()]


def _account_discrepancies() -> list[str]:
    accounts = list(LedgerAccount.objects.order_by("pk"))
    came = dict(Transfer.objects.values_list("credit").annotate(Sum("amount")).order_by())
    went = dict(Transfer.objects.values_list("debit").annotate(Sum("amount")).order_by())
    held = dict(Hold.objects.filter(state=HoldState.HELD).values_list("account").annotate(Sum("amount")).order_by())
    settled = dict(Hold.objects.filter(state=HoldState.CAPTURED, amount__gt=0).values_list("pk", "amount"))
    paid = dict(Transfer.objects.filter(kind="run").values_list("reference", "amount"))
    faults = []
    for account in accounts:
        posted = came.get(account.pk, 0) - went.get(account.pk, 0)
        if account.posted != posted:
            faults.append(f"{account} has a balance of {account.posted}, but its transfers add up to {posted}")
        if account.held != held.get(account.pk, 0):
            faults.append(f"{account} holds {account.held}, but its open holds add up to {held.get(account.pk, 0)}")
    total = sum(account.posted for account in accounts)
    if total:
        faults.append(f"all accounts add up to {total}, not 0")
    for key, amount in settled.items():
        if paid.get(key) != amount:
            faults.append(f"hold {key} was captured for {amount}, but its transfer says {paid.get(key)}")
    faults += [f"run {key} was charged without a hold" for key in paid if key not in settled]
    return faults


def _purchase_discrepancies() -> list[str]:
    purchases = Purchase.objects.in_bulk()
    transfers = Transfer.objects.filter(kind__in=["purchase", "refund"])
    came = dict.fromkeys(purchases, 0)
    went = dict.fromkeys(purchases, 0)
    faults = []
    for key, kind, debit, amount in transfers.values_list("reference", "kind", "debit__name", "amount"):
        if key not in purchases:
            faults.append(f"a {kind} of {amount} refers to purchase {key}, which does not exist")
        elif kind == "purchase":
            came[key] += amount
        else:
            went[key] += -amount if debit == SOLD else amount
    for key, purchase in purchases.items():
        state, taken_back = purchase.state, purchase.taken_back
        due = purchase.credits if state == PurchaseState.PAID else 0
        if came[key] != due:
            faults.append(f"purchase {key} is {state} and should credit {due}, but its transfers add up to {came[key]}")
        if went[key] != taken_back:
            faults.append(f"purchase {key} had {taken_back} taken back, but its transfers add up to {went[key]}")
    return faults


def _look_at_ledger(after: str, limit: int, mend: bool) -> Slice:  # noqa: ARG001, FBT001 - the signature of a check
    remedy = f"compare the entries with those of a backup; {RESTORE}"
    damages = [Damage(check=LEDGER, subject="ledger", says=fault, remedy=remedy) for fault in check_ledger()]
    return Slice(1, damages, None)


CHECK: Final = Check(
    name=LEDGER,
    fine="every balance equals its transfers, and the total is zero",
    count=lambda: 1,
    look=_look_at_ledger,
)


def own_account(actor: Actor) -> LedgerAccount:
    """Return the actor's ledger account, or raise Forbidden if the actor has no account."""
    if actor.account_id is None:
        raise Forbidden("Credits belong to accounts, and this request has none.", "Sign in, or send a bearer token.")
    return ledger_account_of(actor.account_id)


def ledger_account_of(account_id: int) -> LedgerAccount:
    """Return a user's ledger account; the first use creates it with the starting credits."""
    account = LedgerAccount.objects.filter(account_id=account_id).first()
    if account is not None:
        return account
    LedgerAccount.objects.bulk_create(
        [LedgerAccount(name=f"account:{account_id}", account_id=account_id)], ignore_conflicts=True
    )
    account = LedgerAccount.objects.filter(account_id=account_id).first()
    if account is None:
        raise NotFound("Account not found.", "List accounts with: muniment user list.")
    if settings.STARTING_CREDITS:
        amount = settings.STARTING_CREDITS
        move(f"start:{account_id}", system(ISSUED), account, amount, kind="start", note="Starting credits")
        account.refresh_from_db()
    return account


def system(name: str) -> LedgerAccount:
    """Return a system account; the first use creates it."""
    account, _ = LedgerAccount.objects.get_or_create(name=name, defaults={"may_go_negative": True})
    return account


def list_transfers(actor: Actor, words: str = "", *, page: int = 1, page_size: int = 25) -> Page[Transfer]:
    """List the transfers of all accounts for an operator, the latest first; *words* is part of an address."""
    require_operator(actor)
    transfers = Transfer.objects.select_related("debit__account", "credit__account").order_by("-at", "-pk")
    if words:
        is_on_a_side = Q(debit__account__email__icontains=words) | Q(credit__account__email__icontains=words)
        transfers = transfers.filter(is_on_a_side)
    return Page.of(transfers, page, page_size)


def list_purchases(actor: Actor, words: str = "", *, page: int = 1, page_size: int = 25) -> Page[Purchase]:
    """List the purchases of all accounts for an operator, the latest first; *words* is part of an address."""
    require_operator(actor)
    purchases = Purchase.objects.select_related("account__account").order_by("-at", "-pk")
    if words:
        purchases = purchases.filter(account__account__email__icontains=words)
    return Page.of(purchases, page, page_size)
