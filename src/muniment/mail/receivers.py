"""The language of mail: the one that the receiver last chose or signed in with."""

from contextlib import AbstractContextManager
from typing import Protocol

from django.contrib.auth import get_user_model

from muniment.languages.offered import default
from muniment.languages.speaking import known, speaking


class Receiver(Protocol):
    """An account."""

    language: str


def in_language_of(account: Receiver | None) -> AbstractContextManager[None]:
    """Make texts for *account* in its language; in the default language if it has none that is offered."""
    return speaking(known(account.language) if account is not None and account.language else default())


def in_language_at(email: str) -> AbstractContextManager[None]:
    """Make texts for the account with this address in its language."""
    found: Receiver | None = get_user_model().objects.filter(email=email.strip().lower()).first()
    return in_language_of(found)
