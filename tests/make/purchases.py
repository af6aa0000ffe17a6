"""Purchases against the small Stripe: a registry that sells credits, and the events of a purchase."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from muniment.credits import billing, purchases
from muniment.credits import operations as ledger
from muniment.credits.models import Purchase
from muniment.jobs import handlers, queue
from muniment.kernel.actor import Actor
from muniment.setting_values import Pack
from services.stripe import KEY, WEBHOOK_SECRET, Stripe, signed

PAGE = "http://registry.example/manage/credits"


@contextmanager
def selling(settings: Any) -> Iterator[Stripe]:
    """Let this process sell packs of 100 and 500; verify the ledger at the end."""
    with Stripe() as account:
        settings.STARTING_CREDITS = 100
        settings.CREDIT_PACKS = (Pack(100, 900), Pack(500, 4000))
        settings.STRIPE_SECRET_KEY, settings.STRIPE_WEBHOOK_SECRET = KEY, WEBHOOK_SECRET
        settings.STRIPE_CHECKOUT_URL = account.url
        with patch.object(billing, "API_BASE", account.url):
            yield account
    assert ledger.check_ledger() == []


def bought(actor: Actor, size: int = 500) -> str:
    """Order a pack and return the session id."""
    return purchases.buy_credits(actor, size, page_url=PAGE).rpartition("/")[2]


def tell(event: dict[str, Any], **signature: Any) -> str:
    """Pass an event to the operation, as the webhook does."""
    body = json.dumps(event).encode()
    return purchases.receive_event(body, signed(body, **signature))


def balance(actor: Actor) -> int:
    return ledger.get_balance(actor).balance


def state(session_id: str) -> str:
    return Purchase.objects.get(session_id=session_id).state


def reconcile(age: timedelta = timedelta(0)) -> dict[str, int]:
    """Make every purchase older by *age*, and run the job."""
    for each in Purchase.objects.all():
        Purchase.objects.filter(pk=each.pk).update(at=each.at - age, asked_at=each.asked_at and each.asked_at - age)
    handlers.register(handlers.Handler(kind="tests.reconcile", work=purchases.reconcile_purchases))
    try:
        queue.enqueue("tests.reconcile")
        run = queue.claim("tests")
        assert run is not None
        result = purchases.reconcile_purchases(run)
        run.finish(result)
    finally:
        handlers.unregister("tests.reconcile")
    return result
