"""
Which credentials still hold, as every process must know within a second.

Whatever takes power from a credential calls `shrink` in its transaction: the edition moves. Whoever keeps
answers about credentials asks for the edition at least twice a second, and is called at once in the process
that made the change.
"""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.signals import post_delete, post_save

from muniment.accounts.models import Account, CredentialEdition

on_shrunk: list[Callable[[], object]] = []
"""Called after the commit that took power from a credential; filled by those who keep answers."""

_ONE = 1


def edition() -> int:
    """Give the edition of all credentials: it moves when one is revoked, narrowed or expires early."""
    found = CredentialEdition.objects.filter(pk=_ONE).values_list("number", flat=True).first()
    return found or 0


def shrink() -> None:
    """Say, inside a transaction, that a credential permits less after its commit."""
    if not CredentialEdition.objects.filter(pk=_ONE).update(number=F("number") + 1):
        CredentialEdition.objects.bulk_create([CredentialEdition(pk=_ONE)], ignore_conflicts=True)
        CredentialEdition.objects.filter(pk=_ONE).update(number=F("number") + 1)
    transaction.on_commit(_tell)


def _tell() -> None:
    for call in on_shrunk:
        call()


def watch_accounts() -> None:
    """Have the edition move when an account may have been closed, whoever did it."""
    post_save.connect(_account_saved, sender=Account, dispatch_uid="muniment.credentials.saved")
    post_delete.connect(_account_deleted, sender=Account, dispatch_uid="muniment.credentials.deleted")


def _account_saved(*, created: bool, update_fields: frozenset[str] | None, **_: Any) -> None:
    if not created and (update_fields is None or "is_active" in update_fields):
        shrink()


def _account_deleted(**_: Any) -> None:
    shrink()
