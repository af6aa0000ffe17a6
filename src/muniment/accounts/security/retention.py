"""
What remains of security events: the only code that removes or shortens them.

Events of an account end after 400 days. The audit log stays, without addresses and browsers after that time. A deleted
account leaves the events of the audit log under its number, without values that name or locate a person.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.db import models
from django.db.models import Q

from muniment.accounts.models import Account
from muniment.accounts.security.events import Event
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject

KEPT_FOR: Final = timedelta(days=400)
IMPERSONAL: Final = frozenset(
    {"was", "role", "credits", "kind", "decision", "change", "request", "action", "fields", "scopes", "reason"}
)
"""Details that remain in the audit log of a deleted account."""
_NOWHERE: Final = {"address": "", "agent": "", "request_id": ""}
_BATCH: Final = 1_000


def sweep_events(*, at: datetime | None = None) -> int:
    """Remove the events whose time is over, and return how many."""
    old = _rows().filter(at__lt=(at or now()) - KEPT_FOR)
    old.filter(is_audited=True).exclude(**_NOWHERE).update(**_NOWHERE)
    removed = 0
    while batch := list(old.filter(is_audited=False).order_by("pk").values_list("pk", flat=True)[:_BATCH]):
        removed += _rows().filter(pk__in=batch).delete()[0]
    return removed


def forget_account(account: Account) -> None:
    """Remove the log of an account that is deleted, and what names or locates it in the audit log."""
    _rows().filter(account=account, is_audited=False).delete()
    _rows().filter(actor=account, is_audited=False).update(**_NOWHERE, credential="")
    for row in _rows().filter(Q(account=account) | Q(actor=account), is_audited=True).iterator():
        kept = row.detail if row.account_id != account.pk else _impersonal(row.detail)
        own = {**_NOWHERE, "credential": ""} if row.actor_id == account.pk else {}
        _rows().filter(pk=row.pk).update(detail=kept, **own)
    _rows().filter(event=Event.OWNER_INVITED, detail__email=account.email).update(detail={})


def forget_person(slugs: Iterable[str]) -> None:
    """Remove the slugs of a person who is erased from the audit log."""
    gone = set(slugs)
    _rows().filter(subject__in=[f"people/{slug}" for slug in gone]).update(subject="")
    for row in _rows().filter(event=Event.PEOPLE_MERGED).iterator():
        if row.detail.get("merged") in gone:
            _rows().filter(pk=row.pk).update(detail={})


def _impersonal(detail: JSONObject) -> JSONObject:
    return {name: value for name, value in detail.items() if name in IMPERSONAL}


def _rows() -> "models.QuerySet[SecurityEvent]":
    """Return the rows as they are in the table, without the lock of the model."""
    return models.QuerySet(SecurityEvent)
