"""The interface to a payment provider, imported on first use: an instance that sells nothing does not pay for it."""

import importlib.util
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, Protocol

from django.conf import settings

EXTRA: Final = "stripe"
NEEDED: Final = {
    "MUNIMENT_CREDIT_PACKS": "CREDIT_PACKS",
    "MUNIMENT_STRIPE_SECRET_KEY": "STRIPE_SECRET_KEY",
    "MUNIMENT_STRIPE_WEBHOOK_SECRET": "STRIPE_WEBHOOK_SECRET",
}
"""The variables that billing requires, and their names in Django's settings."""
API_BASE: Final = ""
"""The address of Stripe's API; empty for the default of Stripe's library. Tests run a small server in its place."""
WEBHOOK: Final = "/billing/stripe/webhook"

SessionState = Literal["open", "pending", "paid", "expired", "failed"]


class ProviderUnavailable(Exception):  # noqa: N818 - names the condition
    """The provider does not answer or refuses the request; the message is for the operator and holds no secret."""


class BadEvent(Exception):  # noqa: N818 - names the input
    """The event's signature is invalid or too old, or its body is malformed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A payment to collect, and the pages that the buyer returns to. ``expires_at`` is in seconds of Unix time."""

    purchase_id: str
    title: str
    price_minor: int
    currency: str
    success_url: str
    cancel_url: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class PaymentPage:
    """A payment page that was created for an order."""

    session_id: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A payment as the provider sees it. ``is_ours`` means that an instance of this product created it."""

    session_id: str
    purchase_id: str
    state: SessionState
    amount_minor: int
    currency: str
    payment_id: str
    is_ours: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """Money returned to a buyer: the sum of all refunds, or the amount that a dispute withholds now."""

    purchase_id: str
    payment_id: str
    currency: str
    refunded_minor: int | None = None
    disputed_minor: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A verified event from the provider. ``about`` is None for events that do not concern purchases."""

    id: str
    kind: str
    about: Session | Reversal | None


class Provider(Protocol):
    """A payment provider. Never call it inside a transaction."""

    page_origin: str
    """The origin of its payment pages, for the Content-Security-Policy of forms."""

    def open(self, order: Order) -> PaymentPage:
        """Create a payment page, the same one for a repeated order, or raise ProviderUnavailable."""

    def look(self, session_id: str) -> Session | None:
        """Return a payment's current state, None if the provider does not know it, or raise ProviderUnavailable."""

    def read(self, body: bytes, signature: str) -> Event:
        """Verify an event's signature and parse it; raise BadEvent if it is invalid, too old or malformed."""


def missing() -> list[str]:
    """Return the required variables that are not set; all of them when billing is off."""
    return [variable for variable, name in NEEDED.items() if not getattr(settings, name)]


def is_installed() -> bool:
    """Return whether the extra is installed, without importing it."""
    return importlib.util.find_spec(EXTRA) is not None


def is_on() -> bool:
    """Return whether this instance sells credits."""
    return not missing() and is_installed()


def provider() -> Provider:
    """Return the payment provider, imported by the first call; raise ProviderUnavailable when billing is off."""
    if not is_on():
        raise ProviderUnavailable("billing is off")
    return _stripe(
        settings.STRIPE_SECRET_KEY,
        settings.STRIPE_WEBHOOK_SECRET,
        API_BASE,
        settings.STRIPE_CHECKOUT_URL,
    )


@cache
def _stripe(key: str, webhook_secret: str, api_base: str, checkout_url: str) -> Provider:
    from muniment.credits.stripe_checkout import StripeCheckout

    return StripeCheckout(key, webhook_secret, api_base=api_base, checkout_url=checkout_url)
