"""
Invitations to co-own a listing: sent by mail, accepted by a signed-in account with the link.

Source: decisions, section 5, several owners.
"""

import hashlib
import secrets
from datetime import timedelta

from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils.translation import gettext

from muniment.accounts import mail
from muniment.accounts.models import Account
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, NotFound, TooMany
from muniment.registry import history
from muniment.registry.company.access import owned, require_account
from muniment.registry.company.company_change import BadFields
from muniment.registry.company.owners import make_owner
from muniment.registry.models import Company, Invitation, Ownership
from muniment.schema.validation import Fault

VALID_FOR = timedelta(days=14)
MAX_OPEN = 20
"""Open invitations per listing, because the mail goes to arbitrary addresses."""
MAX_PER_HOUR = 20
"""Invitations that an account can send in an hour."""


def invite_owner(actor: Actor, slug: str, email: str, *, base_url: str) -> Invitation:
    """
    Invite *email* to co-own a listing.

    Args:
        email: the address; whether it has an account is not revealed.

    Raises:
        NotFound: unknown, or not owned.
        BadFields: the address is invalid.
        Conflict: too many open invitations.
        TooMany: the account sent too many within the hour.
    """
    address = email.strip().lower()
    try:
        validate_email(address)
    except ValidationError:
        raise BadFields([Fault("email", "is not an email address")], "Use the form name@example.org.") from None
    account_id = require_account(actor, "Only accounts can send invitations.")
    owned(actor, slug)
    _check_rate(account_id)
    token = secrets.token_urlsafe(24)
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        waiting = Invitation.objects.filter(
            company=company, accepted_at__isnull=True, invited_at__gt=now() - VALID_FOR
        ).exclude(email=address)
        if waiting.count() >= MAX_OPEN:
            message = f"This listing already has {MAX_OPEN} open invitations."
            raise Conflict(message, "Wait until they are accepted or expire.")
        Invitation.objects.filter(company=company, email=address, accepted_at__isnull=True).delete()
        invitation = Invitation.objects.create(
            company=company, email=address, token_digest=_digest(token), invited_by_id=account_id
        )
        history.entry(actor, "owner invited", before={}, after={"email": address}, company=company).save()
        inviter = Account.objects.filter(pk=account_id).first()
        text = gettext(
            "%(inviter)s invites you to co-own the listing of %(name)s.\n\n%(link)s\n\n"
            "The link expires in 14 days and works for one account. If you didn't expect this invitation, ignore it.\n"
        )
        link = f"{base_url}/manage/invitations/{token}"
        text %= {"inviter": inviter or gettext("An owner"), "name": company.name, "link": link}
        subject = gettext("Co-own the listing of %(name)s") % {"name": company.name}
        transaction.on_commit(lambda: mail.send(address, subject, text))
        return invitation


def _expired() -> NotFound:
    return NotFound("This invitation was used or has expired.", "Ask an owner of the listing for a new one.")


def find_invitation(token: str) -> Invitation:
    """
    Return the invitation of a link.

    Raises:
        NotFound: unknown, used, expired, or its sender no longer owns the listing.
    """
    found = Invitation.objects.select_related("company", "invited_by").filter(
        token_digest=_digest(token), accepted_at__isnull=True, invited_at__gt=now() - VALID_FOR
    )
    invitation = found.first()
    if invitation is None or not _may_invite(invitation):
        raise _expired()
    return invitation


def _may_invite(invitation: Invitation) -> bool:
    """Return whether the sender still is what they were: an owner since before the invitation, or a reviewer."""
    sender = invitation.invited_by
    held = Ownership.objects.filter(
        company=invitation.company_id, account=sender, since__lte=invitation.invited_at, account__is_active=True
    )
    return held.exists() or (sender.is_active and sender.actor("web").is_reviewer)


def accept_invitation(actor: Actor, token: str) -> Company:
    """
    Become an owner by an invitation.

    Raises:
        Forbidden: the actor has no account.
        NotFound: the invitation was used or has expired, or its sender no longer owns the listing.
    """
    account_id = require_account(actor, "A listing belongs to an account.")
    with transaction.atomic():
        # Locked before the invitation is read, in the same order as by an owner who leaves.
        found = Invitation.objects.filter(token_digest=_digest(token)).values("company")
        company = Company.objects.select_for_update().filter(pk__in=found).first()
        if company is None:
            raise _expired()
        invitation = find_invitation(token)
        invitation.accepted_at = now()
        invitation.save()
        make_owner(actor, company, account_id)
        return company


def _check_rate(account_id: int) -> None:
    key = f"invitations-sent:{account_id}:{now():%Y%m%d%H}"
    cache.add(key, 0, timeout=3_700)
    if cache.incr(key) > MAX_PER_HOUR:
        raise TooMany(
            f"You have sent {MAX_PER_HOUR} invitations this hour.", "Try again in the next hour.", retry_after_s=3_600
        )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
