"""
Invitations to co-own a listing: sent by mail, accepted by a signed-in account with the link.

Source: decisions, section 5, several owners.
"""

import re
import secrets
from datetime import timedelta

from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext

from muniment.accounts.models import Account
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.accounts.security.step_up import require_confirmed
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import LimitReached, NotFound, TooMany
from muniment.kernel.tokens import token_digest
from muniment.languages import writing
from muniment.mail import outgoing
from muniment.mail.receivers import in_language_at
from muniment.registry import history
from muniment.registry.company.access import owned, require_account
from muniment.registry.company.changes import BadFields
from muniment.registry.company.listings import make_owner
from muniment.registry.models import Company, Invitation, Ownership
from muniment.registry_toml import applied
from muniment.schema.validation import Fault

VALID_FOR = timedelta(days=14)
MAX_OPEN = 20
"""Open invitations per listing, because the mail goes to arbitrary addresses."""
MAX_PER_HOUR = 20
"""Invitations that an account can send in an hour."""
MAX_PER_DAY = 60
MAX_OF_DRAFTS_PER_DAY = 10
"""Invitations to listings that no reviewer has approved, so that a new account reaches few strangers."""

_PLAIN_ADDRESS = re.compile(r"[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,190}")
"""Addresses without words: a quoted one can be a sentence."""


def invite_owner(actor: Actor, slug: str, email: str, *, base_url: str) -> Invitation:
    """
    Invite *email* to co-own a listing.

    Args:
        email: the address; whether it has an account is not revealed.

    Raises:
        NotFound: unknown, or not owned.
        BadFields: the address is invalid.
        LimitReached: too many open invitations.
        TooMany: the account sent too many within the hour or the day.
        Forbidden: the actor has to confirm its identity first.
    """
    address = email.strip().lower()
    try:
        validate_email(address)
    except ValidationError:
        raise BadFields([Fault("email", "is not an email address")], "Use the form name@example.org.") from None
    account_id = require_account(actor, "Only accounts can send invitations.")
    require_confirmed(actor)
    is_reviewed = owned(actor, slug).published
    _check_rate(account_id, is_reviewed=is_reviewed)
    token = secrets.token_urlsafe(24)
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        waiting = _open(company).exclude(email=address)
        if waiting.count() >= MAX_OPEN:
            message = Phrase("This listing already has {limit} open invitations.", limit=MAX_OPEN)
            raise LimitReached(message, "Wait until they are accepted or expire.")
        Invitation.objects.filter(company=company, email=address, accepted_at__isnull=True).delete()
        invitation = Invitation.objects.create(
            company=company, email=address, token_digest=token_digest(token), invited_by_id=account_id
        )
        history.entry(actor, "owner invited", before={}, after={"email": address}, company=company).save()
        record(
            Event.OWNER_INVITED,
            account=account_id,
            actor=actor,
            subject=f"companies/{company.slug}",
            detail={"email": address},
            name=company.name,
        )
        with in_language_at(address):
            subject, text = _letter(company, account_id, f"{base_url}/manage/invitations/{token}")
            outgoing.send(address, subject, text, kind="invitation")
        return invitation


def list_invitations(actor: Actor, slug: str) -> list[Invitation]:
    """Return the open invitations to a listing that the actor owns, the newest first."""
    return list(_open(owned(actor, slug)).order_by("-invited_at", "-pk"))


def revoke_invitation(actor: Actor, slug: str, key: int) -> Invitation:
    """
    Revoke an open invitation: its link no longer works.

    Raises:
        NotFound: the listing is unknown or not the actor's, or it has no such open invitation.
    """
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        invitation = _open(company).filter(pk=key).first()
        if invitation is None:
            raise NotFound("This invitation was used or has expired.", "Send a new one if it is still needed.")
        history.entry(actor, "invitation revoked", before={"email": invitation.email}, after={}, company=company).save()
        invitation.delete()
        return invitation


def _open(company: Company) -> QuerySet[Invitation]:
    return Invitation.objects.filter(company=company, accepted_at__isnull=True, invited_at__gt=now() - VALID_FOR)


def _letter(company: Company, account_id: int, link: str) -> tuple[str, str]:
    """
    Return subject and text of the mail, which goes to a stranger: it repeats no words that no reviewer has read.

    The name of a published listing was approved; it is cut, and its addresses do not become links.
    """
    address = Account.objects.values_list("email", flat=True).get(pk=account_id)
    inviter = address if _PLAIN_ADDRESS.fullmatch(address) else gettext("An owner")
    if company.published:
        name = outgoing.without_links(company.name)
        subject = gettext("Co-own the listing of %(name)s") % {"name": name}
        said = gettext("%(inviter)s invites you to co-own the listing of %(name)s.") % {
            "inviter": inviter,
            "name": name,
        }
    else:
        subject = gettext("Invitation to co-own a listing")
        said = gettext("%(inviter)s invites you to co-own a listing that is not published yet.") % {"inviter": inviter}
    means = gettext(
        "%(registry)s is a registry of organizations. Owners edit the listing, invite other owners and run assessments."
    ) % {"registry": applied.registry_name()}
    closing = gettext(
        "The link works for one account, until %(day)s. If you didn't expect this invitation, ignore it."
    ) % {"day": writing.day(now() + VALID_FOR)}
    return subject, f"{said}\n\n{means}\n\n{gettext('View invitation')}: {link}\n\n{closing}\n"


def _expired() -> NotFound:
    return NotFound("This invitation was used or has expired.", "Ask an owner of the listing for a new one.")


def find_invitation(token: str) -> Invitation:
    """
    Return the invitation of a link.

    Raises:
        NotFound: unknown, used, expired, or its sender no longer owns the listing.
    """
    found = Invitation.objects.select_related("company", "invited_by").filter(
        token_digest=token_digest(token), accepted_at__isnull=True, invited_at__gt=now() - VALID_FOR
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
        found = Invitation.objects.filter(token_digest=token_digest(token)).values("company")
        company = Company.objects.select_for_update().filter(pk__in=found).first()
        if company is None:
            raise _expired()
        invitation = find_invitation(token)
        invitation.accepted_at = now()
        invitation.save()
        make_owner(actor, company, account_id)
        return company


def _check_rate(account_id: int, *, is_reviewed: bool) -> None:
    moment = now()
    if _count(f"invitations-sent:{account_id}:{moment:%Y%m%d%H}", 3_700) > MAX_PER_HOUR:
        raise TooMany(
            Phrase("You have sent {limit} invitations this hour.", limit=MAX_PER_HOUR),
            "Try again in the next hour.",
            retry_after_s=3_600,
        )
    if _count(f"invitations-of-the-day:{account_id}:{moment:%Y%m%d}", 87_000) > MAX_PER_DAY:
        raise TooMany(
            Phrase("You have sent {limit} invitations today.", limit=MAX_PER_DAY),
            "Try again tomorrow.",
            retry_after_s=86_400,
        )
    if is_reviewed:
        return
    if _count(f"invitations-of-drafts:{account_id}:{moment:%Y%m%d}", 87_000) > MAX_OF_DRAFTS_PER_DAY:
        raise TooMany(
            Phrase("You have sent {limit} invitations to unpublished listings today.", limit=MAX_OF_DRAFTS_PER_DAY),
            "Try again tomorrow, or after the listing is published.",
            retry_after_s=86_400,
        )


def _count(key: str, timeout_s: int) -> int:
    cache.add(key, 0, timeout=timeout_s)
    return cache.incr(key)
