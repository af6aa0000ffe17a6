"""
Stripe behind the port: Checkout Sessions and signed webhooks. Imported when something is bought, not before.

Source: Stripe API, Checkout Sessions; Stripe, Receive events in your webhook endpoint.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import stripe

from muniment.credits.billing import (
    BadEvent,
    Event,
    GivenBack,
    Opened,
    Order,
    ProviderUnavailable,
    Session,
    SessionState,
)

if TYPE_CHECKING:
    from stripe.params.checkout import SessionCreateParams

# Else the library sends what machine this is, and keeps an id in the home of the account that runs it.
stripe.enable_telemetry = False

_T = TypeVar("_T")
TIMEOUT_S: Final = (3.0, 10.0)
"""To connect, and between two bytes of an answer: somebody waits for it on a page."""
TOLERANCE_S: Final = 300
OURS: Final = "muniment_purchase"
"""The name under which a session and its payment carry the purchase's id."""


class StripeCheckout:
    """
    One Stripe account.

    Args:
        key: its secret key, or a restricted one that may write Checkout Sessions and read PaymentIntents.
        webhook_secret: what signs the events.
        api_base: the API's address; Stripe's own when empty.
        checkout_url: the origin of its payment pages.
    """

    def __init__(self, key: str, webhook_secret: str, *, api_base: str, checkout_url: str) -> None:
        self.page_origin = checkout_url
        self._secret = webhook_secret
        self._client = stripe.StripeClient(
            key,
            base_addresses={"api": api_base} if api_base else None,
            max_network_retries=1,
            http_client=stripe.RequestsClient(timeout=TIMEOUT_S),
        )

    def open(self, order: Order) -> Opened:
        """Make a Checkout Session; Stripe gives the same one for the same purchase."""
        carried = {OURS: order.purchase_id}
        params: SessionCreateParams = {
            "mode": "payment",
            "submit_type": "pay",
            "client_reference_id": order.purchase_id,
            "metadata": carried,
            "payment_intent_data": {"metadata": carried},  # a charge has them from there, and its refund names it
            "line_items": [
                {
                    "quantity": 1,
                    "price_data": {
                        "currency": order.currency.lower(),
                        "unit_amount": order.price_minor,
                        "product_data": {"name": order.title},
                    },
                }
            ],
            # What is paid has to be what was ordered, in its currency.
            "adaptive_pricing": {"enabled": False},
            "success_url": order.success_url,
            "cancel_url": order.cancel_url,
            "expires_at": order.expires_at,
        }
        made = _asked(
            lambda: self._client.v1.checkout.sessions.create(
                params, {"idempotency_key": f"purchase-{order.purchase_id}"}
            )
        )
        url = urlsplit(made.url or "")
        if f"{url.scheme}://{url.netloc}" != self.page_origin:
            raise ProviderUnavailable(
                f"the payment page is at {url.scheme}://{url.netloc}, not at {self.page_origin}: "
                "set MUNIMENT_STRIPE_CHECKOUT_URL"
            )
        return Opened(made.id, url.geturl())

    def look(self, session_id: str) -> Session | None:
        """Ask for the Checkout Session and its payment."""
        try:
            found = _asked(
                lambda: self._client.v1.checkout.sessions.retrieve(session_id, {"expand": ["payment_intent"]})
            )
        except _Unknown:
            return None
        return _session(found.to_dict())

    def read(self, body: bytes, signature: str) -> Event:
        """Check the signature, its age, and the form of what was signed."""
        try:
            stripe.WebhookSignature.verify_header(body, signature, self._secret, TOLERANCE_S)
            told = json.loads(body)
            event_id, kind, concerned = told["id"], told["type"], told["data"]["object"]
            about = _READERS.get(kind, _nothing)(concerned)
        except stripe.SignatureVerificationError:
            # Its own words hold the body.
            raise BadEvent("the signature does not hold, or is too old") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadEvent(f"the body is no event: {type(error).__name__}") from None
        if not isinstance(event_id, str) or not 1 <= len(event_id) <= 255:
            raise BadEvent("the event has no id")
        return Event(event_id, kind, about)


class _Unknown(ProviderUnavailable):
    """Stripe has nothing of this id."""


def _asked(question: Callable[[], _T]) -> _T:
    try:
        return question()
    except stripe.StripeError as error:
        kind = _Unknown if error.http_status == 404 else ProviderUnavailable
        said = error.user_message or type(error).__name__
        raise kind(
            f"Stripe, request {error.request_id or '(none)'}, {error.http_status or 'no answer'}: {said}"
        ) from None


def _session(found: dict[str, Any], state: SessionState | None = None) -> Session:
    """Read a Checkout Session, from an answer or out of an event."""
    metadata = found.get("metadata") or {}
    payment = found.get("payment_intent")
    return Session(
        session_id=str(found["id"]),
        purchase_id=str(found.get("client_reference_id") or metadata.get(OURS) or ""),
        state=state or _state(found),
        amount_minor=int(found.get("amount_total") or 0),
        currency=str(found.get("currency") or "").upper(),
        payment_id=str(payment["id"] if isinstance(payment, dict) else payment or ""),
        is_ours=OURS in metadata,
    )


def _state(found: dict[str, Any]) -> SessionState:
    if found.get("payment_status") in {"paid", "no_payment_required"}:
        return "paid"
    if found.get("status") == "expired":
        return "expired"
    if found.get("status") != "complete":
        return "open"
    payment = found.get("payment_intent")
    given_up = isinstance(payment, dict) and payment.get("status") in {"requires_payment_method", "canceled"}
    return "failed" if given_up else "pending"


def _given_back(found: dict[str, Any], *, refunded: int | None = None, disputed: int | None = None) -> GivenBack:
    """Read a charge or a dispute."""
    return GivenBack(
        purchase_id=str((found.get("metadata") or {}).get(OURS) or ""),
        payment_id=str(found.get("payment_intent") or ""),
        currency=str(found.get("currency") or "").upper(),
        refunded_minor=refunded,
        disputed_minor=disputed,
    )


def _nothing(_: Any) -> None:
    """Read nothing out of an event that concerns nothing here."""


_READERS: Final[dict[str, Callable[[Any], Session | GivenBack | None]]] = {
    "checkout.session.completed": _session,
    "checkout.session.async_payment_succeeded": _session,
    "checkout.session.async_payment_failed": lambda found: _session(found, "failed"),
    "checkout.session.expired": _session,
    "charge.refunded": lambda found: _given_back(found, refunded=int(found["amount_refunded"])),
    "charge.dispute.funds_withdrawn": lambda found: _given_back(found, disputed=int(found["amount"])),
    "charge.dispute.funds_reinstated": lambda found: _given_back(found, disputed=0),
}
