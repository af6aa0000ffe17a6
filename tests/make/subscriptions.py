"""Subscriptions of visitors: asked for, confirmed, and due."""

import re
from datetime import timedelta

from make.accounts import Letters
from muniment.accounts.security import origin
from muniment.kernel.ids import now
from muniment.searches import digests, subscriptions
from muniment.searches.models import Subscription
from muniment.searches.subscriptions import WantedUpdates

EMAIL = "reader@moss.example"


def asked(topic="company", key="harbour", pace="daily", *, email=EMAIL, address="192.0.2.1"):
    """Ask for updates from a client with *address*."""
    with origin.at(address, "a browser"):
        subscriptions.request_updates(email, WantedUpdates(topic, key, pace))


def token_in(text, page="confirm"):
    """Return the token of a link in a message."""
    return re.search(rf"/updates/{page}/(\S+)", text)[1]


def confirmed(letters: Letters, topic="company", key="harbour", pace="daily", *, email=EMAIL):
    """Ask for updates and confirm them by the mailed link."""
    asked(topic, key, pace, email=email)
    return subscriptions.confirm_updates(token_in(letters.to(email)[-1][1]))


def send_as_due() -> dict[str, int]:
    """Send digests as if the pause of every subscription were over."""
    Subscription.objects.exclude(confirmed_at=None).update(next_at=now() - timedelta(minutes=1))
    return digests.send_due()
