"""
The payment provider's port: what buying credits asks of one, and what it tells.

Which one stands behind it is loaded when something is bought, so that an instance pays for it neither at its start
nor while nobody buys.
"""

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
"""The variables without which nothing is sold, and what Django's settings call them."""
WEBHOOK: Final = "/billing/stripe/webhook"

SessionState = Literal["open", "pending", "paid", "expired", "failed"]


class ProviderUnavailable(Exception):  # noqa: N818 - says what holds
    """The provider is away, or refuses; the message is for the operator and holds no secret."""


class BadEvent(Exception):  # noqa: N818 - says what came
    """An event that the provider did not send, or sent too long ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be paid, and where the buyer goes from there. ``expires_at`` is in seconds of Unix time."""

    purchase_id: str
    title: str
    price_minor: int
    currency: str
    success_url: str
    cancel_url: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A payment page that waits for the buyer."""

    session_id: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A payment as the provider sees it. ``is_ours`` tells that this product made it, whichever instance."""

    session_id: str
    purchase_id: str
    state: SessionState
    amount_minor: int
    currency: str
    payment_id: str
    is_ours: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenBack:
    """Money that went back to a buyer: of refunds all that there were, of a dispute what it withholds now."""

    purchase_id: str
    payment_id: str
    currency: str
    refunded_minor: int | None = None
    disputed_minor: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """What the provider told, proved to be its own. Without *about* it concerns nothing that is done here."""

    id: str
    kind: str
    about: Session | GivenBack | None


class Provider(Protocol):
    """Takes money. None of this is called inside a transaction."""

    page_origin: str
    """Where its payment pages are: a form of ours leads there."""

    def open(self, order: Order) -> Opened:
        """
        Make a payment page. The same order opens one, however often it is sent.

        Raises:
            ProviderUnavailable: it did not.
        """

    def look(self, session_id: str) -> Session | None:
        """
        Tell how a payment stands, None when the provider does not know it.

        Raises:
            ProviderUnavailable: it did not answer.
        """

    def read(self, body: bytes, signature: str) -> Event:
        """
        Read what the provider told, once its signature holds.

        Raises:
            BadEvent: it does not hold, is too old, or the body is no event.
        """


def missing() -> list[str]:
    """List the variables that have to be set before anything can be sold; all of them when billing is off."""
    return [variable for variable, name in NEEDED.items() if not getattr(settings, name)]


def is_installed() -> bool:
    """Tell whether the extra is there, without loading it."""
    return importlib.util.find_spec(EXTRA) is not None


def is_on() -> bool:
    """Tell whether credits can be bought here."""
    return not missing() and is_installed()


def provider() -> Provider:
    """
    Give the provider; the first call loads it.

    Raises:
        ProviderUnavailable: billing is off.
    """
    if not is_on():
        raise ProviderUnavailable("billing is off")
    return _stripe(
        settings.STRIPE_SECRET_KEY,
        settings.STRIPE_WEBHOOK_SECRET,
        settings.STRIPE_API_BASE,
        settings.STRIPE_CHECKOUT_URL,
    )


@cache
def _stripe(key: str, webhook_secret: str, api_base: str, checkout_url: str) -> Provider:
    from muniment.credits.stripe_checkout import StripeCheckout

    return StripeCheckout(key, webhook_secret, api_base=api_base, checkout_url=checkout_url)
