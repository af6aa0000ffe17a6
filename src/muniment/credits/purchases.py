"""
Buying credits: an order, its payment page, and what the payment provider tells of it afterwards.

A purchase is settled by whoever learns of it first: the signed event, the buyer who comes back, or the job that asks
for what was left open. All three pass one door, which holds the purchase's row and moves the credits once.

Source: decisions, section 5, credits; docs/decisions/0014.
"""

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from muniment import config
from muniment.credits import billing
from muniment.credits.billing import GivenBack, Order, ProviderUnavailable, Session
from muniment.credits.models import LedgerAccount, Notice, Purchase, PurchaseState
from muniment.credits.operations import SOLD, move, own_account, system
from muniment.jobs.queue import JobRun
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooMany, Unavailable
from muniment.kernel.texts import text_fault
from muniment.kernel.wire import format_price

LIVES: Final = timedelta(hours=1)
"""How long a payment page waits for its buyer."""
ASKED_AFTER: Final = timedelta(minutes=3)
"""An event has come by then, if it comes."""
ASKED_EVERY: Final = timedelta(hours=6)
"""The longest pause between two questions; a bank may take days."""
AGAIN_AFTER: Final = timedelta(seconds=3)
AN_HOUR: Final = 20
"""Purchases that one account may begin in an hour."""
NOTICES_KEPT: Final = timedelta(days=90)
"""Far beyond the days for which a provider repeats itself."""
UNSETTLED: Final = (PurchaseState.OPEN, PurchaseState.PENDING)

log = logging.getLogger(__name__)


def buy_credits(actor: Actor, size: int, *, page_url: str) -> str:
    """
    Order a pack of credits.

    Args:
        size: the credits of a pack on sale.
        page_url: where the buyer comes back to, with ``bought`` or ``left`` naming the purchase.

    Returns:
        The address of the payment page.

    Raises:
        NotFound: nothing is sold here.
        BadRequest: there is no such pack.
        TooMany: the account began too many purchases.
        Unavailable: the provider does not make a payment page now; nothing was charged.
    """
    if not billing.is_on():
        raise NotFound("Credits are not sold here.", "Ask the operator of this registry for more.")
    pack = next((pack for pack in settings.CREDIT_PACKS if pack.credits == size), None)
    if pack is None:
        sizes = ", ".join(str(pack.credits) for pack in settings.CREDIT_PACKS)
        raise BadRequest(f"There is no pack of {size} credits.", f"Choose one of {sizes}.")
    begun = now()
    with transaction.atomic():
        account = LedgerAccount.objects.select_for_update().get(pk=own_account(actor).pk)
        if Purchase.objects.filter(account=account, at__gt=begun - timedelta(hours=1)).count() >= AN_HOUR:
            raise TooMany("Too many purchases were begun.", "Try again in an hour.", retry_after_s=3600)
        purchase = Purchase.objects.create(
            account=account, credits=pack.credits, price_minor=pack.price_minor, currency=settings.CURRENCY, at=begun
        )
    order = Order(
        purchase_id=purchase.pk,
        title=f"{pack.credits:,} credits · {config.current().registry_name}",
        price_minor=pack.price_minor,
        currency=purchase.currency,
        success_url=f"{page_url}?bought={purchase.pk}",
        cancel_url=f"{page_url}?left={purchase.pk}",
        expires_at=int((begun + LIVES).timestamp()),
    )
    try:
        opened = billing.provider().open(order)
    except ProviderUnavailable as error:
        log.error("no payment page for purchase %s: %s", purchase.pk, error)  # noqa: TRY400 - the message says it all
        Purchase.objects.filter(pk=purchase.pk, state=PurchaseState.OPEN).update(
            state=PurchaseState.FAILED, note="No payment page was made.", settled_at=now()
        )
        raise Unavailable(
            "The payment page cannot be opened just now.",
            "Nothing was charged. Try again in a few minutes.",
            retry_after_s=60,
        ) from None
    Purchase.objects.filter(pk=purchase.pk, session_id=None).update(session_id=opened.session_id)
    return opened.url


def get_purchase(actor: Actor, purchase_id: str) -> Purchase:
    """
    Give a purchase of the actor's as it is known here.

    Raises:
        NotFound: there is none, or it is another's.
    """
    found = None if text_fault(purchase_id) else _bought_by(actor).filter(pk=purchase_id).first()
    if found is None:
        raise NotFound("You have no such purchase.", "The page /manage/credits shows what you bought.")
    return found


def check_purchase(actor: Actor, purchase_id: str) -> Purchase:
    """
    Give a purchase of the actor's as the provider knows it: for a buyer who comes back before the event does.

    A provider that does not answer leaves it as it is; the event, or the job, settles it later.

    Raises:
        NotFound: there is none, or it is another's.
    """
    purchase = get_purchase(actor, purchase_id)
    lately = purchase.asked_at is not None and now() - purchase.asked_at < AGAIN_AFTER
    if purchase.state not in UNSETTLED or purchase.session_id is None or lately or not billing.is_on():
        return purchase
    try:
        _ask(purchase)
    except ProviderUnavailable as error:
        log.warning("purchase %s was not asked for: %s", purchase.pk, error)
    return get_purchase(actor, purchase_id)


def pending_purchases(actor: Actor) -> list[Purchase]:
    """List what the actor has paid and a bank has yet to confirm."""
    return list(_bought_by(actor).filter(state=PurchaseState.PENDING).order_by("at", "pk"))


def receive_event(body: bytes, signature: str) -> str:
    """
    Take what the provider tells, once.

    Returns:
        What came of it, in words.

    Raises:
        NotFound: nothing is sold here.
        BadRequest: it is not the provider's, or too old.
        Conflict: money went back for a purchase that is not paid yet; told again later, it counts.
    """
    if not billing.is_on():
        raise NotFound("Credits are not sold here.", "Set billing up first.")
    try:
        event = billing.provider().read(body, signature)
    except billing.BadEvent as error:
        log.warning("an event was refused: %s", error)
        raise BadRequest(
            "This is not a signed event.", "Check MUNIMENT_STRIPE_WEBHOOK_SECRET, and this machine's clock."
        ) from None
    if event.about is None:
        return "nothing to do"
    with transaction.atomic():
        purchase = _concerned(event.about)
        if purchase is None:
            if isinstance(event.about, Session) and event.about.is_ours:
                log.warning("event %s: session %s names a purchase that is not here", event.id, event.about.session_id)
            return "no purchase of this registry"
        if Notice.objects.filter(pk=event.id).exists():
            return "known already"
        outcome = (
            _settle(purchase, event.about)
            if isinstance(event.about, Session)
            else _give_back(purchase, event.about, event.id)
        )
        Notice.objects.create(pk=event.id, kind=event.kind[:64], purchase=purchase, outcome=outcome)
    return outcome


def reconcile_purchases(run: JobRun) -> dict[str, int]:
    """
    Ask for what was left open, so that a lost event loses nothing; the job of :data:`ASKED_AFTER`.

    Raises:
        ProviderUnavailable: it does not answer; the rest is asked for at the next attempt.
    """
    Notice.objects.filter(at__lt=now() - NOTICES_KEPT).delete()
    asked = settled = 0
    for purchase in _left_open():
        run.check()
        if purchase.session_id is None:
            # The process ended between the order and its page: nobody has the address of one.
            settled += _close(purchase, "No payment page was made.")
            continue
        asked += 1
        settled += _ask(purchase)
    return {"asked": asked, "settled": settled}


def _bought_by(actor: Actor) -> QuerySet[Purchase]:
    if actor.account_id is None:
        return Purchase.objects.none()
    return Purchase.objects.filter(account__account_id=actor.account_id)


def _left_open() -> Iterator[Purchase]:
    moment = now()
    for purchase in Purchase.objects.filter(state__in=UNSETTLED, at__lt=moment - ASKED_AFTER).order_by("at", "pk"):
        if purchase.session_id is None:
            is_due = moment - purchase.at > 2 * LIVES
        else:
            # Twice as long after each question, so that a page that nobody pays is asked for a few times.
            pause = purchase.asked_at and min(max(purchase.asked_at - purchase.at, ASKED_AFTER), ASKED_EVERY)
            is_due = purchase.asked_at is None or moment - purchase.asked_at >= (pause or ASKED_AFTER)
        if is_due:
            yield purchase


def _ask(purchase: Purchase) -> bool:
    """Ask the provider and settle; tells whether that closed the purchase."""
    seen = billing.provider().look(purchase.session_id or "")
    Purchase.objects.filter(pk=purchase.pk).update(asked_at=now())
    if seen is None:
        log.error("purchase %s: the provider does not know session %s", purchase.pk, purchase.session_id)
        return _close(purchase, "The payment provider does not know it.")
    with transaction.atomic():
        locked = Purchase.objects.select_for_update().get(pk=purchase.pk)
        _settle(locked, seen)
        return locked.state not in UNSETTLED


def _close(purchase: Purchase, note: str) -> bool:
    return bool(
        Purchase.objects.filter(pk=purchase.pk, state__in=UNSETTLED).update(
            state=PurchaseState.EXPIRED, note=note, settled_at=now()
        )
    )


def _concerned(about: Session | GivenBack) -> Purchase | None:
    """Give the purchase that is spoken of, held until the transaction ends."""
    named = Q(pk=about.purchase_id)
    if about.payment_id and not about.purchase_id:
        named = Q(payment_id=about.payment_id)
    return Purchase.objects.select_for_update().filter(named).first() if about.purchase_id or about.payment_id else None


def _settle(purchase: Purchase, seen: Session) -> str:
    """Bring a held purchase to what the provider says of its session; credits move here and nowhere else."""
    if purchase.session_id not in {None, seen.session_id}:
        return _refused(purchase, f"session {seen.session_id} names it, its own is {purchase.session_id}")
    if purchase.state == PurchaseState.PAID:
        return "paid already"
    if (seen.amount_minor, seen.currency) != (purchase.price_minor, purchase.currency):
        if seen.state in {"paid", "pending"}:
            _become(purchase, PurchaseState.REFUSED, seen, "The amount is not the one that was ordered.")
        return _refused(
            purchase,
            f"session {seen.session_id} is over {seen.amount_minor} {seen.currency}, "
            f"ordered were {purchase.price_minor} {purchase.currency}",
        )
    if seen.state == "paid":
        _become(purchase, PurchaseState.PAID, seen)
        move(
            f"purchase:{purchase.pk}",
            system(SOLD),
            purchase.account,
            purchase.credits,
            kind="purchase",
            reference=purchase.pk,
            note=format_price(purchase.price_minor, purchase.currency),
        )
    elif seen.state == "pending" and purchase.state == PurchaseState.OPEN:
        _become(purchase, PurchaseState.PENDING, seen)
    elif seen.state == "failed" and purchase.state in UNSETTLED:
        _become(purchase, PurchaseState.FAILED, seen, "The payment did not go through.")
    elif seen.state == "expired" and purchase.state in UNSETTLED:
        _become(purchase, PurchaseState.EXPIRED, seen)
    return str(purchase.state)


def _become(purchase: Purchase, state: PurchaseState, seen: Session, note: str = "") -> None:
    purchase.state, purchase.note = state, note
    purchase.session_id, purchase.payment_id = seen.session_id, seen.payment_id or purchase.payment_id
    purchase.settled_at = None if state in UNSETTLED else now()
    purchase.save(update_fields=["state", "note", "session_id", "payment_id", "settled_at"])


def _refused(purchase: Purchase, why: str) -> str:
    log.error("purchase %s: %s; nothing was credited, look at it in the provider's dashboard", purchase.pk, why)
    return f"refused: {why}"


def _give_back(purchase: Purchase, told: GivenBack, event_id: str) -> str:
    """
    Take the credits of money that a buyer got back, as far as they are there; what is held stays.

    Raises:
        Conflict: the purchase is not paid yet.
    """
    if purchase.state in {PurchaseState.OPEN, PurchaseState.PENDING, PurchaseState.EXPIRED, PurchaseState.FAILED}:
        raise Conflict("This purchase is not paid yet.", "Send the event again later.")
    if told.currency != purchase.currency:
        return _refused(purchase, f"{told.currency} were given back, {purchase.currency} were paid")
    if told.refunded_minor is not None:
        # Of refunds the sum is told, so the largest is the latest.
        purchase.refunded_minor = max(purchase.refunded_minor, told.refunded_minor)
    if told.disputed_minor is not None:
        purchase.disputed_minor = told.disputed_minor
    change = _taken(purchase, event_id) if purchase.state == PurchaseState.PAID else 0
    purchase.taken_back += change
    purchase.save(update_fields=["refunded_minor", "disputed_minor", "taken_back"])
    if purchase.owed:
        log.warning("purchase %s: %d credits of returned money are spent or held already", purchase.pk, purchase.owed)
    return f"{change} credits taken back" + (f", {purchase.owed} were spent or held already" if purchase.owed else "")


def _taken(purchase: Purchase, event_id: str) -> int:
    """Move what is due in either direction and give how many credits went; a dispute that was won gives back."""
    sold = system(SOLD)
    # Both in the order in which `move` writes them.
    held = {
        row.pk: row
        for row in LedgerAccount.objects.select_for_update()
        .filter(pk__in=[sold.pk, purchase.account_id])
        .order_by("pk")
    }
    account = held[purchase.account_id]
    due = purchase.to_take_back - purchase.taken_back
    change = min(due, account.posted - account.held)
    if change > 0:
        move(f"refund:{event_id}"[:128], account, sold, change, kind="refund", reference=purchase.pk)
    elif change < 0:
        move(f"refund:{event_id}"[:128], sold, account, -change, kind="refund", reference=purchase.pk)
    return change


def prices() -> list[tuple[int, int]]:
    """Give the packs on sale, the smallest first: credits and price in minor units; none while billing is off."""
    return sorted((pack.credits, pack.price_minor) for pack in settings.CREDIT_PACKS) if billing.is_on() else []
