"""Delete an account: 14 days after its owner asks for it, or at once on the command line."""

import logging
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils.translation import gettext

from muniment.accounts import revocation
from muniment.accounts.models import Account
from muniment.accounts.operations import account_of, find_account, require_operator
from muniment.accounts.personal_data.parts import personal_data
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.accounts.security.step_up import require_confirmed
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, Forbidden
from muniment.languages import writing
from muniment.languages.speaking import known, speaking
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of

GRACE: Final = timedelta(days=14)
log = logging.getLogger(__name__)


def request_deletion(actor: Actor) -> Account:
    """
    Schedule the deletion of the actor's account in 14 days, unless it is scheduled already, and tell the owner by mail.

    Raises:
        Forbidden: the actor is not signed in on the website (no token or app can delete an account), or has to confirm
            its identity first.
        Conflict: it is the only operator.
    """
    require_confirmed(actor)
    with transaction.atomic():
        account = _own(actor)
        _require_another_operator(account)
        if account.delete_at is None:
            account.delete_at = now() + GRACE
            account.save(update_fields=["delete_at"])
            record(Event.DELETION_REQUESTED, account=account, actor=actor)
            with in_language_of(account):
                _tell(account, gettext("Your account will be deleted"), _scheduled(account.delete_at))
    return account


def cancel_deletion(actor: Actor) -> Account:
    """
    Keep the actor's account.

    Raises:
        Forbidden: the actor is not signed in on the website.
    """
    with transaction.atomic():
        account = _own(actor)
        if account.delete_at is not None:
            account.delete_at = None
            account.save(update_fields=["delete_at"])
            record(Event.DELETION_CANCELED, account=account, actor=actor)
            with in_language_of(account):
                _tell(account, gettext("Your account stays"), gettext("The deletion of your account was canceled."))
    return account


def delete_account(actor: Actor, email: str) -> None:
    """
    Delete the account *email* at once.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: there is no such account.
        Conflict: it is the only operator.
    """
    require_operator(actor)
    with transaction.atomic():
        account = Account.objects.select_for_update().get(pk=find_account(email).pk)
        _require_another_operator(account)
        _delete(actor, account)


def delete_due_accounts(*, at: datetime | None = None) -> int:
    """Delete the accounts whose days of grace are over, and return how many were deleted."""
    deleted = 0
    moment = at or now()
    for pk in list(Account.objects.filter(delete_at__lte=moment).values_list("pk", flat=True)):
        with transaction.atomic():
            account = Account.objects.select_for_update().filter(pk=pk, delete_at__lte=moment).first()
            if account is None:
                continue  # canceled in the meantime
            try:
                _require_another_operator(account)
            except Conflict:
                log.warning("account not deleted: it is the only operator", extra={"account": pk})
                continue
            _delete(SYSTEM, account)
            deleted += 1
    return deleted


def _own(actor: Actor) -> Account:
    if actor.via != "web":
        raise Forbidden("Only its owner can delete an account, on the website.", "Sign in and open /accounts/data/.")
    return Account.objects.select_for_update().get(pk=account_of(actor).pk)


def _require_another_operator(account: Account) -> None:
    if account.role != Account.Role.OPERATOR:
        return
    others = Account.objects.filter(role=Account.Role.OPERATOR, is_active=True).exclude(pk=account.pk)
    if not others.exists():
        raise Conflict("This is the only operator.", "Make another account operator first: muniment user role.")


def _delete(actor: Actor, account: Account) -> None:
    """Delete the account's data in every feature, and leave an empty row under its number."""
    email, language = account.email, account.language
    personal_data.delete(account)
    account.email = f"former-{account.pk}{outgoing.NO_MAIL}"
    account.name, account.role, account.is_active, account.language = "", Account.Role.OWNER, False, ""
    account.set_unusable_password()
    account.last_login = account.delete_at = None
    account.joined_at = account.deleted_at = now()
    account.save()
    revocation.bump()
    record(Event.ACCOUNT_DELETED, account=account, actor=actor)
    outgoing.forget(email)
    with speaking(known(language)):
        subject, text = gettext("Your account was deleted"), gettext("Your account and its data were deleted.")
        outgoing.send(email, subject, f"{text}\n", kind=outgoing.FAREWELL)


def _scheduled(delete_at: datetime) -> str:
    said = gettext("Your account will be deleted on %(day)s. Until then, you can keep it.")
    link = places.link(gettext("Keep your account"), "/accounts/data/")
    return f"{said % {'day': writing.day(delete_at)}}\n\n{link}"


def _tell(account: Account, subject: str, text: str) -> None:
    outgoing.send(account.email, subject, f"{text}\n")
