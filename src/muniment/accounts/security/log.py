"""Record security events, in the transaction of what they report."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model

from muniment.accounts.security import mailing, origin
from muniment.accounts.security.events import MEANINGS, Event
from muniment.accounts.security.models import MAX_CREDENTIAL_CHARACTERS, SecurityEvent
from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import UNSET, Unset

if TYPE_CHECKING:
    from muniment.accounts.models import Account


def record(
    event: Event,
    *,
    account: "Account | int | None" = None,
    actor: Actor | None = None,
    subject: str = "",
    detail: JSONObject | None = None,
    by: int | Unset | None = UNSET,
    mail_to: Sequence[str] | None = None,
    name: str = "",
) -> SecurityEvent:
    """
    Record *event* in the log of *account*, in the audit log, or in both, with the client of the current request.

    Args:
        account: in whose log it appears; None for an event that concerns no account.
        actor: who did it; by default *account* itself, on the website.
        subject: the path of the page of what it is about, such as companies/quillmere.
        detail: small values, as they may be shown to the account: never a secret.
        by: the account that did it, without an actor; None if it is unknown.
        mail_to: addresses to tell; by default that of *account*, if such events are mailed.
        name: of the listing that it is about, for the mail alone.
    """
    account_id = account if account is None or isinstance(account, int) else account.pk
    here = origin.current()
    if isinstance(by, Unset):
        by = account_id if actor is None else actor.account_id
    row = SecurityEvent.objects.create(
        event=event,
        account_id=account_id,
        actor_id=by,
        via="web" if actor is None else actor.via,
        credential="" if actor is None else actor.credential[:MAX_CREDENTIAL_CHARACTERS],
        address=here.address,
        agent=here.agent,
        request_id=here.request_id,
        subject=subject,
        detail=detail or {},
        is_audited=_is_audited(event, account_id, actor),
    )
    if mail_to is None:
        mail_to = _address(account_id) if MEANINGS[event].is_mailed and account_id is not None else ()
    if mail_to:
        mailing.send_mail(row, to=mail_to, name=name)
    return row


def _address(account_id: int) -> list[str]:
    """Return the address of an account, which was verified before its first sign-in."""
    accounts = get_user_model().objects.filter(pk=account_id)
    return list(accounts.values_list("email", flat=True))


def _is_audited(event: Event, account_id: int | None, actor: Actor | None) -> bool:
    """Return whether the event belongs into the audit log: by its kind, or because another's account was changed."""
    if MEANINGS[event].is_audited:
        return True
    return actor is not None and (
        actor.via == "command" or (actor.is_reviewer and actor.account_id not in {None, account_id})
    )
