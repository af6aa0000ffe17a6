"""
Accounts whose address was never confirmed: anyone can cause them, so they are few and end after hours.

The code in the mail is valid for minutes. Who comes later signs up again, as if for the first time.
"""

from datetime import datetime, timedelta
from typing import Final

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.db import transaction
from django.db.models import Exists, ForeignObjectRel, OuterRef, QuerySet

from muniment.accounts.models import Account
from muniment.accounts.security import retention
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.ids import now

KEPT: Final = timedelta(hours=3)
HOURS: Final = 4
"""Hours of the clock in which an account of three hours counts."""
MAX_UNCONFIRMED: Final = 5_000
"""Beyond it, sign-ups are refused until some of them end."""
_BATCH: Final = 200
_OF_A_SIGN_UP: Final = (EmailAddress, Authenticator, SocialAccount, SocialToken, SecurityEvent)
"""Tables in which a sign-up leaves rows; an account with rows elsewhere was used in another way, and stays."""


def are_too_many() -> bool:
    return _unconfirmed().count() >= MAX_UNCONFIRMED


def forget_unconfirmed(*, at: datetime | None = None) -> int:
    """Delete the accounts that signed up hours ago and did not confirm their address; return how many."""
    old = _unconfirmed().filter(joined_at__lt=(at or now()) - KEPT)
    for each in Account._meta.get_fields(include_hidden=True):  # noqa: SLF001 - documented by Django
        table = each.related_model
        if isinstance(each, ForeignObjectRel) and table not in _OF_A_SIGN_UP:
            old = old.exclude(Exists(QuerySet(table).filter(**{each.field.name: OuterRef("pk")})))
    forgotten = 0
    while batch := list(old[:_BATCH]):
        with transaction.atomic():
            for account in batch:
                retention.forget_account(account)
                account.delete()
        forgotten += len(batch)
    return forgotten


def _unconfirmed() -> "QuerySet[Account]":
    confirmed = EmailAddress.objects.filter(user=OuterRef("pk"), verified=True)
    never_in = Account.objects.filter(role=Account.Role.OWNER, last_login=None, deleted_at=None)
    return never_in.exclude(Exists(confirmed))
