"""
Buying credits: order a pack, send the buyer to the payment page, and settle the purchase.

A purchase is settled by the first of three: the provider's signed event, the buyer's return, or the job that checks
open purchases. All three lock the purchase's row, so the credits move once.

Source: decisions, section 5, credits; docs/decisions/0014.
"""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from muniment.credits import billing
from muniment.credits.billing import Order, ProviderUnavailable, Reversal, Session
from muniment.credits.models import LedgerAccount, Notice, Purchase, PurchaseState
from muniment.credits.operations import SOLD, move, own_account, system
from muniment.jobs.queue import JobRun
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooMany, Unavailable
from muniment.kernel.texts import text_fault
from muniment.kernel.wire import format_price
from muniment.registry_toml import applied

PAGE_LIFETIME: Final = timedelta(hours=1)
"""The time that a payment page stays open."""
CHECK_AFTER: Final = timedelta(minutes=3)
"""The time after which Stripe is asked: by then, an event has normally arrived."""
MAX_CHECK_INTERVAL: Final = timedelta(hours=6)
"""The longest time between two checks; a bank can take days."""
MIN_CHECK_INTERVAL: Final = timedelta(seconds=3)
MAX_PER_HOUR: Final = 20
"""Purchases that one account can start in an hour."""
EVENT_RETENTION: Final = timedelta(days=90)
"""Much longer than a provider retries an event."""
UNSETTLED: Final = (PurchaseState.OPEN, PurchaseState.PENDING)

log = logging.getLogger(__name__)


def buy_credits(actor: Actor, size: int, *, page_url: str) -> str:
    """
    Order a pack of credits and return the URL of the payment page.

    Args:
        page_url: the page that the buyer returns to, with ``bought`` or ``left`` naming the purchase.

    Raises:
        NotFound: this instance sells no credits.
        BadRequest: there is no such pack.
        TooMany: the account started too many purchases.
        Unavailable: the provider cannot create a payment page now; nothing was charged.
    """
    if not billing.is_on():
        raise NotFound("This registry does not sell credits.", "Ask its operator for credits.")
    pack = next((pack for pack in settings.CREDIT_PACKS if pack.credits == size), None)
    if pack is None:
        sizes = ", ".join(str(pack.credits) for pack in settings.CREDIT_PACKS)
        raise BadRequest(
            Phrase("There is no pack of {size} credits.", size=size), Phrase("Choose one of {sizes}.", sizes=sizes)
        )
    with transaction.atomic():
        account = LedgerAccount.objects.select_for_update().get(pk=own_account(actor).pk)
        if Purchase.objects.filter(account=account, at__gt=now() - timedelta(hours=1)).count() >= MAX_PER_HOUR:
            raise TooMany("You started too many purchases.", "Try again in an hour.", retry_after_s=3600)
        purchase = Purchase.objects.create(
            account=account, credits=pack.credits, price_minor=pack.price_minor, currency=settings.CURRENCY
        )
    order = Order(
        purchase_id=purchase.pk,
        title=f"{pack.credits:,} credits · {applied.registry_name()}",
        price_minor=pack.price_minor,
        currency=purchase.currency,
        success_url=f"{page_url}?bought={purchase.pk}",
        cancel_url=f"{page_url}?left={purchase.pk}",
        expires_at=int((purchase.at + PAGE_LIFETIME).timestamp()),
    )
    try:
        opened = billing.provider().open(order)
    except ProviderUnavailable as error:
        log.error("could not create a payment page for purchase %s: %s", purchase.pk, error)  # noqa: TRY400 - a traceback adds nothing
        Purchase.objects.filter(pk=purchase.pk, state=PurchaseState.OPEN).update(
            state=PurchaseState.FAILED, note="The payment page could not be created.", settled_at=now()
        )
        raise Unavailable(
            "The payment page is unavailable.", "You were not charged. Try again in a few minutes.", retry_after_s=60
        ) from None
    Purchase.objects.filter(pk=purchase.pk, session_id=None).update(session_id=opened.session_id)
    return opened.url


def get_purchase(actor: Actor, purchase_id: str) -> Purchase:
    """Return one of the actor's purchases as stored here, or raise NotFound."""
    purchase = None
    if not text_fault(purchase_id):
        purchase = _bought_by(actor).filter(pk=purchase_id).first()
    if purchase is None:
        raise NotFound("Purchase not found.", "Your purchases are at /manage/credits.")
    return purchase


def check_purchase(actor: Actor, purchase_id: str) -> Purchase:
    """
    Return one of the actor's purchases after asking the provider, for a buyer who returns before the event arrives.

    If the provider does not answer, the purchase is unchanged; the event or the job settles it later.
    """
    purchase = get_purchase(actor, purchase_id)
    is_open = purchase.state in UNSETTLED and purchase.session_id is not None
    was_asked_recently = purchase.asked_at is not None and now() - purchase.asked_at < MIN_CHECK_INTERVAL
    if not is_open or was_asked_recently or not billing.is_on():
        return purchase
    try:
        _reconcile(purchase)
    except ProviderUnavailable as error:
        log.warning("could not check purchase %s with the payment provider: %s", purchase.pk, error)
    return get_purchase(actor, purchase_id)


def pending_purchases(actor: Actor) -> list[Purchase]:
    """List the actor's purchases that a bank has yet to confirm."""
    return list(_bought_by(actor).filter(state=PurchaseState.PENDING).order_by("at", "pk"))


def receive_event(body: bytes, signature: str) -> str:
    """
    Process an event of the payment provider, once, and return the outcome in words.

    Raises:
        NotFound: this instance sells no credits.
        BadRequest: the signature is invalid, or the event is too old.
        Conflict: a refund arrived before its payment; the provider will send it again.
    """
    if not billing.is_on():
        raise NotFound("This registry does not sell credits.", "Configure billing first.")
    try:
        event = billing.provider().read(body, signature)
    except billing.BadEvent as error:
        log.warning("rejected a billing event: %s", error)
        raise BadRequest(
            "The event's signature is invalid.", "Check MUNIMENT_STRIPE_WEBHOOK_SECRET and this machine's clock."
        ) from None
    if event.about is None:
        return "nothing to do"
    with transaction.atomic():
        purchase = _lock_purchase(event.about)
        if purchase is None:
            if isinstance(event.about, Session) and event.about.is_ours:
                log.warning("event %s: session %s names an unknown purchase", event.id, event.about.session_id)
            return "not a purchase of this registry"
        if Notice.objects.filter(pk=event.id).exists():
            return "already processed"
        if isinstance(event.about, Session):
            outcome = _settle(purchase, event.about)
        else:
            outcome = _record_reversal(purchase, event.about, event.id)
        Notice.objects.create(pk=event.id, kind=event.kind[:64], purchase=purchase, outcome=outcome)
    return outcome


def reconcile_purchases(run: JobRun) -> dict[str, int]:
    """Check open purchases with the provider, in case an event was lost; ProviderUnavailable makes the job retry."""
    Notice.objects.filter(at__lt=now() - EVENT_RETENTION).delete()
    asked = settled = 0
    for purchase in _due_purchases():
        run.check()
        if purchase.session_id is None:
            # The process ended before the payment page was created.
            settled += _close(purchase, "The payment page could not be created.")
            continue
        asked += 1
        settled += _reconcile(purchase)
    return {"asked": asked, "settled": settled}


def _bought_by(actor: Actor) -> QuerySet[Purchase]:
    if actor.account_id is None:
        return Purchase.objects.none()
    return Purchase.objects.filter(account__account_id=actor.account_id)


def _due_purchases() -> Iterator[Purchase]:
    moment = now()
    for purchase in Purchase.objects.filter(state__in=UNSETTLED, at__lt=moment - CHECK_AFTER).order_by("at", "pk"):
        if purchase.session_id is None:
            is_due = moment - purchase.at > 2 * PAGE_LIFETIME
        else:
            is_due = _is_check_due(purchase, moment)
        if is_due:
            yield purchase


def _is_check_due(purchase: Purchase, moment: datetime) -> bool:
    if purchase.asked_at is None:
        return True
    # The interval doubles after each check, so that an abandoned page is checked only a few times.
    interval = min(max(purchase.asked_at - purchase.at, CHECK_AFTER), MAX_CHECK_INTERVAL)
    return moment - purchase.asked_at >= interval


def _reconcile(purchase: Purchase) -> bool:
    """Ask the provider and settle; return whether that closed the purchase."""
    seen = billing.provider().look(purchase.session_id or "")
    Purchase.objects.filter(pk=purchase.pk).update(asked_at=now())
    if seen is None:
        log.error("purchase %s: the payment provider does not know session %s", purchase.pk, purchase.session_id)
        return _close(purchase, "The payment provider does not know this purchase.")
    with transaction.atomic():
        locked = Purchase.objects.select_for_update().get(pk=purchase.pk)
        _settle(locked, seen)
        return locked.state not in UNSETTLED


def _close(purchase: Purchase, note: str) -> bool:
    unsettled = Purchase.objects.filter(pk=purchase.pk, state__in=UNSETTLED)
    return bool(unsettled.update(state=PurchaseState.EXPIRED, note=note, settled_at=now()))


def _lock_purchase(about: Session | Reversal) -> Purchase | None:
    rows = Purchase.objects.select_for_update()
    if about.purchase_id:
        return rows.filter(pk=about.purchase_id).first()
    if about.payment_id:
        return rows.filter(payment_id=about.payment_id).first()
    return None


def _settle(purchase: Purchase, seen: Session) -> str:
    """Apply the provider's session to a locked purchase; the only place that credits a purchase."""
    if purchase.session_id not in {None, seen.session_id}:
        return _log_mismatch(purchase, f"session {seen.session_id} names it, but its session is {purchase.session_id}")
    if purchase.state == PurchaseState.PAID:
        return "already paid"
    if seen.amount_minor != purchase.price_minor or seen.currency != purchase.currency:
        if seen.state in {"paid", "pending"}:
            _set_state(purchase, PurchaseState.REFUSED, seen, "The amount paid is not the amount ordered.")
        return _log_mismatch(
            purchase,
            f"session {seen.session_id} is for {seen.amount_minor} {seen.currency}, "
            f"but {purchase.price_minor} {purchase.currency} was ordered",
        )
    if seen.state == "paid":
        _set_state(purchase, PurchaseState.PAID, seen)
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
        _set_state(purchase, PurchaseState.PENDING, seen)
    elif seen.state == "failed" and purchase.state in UNSETTLED:
        _set_state(purchase, PurchaseState.FAILED, seen, "The payment failed.")
    elif seen.state == "expired" and purchase.state in UNSETTLED:
        _set_state(purchase, PurchaseState.EXPIRED, seen)
    return str(purchase.state)


def _set_state(purchase: Purchase, state: PurchaseState, seen: Session, note: str = "") -> None:
    purchase.state = state
    purchase.note = note
    purchase.session_id = seen.session_id
    purchase.payment_id = seen.payment_id or purchase.payment_id
    purchase.settled_at = None if state in UNSETTLED else now()
    purchase.save(update_fields=["state", "note", "session_id", "payment_id", "settled_at"])


def _log_mismatch(purchase: Purchase, why: str) -> str:
    log.error("purchase %s: %s; nothing was credited, check it in the provider's dashboard", purchase.pk, why)
    return f"refused: {why}"


def _record_reversal(purchase: Purchase, reversal: Reversal, event_id: str) -> str:
    """Take back the credits of returned money, as far as available, not held ones; raise Conflict if it is unpaid."""
    if purchase.state in {PurchaseState.OPEN, PurchaseState.PENDING, PurchaseState.EXPIRED, PurchaseState.FAILED}:
        raise Conflict("This purchase is not paid yet.", "Send the event again later.")
    if reversal.currency != purchase.currency:
        return _log_mismatch(purchase, f"the refund is in {reversal.currency}, the payment was in {purchase.currency}")
    if reversal.refunded_minor is not None:
        # The provider sends the sum of all refunds, so the largest is the latest.
        purchase.refunded_minor = max(purchase.refunded_minor, reversal.refunded_minor)
    if reversal.disputed_minor is not None:
        purchase.disputed_minor = reversal.disputed_minor
    change = _move_credits(purchase, event_id) if purchase.state == PurchaseState.PAID else 0
    purchase.taken_back += change
    purchase.save(update_fields=["refunded_minor", "disputed_minor", "taken_back"])
    if purchase.owed:
        log.warning("purchase %s: %d credits of returned money are already spent or held", purchase.pk, purchase.owed)
        return f"{change} credits taken back, {purchase.owed} already spent or held"
    return f"{change} credits taken back"


def _move_credits(purchase: Purchase, event_id: str) -> int:
    """Move the credits due and return how many were taken; a dispute that was won gives them back."""
    sold = system(SOLD)
    # Lock both rows in the order in which `move` writes them.
    sides = LedgerAccount.objects.select_for_update().filter(pk__in=[sold.pk, purchase.account_id])
    account = {row.pk: row for row in sides.order_by("pk")}[purchase.account_id]
    due = purchase.to_take_back - purchase.taken_back
    change = min(due, account.posted - account.held)
    if change > 0:
        move(f"refund:{event_id}"[:128], account, sold, change, kind="refund", reference=purchase.pk)
    elif change < 0:
        move(f"refund:{event_id}"[:128], sold, account, -change, kind="refund", reference=purchase.pk)
    return change


def prices() -> list[tuple[int, int]]:
    """Return the packs on sale, smallest first, as credits and price in minor units; empty when billing is off."""
    if not billing.is_on():
        return []
    return sorted((pack.credits, pack.price_minor) for pack in settings.CREDIT_PACKS)
