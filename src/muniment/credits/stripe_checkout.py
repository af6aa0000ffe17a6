"""Stripe as the payment provider. Source: Stripe API, Checkout Sessions; Receive events in your webhook endpoint."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import stripe

from muniment.credits.billing import (
    BadEvent,
    Event,
    Order,
    PaymentPage,
    ProviderUnavailable,
    Reversal,
    Session,
    SessionState,
)
from muniment.kernel.json import JSONObject, read_json
from muniment.outbound.deadlines import Service, within
from muniment.store.database import patience

if TYPE_CHECKING:
    from stripe.params.checkout import SessionCreateParams, SessionCreateParamsLineItemPriceData

# Otherwise the library reports this machine's details and stores an id in the home folder.
stripe.enable_telemetry = False

_T = TypeVar("_T")
TIMEOUT_S: Final = (3.0, 10.0)
"""To connect, and for each part of an answer."""
ANSWER_S: Final = 15.0
"""For all attempts of a call: a buyer is waiting for the page."""
_REQUESTS: Final = threading.BoundedSemaphore(8)
_STRIPE: Final = Service("Stripe", silent_after_s=TIMEOUT_S[0])
TOLERANCE_S: Final = 300
OURS: Final = "muniment_purchase"
"""The metadata key of the purchase's id."""


class StripeCheckout:
    """
    A Stripe account.

    Args:
        key: its secret key, or a restricted one that may write Checkout Sessions and read PaymentIntents.
        api_base: the URL of the API; Stripe's own when empty.
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

    def open(self, order: Order) -> PaymentPage:
        """Create a Checkout Session; Stripe returns the same one for the same purchase."""
        metadata = {OURS: order.purchase_id}
        price: SessionCreateParamsLineItemPriceData = {
            "currency": order.currency.lower(),
            "unit_amount": order.price_minor,
            "product_data": {"name": order.title},
        }
        params: SessionCreateParams = {
            "mode": "payment",
            "submit_type": "pay",
            "client_reference_id": order.purchase_id,
            "metadata": metadata,
            "payment_intent_data": {"metadata": metadata},  # copied to the charge, so that its refund carries it
            "line_items": [{"quantity": 1, "price_data": price}],
            # The buyer must pay the amount ordered, in its currency.
            "adaptive_pricing": {"enabled": False},
            "success_url": order.success_url,
            "cancel_url": order.cancel_url,
            "expires_at": order.expires_at,
        }
        once: stripe.RequestOptions = {"idempotency_key": f"purchase-{order.purchase_id}"}
        session = _call(lambda: self._client.v1.checkout.sessions.create(params, once))
        url = urlsplit(session.url or "")
        if f"{url.scheme}://{url.netloc}" != self.page_origin:
            raise ProviderUnavailable(
                f"the payment page is at {url.scheme}://{url.netloc}, not {self.page_origin}: "
                "set MUNIMENT_STRIPE_CHECKOUT_URL"
            )
        return PaymentPage(session.id, url.geturl())

    def look(self, session_id: str) -> Session | None:
        retrieve = self._client.v1.checkout.sessions.retrieve
        try:
            return _session(_call(lambda: retrieve(session_id, {"expand": ["payment_intent"]})).to_dict())
        except _Unknown:
            return None

    def read(self, body: bytes, signature: str) -> Event:
        """Verify the event's signature and age, and parse it."""
        try:
            stripe.WebhookSignature.verify_header(body, signature, self._secret, TOLERANCE_S)
            payload = read_json(body)
            event_id, kind, concerned = payload["id"], payload["type"], payload["data"]["object"]
            about = _READERS.get(kind, _ignore)(concerned)
        except stripe.SignatureVerificationError:
            # Stripe's message contains the body.
            raise BadEvent("the signature is invalid or too old") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadEvent(f"the body is not an event: {type(error).__name__}") from None
        if not isinstance(event_id, str) or not 1 <= len(event_id) <= 255:
            raise BadEvent("the event has no id")
        return Event(event_id, kind, about)


class _Unknown(ProviderUnavailable):
    """Stripe does not know the id."""


def _call(request: Callable[[], _T]) -> _T:
    try:
        with patience.elsewhere(), _STRIPE.asked():
            return within(ANSWER_S, request, _REQUESTS, late="it took too long")
    except TimeoutError as error:
        message = f"Stripe: {error}"
        raise ProviderUnavailable(message) from None
    except stripe.StripeError as error:
        kind = _Unknown if error.http_status == 404 else ProviderUnavailable
        message = error.user_message or type(error).__name__
        raise kind(
            f"Stripe, request {error.request_id or '(none)'}, {error.http_status or 'no answer'}: {message}"
        ) from None


def _session(found: JSONObject, state: SessionState | None = None) -> Session:
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


def _state(found: JSONObject) -> SessionState:
    if found.get("payment_status") in {"paid", "no_payment_required"}:
        return "paid"
    if found.get("status") == "expired":
        return "expired"
    if found.get("status") != "complete":
        return "open"
    payment = found.get("payment_intent")
    is_abandoned = isinstance(payment, dict) and payment.get("status") in {"requires_payment_method", "canceled"}
    return "failed" if is_abandoned else "pending"


def _reversal(found: JSONObject, *, refunded: int | None = None, disputed: int | None = None) -> Reversal:
    return Reversal(
        purchase_id=str((found.get("metadata") or {}).get(OURS) or ""),
        payment_id=str(found.get("payment_intent") or ""),
        currency=str(found.get("currency") or "").upper(),
        refunded_minor=refunded,
        disputed_minor=disputed,
    )


def _ignore(_: Any) -> None:
    """Ignore an event that does not concern purchases."""


_READERS: Final[dict[str, Callable[[Any], Session | Reversal | None]]] = {
    "checkout.session.completed": _session,
    "checkout.session.async_payment_succeeded": _session,
    "checkout.session.async_payment_failed": lambda found: _session(found, "failed"),
    "checkout.session.expired": _session,
    "charge.refunded": lambda found: _reversal(found, refunded=int(found["amount_refunded"])),
    "charge.dispute.funds_withdrawn": lambda found: _reversal(found, disputed=int(found["amount"])),
    "charge.dispute.funds_reinstated": lambda found: _reversal(found, disputed=0),
}
