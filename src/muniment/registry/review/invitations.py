"""
Another owner for a listing: invited by mail, accepted by whoever holds the mailed link and is signed in.

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
from muniment.kernel.problems import Conflict, Forbidden, NotFound, TooMany
from muniment.registry import history
from muniment.registry.company.company_change import BadFields
from muniment.registry.company.editing import owned
from muniment.registry.models import Company, Invitation, Ownership
from muniment.schema.validation import Fault

GOOD_FOR = timedelta(days=14)
MAX_OPEN = 20
"""How many unanswered invitations a listing may have: mail goes to strangers."""
SENT_AN_HOUR = 20
"""How many an account may send, to whomever and for whichever listing."""


def invite_owner(actor: Actor, slug: str, email: str, *, base_url: str) -> Invitation:
    """
    Invite *email* to own a listing too.

    Args:
        actor: an owner of the listing.
        slug: the listing.
        email: whom to invite; whether they have an account is not told.
        base_url: the address under which the link is written.

    Raises:
        NotFound: unknown, or not owned.
        BadFields: no address.
        Conflict: too many invitations wait.
        TooMany: the account has sent too many within the hour.
    """
    address = email.strip().lower()
    try:
        validate_email(address)
    except ValidationError:
        raise BadFields([Fault("email", "is no email address")], "Write it as name@example.org.") from None
    if actor.account_id is None:
        raise Forbidden("An invitation comes from an account.", "Sign in first.")
    owned(actor, slug)
    _hold_to_rate(actor.account_id)
    token = secrets.token_urlsafe(24)
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        waiting = Invitation.objects.filter(
            company=company, accepted_at__isnull=True, invited_at__gt=now() - GOOD_FOR
        ).exclude(email=address)
        if waiting.count() >= MAX_OPEN:
            raise Conflict(f"{MAX_OPEN} invitations wait already.", "Wait for answers, or for them to expire.")
        Invitation.objects.filter(company=company, email=address, accepted_at__isnull=True).delete()
        invitation = Invitation.objects.create(
            company=company, email=address, token_digest=_digest(token), invited_by_id=actor.account_id
        )
        history.entry(actor, "owner invited", before={}, after={"email": address}, company=company).save()
        inviter = Account.objects.filter(pk=actor.account_id).first()
        text = gettext(
            "%(inviter)s invites you to co-own the listing of %(name)s.\n\n%(link)s\n\n"
            "The link expires in 14 days and works for one account. If you don't expect this invitation, ignore it.\n"
        ) % {
            "inviter": inviter or gettext("An owner"),
            "name": company.name,
            "link": f"{base_url}/manage/invitations/{token}",
        }
        subject = gettext("Co-own the listing of %(name)s") % {"name": company.name}
        transaction.on_commit(lambda: mail.send(address, subject, text))
        return invitation


def find_invitation(token: str) -> Invitation:
    """
    Find the invitation that a link names.

    Raises:
        NotFound: there is none, it is used, or it is too old.
    """
    found = Invitation.objects.select_related("company", "invited_by").filter(
        token_digest=_digest(token), accepted_at__isnull=True, invited_at__gt=now() - GOOD_FOR
    )
    invitation = found.first()
    if invitation is None:
        raise NotFound("This invitation is used or no longer good.", "Ask for a new one.")
    return invitation


def accept_invitation(actor: Actor, token: str) -> Company:
    """
    Become an owner by an invitation.

    Raises:
        Forbidden: nobody is signed in.
        NotFound: the link is used or no longer good.
    """
    if actor.account_id is None:
        raise Forbidden("A listing belongs to an account.", "Sign in first.")
    with transaction.atomic():
        invitation = find_invitation(token)
        held = Invitation.objects.select_for_update(of=("self",)).filter(pk=invitation.pk, accepted_at__isnull=True)
        if held.first() is None:  # accepted, or replaced by a new one, since it was found
            raise NotFound("This invitation is used or no longer good.", "Ask for a new one.")
        invitation.accepted_at = now()
        invitation.save()
        company = invitation.company
        _, made = Ownership.objects.get_or_create(account_id=actor.account_id, company=company)
        if made:
            history.entry(actor, "owner added", before={}, after={"owner": actor.account_id}, company=company).save()
        return company


def _hold_to_rate(account_id: int) -> None:
    key = f"invitations-sent:{account_id}:{now():%Y%m%d%H}"
    cache.add(key, 0, timeout=3_700)
    if cache.incr(key) > SENT_AN_HOUR:
        raise TooMany(
            f"You sent {SENT_AN_HOUR} invitations within this hour.", "Wait until the next hour.", retry_after_s=3_600
        )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
