"""
Revocation: tell every process within a second that a credential has lost access.

Any change that takes access from a credential calls `bump` in its transaction: the epoch increases. Caches of
credentials check the epoch at least twice per second, and are notified at once in the process that made the change.
"""

from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.signals import post_delete, post_save
from django.dispatch import Signal

from muniment.accounts.models import Account, CredentialEdition

revoked = Signal()
"""Sent after a commit that took access from a credential; caches listen."""

_ONE = 1


def epoch() -> int:
    """Return the epoch of all credentials, which increases when one is revoked, narrowed or ends early."""
    return CredentialEdition.objects.filter(pk=_ONE).values_list("number", flat=True).first() or 0


def bump() -> None:
    """Record, inside a transaction, that a credential loses access at its commit."""
    if not CredentialEdition.objects.filter(pk=_ONE).update(number=F("number") + 1):
        CredentialEdition.objects.bulk_create([CredentialEdition(pk=_ONE)], ignore_conflicts=True)
        CredentialEdition.objects.filter(pk=_ONE).update(number=F("number") + 1)
    transaction.on_commit(lambda: revoked.send(None))


def watch_accounts() -> None:
    """Increase the epoch when an account may have been closed, by any code."""
    post_save.connect(_account_saved, sender=Account, dispatch_uid="muniment.credentials.saved")
    post_delete.connect(_account_deleted, sender=Account, dispatch_uid="muniment.credentials.deleted")


def _account_saved(*, created: bool, update_fields: frozenset[str] | None, **_: Any) -> None:
    if not created and (update_fields is None or "is_active" in update_fields):
        bump()


def _account_deleted(**_: Any) -> None:
    bump()
